// A client's calls as metrics: fluxqueue_api_requests_total and
// fluxqueue_api_request_seconds_total, by component, verb, resource and code.
#pragma once

#include <string>

#include "libs/kubernetes/client.h"
#include "libs/metrics/metrics.h"

namespace fluxqueue::kubernetes {

// `client` must outlive the registry's last Text().
void ExportCalls(metrics::Registry& registry, const std::string& service, const Client& client);

}  // namespace fluxqueue::kubernetes
