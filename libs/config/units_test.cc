#include "libs/config/units.h"

#include <limits>

#include <gtest/gtest.h>

#include "libs/base/status_macros.h"

namespace fluxqueue::config {
namespace {

using namespace std::chrono_literals;

TEST(ParseDurationTest, ReadsWhatPeopleWrite) {
  EXPECT_EQ(*ParseDuration("0"), 0ms);
  EXPECT_EQ(*ParseDuration("250ms"), 250ms);
  EXPECT_EQ(*ParseDuration("3s"), 3s);
  EXPECT_EQ(*ParseDuration("1h30m"), 1h + 30min);
  EXPECT_EQ(*ParseDuration("2d1ms"), 48h + 1ms);
}

TEST(ParseDurationTest, RefusesWhatIsUnclear) {
  for (const char* text : {"",
                           "3",
                           "-3s",
                           "3 s",
                           "3x",
                           "s",
                           "1m1h",
                           "1s1s",
                           "1.5s",
                           "1h ",
                           "99999999999999999999s",
                           "9223372036854775807h"}) {
    EXPECT_FALSE(ParseDuration(text).ok()) << text;
  }
  EXPECT_EQ(Message(ParseDuration("3").status()),
            "\"3\" is not a duration: write it like 250ms, 3s, 5m, 1h30m or 0");
}

TEST(ParseDurationTest, ReadsBackWhatWasFormatted) {
  for (const Millis value : {Millis(0), Millis(1), Millis(90'000), Millis(86'400'001)}) {
    EXPECT_EQ(*ParseDuration(FormatDuration(value)), value) << FormatDuration(value);
  }
  EXPECT_EQ(FormatDuration(90s), "1m30s");
}

TEST(ParseSizeTest, ReadsBinaryUnitsOnly) {
  EXPECT_EQ(*ParseSize("4096"), 4096);
  EXPECT_EQ(*ParseSize("64KiB"), 65536);
  EXPECT_EQ(*ParseSize("3MiB"), 3 * 1024 * 1024);
  EXPECT_EQ(*ParseSize("1TiB"), int64_t{1} << 40);
  for (const char* text : {"", "MiB", "3MB", "3M", "-1", "1.5GiB", "9223372036854775807TiB"}) {
    EXPECT_FALSE(ParseSize(text).ok()) << text;
  }
}

TEST(FormatSizeTest, TakesTheLargestUnitThatDivides) {
  EXPECT_EQ(FormatSize(0), "0");
  EXPECT_EQ(FormatSize(1536), "1536");
  EXPECT_EQ(FormatSize(65536), "64KiB");
  EXPECT_EQ(FormatSize(std::numeric_limits<int64_t>::max()), "9223372036854775807");
}

}  // namespace
}  // namespace fluxqueue::config
