#include "libs/lifecycle/health_endpoint.h"

#include <utility>

#include "libs/base/log.h"

namespace fluxqueue::lifecycle {
namespace {

http::Response AnswerOf(HealthReport report) {
  return {.status = report.ok ? 200 : 503, .body = std::move(report.text)};
}

}  // namespace

absl::StatusOr<std::unique_ptr<http::Server>> StartHealthEndpoint(
    const config::HttpConfig& config, const Health& health, const metrics::Registry& metrics) {
  http::Router router;
  router.Add("GET", "/livez", [&health](const http::Request&) {
    HealthReport report = health.Live();
    // What ends us does not say why.
    if (!report.ok) LogError("not alive", {{"because", report.text}});
    return AnswerOf(std::move(report));
  });
  router.Add(
      "GET", "/readyz", [&health](const http::Request&) { return AnswerOf(health.Ready()); });
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
