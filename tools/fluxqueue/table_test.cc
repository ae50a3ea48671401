#include "tools/fluxqueue/table.h"

#include <cstdlib>
#include <ctime>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace fluxqueue::cli {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

TEST(TableTest, ColumnsAreAsWideAsTheirWidestCell) {
  Table table({"JOB", "STATE", "NODES"});
  table.Add({"team/a", "Running", "n1"});
  table.Add({"team/longer", "Pending"});
  EXPECT_EQ(table.Render(false),
            "JOB          STATE    NODES\n"
            "team/a       Running  n1\n"
            "team/longer  Pending\n");
}

TEST(TableTest, CountsCharactersAndEndsNoLineInBlanks) {
  Table table({"A", "B", "C"});
  table.Add({"✓…", "", ""});
  table.Add({"xyz", "", "c"});
  EXPECT_EQ(table.Render(false), "A    B  C\n✓…\nxyz     c\n");
}

TEST(TableTest, ColourDoesNotMoveColumns) {
  Table table({"A", "B"});
  table.Add({{"ok", Colour::kGreen}, "x"});
  EXPECT_EQ(table.Render(true), "A   B\n\033[32mok\033[0m  x\n");
  EXPECT_EQ(table.Render(false), "A   B\nok  x\n");
}

TEST(FormatTest, Durations) {
  EXPECT_EQ(ShortDuration(Millis(0)), "0s");
  EXPECT_EQ(ShortDuration(Millis(-5)), "0s");
  EXPECT_EQ(ShortDuration(Millis(1250)), "1.250s");
  EXPECT_EQ(ShortDuration(Millis(12'345)), "12s");
  EXPECT_EQ(ShortDuration(Millis(200'000)), "3m20s");
  EXPECT_EQ(ShortDuration(Millis(3600'000)), "1h0m");
  EXPECT_EQ(ShortDuration(Millis(90'000'000)), "1d1h");
}

TEST(FormatTest, TimesAreLocalAndAsShortAsCanBe) {
  // NOLINTNEXTLINE(concurrency-mt-unsafe): there is one thread.
  ASSERT_EQ(setenv("TZ", "UTC-2", 1), 0);
  tzset();
  constexpr int64_t kNoon = 1'780'000'000'000;  // 2026-05-28 20:26:40 UTC
  EXPECT_EQ(ShortTime(0, kNoon), "-");
  EXPECT_EQ(ShortTime(kNoon, kNoon), "22:26:40");
  EXPECT_EQ(ShortTime(kNoon - 86'400'000, kNoon), "May 27 22:26");
  EXPECT_EQ(ShortTime(kNoon - 365LL * 86'400'000, kNoon), "2025 May 28 22:26");
}

TEST(FormatTest, Amounts) {
  EXPECT_EQ(ShortAmount("cpu", 2000), "2");
  EXPECT_EQ(ShortAmount("cpu", 250), "0.25");
  EXPECT_EQ(ShortAmount("memory", 0), "0");
  EXPECT_EQ(ShortAmount("memory", 3LL << 30), "3Gi");
  EXPECT_EQ(ShortAmount("memory", (3LL << 30) + (1LL << 29)), "3.5Gi");
  EXPECT_EQ(ShortAmount("ephemeral-storage", 512), "512");
  EXPECT_EQ(ShortAmount("nvidia.com/gpu", 8), "8");
  EXPECT_EQ(Thousands(0), "0");
  EXPECT_EQ(Thousands(999), "999");
  EXPECT_EQ(Thousands(1000), "1,000");
  EXPECT_EQ(Thousands(1234567), "1,234,567");
}

TEST(NearMatchesTest, FindsWhatWasMeant) {
  EXPECT_EQ(EditDistance("", "abc"), 3U);
  EXPECT_EQ(EditDistance("kitten", "sitting"), 3U);
  EXPECT_EQ(EditDistance("same", "same"), 0U);
  const std::vector<std::string> names = {"team/sim", "team/simulate", "other/train", "team/sim"};
  EXPECT_THAT(NearMatches("sin", names, 5), ElementsAre("team/sim"));
  EXPECT_THAT(NearMatches("sim", names, 5), ElementsAre("team/sim", "team/simulate"));
  EXPECT_THAT(NearMatches("sim", names, 1), ElementsAre("team/sim"));
  EXPECT_THAT(NearMatches("other/trian", names, 5), ElementsAre("other/train"));
  EXPECT_THAT(NearMatches("zzzzzz", names, 5), IsEmpty());
}

}  // namespace
}  // namespace fluxqueue::cli
