// /livez, /readyz and /metrics on libs/http.
//
//   GET /livez    200 "ok", or 503 with a line for each component that hangs: start it anew
//   GET /readyz   200 "ok", or 503 with a line for each component that is not ready, and why
//   GET /metrics  Prometheus' text format
#pragma once

#include <memory>

#include "libs/config/service_config.h"
#include "libs/http/server.h"
#include "libs/lifecycle/health.h"
#include "libs/metrics/metrics.h"

#include "absl/status/statusor.h"

namespace fluxqueue::lifecycle {

// `health` and `metrics` must outlive the server. Errors are those of http::Server::Start.
absl::StatusOr<std::unique_ptr<http::Server>> StartHealthEndpoint(const config::HttpConfig& config,
                                                                  const Health& health,
                                                                  const metrics::Registry& metrics);

}  // namespace fluxqueue::lifecycle
