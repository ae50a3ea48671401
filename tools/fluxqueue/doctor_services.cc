#include <algorithm>
#include <filesystem>
#include <fstream>
#include <map>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "libs/base/status_macros.h"
#include "libs/http/client.h"
#include "libs/kubernetes/client.h"

#include "tools/fluxqueue/doctor.h"

namespace fluxqueue::cli {
namespace {

using nlohmann::json;

constexpr const char* kServices[] = {"admission", "queue", "matcher", "binder", "cleanup"};
constexpr const char* kOptional[] = {"visibility", "graph"};  // may be switched off
constexpr const char* kPods =
    "app.kubernetes.io/name=fluxqueue,"
    "app.kubernetes.io/component in (admission,queue,matcher,binder,cleanup,visibility,graph)";
constexpr int kPodPort = 8080;  // "http" of the chart

// Name and base URL of the health port.
using Replicas = std::vector<std::pair<std::string, std::string>>;

// Those that the chart has installed, for a program that runs in a pod too.
absl::StatusOr<Replicas> ReplicasInPods(const std::string& system) {
  ASSIGN_OR_RETURN(kubernetes::ClusterConfig cluster, kubernetes::LoadClusterConfig(""));
  kubernetes::Client client(std::move(cluster));
  Replicas replicas;
  const auto add = [&replicas](std::string_view text) {
    const json pod = json::parse(text);
    const std::string address = pod["status"].value("podIP", "");
    if (address.empty() || pod["metadata"].contains("deletionTimestamp")) return absl::OkStatus();
    const bool v6 = address.find(':') != std::string::npos;
    replicas.emplace_back(
        pod["metadata"]["name"],
        fmt::format("http://{}:{}", v6 ? fmt::format("[{}]", address) : address, kPodPort));
    return absl::OkStatus();
  };
  RETURN_IF_ERROR(client.List(kubernetes::kPods, {.space = system, .labels = kPods}, add).status());
  return replicas;
}

// Those that tools/services/start has started: it writes their ports beside the configuration.
Replicas ReplicasBeside(const std::string& config) {
  Replicas replicas;
  const auto folder = std::filesystem::path(config).parent_path() / "config";
  std::error_code ignored;
  for (const auto& file : std::filesystem::directory_iterator(folder, ignored)) {
    int port = 0;
    if (file.path().extension() != ".ports" || !(std::ifstream(file.path()) >> port)) continue;
    replicas.emplace_back(file.path().stem(), fmt::format("http://127.0.0.1:{}", port));
  }
  return replicas;
}

}  // namespace

std::optional<Build> BuildOf(std::string_view metrics) {
  const size_t begin = metrics.find("\nfluxqueue_build_info{");
  if (begin == metrics.npos) return std::nullopt;
  const std::string_view line = metrics.substr(begin, metrics.find('}', begin) - begin);
  const auto label = [line](std::string_view name) {
    const size_t at = line.find(fmt::format("{}=\"", name));
    if (at == line.npos) return std::string();
    const size_t value = at + name.size() + 2;
    return std::string(line.substr(value, line.find('"', value) - value));
  };
  return Build{.service = label("component"), .version = label("version")};
}

void JudgeVersions(const std::vector<Build>& builds, const std::string& ours, Findings* findings) {
  std::vector<std::string> services(std::begin(kServices), std::end(kServices));
  for (const char* optional : kOptional) {
    const auto is_it = [optional](const Build& build) { return build.service == optional; };
    if (std::any_of(builds.begin(), builds.end(), is_it)) services.emplace_back(optional);
  }
  for (const std::string& service : services) {
    std::map<std::string, int> replicas;  // by version
    for (const Build& build : builds) {
      if (build.service == service) ++replicas[build.version];
    }
    std::string text;
    for (const auto& [version, count] : replicas) {
      text += fmt::format("{}{} × version {}", text.empty() ? "" : ", ", count, version);
    }
    if (replicas.empty()) {
      findings->Warn(service, "no replica says its version", "see that it runs, and its log");
    } else if (replicas.size() > 1 || !replicas.contains(ours)) {
      findings->Warn(service,
                     fmt::format("{}; this program is {}", text, ours),
                     "bring all to one version (helm upgrade)");
    } else {
      findings->Ok(service, text);
    }
  }
}

void ExamineServices(const SystemConfig& config, const std::string& system, Findings* findings) {
  const bool in_pod = config.has_cluster && config.kubeconfig.empty();
  const absl::StatusOr<Replicas> replicas =
      in_pod ? ReplicasInPods(system) : ReplicasBeside(config.file);
  if (!replicas.ok()) {
    return findings->Warn("services", Message(replicas.status()), "see the rights of our account");
  }
  if (replicas->empty() && !in_pod) {
    return findings->Warn("services",
                          "not asked for their versions: none runs beside " + config.file,
                          "in a cluster, kubectl fluxqueue doctor asks them");
  }
  std::vector<Build> builds;
  for (const auto& [name, url] : *replicas) {
    const auto answer =
        http::Client({.base_url = url}).Do({.target = "/metrics", .accept = "text/plain"});
    const auto build = answer.ok() ? BuildOf(answer->body) : std::nullopt;
    if (build.has_value()) {
      builds.push_back(*build);
      continue;
    }
    findings->Warn(
        name,
        answer.ok() ? fmt::format("{}/metrics says no version", url) : Message(answer.status()),
        "see that it runs, and its log");
  }
  JudgeVersions(builds, FLUXQUEUE_VERSION, findings);
}

}  // namespace fluxqueue::cli
