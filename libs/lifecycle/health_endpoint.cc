#include "libs/lifecycle/health_endpoint.h"

#include <utility>

namespace fluxqueue::lifecycle {

absl::StatusOr<std::unique_ptr<http::Server>> StartHealthEndpoint(
    const config::HttpConfig& config, const Health& health, const metrics::Registry& metrics) {
  http::Router router;
  router.Add("GET", "/livez", [](const http::Request&) { return http::Response{.body = "ok\n"}; });
  router.Add("GET", "/readyz", [&health](const http::Request&) {
    HealthReport report = health.Ready();
    return http::Response{.status = report.ok ? 200 : 503, .body = std::move(report.text)};
  });
  router.Add("GET", "/metrics", [&metrics](const http::Request&) {
    return http::Response{.content_type = "text/plain; version=0.0.4; charset=utf-8",
                          .body = metrics.Text()};
  });
  http::ServerOptions options;
  options.address = config.address;
  options.port = config.port;
  // Nobody has anything to send here.
  options.max_body_bytes = 64 << 10;
  return http::Server::Start(std::move(options), router.AsHandler());
}

}  // namespace fluxqueue::lifecycle
