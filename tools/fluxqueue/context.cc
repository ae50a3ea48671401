#include "tools/fluxqueue/context.h"

#include <cstdlib>
#include <filesystem>

#include <nlohmann/json.hpp>

#include "libs/base/status_macros.h"
#include "libs/config/section.h"

#include "tools/fluxqueue/structured_text.h"

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

bool Named(const std::string& given) {
  return !given.empty() || !Environment("FLUXQUEUE_CONFIG").empty();
}

config::Section Describe(SystemConfig* config, config::Presence dsn) {
  using config::Section;
  return Section()
      .Nested("postgres", Section().Text("dsn", &config->dsn, dsn))
      .Nested("kafka",
              Section()
                  .Text("bootstrap", &config->brokers.bootstrap, config::Presence::kRequired)
                  .Path("properties", &config->brokers.properties))
      .Nested("kubernetes", Section().Path("kubeconfig", &config->kubeconfig))
      .Nested("grpc",
              Section()
                  .Path("certificate", &config->grpc.certificate)
                  .Path("key", &config->grpc.key)
                  .Path("authority", &config->grpc.authority));
}

}  // namespace

std::string ConfigPath(const std::string& given) {
  if (!given.empty()) return given;
  if (std::string file = Environment("FLUXQUEUE_CONFIG"); !file.empty()) return file;
  return StateFolder() + "/fluxqueue.yaml";
}

absl::StatusOr<SystemConfig> Context::LoadConfig(const std::string& file) const {
  SystemConfig config;
  config.file = ConfigPath(config_file);
  if (!Named(config_file) && !std::filesystem::exists(config.file)) {
    const absl::Status why =
        RunInCluster(cluster, arguments, {.colour = colour, .width = width, .file = file});
    return Annotate(
        why,
        fmt::format("there is no configuration at {}, so this is for the cluster", config.file));
  }
  const std::string dsn = Environment("FLUXQUEUE_POSTGRES_DSN");
  const absl::Status status = config::ReadFile(
      config.file,
      Describe(&config, dsn.empty() ? config::Presence::kRequired : config::Presence::kOptional));
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
  if (!dsn.empty()) config.dsn = dsn;
  config.has_cluster =
      !config.kubeconfig.empty() || !Environment("KUBERNETES_SERVICE_HOST").empty();
  return config;
}

std::string Context::Structured(const nlohmann::json& value) const {
  return output == Output::kYaml ? YamlText(value) : JsonText(value);
}

Millis Context::Now() const {
  return std::chrono::duration_cast<Millis>(clock.Now().time_since_epoch());
}

}  // namespace fluxqueue::cli
