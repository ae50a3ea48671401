#include "libs/kubernetes/client_metrics.h"

#include <functional>

#include <fmt/format.h>

namespace fluxqueue::kubernetes {
namespace {

void Export(metrics::Registry& registry,
            const std::string& name,
            const std::string& help,
            const std::string& service,
            const Client& client,
            std::function<double(const CallCount&)> value) {
  registry.CountersFrom(name,
                        help,
                        {"component", "verb", "resource", "code"},
                        [&client, service, value = std::move(value)] {
                          std::vector<metrics::Sample> samples;
                          for (const CallCount& count : client.Calls()) {
                            samples.push_back({{{"component", service},
                                                {"verb", count.verb},
                                                {"resource", count.resource},
                                                {"code", fmt::format("{}", count.code)}},
                                               value(count)});
                          }
                          return samples;
                        });
}

}  // namespace

void ExportCalls(metrics::Registry& registry, const std::string& service, const Client& client) {
  Export(registry,
         "fluxqueue_api_requests_total",
         "Requests to the Kubernetes API server, by HTTP code; 0: no answer.",
         service,
         client,
         [](const CallCount& count) { return static_cast<double>(count.calls); });
  Export(registry,
         "fluxqueue_api_request_seconds_total",
         "Time spent in requests to the Kubernetes API server.",
         service,
         client,
         [](const CallCount& count) { return count.seconds; });
}

}  // namespace fluxqueue::kubernetes
