#include "services/visibility/adapters/front_proxy.h"

#include <cctype>
#include <map>
#include <utility>

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

absl::Status Unauthenticated(std::string_view header) {
  return MakeStatus(
      absl::StatusCode::kUnauthenticated, "the request says more than once who asks: {}", header);
}

std::string Lower(std::string_view text) {
  std::string lower(text);
  for (char& c : lower) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  return lower;
}

std::vector<std::string> Values(const http::Headers& headers, const std::string& name) {
  std::vector<std::string> values;
  for (const auto& [header, value] : headers) {
    if (Lower(header) == Lower(name)) values.push_back(value);
  }
  return values;
}

// The API server's proxy uses one header for each thing, and takes that alone out of what its
// client sent: where a second one of `names` says it too, it is the client's own.
absl::StatusOr<std::vector<std::string>> Said(const http::Headers& headers,
                                              const std::vector<std::string>& names) {
  std::vector<std::string> said;
  for (const std::string& name : names) {
    std::vector<std::string> values = Values(headers, name);
    if (!said.empty() && !values.empty()) return Unauthenticated(name);
    if (said.empty()) said = std::move(values);
  }
  return said;
}

absl::StatusOr<std::string> SaidOnce(const http::Headers& headers,
                                     const std::vector<std::string>& names) {
  ASSIGN_OR_RETURN(const std::vector<std::string> said, Said(headers, names));
  if (said.size() > 1) return Unauthenticated(names.front());
  return said.empty() ? "" : said.front();
}

int Digit(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

// As the API server reads a key of extra: lower case, then per cent encoding, unless that is
// broken.
std::string ExtraKey(std::string_view header) {
  const std::string lower = Lower(header);
  std::string key;
  for (size_t i = 0; i < lower.size(); ++i) {
    if (lower[i] != '%') {
      key.push_back(lower[i]);
      continue;
    }
    const bool whole = i + 2 < lower.size() && Digit(lower[i + 1]) >= 0 && Digit(lower[i + 2]) >= 0;
    if (!whole) return lower;
    key.push_back(static_cast<char>(Digit(lower[i + 1]) * 16 + Digit(lower[i + 2])));
    i += 2;
  }
  return key;
}

std::map<std::string, std::vector<std::string>> Extra(const http::Headers& headers,
                                                      const std::vector<std::string>& prefixes) {
  std::map<std::string, std::vector<std::string>> extra;
  for (const std::string& prefix : prefixes) {
    for (const auto& [header, value] : headers) {
      const std::string_view name = header;
      if (Lower(name.substr(0, prefix.size())) != Lower(prefix)) continue;
      extra[ExtraKey(name.substr(prefix.size()))].push_back(value);
    }
  }
  return extra;
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
  ASSIGN_OR_RETURN(proxy.uid_headers, ReadList(data, "requestheader-uid-headers"));
  ASSIGN_OR_RETURN(proxy.extra_prefixes, ReadList(data, "requestheader-extra-headers-prefix"));
  if (proxy.authority.empty() || proxy.user_headers.empty()) {
    return Unavailable(
        "the API server names no front proxy in kube-system/extension-apiserver-authentication: it "
        "has to run with --requestheader-client-ca-file and --requestheader-username-headers");
  }
  return proxy;
}

absl::StatusOr<rpc::Caller> CallerOf(const FrontProxy& proxy, const http::Headers& headers) {
  rpc::Caller caller;
  ASSIGN_OR_RETURN(caller.user, SaidOnce(headers, proxy.user_headers));
  if (caller.user.empty()) {
    return MakeStatus(absl::StatusCode::kUnauthenticated, "the request names no user");
  }
  ASSIGN_OR_RETURN(caller.groups, Said(headers, proxy.group_headers));
  ASSIGN_OR_RETURN(caller.uid, SaidOnce(headers, proxy.uid_headers));
  caller.extra = Extra(headers, proxy.extra_prefixes);
  RETURN_IF_ERROR(rpc::CheckCaller(caller));
  return caller;
}

}  // namespace fluxqueue::visibility
