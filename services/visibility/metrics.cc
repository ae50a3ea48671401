#include "services/visibility/metrics.h"

#include <fmt/format.h>

namespace fluxqueue::visibility {

VisibilityMetrics::VisibilityMetrics(metrics::Registry& registry)
    : requests_(registry.MakeCounters(
          "fluxqueue_visibility_requests_total",
          "Requests to the aggregated API, by what was asked and the answer's code.",
          {"verb", "code"})),
      seconds_(registry.MakeLatency("fluxqueue_visibility_seconds",
                                    "From a request to the aggregated API to its answer.")),
      refusals_(registry.MakeCounters(
          "fluxqueue_visibility_refusals_total",
          "Connections and requests that the aggregated API's server turned away, by the bound.",
          {"reason"})) {}

void VisibilityMetrics::Answered(std::string_view verb,
                                 int code,
                                 std::chrono::duration<double> latency) {
  requests_.With({{"verb", std::string(verb)}, {"code", fmt::format("{}", code)}}).Add();
  seconds_.Observe(latency);
}

void VisibilityMetrics::TurnedAway(http::Refusal refusal) {
  refusals_.With({{"reason", std::string(http::RefusalName(refusal))}}).Add();
}

}  // namespace fluxqueue::visibility
