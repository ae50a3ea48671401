#include "libs/config/service_config.h"

#include <array>
#include <cstdlib>
#include <utility>

#include <unistd.h>

#include "libs/base/status_macros.h"
#include "libs/config/connections.h"

namespace fluxqueue::config {
namespace {

using namespace std::chrono_literals;

constexpr const char* kDsnVariable = "FLUXQUEUE_POSTGRES_DSN";

std::string HostName() {
  std::array<char, 256> name{};
  if (::gethostname(name.data(), name.size() - 1) != 0) return "";
  return name.data();
}

LogLevel LevelOf(const std::string& name) {
  if (name == "debug") return LogLevel::kDebug;
  if (name == "warning") return LogLevel::kWarning;
  if (name == "error") return LogLevel::kError;
  return LogLevel::kInfo;
}

// The words of `log`, which become enums after all was read.
struct LogWords {
  std::string level = "info";
  std::string format = "text";
};

Section Describe(ServiceConfig* config,
                 LogWords* log,
                 std::string* dsn_as_written,
                 bool dsn_from_environment) {
  const Presence dsn = dsn_from_environment ? Presence::kOptional : Presence::kRequired;
  Section section;
  section.Text("instance", &config->instance, Presence::kOptional)
      .Nested("log",
              Section()
                  .Choice("level", &log->level, {"debug", "info", "warning", "error"})
                  .Choice("format", &log->format, {"text", "json"}))
      .Nested("http",
              Section()
                  .Text("address", &config->http.address)
                  .Int("port", &config->http.port, 0, 65535))
      .Nested("postgres",
              Section().Text("dsn", &config->postgres.dsn, dsn).AsWritten(dsn_as_written))
      .Nested("kafka",
              Section()
                  .Text("bootstrap", &config->kafka.bootstrap, Presence::kRequired)
                  .Path("properties", &config->kafka.properties)
                  .Duration("session_timeout", &config->kafka.session_timeout, 100ms, 5min))
      .Nested("kubernetes", Section().Path("kubeconfig", &config->kubernetes.kubeconfig))
      .Nested("tracing", Section().Text("endpoint", &config->tracing.endpoint));
  return section;
}

}  // namespace

absl::Status LoadService(const std::string& path,
                         std::string_view service,
                         const Section& own,
                         ServiceConfig* common) {
  const char* dsn = std::getenv(kDsnVariable);  // NOLINT(concurrency-mt-unsafe): before any thread
  const bool has_dsn = dsn != nullptr && *dsn != '\0';
  LogWords log;
  Connections connections;
  Section root = Describe(common, &log, &connections.dsn_as_written, has_dsn);
  root.Nested(std::string(service), own);
  RETURN_IF_ERROR(ReadFile(path, root));

  if (has_dsn) common->postgres.dsn = dsn;
  connections.dsn = common->postgres.dsn;
  connections.bootstrap = common->kafka.bootstrap;
  connections.tracing = common->tracing.endpoint;
  RETURN_IF_ERROR(CheckConnections(path, connections));
  if (common->instance.empty()) common->instance = HostName();
  if (common->instance.empty()) {
    return InvalidArgument("{}: instance: this host has no name; give the instance one", path);
  }
  common->log.level = LevelOf(log.level);
  common->log.format = log.format == "json" ? LogFormat::kJson : LogFormat::kText;
  return absl::OkStatus();
}

absl::StatusOr<LogLevel> ReadLogLevel(const std::string& path, std::string_view service) {
  ServiceConfig unused;
  LogWords log;
  std::string dsn;
  RETURN_IF_ERROR(
      ReadFile(path, Describe(&unused, &log, &dsn, true).Ignored(std::string(service))));
  return LevelOf(log.level);
}

}  // namespace fluxqueue::config
