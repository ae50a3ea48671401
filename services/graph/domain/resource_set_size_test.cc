#include "services/graph/domain/resource_set_size.h"

#include <string>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "libs/base/status_macros.h"

namespace fluxqueue::graph_service {
namespace {

using ::testing::HasSubstr;

std::string R(const std::string& rank,
              const std::string& cores,
              const std::string& nodes,
              const std::string& properties = "") {
  return fmt::format(
      R"({{"version": 1, "execution": {{"R_lite": [{{"rank": "{}", "children": {{"core": "{}"}}}}],
           "nodelist": ["{}"], "properties": {{{}}}}}}})",
      rank,
      cores,
      nodes,
      properties);
}

TEST(ResourceSetSizeTest, WhatItNamesIsCounted) {
  // Four nodes with three cores each.
  EXPECT_TRUE(CheckResourceSetSize(R("0-3", "0-2", "n[0-3]"), 16).ok());
  const absl::Status status = CheckResourceSetSize(R("0-3", "0-2", "n[0-3]"), 15);
  EXPECT_TRUE(absl::IsResourceExhausted(status)) << status;
  EXPECT_THAT(Message(status), HasSubstr("more resources than 15"));
  EXPECT_TRUE(absl::IsResourceExhausted(
      CheckResourceSetSize(R("0-2147483646", "0-2147483646", "n0"), 1'000'000)));
}

TEST(ResourceSetSizeTest, PropertiesAreCounted) {
  std::string properties = R"("p": "0-9")";
  EXPECT_TRUE(CheckResourceSetSize(R("0-9", "0", "n[0-9]", properties), 20).ok());
  for (int i = 0; i < 2; ++i) properties += fmt::format(R"(, "p{}": "0-9")", i);
  const absl::Status status = CheckResourceSetSize(R("0-9", "0", "n[0-9]", properties), 20);
  EXPECT_THAT(Message(status), HasSubstr("more properties than 20"));
}

TEST(ResourceSetSizeTest, NodesAreCounted) {
  EXPECT_TRUE(absl::IsInvalidArgument(CheckResourceSetSize(R("0", "0", "n[0-4999999]"), 100)));
}

// They are measured, and not written out.
TEST(ResourceSetSizeTest, NodesHaveSoManyBytes) {
  const std::string text = R("0", "0", std::string(240, 'n') + "[0-499999]");
  const absl::Status status = CheckResourceSetSize(text, 1'000'000);
  EXPECT_TRUE(absl::IsResourceExhausted(status)) << status;
  EXPECT_THAT(Message(status), HasSubstr("names nodes of more bytes than 67108864"));
}

TEST(ResourceSetSizeTest, TextsAreBounded) {
  EXPECT_TRUE(
      absl::IsResourceExhausted(CheckResourceSetSize(std::string(9 << 20, ' '), 1'000'000)));
}

// Its reader says what is wrong.
TEST(ResourceSetSizeTest, WhatIsNoRPasses) {
  for (const char* text : {"",
                           "{",
                           "[]",
                           "{\"execution\": 1}",
                           "{\"execution\": {\"R_lite\": 7}}",
                           "{\"execution\": {\"R_lite\": [7, {\"rank\": 1, \"children\": []}]}}",
                           "{\"execution\": {\"nodelist\": {}, \"properties\": [1]}}"}) {
    EXPECT_TRUE(CheckResourceSetSize(text, 10).ok()) << text;
  }
}

}  // namespace
}  // namespace fluxqueue::graph_service
