#include "libs/lifecycle/service_main.h"

#include <condition_variable>
#include <cstdio>
#include <mutex>
#include <optional>
#include <thread>
#include <utility>

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include "libs/base/clock.h"
#include "libs/base/log.h"
#include "libs/base/status_macros.h"
#include "libs/http/client.h"
#include "libs/lifecycle/health.h"
#include "libs/lifecycle/health_endpoint.h"
#include "libs/lifecycle/log_level_watch.h"
#include "libs/lifecycle/runner.h"
#include "libs/lifecycle/signal_watch.h"
#include "libs/metrics/process_metrics.h"

namespace fluxqueue::lifecycle {
namespace {

constexpr int kStopped = 0;
constexpr int kFailed = 1;
constexpr int kBadConfiguration = 2;

constexpr Millis kHealthTimeout{2'000};

struct Arguments {
  std::string config_path;
  bool check_config = false;
  bool health = false;
  bool prepare = false;
  std::optional<int> within_s;
  bool metrics = false;
};

// The exit code, when the command line says that there is nothing to run.
std::optional<int> Parse(int argc, char** argv, const Service& service, Arguments* arguments) {
  const std::string program = fmt::format("fluxqueue-{}", service.name);
  CLI::App app(fmt::format("The {} service of Fluxqueue.", service.name), program);
  app.add_option("--config", arguments->config_path, "configuration file, YAML")->required();
  app.add_flag("--check-config",
               arguments->check_config,
               "read and validate the configuration, say so, and end");
  app.add_flag("--health",
               arguments->health,
               "ask the service that runs with this configuration whether it is ready, and end");
  CLI::Option* const prepare = app.add_flag(
      "--prepare", arguments->prepare, "make the tables and topics that are missing, and end");
  app.add_option("--within",
                 arguments->within_s,
                 "give up, with the reason, after so many seconds (default: wait for what is away)")
      ->needs(prepare)
      ->check(CLI::PositiveNumber);
  app.add_flag("--metrics",
               arguments->metrics,
               "print name, type, labels and meaning of all metrics, and end");
  app.set_version_flag("--version", fmt::format("{} {}", program, FLUXQUEUE_VERSION));
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    // Also how --help and --version end; those are no errors.
    return app.exit(error) == 0 ? kStopped : kBadConfiguration;
  }
  return std::nullopt;
}

// The exit code of --health.
int AskHealth(const config::HttpConfig& config) {
  const bool any_address = config.address == "0.0.0.0" || config.address == "::";
  http::Client client({.base_url = fmt::format(
                           "http://{}:{}", any_address ? "127.0.0.1" : config.address, config.port),
                       .connect_timeout = kHealthTimeout});
  const absl::StatusOr<http::Response> answer =
      client.Do({.target = "/readyz", .timeout = kHealthTimeout});
  fmt::print("{}", answer.ok() ? answer->body : Message(answer.status()) + "\n");
  return answer.ok() && answer->status == 200 ? kStopped : kFailed;
}

absl::StatusOr<std::unique_ptr<App>> MakeApp(const Service& service, const AppContext& context) {
  ASSIGN_OR_RETURN(std::unique_ptr<App> app, service.make_app(context));
  if (app == nullptr) return Internal("make_app returned nothing");
  return app;
}

// Stops `what` when the time is over, unless it has gone by then.
std::jthread StopAfter(std::chrono::seconds time, std::stop_source what) {
  return std::jthread([time, what = std::move(what)](const std::stop_token& gone) mutable {
    std::mutex mutex;
    std::condition_variable_any over;
    std::unique_lock lock(mutex);
    over.wait_for(lock, gone, time, [] { return false; });
    if (!gone.stop_requested()) what.request_stop();
  });
}

absl::Status Prepare(const Service& service,
                     const config::ServiceConfig& config,
                     std::optional<int> within_s) {
  if (!service.prepare) return absl::OkStatus();
  std::stop_source stop;
  const SignalWatch signals([&stop](const std::string& /*name*/) { stop.request_stop(); });
  std::jthread limit;
  if (within_s.has_value()) limit = StopAfter(std::chrono::seconds(*within_s), stop);
  return service.prepare(config, stop.get_token());
}

void ExportOwnMetrics(const Service& service, metrics::Registry& metrics) {
  metrics::ExportProcessMetrics(metrics);
  metrics
      .MakeGauge("fluxqueue_build_info",
                 "The version that runs; always 1.",
                 {{"component", service.name}, {"version", FLUXQUEUE_VERSION}})
      .Set(1);
}

// One a line, with tabs between name, type, labels and help.
absl::Status PrintMetrics(const Service& service, const config::ServiceConfig& config) {
  const RealClock clock;
  metrics::Registry metrics;
  ExportOwnMetrics(service, metrics);
  Health health;
  Runner runner(health, service.stop_deadline);
  tracing::Tracer tracer({}, metrics);
  ASSIGN_OR_RETURN(const std::unique_ptr<App> app,
                   MakeApp(service, {config, metrics, clock, runner, tracer}));
  for (const metrics::Description& metric : metrics.Describe()) {
    fmt::print(
        "{}\t{}\t{}\t{}\n", metric.name, metric.type, fmt::join(metric.labels, ","), metric.help);
  }
  return absl::OkStatus();
}

absl::Status Run(const Service& service,
                 const std::string& config_path,
                 const config::ServiceConfig& config) {
  const RealClock clock;
  metrics::Registry metrics;
  ExportOwnMetrics(service, metrics);
  Health health;
  Runner runner(health, service.stop_deadline);
  const SignalWatch signals([&runner](const std::string& name) { runner.RequestStop(name); });
  const LogLevelWatch log_level(config_path, service.name, config.log.level);

  tracing::Tracer tracer(
      {.endpoint = config.tracing.endpoint, .service = service.name, .instance = config.instance},
      metrics);
  // Destroyed after the endpoint, whose metrics may read from it.
  std::unique_ptr<App> app;
  ASSIGN_OR_RETURN(const std::unique_ptr<http::Server> endpoint,
                   StartHealthEndpoint(config.http, health, metrics));
  LogInfo("serving /livez, /readyz and /metrics",
          {{"address", fmt::format("{}:{}", config.http.address, endpoint->port())}});
  ASSIGN_OR_RETURN(app, MakeApp(service, {config, metrics, clock, runner, tracer}));
  return runner.Run(app->Components());
}

}  // namespace

int ServiceMain(int argc, char** argv, const Service& service) {
  Arguments arguments;
  if (const std::optional<int> code = Parse(argc, argv, service, &arguments)) return *code;

  config::ServiceConfig config;
  const absl::Status read = config::LoadService(
      arguments.config_path, service.name, service.section, &config, service.stores);
  if (!read.ok()) {
    fmt::print(stderr, "{}\n", Message(read));
    return kBadConfiguration;
  }
  if (arguments.check_config) {
    fmt::print("{}: ok\n", arguments.config_path);
    return kStopped;
  }
  if (arguments.health) return AskHealth(config.http);
  if (arguments.metrics) {
    const absl::Status printed = PrintMetrics(service, config);
    if (!printed.ok()) fmt::print(stderr, "{}\n", Message(printed));
    return printed.ok() ? kStopped : kFailed;
  }

  InitLog(service.name, config.log.level, config.log.format);
  LogInfo("starting", {{"version", FLUXQUEUE_VERSION}, {"instance", config.instance}});
  const absl::Status status = arguments.prepare ? Prepare(service, config, arguments.within_s)
                                                : Run(service, arguments.config_path, config);
  if (!status.ok()) {
    LogError("ended with a failure", {{"reason", Message(status)}});
    return kFailed;
  }
  LogInfo("stopped");
  return kStopped;
}

}  // namespace fluxqueue::lifecycle
