#include "libs/scheduling/budgets.h"

#include <chrono>

#include <gtest/gtest.h>
#include <rapidcheck.h>
#include <rapidcheck/gtest.h>

#include "libs/scheduling/limits.h"

namespace fluxqueue::scheduling {
namespace {

constexpr int64_t kHour = 3'600'000;
constexpr int64_t kDay = 24 * kHour;

int64_t At(int year, unsigned month, unsigned day) {
  const std::chrono::sys_days date =
      std::chrono::year(year) / std::chrono::month(month) / std::chrono::day(day);
  return date.time_since_epoch().count() * kDay;
}

Resources Gpus(int64_t gpus) {
  Resources amounts;
  amounts.Add("nvidia.com/gpu", gpus);
  return amounts;
}

TEST(PeriodTest, ThoseOfTheCalendar) {
  const int64_t now = At(2026, 11, 23) + 5 * kHour;  // a Monday
  EXPECT_EQ(PeriodStart(Period::kDay, now), At(2026, 11, 23));
  EXPECT_EQ(PeriodStart(Period::kWeek, now), At(2026, 11, 23));
  EXPECT_EQ(PeriodStart(Period::kWeek, now - kDay), At(2026, 11, 16));
  EXPECT_EQ(PeriodStart(Period::kMonth, now), At(2026, 11, 1));
  EXPECT_EQ(PeriodStart(Period::kQuarter, now), At(2026, 10, 1));
  EXPECT_EQ(PeriodStart(Period::kYear, now), At(2026, 1, 1));
  EXPECT_EQ(NextPeriodStart(Period::kWeek, now), At(2026, 11, 30));
  EXPECT_EQ(NextPeriodStart(Period::kQuarter, now), At(2027, 1, 1));
  EXPECT_EQ(NextPeriodStart(Period::kMonth, At(2024, 2, 29)), At(2024, 3, 1));
}

// Any moment lies in its period, and the moment before the next one too.
RC_GTEST_PROP(PeriodTest, FollowEachOther, ()) {
  const auto period = static_cast<Period>(*rc::gen::inRange(0, 5));
  const int64_t now = *rc::gen::inRange<int64_t>(0, At(9999, 1, 1));
  const int64_t start = PeriodStart(period, now);
  const int64_t next = NextPeriodStart(period, now);
  RC_ASSERT(start <= now && now < next);
  RC_ASSERT(PeriodStart(period, next - 1) == start);
  RC_ASSERT(PeriodStart(period, next) == next);
}

TEST(BudgetTest, CountsWhatIsHeldFromThePeriodOn) {
  const std::vector<Budget> budgets = {{"gpu", 10, Period::kDay, true}};
  const int64_t noon = At(2026, 11, 23) + 12 * kHour;
  std::vector<Spent> spent = SpentOf(budgets, {}, Gpus(2), noon - 3 * kHour, noon);
  ASSERT_EQ(spent.size(), 1u);
  EXPECT_DOUBLE_EQ(HoursOf(spent[0]), 6);
  spent = SpentOf(budgets, spent, Gpus(1), noon, noon + kHour);
  EXPECT_DOUBLE_EQ(HoursOf(spent[0]), 7);
  // Of the night only what lies in the new day.
  spent = SpentOf(budgets, spent, Gpus(1), noon + kHour, noon + 15 * kHour);
  EXPECT_DOUBLE_EQ(HoursOf(spent[0]), 3);
  EXPECT_EQ(spent[0].since_ms, At(2026, 11, 24));
  // Another budget begins at 0.
  spent = SpentOf({{"gpu", 10, Period::kYear, true}}, spent, {}, noon, noon + 15 * kHour);
  EXPECT_EQ(spent[0].used, 0);
}

TEST(BudgetTest, HoldsWhoAsksForTheResource) {
  const std::vector<Budget> budgets = {{"cpu", 1, Period::kMonth, false},
                                       {"gpu", 2, Period::kMonth, true}};
  const auto spent = [&budgets](int64_t gpus) {
    Resources held = Gpus(gpus);
    held.Add("cpu", 64'000);
    const int64_t now = At(2026, 11, 23);
    return SpentOf(budgets, {}, held, now - kHour, now);
  };
  EXPECT_EQ(BudgetAgainst(budgets, spent(1), Gpus(1)), std::nullopt);
  const auto held = BudgetAgainst(budgets, spent(2), Gpus(1));
  ASSERT_TRUE(held.has_value());
  EXPECT_EQ(Sentence(*held, Level::kQueue, "", "lab", 0),
            "queue lab has used up its budget of 2 gpu-hours for this month (UTC); jobs that ask "
            "for gpu go on with the next");
  Resources cpu;
  cpu.Add("cpu", 1000);
  EXPECT_EQ(BudgetAgainst(budgets, spent(2), cpu), std::nullopt);
}

}  // namespace
}  // namespace fluxqueue::scheduling
