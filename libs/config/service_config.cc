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

// What is made of them after all was read.
struct Words {
  std::string log_level = "info";
  std::string log_format = "text";
  std::string signing_key;
  std::string signing_keys;
};

Section Describe(ServiceConfig* config,
                 Words* words,
                 std::string* dsn_as_written,
                 Presence dsn,
                 Presence bootstrap) {
  Section section;
  section.Text("instance", &config->instance, Presence::kOptional)
      .Nested("log",
              Section()
                  .Choice("level", &words->log_level, {"debug", "info", "warning", "error"})
                  .Choice("format", &words->log_format, {"text", "json"}))
      .Nested("http",
              Section()
                  .Text("address", &config->http.address)
                  .Int("port", &config->http.port, 0, 65535))
      .Nested("postgres",
              Section().Text("dsn", &config->postgres.dsn, dsn).AsWritten(dsn_as_written))
      .Nested("kafka",
              Section()
                  .Text("bootstrap", &config->kafka.bootstrap, bootstrap)
                  .Path("properties", &config->kafka.properties)
                  .Duration("session_timeout", &config->kafka.session_timeout, 100ms, 5min)
                  // How far the broker's clock may be ahead of ours before it is not believed.
                  .Duration("max_clock_lead", &config->kafka.max_clock_lead, 1s, 24h))
      .Nested("signing",
              Section().Path("key", &words->signing_key).Path("keys", &words->signing_keys))
      .Nested("kubernetes", Section().Path("kubeconfig", &config->kubernetes.kubeconfig))
      .Nested("tracing", Section().Text("endpoint", &config->tracing.endpoint));
  return section;
}

absl::Status ReadKeys(const Words& words, SigningConfig* config) {
  if (!words.signing_key.empty()) {
    ASSIGN_OR_RETURN(signing::Signer signer, signing::Signer::Read(words.signing_key));
    config->signer = std::make_shared<const signing::Signer>(std::move(signer));
  }
  if (!words.signing_keys.empty()) {
    ASSIGN_OR_RETURN(signing::Keys keys, signing::Keys::Read(words.signing_keys));
    config->keys = std::make_shared<const signing::Keys>(std::move(keys));
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status LoadService(const std::string& path,
                         std::string_view service,
                         const Section& own,
                         ServiceConfig* common,
                         Stores stores) {
  const char* dsn = std::getenv(kDsnVariable);  // NOLINT(concurrency-mt-unsafe): before any thread
  const bool has_dsn = dsn != nullptr && *dsn != '\0';
  Words words;
  Connections connections;
  const auto wanted = [](bool is) { return is ? Presence::kRequired : Presence::kOptional; };
  Section root = Describe(common,
                          &words,
                          &connections.dsn_as_written,
                          wanted(stores != Stores::kNone && !has_dsn),
                          wanted(stores == Stores::kBoth));
  root.Nested(std::string(service), own);
  RETURN_IF_ERROR(ReadFile(path, root));

  if (has_dsn) common->postgres.dsn = dsn;
  connections.dsn = common->postgres.dsn;
  connections.bootstrap = common->kafka.bootstrap;
  connections.tracing = common->tracing.endpoint;
  RETURN_IF_ERROR(CheckConnections(path, connections));
  if (const absl::Status read = ReadKeys(words, &common->signing); !read.ok()) {
    return Annotate(read, path + ": signing");
  }
  if (common->instance.empty()) common->instance = HostName();
  if (common->instance.empty()) {
    return InvalidArgument("{}: instance: this host has no name; give the instance one", path);
  }
  common->log.level = LevelOf(words.log_level);
  common->log.format = words.log_format == "json" ? LogFormat::kJson : LogFormat::kText;
  return absl::OkStatus();
}

absl::StatusOr<LogLevel> ReadLogLevel(const std::string& path, std::string_view service) {
  ServiceConfig unused;
  Words words;
  std::string dsn;
  RETURN_IF_ERROR(ReadFile(path,
                           Describe(&unused, &words, &dsn, Presence::kOptional, Presence::kOptional)
                               .Ignored(std::string(service))));
  return LevelOf(words.log_level);
}

}  // namespace fluxqueue::config
