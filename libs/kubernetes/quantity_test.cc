#include "libs/kubernetes/quantity.h"

#include <limits>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "libs/base/status_macros.h"

namespace fluxqueue::kubernetes {
namespace {

constexpr int64_t kMax = std::numeric_limits<int64_t>::max();

TEST(Quantity, IsReadInBaseUnits) {
  struct Row {
    const char* resource;
    const char* text;
    int64_t amount;
  };
  const Row rows[] = {
      {"cpu", "1", 1000},
      {"cpu", "1500m", 1500},
      {"cpu", "0.5", 500},
      {"cpu", ".5", 500},
      {"cpu", "2.", 2000},
      {"cpu", "+2", 2000},
      {"cpu", "100u", 1},  // rounded up
      {"cpu", "1n", 1},    // rounded up
      {"cpu", "0", 0},
      {"cpu", "1k", 1'000'000},
      {"cpu", "1e3", 1'000'000},
      {"memory", "128", 128},
      {"memory", "1Ki", 1024},
      {"memory", "1.5Gi", 1'610'612'736},
      {"memory", "3Gi", 3'221'225'472},
      {"memory", "1G", 1'000'000'000},
      {"memory", "1E", 1'000'000'000'000'000'000},
      {"memory", "1E3", 1000},
      {"memory", "1e+3", 1000},
      {"memory", "12e-1", 2},  // 1.2 bytes, rounded up
      {"memory", "128974848000m", 128'974'848},
      {"memory", "7Ei", int64_t{7} << 60},
      {"memory", "9223372036854775807", kMax},
      {"nvidia.com/gpu", "4", 4},
      {"nvidia.com/gpu", "1m", 1},  // rounded up
      {"ephemeral-storage", "10Mi", 10'485'760},
      {"memory", "0.00000000000000000001", 1},
      {"memory", "0.000000000000000000000000000000001", 1},
      {"memory", "1.00000000000000000000000000000000", 1},
      {"memory", "1.00000000000000000000000000000001", 2},
      {"memory", "1e-999999999999", 1},
      {"memory", "0e999999999999", 0},
  };
  for (const Row& row : rows) {
    const auto amount = ParseQuantity(row.resource, row.text);
    ASSERT_TRUE(amount.ok()) << row.text << ": " << amount.status();
    EXPECT_EQ(*amount, row.amount) << row.resource << " " << row.text;
  }
}

TEST(Quantity, RefusalsNameTheText) {
  for (const char* text : {"",
                           "x",
                           "1x",
                           "1 Gi",
                           "Gi",
                           ".",
                           "1.2.3",
                           "1e",
                           "1e+",
                           "1e+-3",
                           "1eX",
                           "1ei",
                           "0x10",
                           "1Gib"}) {
    const auto amount = ParseQuantity("memory", text);
    ASSERT_FALSE(amount.ok()) << text;
    EXPECT_EQ(Message(amount.status()),
              fmt::format("\"{}\" is not a quantity; allowed are numbers such as 2, 0.5, 1500m, "
                          "3Gi, 1e3",
                          text));
  }
  EXPECT_EQ(Message(ParseQuantity("cpu", "-1").status()), "\"-1\": an amount must not be negative");
}

// The API server takes them all, and a pod that asks for so much may be bound to a node.
TEST(Quantity, StopsAtTheLargestAmount) {
  for (const char* text : {"8Ei",
                           "9223372036854775808",
                           "18446744073709551616",
                           "99999999999999999999999",
                           "1e20",
                           "100e18",
                           "1e100",
                           "1e999",
                           "1e99999999999999999999",
                           "99999999999999999999999Ei",
                           "0.1e30"}) {
    const auto amount = ParseQuantity("memory", text);
    ASSERT_TRUE(amount.ok()) << text << ": " << amount.status();
    EXPECT_EQ(*amount, kMax) << text;
  }
  EXPECT_EQ(*ParseQuantity("cpu", "9223372036854775807"), kMax);  // in millicores it is more
}

TEST(Quantity, IsShownForPeople) {
  EXPECT_EQ(FormatQuantity("cpu", 1500), "1500m");
  EXPECT_EQ(FormatQuantity("cpu", 2000), "2");
  EXPECT_EQ(FormatQuantity("memory", 3'221'225'472), "3Gi");
  EXPECT_EQ(FormatQuantity("memory", 1000), "1000");
  EXPECT_EQ(FormatQuantity("memory", 0), "0");
  EXPECT_EQ(FormatQuantity("nvidia.com/gpu", 2048), "2048");
  EXPECT_EQ(FormatAmounts({{"cpu", 1500}, {"memory", 1 << 20}}), "cpu 1500m, memory 1Mi");
}

RC_GTEST_PROP(Quantity, FormattedIsReadBack, ()) {
  const auto resource = *rc::gen::element<std::string>("cpu", "memory", "nvidia.com/gpu");
  const auto amount = *rc::gen::inRange<int64_t>(0, kMax);
  const auto back = ParseQuantity(resource, FormatQuantity(resource, amount));
  RC_ASSERT(back.ok());
  RC_ASSERT(*back == amount);
}

RC_GTEST_PROP(Quantity, NoTextIsTooOdd, (const std::string& text)) {
  const auto amount = ParseQuantity("cpu", text);
  if (amount.ok()) RC_ASSERT(*amount >= 0);
}

TEST(Amounts, SumsStopAtTheLargest) {
  Amounts sum = {{"memory", kMax - 1}};
  Add(sum, {{"memory", 5}, {"cpu", 3}});
  EXPECT_EQ(sum, (Amounts{{"cpu", 3}, {"memory", kMax}}));
  RaiseTo(sum, {{"cpu", 2}, {"pods", 1}});
  EXPECT_EQ(sum, (Amounts{{"cpu", 3}, {"memory", kMax}, {"pods", 1}}));
  FillMissing(sum, {{"cpu", 9}, {"gpu", 1}});
  EXPECT_EQ(sum.at("cpu"), 3);
  EXPECT_EQ(sum.at("gpu"), 1);
}

}  // namespace
}  // namespace fluxqueue::kubernetes
