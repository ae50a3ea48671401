#include "libs/kubernetes/config.h"

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <optional>

#include <absl/strings/escaping.h>
#include <yaml-cpp/yaml.h>

#include "libs/base/status_macros.h"

namespace fluxqueue::kubernetes {
namespace {

constexpr std::string_view kServiceAccount = "/var/run/secrets/kubernetes.io/serviceaccount";

absl::StatusOr<std::string> ReadFile(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  if (!file) return InvalidArgument("{}: cannot be read; does it exist, and may we read it?", path);
  return std::string(std::istreambuf_iterator<char>(file), {});
}

std::string Text(const YAML::Node& node, const char* key) {
  const YAML::Node value = node[key];
  return value && value.IsScalar() ? value.as<std::string>() : std::string();
}

// The entry of that name in the list `lists`, which holds it under `key`: contexts → context.
absl::StatusOr<YAML::Node> Entry(const YAML::Node& file,
                                 const char* lists,
                                 const char* key,
                                 const std::string& name) {
  for (const YAML::Node& entry : file[lists]) {
    if (Text(entry, "name") == name && entry[key]) return entry[key];
  }
  return InvalidArgument("{}: there is no \"{}\"", lists, name);
}

// PEM from `key`-data (base64) or the file that `key` names; empty if there is neither.
absl::StatusOr<std::string> Pem(const YAML::Node& node,
                                const std::string& key,
                                const std::filesystem::path& folder) {
  if (const std::string data = Text(node, (key + "-data").c_str()); !data.empty()) {
    std::string pem;
    if (absl::Base64Unescape(ToAbsl(data), &pem)) return pem;
    return InvalidArgument("{}-data: is not base64", key);
  }
  const std::string path = Text(node, key.c_str());
  if (path.empty()) return std::string();
  absl::StatusOr<std::string> pem = ReadFile((folder / path).string());
  if (!pem.ok()) return Annotate(pem.status(), key);
  return pem;
}

absl::Status ReadCluster(const YAML::Node& cluster,
                         const std::filesystem::path& folder,
                         ClusterConfig* config) {
  config->server = Text(cluster, "server");
  while (config->server.ends_with('/')) config->server.pop_back();
  if (config->server.empty()) return InvalidArgument("server: is missing");
  if (cluster["tls-server-name"]) {
    return InvalidArgument(
        "tls-server-name: cannot be used here; name the server as its certificate does");
  }
  config->tls.insecure = Text(cluster, "insecure-skip-tls-verify") == "true";
  ASSIGN_OR_RETURN(config->tls.ca, Pem(cluster, "certificate-authority", folder));
  return absl::OkStatus();
}

absl::Status ReadUser(const YAML::Node& user,
                      const std::filesystem::path& folder,
                      ClusterConfig* config) {
  for (const char* plugin : {"exec", "auth-provider", "username"}) {
    if (!user[plugin]) continue;
    return InvalidArgument(
        "{}: cannot be used here; allowed are token, tokenFile and client certificates", plugin);
  }
  ASSIGN_OR_RETURN(config->tls.certificate, Pem(user, "client-certificate", folder));
  ASSIGN_OR_RETURN(config->tls.key, Pem(user, "client-key", folder));
  config->token = Text(user, "token");
  if (const std::string file = Text(user, "tokenFile"); !file.empty()) {
    config->token_file = (folder / file).string();
  }
  return absl::OkStatus();
}

absl::StatusOr<ClusterConfig> ReadContext(const YAML::Node& file,
                                          const std::filesystem::path& folder) {
  if (!file.IsMap()) return InvalidArgument("is not a kubeconfig");
  const std::string current = Text(file, "current-context");
  if (current.empty()) return InvalidArgument("current-context: is missing");
  ASSIGN_OR_RETURN(const YAML::Node context, Entry(file, "contexts", "context", current));
  const std::string cluster_name = Text(context, "cluster");
  const std::string user_name = Text(context, "user");
  ClusterConfig config;
  ASSIGN_OR_RETURN(const YAML::Node cluster, Entry(file, "clusters", "cluster", cluster_name));
  RETURN_IF_ERROR(Annotate(ReadCluster(cluster, folder, &config), "cluster " + cluster_name));
  if (user_name.empty()) return config;
  ASSIGN_OR_RETURN(const YAML::Node user, Entry(file, "users", "user", user_name));
  RETURN_IF_ERROR(Annotate(ReadUser(user, folder, &config), "user " + user_name));
  return config;
}

}  // namespace

absl::StatusOr<ClusterConfig> ReadKubeconfig(const std::string& path) {
  ASSIGN_OR_RETURN(const std::string text, ReadFile(path));
  try {
    absl::StatusOr<ClusterConfig> config =
        ReadContext(YAML::Load(text), std::filesystem::path(path).parent_path());
    if (!config.ok()) return Annotate(config.status(), "kubeconfig " + path);
    return config;
  } catch (const YAML::Exception& e) {
    return InvalidArgument("kubeconfig {}: {}", path, e.what());
  }
}

absl::StatusOr<ClusterConfig> InClusterConfig() {
  const char* host = std::getenv("KUBERNETES_SERVICE_HOST");  // NOLINT(concurrency-mt-unsafe)
  const char* port = std::getenv("KUBERNETES_SERVICE_PORT");  // NOLINT(concurrency-mt-unsafe)
  if (host == nullptr || port == nullptr) {
    return MakeStatus(absl::StatusCode::kFailedPrecondition,
                      "KUBERNETES_SERVICE_HOST and _PORT are not set: this is no pod of a cluster; "
                      "set kubernetes.kubeconfig");
  }
  ClusterConfig config;
  const bool v6 = std::string_view(host).find(':') != std::string_view::npos;
  config.server =
      v6 ? fmt::format("https://[{}]:{}", host, port) : fmt::format("https://{}:{}", host, port);
  config.token_file = fmt::format("{}/token", kServiceAccount);
  ASSIGN_OR_RETURN(config.tls.ca, ReadFile(fmt::format("{}/ca.crt", kServiceAccount)));
  return config;
}

absl::StatusOr<ClusterConfig> LoadClusterConfig(const std::string& kubeconfig) {
  return kubeconfig.empty() ? InClusterConfig() : ReadKubeconfig(kubeconfig);
}

}  // namespace fluxqueue::kubernetes
