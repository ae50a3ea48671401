#include "libs/graph/planned_end.h"

#include <algorithm>
#include <array>

namespace fluxqueue::graph {
namespace {

constexpr int64_t kMinute = 60;
constexpr int64_t kHour = 60 * kMinute;
constexpr std::array<int64_t, 10> kSteps = {kMinute,
                                            5 * kMinute,
                                            15 * kMinute,
                                            30 * kMinute,
                                            kHour,
                                            2 * kHour,
                                            5 * kHour,
                                            10 * kHour,
                                            20 * kHour,
                                            50 * kHour};
constexpr int64_t kLastStep = 100 * kHour;

// The first after `now_s` of the times to which the steps lead from `from_s`.
int64_t AfterSteps(int64_t from_s, int64_t now_s) {
  for (const int64_t step : kSteps) {
    from_s += step;
    if (from_s > now_s) return from_s;
  }
  return from_s + ((now_s - from_s) / kLastStep + 1) * kLastStep;
}

}  // namespace

int64_t PlannedEnd(const Placement& placement, int64_t now_s) {
  if (placement.duration_s == 0) return 0;
  const int64_t end_s = placement.start_s + placement.duration_s;
  if (end_s > now_s) return end_s;
  if (!placement.corrected) return now_s + 1;
  const int64_t corrected_s = AfterSteps(end_s, now_s);
  if (placement.bound_s <= placement.duration_s) return corrected_s;
  const int64_t bound_s = placement.start_s + placement.bound_s;
  return bound_s > now_s ? std::min(corrected_s, bound_s) : AfterSteps(bound_s, now_s);
}

}  // namespace fluxqueue::graph
