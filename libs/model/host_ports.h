// Ports of nodes, as resources of which each node has one, whatever it says of itself:
// "hostport-8080-tcp". So two pods with the same port are never on one node.
//
// No object of a cluster can name such a resource: Kubernetes knows its own ones, and all others
// have a "/".
#pragma once

#include <string_view>

namespace fluxqueue::model {

inline constexpr std::string_view kHostPortPrefix = "hostport-";

constexpr bool IsHostPort(std::string_view resource) {
  return resource.starts_with(kHostPortPrefix);
}

}  // namespace fluxqueue::model
