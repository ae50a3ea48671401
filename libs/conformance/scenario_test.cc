#include "libs/conformance/scenario.h"

#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "libs/base/status_macros.h"

namespace fluxqueue::conformance {
namespace {

using ::testing::HasSubstr;

// One node with two cores.
absl::StatusOr<std::string> Read(const std::string& name) {
  if (name == "graph") {
    return R"({"graph": {"nodes": [
      {"id": "0", "metadata": {"type": "cluster", "id": 0, "paths": {"containment": "/c0"}}},
      {"id": "1", "metadata": {"type": "node", "id": 0, "paths": {"containment": "/c0/node0"}}},
      {"id": "2", "metadata": {"type": "core", "id": 0, "paths": {"containment": "/c0/node0/core0"}}},
      {"id": "3", "metadata": {"type": "core", "id": 1, "paths": {"containment": "/c0/node0/core1"}}}],
      "edges": [{"source": "0", "target": "1"}, {"source": "1", "target": "2"},
                {"source": "1", "target": "3"}]}})";
  }
  if (name == "bad") return "version: 9999";
  return R"(
version: 9999
resources: [{type: slot, count: 1, label: a, with: [{type: core, count: 1}]}]
tasks: []
attributes: {system: {duration: 10}}
)";
}

std::string Scenario(const std::string& steps) {
  return R"({"what": "w", "graph": "graph", "policy": "high", "prune_filters": "ALL:core",
             "traverser": "simple", "steps": [)" +
         steps + "]}";
}

const char kAllocated[] = R"({"op": "allocate", "jobspec": "one", "jobid": 1, "expect":
  {"status": "allocated", "at": 0, "resources": [["/c0", 1, false], ["/c0/node0", 1, false],
                                                 ["/c0/node0/core1", 1, true]]}})";

TEST(Scenario, EqualAnswersAreEqual) {
  const auto result = PlayScenario(Scenario(kAllocated), Read, MakeNativeTarget);
  ASSERT_TRUE(result.ok()) << result.status();
  EXPECT_EQ(result->steps, 1u);
  EXPECT_TRUE(result->same_outcome && result->same_placement);
  EXPECT_FALSE(result->first.has_value());
}

TEST(Scenario, AnotherPlaceIsNoOtherOutcome) {
  std::string other = kAllocated;
  other.replace(other.find("core1"), 5, "core0");
  const auto result = PlayScenario(Scenario(other), Read, MakeNativeTarget);
  ASSERT_TRUE(result.ok()) << result.status();
  EXPECT_TRUE(result->same_outcome);
  EXPECT_FALSE(result->same_placement);
  ASSERT_TRUE(result->first.has_value());
  EXPECT_EQ(result->first->step, 1u);
  EXPECT_THAT(result->first->given, HasSubstr("core1"));
}

TEST(Scenario, AnotherOutcomeIsFoundAtItsStep) {
  const auto result =
      PlayScenario(Scenario(std::string(kAllocated) +
                            R"(, {"op": "cancel", "jobid": 1, "expect": {"ok": false}})"),
                   Read,
                   MakeNativeTarget);
  ASSERT_TRUE(result.ok()) << result.status();
  EXPECT_FALSE(result->same_outcome);
  ASSERT_TRUE(result->first.has_value());
  EXPECT_EQ(result->first->step, 2u);
  EXPECT_EQ(result->first->operation, "cancel");
}

TEST(Scenario, ARefusedJobspecIsAnAnswer) {
  const auto result = PlayScenario(
      Scenario(R"({"op": "allocate", "jobspec": "bad", "jobid": 1, "expect": {"status": "busy"}})"),
      Read,
      MakeNativeTarget);
  ASSERT_TRUE(result.ok()) << result.status();
  EXPECT_TRUE(result->same_placement);
}

TEST(Scenario, RefusedCriteriaAreAnAnswer) {
  const auto result = PlayScenario(
      Scenario(R"({"op": "find", "criteria": "names=socket[af[", "expect": {"resources": []}}, )" +
               std::string(kAllocated)),
      Read,
      MakeNativeTarget);
  ASSERT_TRUE(result.ok()) << result.status();
  EXPECT_TRUE(result->same_placement);
  EXPECT_EQ(result->steps, 2u);
}

TEST(Scenario, WhatIsNoScenarioIsSaid) {
  for (const std::string line : {"", "[]", "{\"what\": \"w\"}"}) {
    EXPECT_THAT(Message(PlayScenario(line, Read, MakeNativeTarget).status()),
                HasSubstr("another form"))
        << line;
  }
  const auto unknown =
      PlayScenario(Scenario(R"({"op": "dance", "expect": {}})"), Read, MakeNativeTarget);
  EXPECT_THAT(Message(unknown.status()), HasSubstr("unknown operation \"dance\""));
}

}  // namespace
}  // namespace fluxqueue::conformance
