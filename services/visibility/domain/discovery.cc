#include "services/visibility/domain/discovery.h"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "libs/visibility_json/visibility_json.h"

namespace fluxqueue::visibility {
namespace {

using nlohmann::json;

json Group() {
  const json version = {{"groupVersion", fmt::format("{}/{}", kGroup, kVersion)},
                        {"version", kVersion}};
  return {{"name", kGroup}, {"versions", json::array({version})}, {"preferredVersion", version}};
}

json Resource(const std::string& name,
              const char* kind,
              bool namespaced,
              const std::vector<std::string>& verbs) {
  const bool subresource = name.find('/') != name.npos;
  return {{"name", name},
          {"singularName", subresource ? "" : name.substr(0, name.size() - 1)},
          {"kind", kind},
          {"namespaced", namespaced},
          {"verbs", verbs}};
}

json Resources() {
  json resources = json::array();
  for (const auto& [name, kind, namespaced] :
       {std::tuple{"jobs", "Job", true}, std::tuple{"claims", "Claim", false}}) {
    resources.push_back(Resource(name, kind, namespaced, {"get", "list"}));
    resources.push_back(
        Resource(fmt::format("{}/explanation", name), "Explanation", namespaced, {"get"}));
    for (const char* command : {"cancel", "hold", "priority", "move"}) {
      resources.push_back(
          Resource(fmt::format("{}/{}", name, command), "Command", namespaced, {"create"}));
    }
  }
  resources.push_back(Resource("queues", "Queue", false, {"get", "list"}));
  return {{"kind", "APIResourceList"},
          {"apiVersion", "v1"},
          {"groupVersion", fmt::format("{}/{}", kGroup, kVersion)},
          {"resources", std::move(resources)}};
}

}  // namespace

std::optional<std::string> DiscoveryDocument(std::string_view path) {
  const std::string group = fmt::format("/apis/{}", kGroup);
  if (path == "/apis") {
    return json{{"kind", "APIGroupList"}, {"apiVersion", "v1"}, {"groups", json::array({Group()})}}
        .dump();
  }
  if (path == group) {
    json document = Group();
    document["kind"] = "APIGroup";
    document["apiVersion"] = "v1";
    return document.dump();
  }
  if (path == fmt::format("{}/{}", group, kVersion)) return Resources().dump();
  // Its objects have no schema that clients would check.
  if (path == "/openapi/v2") {
    return json{{"swagger", "2.0"},
                {"info", {{"title", kGroup}, {"version", kVersion}}},
                {"paths", json::object()}}
        .dump();
  }
  if (path == "/openapi/v3") return json{{"paths", json::object()}}.dump();
  return std::nullopt;
}

}  // namespace fluxqueue::visibility
