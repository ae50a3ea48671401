#include "libs/kubernetes/client_metrics.h"

#include <functional>

#include <fmt/format.h>

namespace fluxqueue::kubernetes {
namespace {

void Export(metrics::Registry& registry,
            const std::string& name,
            const std::string& help,
            const Client& client,
            std::function<double(const CallCount&)> value) {
  registry.CountersFrom(name, help, [&client, value = std::move(value)] {
    std::vector<metrics::Sample> samples;
    for (const CallCount& count : client.Calls()) {
      samples.push_back({{{"verb", count.verb}, {"resource", count.resource}}, value(count)});
    }
    return samples;
  });
}

}  // namespace

void ExportCalls(metrics::Registry& registry, const std::string& service, const Client& client) {
  const auto name = [&](const char* what) { return fmt::format("fluxqueue_{}_{}", service, what); };
  Export(registry,
         name("api_calls_total"),
         "Calls to the Kubernetes API server.",
         client,
         [](const CallCount& count) { return static_cast<double>(count.calls); });
  Export(registry,
         name("api_call_failures_total"),
         "Calls that the Kubernetes API server did not answer with success, 404 and 409 included.",
         client,
         [](const CallCount& count) { return static_cast<double>(count.failures); });
  Export(registry,
         name("api_call_seconds_total"),
         "Time spent in calls to the Kubernetes API server.",
         client,
         [](const CallCount& count) { return count.seconds; });
}

}  // namespace fluxqueue::kubernetes
