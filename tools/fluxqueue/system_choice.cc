#include "tools/fluxqueue/system_choice.h"

#include <algorithm>
#include <optional>

#include <yaml-cpp/yaml.h>

namespace fluxqueue::cli {
namespace {

std::optional<YAML::Node> Parse(const std::string& text) {
  try {
    YAML::Node node = YAML::Load(text);
    if (node.IsMap()) return node;
  } catch (const YAML::Exception&) {  // as the header says
  }
  return std::nullopt;
}

std::string Text(const YAML::Node& node, const char* key) {
  if (!node.IsMap()) return "";
  const YAML::Node value = node[key];
  return value && value.IsScalar() ? value.as<std::string>() : "";
}

// `field` of the entry of that name in the lists `lists`, which hold it under `key`.
std::string Find(const std::vector<YAML::Node>& files,
                 const char* lists,
                 const char* key,
                 const std::string& name,
                 const char* field) {
  if (name.empty()) return "";
  for (const YAML::Node& file : files) {
    const YAML::Node list = file[lists];
    if (!list || !list.IsSequence()) continue;
    for (const YAML::Node& entry : list) {
      if (Text(entry, "name") == name) return entry[key] ? Text(entry[key], field) : "";
    }
  }
  return "";
}

}  // namespace

Choice Choose(const Facts& facts) {
  if (!facts.option.empty()) return {Where::kNamedFile, facts.option};
  if (facts.cluster_option && !facts.same_cluster) return {Where::kCluster, ""};
  if (!facts.variable.empty()) return {Where::kNamedFile, facts.variable};
  if (facts.cluster_variable && !facts.same_cluster) return {Where::kCluster, ""};
  if (!facts.found.empty()) return {Where::kFoundFile, facts.found};
  return {Where::kCluster, ""};
}

std::vector<std::string> KubeconfigFiles(const std::string& variable) {
  std::vector<std::string> files;
  for (size_t begin = 0; begin <= variable.size();) {
    const size_t end = std::min(variable.find(':', begin), variable.size());
    if (end > begin) files.push_back(variable.substr(begin, end - begin));
    begin = end + 1;
  }
  return files;
}

std::string ServerOf(const std::vector<std::string>& kubeconfigs, const std::string& context) {
  std::vector<YAML::Node> files;
  std::string current = context;
  for (const std::string& text : kubeconfigs) {
    const std::optional<YAML::Node> file = Parse(text);
    if (!file) continue;
    if (current.empty()) current = Text(*file, "current-context");
    files.push_back(*file);
  }
  const std::string cluster = Find(files, "contexts", "context", current, "cluster");
  std::string server = Find(files, "clusters", "cluster", cluster, "server");
  while (server.ends_with('/')) server.pop_back();
  return server;
}

}  // namespace fluxqueue::cli
