#include "tools/fluxqueue/context.h"

#include <cstdlib>

#include "libs/base/status_macros.h"
#include "libs/config/section.h"

namespace fluxqueue::cli {
namespace {

std::string Environment(const char* name) {
  const char* value = std::getenv(name);  // NOLINT(concurrency-mt-unsafe): before any thread
  return value == nullptr ? "" : value;
}

std::string StateFolder() {
  if (std::string folder = Environment("FLUXQUEUE_STATE"); !folder.empty()) return folder;
  std::string state = Environment("XDG_STATE_HOME");
  if (state.empty()) state = Environment("HOME") + "/.local/state";
  return state + "/fluxqueue";
}

}  // namespace

std::string ConfigPath(const std::string& given) {
  if (!given.empty()) return given;
  if (std::string file = Environment("FLUXQUEUE_CONFIG"); !file.empty()) return file;
  return StateFolder() + "/fluxqueue.yaml";
}

absl::StatusOr<SystemConfig> Context::LoadConfig() const {
  SystemConfig config;
  config.file = ConfigPath(config_file);
  const absl::Status status = config::ReadFile(
      config.file,
      config::Section()
          .Nested("postgres",
                  config::Section().Text("dsn", &config.dsn, config::Presence::kRequired))
          .Nested(
              "kafka",
              config::Section().Text("bootstrap", &config.bootstrap, config::Presence::kRequired))
          .Nested("kubernetes", config::Section().Path("kubeconfig", &config.kubeconfig)));
  if (absl::IsNotFound(status)) {
    return MakeStatus(
        absl::StatusCode::kNotFound,
        "there is no configuration at {}: start a system with tools/up, which writes it, or name "
        "another file with --config FILE or $FLUXQUEUE_CONFIG. It says where the system is:\n"
        "  postgres: {{dsn: \"host=… dbname=… user=…\"}}\n"
        "  kafka: {{bootstrap: \"host:port\"}}\n"
        "  kubernetes: {{kubeconfig: FILE}}",
        config.file);
  }
  RETURN_IF_ERROR(status);
  return config;
}

Millis Context::Now() const {
  return std::chrono::duration_cast<Millis>(clock.Now().time_since_epoch());
}

}  // namespace fluxqueue::cli
