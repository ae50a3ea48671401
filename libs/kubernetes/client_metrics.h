// A client's calls as metrics: fluxqueue_<service>_api_calls_total and …_api_call_seconds_total, by
// verb and resource, and …_api_call_failures_total.
#pragma once

#include <string>

#include "libs/kubernetes/client.h"
#include "libs/metrics/metrics.h"

namespace fluxqueue::kubernetes {

// `client` must outlive the registry's last Text().
void ExportCalls(metrics::Registry& registry, const std::string& service, const Client& client);

}  // namespace fluxqueue::kubernetes
