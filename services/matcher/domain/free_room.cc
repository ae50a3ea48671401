#include "services/matcher/domain/free_room.h"

namespace fluxqueue::matcher {

std::map<std::string, double> FragmentationOf(const std::vector<graph::NodeUsage>& nodes) {
  struct Free {
    double all = 0;
    double broken = 0;
  };
  std::map<std::string, Free> by_resource;
  for (const graph::NodeUsage& node : nodes) {
    for (const graph::ResourceUsage& usage : node.resources) {
      Free& free = by_resource[usage.resource];
      free.all += static_cast<double>(usage.free);
      if (node.slots > 0) free.broken += static_cast<double>(usage.free);
    }
  }
  std::map<std::string, double> ratios;
  for (const auto& [resource, free] : by_resource) {
    ratios[resource] = free.all > 0 ? free.broken / free.all : 0;
  }
  return ratios;
}

}  // namespace fluxqueue::matcher
