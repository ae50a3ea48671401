// What the jobs of a queue may use of a resource in each day, week, month, quarter or year of the
// calendar (UTC), and how much of it they have used since that began.
//
// Used is resource · seconds, as in usage.h but without forgetting; it begins at 0 with each
// period, and when a budget is set. Nothing sweeps: it is brought forward when what is held
// changes. Pure, thread-compatible.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "libs/scheduling/resources.h"

namespace fluxqueue::scheduling {

enum class Period { kDay, kWeek, kMonth, kQuarter, kYear };  // a week begins on Monday

// "day" …
std::string_view PeriodName(Period period);

// In milliseconds since the Unix epoch. REQUIRES: now_ms is in the years 1970 to 9999.
int64_t PeriodStart(Period period, int64_t now_ms);
int64_t NextPeriodStart(Period period, int64_t now_ms);

struct Budget {
  std::string resource;  // as limits name it: "gpu" of every maker
  int64_t hours = 0;     // cores, GiB, gpus, or units of another resource, times hours
  Period period = Period::kMonth;
  bool holds = false;  // jobs that ask for the resource wait once it is used up

  friend bool operator==(const Budget&, const Budget&) = default;
};

struct Spent {
  std::string resource;
  Period period = Period::kMonth;
  int64_t since_ms = 0;  // the period's start
  double used = 0;       // in the unit of Resources, times seconds

  friend bool operator==(const Spent&, const Spent&) = default;
};

// At `now_ms`, with `held` held since `before_ms`, at which `spent` was true: one for each budget,
// in their order.
std::vector<Spent> SpentOf(const std::vector<Budget>& budgets,
                           const std::vector<Spent>& spent,
                           const Resources& held,
                           int64_t before_ms,
                           int64_t now_ms);

// In the unit of Budget::hours.
double HoursOf(const Spent& spent);

}  // namespace fluxqueue::scheduling
