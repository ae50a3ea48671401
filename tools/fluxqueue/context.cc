#include "tools/fluxqueue/context.h"

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>

#include <nlohmann/json.hpp>

#include "libs/base/status_macros.h"
#include "libs/config/connections.h"
#include "libs/config/section.h"
#include "libs/kafka/admin.h"
#include "libs/postgres/dsn.h"

#include "tools/fluxqueue/structured_text.h"
#include "tools/fluxqueue/system_choice.h"

namespace fluxqueue::cli {
namespace {

// For each of the stores to say anything at all.
constexpr Millis kPatience{2'000};

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

std::string FoundPath() {
  return StateFolder() + "/fluxqueue.yaml";
}

config::Section Describe(SystemConfig* config, config::Presence dsn, std::string* dsn_as_written) {
  using config::Section;
  return Section()
      .Nested("postgres", Section().Text("dsn", &config->dsn, dsn).AsWritten(dsn_as_written))
      .Nested("kafka",
              Section()
                  .Text("bootstrap", &config->brokers.bootstrap, config::Presence::kRequired)
                  .Path("properties", &config->brokers.properties))
      .Nested("kubernetes", Section().Path("kubeconfig", &config->kubeconfig))
      .Nested("signing",
              Section().Path("key", &config->signing_key).Path("keys", &config->signing_keys))
      .Nested("archive", Section().Path("folder", &config->archive))
      .Nested("grpc",
              Section()
                  .Path("certificate", &config->grpc.certificate)
                  .Path("key", &config->grpc.key)
                  .Path("authority", &config->grpc.authority)
                  .Text("name", &config->grpc.name));
}

std::vector<std::string> Texts(const std::vector<std::string>& files) {
  std::vector<std::string> texts;
  for (const std::string& name : files) {
    std::ifstream file(name, std::ios::binary);
    texts.emplace_back(std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>());
  }
  return texts;
}

// The files by which kubectl would find the cluster.
std::vector<std::string> Kubeconfigs(const ClusterAccess& access) {
  if (!access.kubeconfig.empty()) return {access.kubeconfig};
  if (auto files = KubeconfigFiles(Environment("KUBECONFIG")); !files.empty()) return files;
  return {Environment("HOME") + "/.kube/config"};
}

// Whether `access` and the environment name the cluster of the system that `file` names.
bool IsClusterOf(const std::string& file, const ClusterAccess& access) {
  SystemConfig config;
  // What else is wrong with it is said by who reads it to use it.
  std::string dsn;
  config::ReadFile(file, Describe(&config, config::Presence::kOptional, &dsn)).IgnoreError();
  if (config.kubeconfig.empty()) return false;
  const std::string server = ServerOf(Texts({config.kubeconfig}), "");
  return !server.empty() && server == ServerOf(Texts(Kubeconfigs(access)), access.context);
}

Facts LookAround(const Context& context) {
  const ClusterAccess& access = context.cluster;
  Facts facts{.option = context.config_file,
              .variable = Environment("FLUXQUEUE_CONFIG"),
              .cluster_option = !access.kubeconfig.empty() || !access.context.empty(),
              .cluster_variable = !KubeconfigFiles(Environment("KUBECONFIG")).empty()};
  std::error_code ignored;
  if (std::filesystem::exists(FoundPath(), ignored)) facts.found = FoundPath();
  const std::string& file = facts.variable.empty() ? facts.found : facts.variable;
  facts.same_cluster = (facts.cluster_option || facts.cluster_variable) && !file.empty() &&
                       IsClusterOf(file, access);
  return facts;
}

// OK also where only one of both answers: the command says what it has missed.
absl::Status CheckRuns(const SystemConfig& config, Where where) {
  const absl::Status database = postgres::Ping(config.dsn, kPatience);
  if (!absl::IsUnavailable(database)) return absl::OkStatus();
  const auto admin = kafka::Admin::Create(config.brokers, kPatience);
  if (!admin.ok()) return absl::OkStatus();
  if (!IsTransient((*admin)->PartitionCount("").status())) return absl::OkStatus();
  return Unavailable(
      "{}: the system that this file names does not run ({}, nor does Kafka at {}): start it{}, or "
      "name another one with --config FILE, or a cluster with --kubeconfig FILE or $KUBECONFIG",
      config.file,
      Message(database),
      config.brokers.bootstrap,
      where == Where::kFoundFile ? " with tools/up" : "");
}

// Where `file` cannot be written, or kubectl not be run.
absl::Status GoToCluster(const Context& context, const Facts& facts, const std::string& file) {
  const absl::Status why =
      RunInCluster(context.cluster,
                   context.arguments,
                   {.colour = context.colour, .width = context.width, .file = file});
  if (facts.cluster_option) return Annotate(why, "for the cluster of --kubeconfig or --context");
  if (facts.cluster_variable) return Annotate(why, "for the cluster of $KUBECONFIG");
  return Annotate(
      why, fmt::format("there is no configuration at {}, so this is for the cluster", FoundPath()));
}

}  // namespace

absl::StatusOr<SystemConfig> Context::LoadConfig(const std::string& file, Needs needs) const {
  const Facts facts = LookAround(*this);
  const Choice choice = Choose(facts);
  if (choice.where == Where::kCluster) return GoToCluster(*this, facts, file);
  SystemConfig config;
  config.file = choice.file;
  const std::string dsn = Environment("FLUXQUEUE_POSTGRES_DSN");
  config::Connections connections;
  const absl::Status status = config::ReadFile(
      config.file,
      Describe(&config,
               dsn.empty() ? config::Presence::kRequired : config::Presence::kOptional,
               &connections.dsn_as_written));
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
  connections.dsn = config.dsn;
  connections.bootstrap = config.brokers.bootstrap;
  RETURN_IF_ERROR(config::CheckConnections(config.file, connections));
  config.has_cluster =
      !config.kubeconfig.empty() || !Environment("KUBERNETES_SERVICE_HOST").empty();
  if (choice.where == Where::kFoundFile || needs == Needs::kRunning) {
    RETURN_IF_ERROR(CheckRuns(config, choice.where));
  }
  return config;
}

bool Context::AboutCluster() const {
  return Choose(LookAround(*this)).where == Where::kCluster;
}

absl::StatusOr<std::unique_ptr<kubernetes::Client>> ReachCluster(const SystemConfig& config) {
  if (!config.has_cluster) {
    return InvalidArgument("{}: kubernetes.kubeconfig is not set: say which cluster it is about",
                           config.file);
  }
  ASSIGN_OR_RETURN(kubernetes::ClusterConfig cluster,
                   kubernetes::LoadClusterConfig(config.kubeconfig));
  return std::make_unique<kubernetes::Client>(std::move(cluster));
}

std::string Context::Structured(const nlohmann::json& value) const {
  return output == Output::kYaml ? YamlText(value) : JsonText(value);
}

Millis Context::Now() const {
  return std::chrono::duration_cast<Millis>(clock.Now().time_since_epoch());
}

}  // namespace fluxqueue::cli
