#include <gtest/gtest.h>

#include "libs/base/backoff.h"
#include "libs/base/check.h"
#include "libs/base/clock.h"
#include "libs/base/status_macros.h"
#include "libs/base/strong_type.h"

namespace fluxqueue {
namespace {

TEST(BackoffTest, DoublesUpToTheMaximum) {
  EXPECT_EQ(BackoffDelay(Millis(100), Millis(1000), 1), Millis(100));
  EXPECT_EQ(BackoffDelay(Millis(100), Millis(1000), 3), Millis(400));
  EXPECT_EQ(BackoffDelay(Millis(100), Millis(1000), 60), Millis(1000));
}

TEST(BackoffTest, SpreadStaysWithinAFifth) {
  Backoff backoff(Millis(100), Millis(100), 7);
  for (int i = 0; i < 100; ++i) {
    const Millis delay = backoff.Next();
    EXPECT_GE(delay, Millis(80));
    EXPECT_LE(delay, Millis(120));
  }
}

TEST(ClockTest, FormatsMilliseconds) {
  EXPECT_EQ(FormatTime(Millis(1769860800123)), "2026-01-31T12:00:00.123Z");
  EXPECT_EQ(FormatTime(Millis(0)), "1970-01-01T00:00:00.000Z");
}

absl::StatusOr<int> Half(int n) {
  if (n % 2 != 0) return InvalidArgument("{} is odd", n);
  return n / 2;
}

absl::StatusOr<int> Quarter(int n) {
  ASSIGN_OR_RETURN(const int half, Half(n));
  return Half(half);
}

TEST(StatusTest, MacrosPropagate) {
  EXPECT_EQ(*Quarter(8), 2);
  EXPECT_EQ(Message(Annotate(Quarter(6).status(), "quarter")), "quarter: 3 is odd");
  EXPECT_TRUE(IsPoison(Quarter(6).status()));
  EXPECT_FALSE(IsTransient(Quarter(6).status()));
}

TEST(StrongTypeTest, PrintsAndOrders) {
  using Name = StrongString<struct NameTag>;
  EXPECT_EQ(fmt::format("{}", Name("a")), "a");
  EXPECT_LT(Name("a"), Name("b"));
}

TEST(CheckDeathTest, NamesTheCondition) {
  EXPECT_DEATH(CHECK(1 > 2, "got {}", 3), "CHECK\\(1 > 2\\) failed: got 3");
}

}  // namespace
}  // namespace fluxqueue
