// Labels of nodes that Kubernetes itself sets.
#pragma once

#include <string_view>

namespace fluxqueue::model {

// Each node has a value of its own.
inline constexpr std::string_view kHostnameLabel = "kubernetes.io/hostname";

}  // namespace fluxqueue::model
