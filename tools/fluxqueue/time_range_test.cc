#include "tools/fluxqueue/time_range.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "libs/base/status_macros.h"

namespace fluxqueue::cli {
namespace {

using ::testing::HasSubstr;

constexpr int64_t kNovember = 1'793'491'200'000;  // 2026-11-01T00:00:00Z
constexpr int64_t kHour = 3'600'000;
constexpr int64_t kNow = kNovember + 100 * kHour;
constexpr TimeRange kDefault{.since_ms = 5, .until_ms = kNow};

int64_t Since(const std::string& text) {
  const auto range = ParseTimeRange(text, "", kNow, kDefault);
  EXPECT_TRUE(range.ok()) << Message(range.status());
  return range.ok() ? range->since_ms : -1;
}

std::string Refusal(const std::string& since, const std::string& until) {
  return Message(ParseTimeRange(since, until, kNow, kDefault).status());
}

TEST(TimeRangeTest, DaysMonthsTimesAndDurations) {
  EXPECT_EQ(Since("2026-11"), kNovember);
  EXPECT_EQ(Since("2026-11-01"), kNovember);
  EXPECT_EQ(Since("2026-11-02"), kNovember + 24 * kHour);
  EXPECT_EQ(Since("2026-11-01T12:00:00Z"), kNovember + 12 * kHour);
  EXPECT_EQ(Since("2026-11-01T12:00:00+02:00"), kNovember + 10 * kHour);
  EXPECT_EQ(Since("36h"), kNow - 36 * kHour);
  EXPECT_EQ(Since("2d"), kNow - 48 * kHour);
  EXPECT_EQ(Since("30000d"), 0) << "there was nothing before 1970";
}

TEST(TimeRangeTest, WhatIsNotSaidStays) {
  EXPECT_EQ(Since(""), kDefault.since_ms);
  const auto range = ParseTimeRange("", "2026-11-02", kNow, kDefault);
  ASSERT_TRUE(range.ok());
  EXPECT_EQ(range->since_ms, kDefault.since_ms);
  EXPECT_EQ(range->until_ms, kNovember + 24 * kHour);
}

TEST(TimeRangeTest, WhatIsNoMomentIsRefusedByName) {
  for (const char* bad :
       {"yesterday", "2026-13", "2026-02-30", "7", "-7d", "2026-11-1", "26-11-01"}) {
    EXPECT_THAT(Refusal(bad, ""), HasSubstr(std::string("--since ") + bad + ": want a day")) << bad;
  }
  EXPECT_THAT(Refusal("", "noon"), HasSubstr("--until noon: want a day"));
}

TEST(TimeRangeTest, AnEndBeforeTheBeginningIsRefused) {
  EXPECT_EQ(Refusal("2026-11-02", "2026-11-01"),
            "--since 2026-11-02 is not before --until 2026-11-01");
  EXPECT_EQ(Refusal("2026-11-01", "2026-11-01"),
            "--since 2026-11-01 is not before --until 2026-11-01");
  EXPECT_EQ(Refusal("2027-01", ""), "--since 2027-01 is not before --until (now)");
}

}  // namespace
}  // namespace fluxqueue::cli
