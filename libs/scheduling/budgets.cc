#include "libs/scheduling/budgets.h"

#include <algorithm>
#include <array>
#include <chrono>

namespace fluxqueue::scheduling {
namespace {

using std::chrono::days;
using std::chrono::milliseconds;
using std::chrono::months;
using std::chrono::sys_days;
using std::chrono::sys_time;

constexpr std::array<std::string_view, 5> kNames = {"day", "week", "month", "quarter", "year"};
constexpr unsigned kMonthsOfQuarter = 3;

sys_days DayOf(int64_t now_ms) {
  return std::chrono::floor<days>(sys_time<milliseconds>(milliseconds(now_ms)));
}

int64_t MillisOf(sys_days day) {
  return sys_time<milliseconds>(day).time_since_epoch().count();
}

sys_days StartOf(Period period, sys_days day) {
  const std::chrono::year_month_day date(day);
  switch (period) {
    case Period::kDay:
      return day;
    case Period::kWeek:
      return day - (std::chrono::weekday(day) - std::chrono::Monday);
    case Period::kMonth:
      return date.year() / date.month() / 1;
    case Period::kQuarter: {
      const unsigned first = (unsigned{date.month()} - 1) / kMonthsOfQuarter * kMonthsOfQuarter + 1;
      return date.year() / std::chrono::month(first) / 1;
    }
    case Period::kYear:
      return date.year() / std::chrono::January / 1;
  }
  return day;
}

// Beyond it a period of that kind is over, wherever in it one begins to count.
days LongestOf(Period period) {
  constexpr std::array<int, kNames.size()> kDays = {1, 7, 31, 92, 366};
  return days(kDays[static_cast<size_t>(period)]);
}

double UnitOf(std::string_view resource) {
  switch (SharedIndex(resource)) {
    case kCpu:
      return 1000;
    case kMemory:
      return 1 << 30;
    case kGpu:
      return kWholeGpu;
    default:
      return 1;
  }
}

}  // namespace

std::string_view PeriodName(Period period) {
  return kNames[static_cast<size_t>(period)];
}

int64_t PeriodStart(Period period, int64_t now_ms) {
  return MillisOf(StartOf(period, DayOf(now_ms)));
}

int64_t NextPeriodStart(Period period, int64_t now_ms) {
  const sys_days start = StartOf(period, DayOf(now_ms));
  // That many days after the first day of a period lie in the next period, and not beyond it.
  return MillisOf(StartOf(period, start + LongestOf(period)));
}

std::vector<Spent> SpentOf(const std::vector<Budget>& budgets,
                           const std::vector<Spent>& spent,
                           const Resources& held,
                           int64_t before_ms,
                           int64_t now_ms) {
  std::vector<Spent> now;
  now.reserve(budgets.size());
  for (const Budget& budget : budgets) {
    const auto known = std::find_if(spent.begin(), spent.end(), [&budget](const Spent& one) {
      return one.resource == budget.resource && one.period == budget.period;
    });
    const int64_t start_ms = PeriodStart(budget.period, std::max(now_ms, before_ms));
    Spent& next = now.emplace_back();
    next.resource = budget.resource;
    next.period = budget.period;
    next.since_ms = start_ms;
    if (known != spent.end() && known->since_ms == start_ms) next.used = known->used;
    const int64_t held_ms = std::max<int64_t>(0, now_ms - std::max(before_ms, start_ms));
    next.used +=
        static_cast<double>(held.Of(budget.resource)) * static_cast<double>(held_ms) / 1000;
  }
  return now;
}

double HoursOf(const Spent& spent) {
  return spent.used / UnitOf(spent.resource) / 3600;
}

}  // namespace fluxqueue::scheduling
