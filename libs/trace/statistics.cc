#include "libs/trace/statistics.h"

#include <algorithm>
#include <cmath>

#include "libs/base/check.h"

namespace fluxqueue::trace {

std::optional<double> Percentile(std::vector<double> values, double percent) {
  CHECK(percent > 0 && percent <= 100);
  if (values.empty()) return std::nullopt;
  const double rank = std::ceil(percent / 100 * static_cast<double>(values.size()));
  const size_t index = std::max<size_t>(static_cast<size_t>(rank), 1) - 1;
  const auto at = values.begin() + static_cast<std::ptrdiff_t>(index);
  std::nth_element(values.begin(), at, values.end());
  return *at;
}

std::optional<double> Utilisation(const std::vector<Use>& uses,
                                  std::string_view resource,
                                  int64_t total,
                                  double span_s) {
  if (total <= 0 || span_s <= 0) return std::nullopt;
  double used = 0;
  for (const Use& use : uses) {
    const auto request = use.job->requests.find(resource);
    if (request == use.job->requests.end()) continue;
    used += static_cast<double>(request->second) * static_cast<double>(use.job->slots) * use.held_s;
  }
  return used / (static_cast<double>(total) * span_s);
}

}  // namespace fluxqueue::trace
