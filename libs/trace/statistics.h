// The figures of a run. Pure.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "libs/trace/trace.h"

namespace fluxqueue::trace {

// The least of the values that at least `percent` % of them do not exceed (nearest rank); unset
// without values. REQUIRES: 0 < percent <= 100.
std::optional<double> Percentile(std::vector<double> values, double percent);

// What a job held, and for how long.
struct Use {
  const TraceJob* job = nullptr;
  double held_s = 0;
};

// The share of `total` of `resource` that was in use over `span_s`, 0 to 1; unset where there is
// nothing of it or no time.
std::optional<double> Utilisation(const std::vector<Use>& uses,
                                  std::string_view resource,
                                  int64_t total,
                                  double span_s);

}  // namespace fluxqueue::trace
