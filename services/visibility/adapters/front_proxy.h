// How the API server shows who asks: it calls with a certificate of its front proxy's authority,
// and names the user in headers. Which authority, which names and which headers, it says in the
// ConfigMap kube-system/extension-apiserver-authentication
// (https://kubernetes.io/docs/tasks/extend-kubernetes/configure-aggregation-layer).
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "libs/http/message.h"
#include "libs/rpc/caller.h"

#include "absl/status/statusor.h"

namespace fluxqueue::visibility {

struct FrontProxy {
  std::string authority{};           // PEM
  std::vector<std::string> names{};  // common names of its certificates; empty: any
  std::vector<std::string> user_headers{};
  std::vector<std::string> group_headers{};
  std::vector<std::string> uid_headers{};
  std::vector<std::string> extra_prefixes{};

  bool operator==(const FrontProxy&) const = default;
};

// From the ConfigMap as JSON. Unavailable: the API server has no front proxy (yet);
// InvalidArgument: a value that is not what Kubernetes writes.
absl::StatusOr<FrontProxy> ReadFrontProxy(std::string_view config_map);

// Of a request that came with the proxy's certificate. Unauthenticated: it names nobody, or more
// than one; InvalidArgument: what it says of him is too long or holds a control character.
absl::StatusOr<rpc::Caller> CallerOf(const FrontProxy& proxy, const http::Headers& headers);

}  // namespace fluxqueue::visibility
