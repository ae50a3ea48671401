#include "libs/scheduling/reliability.h"

#include <gtest/gtest.h>

namespace fluxqueue::scheduling {
namespace {

constexpr int64_t kMinute = 60'000;

TEST(ReliabilityTest, NewUsersAreNeutralAndThoseWhoAreExactStaySo) {
  Reliability reliability;
  EXPECT_EQ(reliability.PriceOf("new", kMinute), kMinute);
  for (int i = 0; i < 100; ++i) reliability.Learn("exact", kMinute, kMinute);
  EXPECT_EQ(reliability.PriceOf("exact", kMinute), kMinute);
}

TEST(ReliabilityTest, WhoDeclaresTooMuchPaysLess) {
  Reliability reliability;
  for (int i = 0; i < 200; ++i) reliability.Learn("careful", 10 * kMinute, kMinute);
  EXPECT_NEAR(static_cast<double>(reliability.PriceOf("careful", 10 * kMinute)),
              static_cast<double>(kMinute),
              kMinute / 50.0);
}

TEST(ReliabilityTest, WhoIsOftenTooShortPaysForTheLongest) {
  Reliability reliability;
  for (int i = 0; i < 200; ++i) reliability.Learn("liar", 1000, i % 4 == 0 ? kMinute : 1000);
  EXPECT_GT(reliability.PriceOf("liar", 1000), kMinute / 3);
}

TEST(ReliabilityTest, NothingOverflows) {
  Reliability reliability;
  for (int i = 0; i < 100; ++i) reliability.Learn("user", 1, INT64_MAX);
  EXPECT_GT(reliability.PriceOf("user", INT64_MAX), kMinute);
  EXPECT_GT(reliability.PriceOf("user", 1), kMinute);
  reliability.Learn("user", INT64_MAX, 1);
  EXPECT_GE(reliability.PriceOf("user", 1), 1);
}

TEST(ReliabilityTest, TheLastUsersAreKeptAndABatchIsTakenBack) {
  Reliability reliability(2);
  reliability.Learn("a", kMinute, 1);
  reliability.Learn("b", kMinute, 1);
  reliability.Learn("a", kMinute, 1);
  reliability.Commit();
  const auto before = reliability.records();
  reliability.Learn("c", kMinute, 1);
  EXPECT_TRUE(reliability.records().contains("a"));
  EXPECT_FALSE(reliability.records().contains("b"));
  reliability.Rollback();
  EXPECT_EQ(reliability.records(), before);
  reliability.Learn("d", kMinute, 1);
  EXPECT_FALSE(reliability.records().contains("b"));
}

}  // namespace
}  // namespace fluxqueue::scheduling
