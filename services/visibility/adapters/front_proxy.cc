#include "services/visibility/adapters/front_proxy.h"

#include <algorithm>
#include <cctype>

#include <nlohmann/json.hpp>

#include "libs/base/status_macros.h"

namespace fluxqueue::visibility {
namespace {

using nlohmann::json;

// A JSON list of texts, as kube-apiserver writes its options into the ConfigMap.
absl::StatusOr<std::vector<std::string>> ReadList(const json& data, const char* key) {
  const auto it = data.find(key);
  if (it == data.end() || !it->is_string()) return std::vector<std::string>();
  const json list = json::parse(it->get<std::string>(), nullptr, /*allow_exceptions=*/false);
  std::vector<std::string> texts;
  for (const json& item : list) {
    if (item.is_string()) texts.push_back(item.get<std::string>());
  }
  if (list.is_array() && texts.size() == list.size()) return texts;
  return InvalidArgument("extension-apiserver-authentication: {}: it is no JSON list of texts",
                         key);
}

bool SameName(std::string_view a, std::string_view b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(), [](unsigned char x, unsigned char y) {
    return std::tolower(x) == std::tolower(y);
  });
}

std::vector<std::string> Values(const http::Headers& headers,
                                const std::vector<std::string>& names) {
  std::vector<std::string> values;
  for (const std::string& name : names) {
    for (const auto& [header, value] : headers) {
      if (SameName(header, name)) values.push_back(value);
    }
  }
  return values;
}

}  // namespace

absl::StatusOr<FrontProxy> ReadFrontProxy(std::string_view config_map) {
  const json object = json::parse(config_map, nullptr, /*allow_exceptions=*/false);
  const json data = object.is_object() ? object.value("data", json::object()) : json::object();
  FrontProxy proxy;
  const auto authority = data.find("requestheader-client-ca-file");
  if (authority != data.end() && authority->is_string()) {
    proxy.authority = authority->get<std::string>();
  }
  ASSIGN_OR_RETURN(proxy.names, ReadList(data, "requestheader-allowed-names"));
  ASSIGN_OR_RETURN(proxy.user_headers, ReadList(data, "requestheader-username-headers"));
  ASSIGN_OR_RETURN(proxy.group_headers, ReadList(data, "requestheader-group-headers"));
  if (proxy.authority.empty() || proxy.user_headers.empty()) {
    return Unavailable(
        "the API server names no front proxy in kube-system/extension-apiserver-authentication: it "
        "has to run with --requestheader-client-ca-file and --requestheader-username-headers");
  }
  return proxy;
}

absl::StatusOr<rpc::Caller> CallerOf(const FrontProxy& proxy, const http::Headers& headers) {
  const std::vector<std::string> users = Values(headers, proxy.user_headers);
  if (users.empty() || users.front().empty()) {
    return MakeStatus(absl::StatusCode::kUnauthenticated, "the request names no user");
  }
  rpc::Caller caller{.user = users.front(), .groups = Values(headers, proxy.group_headers)};
  RETURN_IF_ERROR(rpc::CheckCaller(caller));
  return caller;
}

}  // namespace fluxqueue::visibility
