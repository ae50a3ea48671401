#include "libs/matcher_core/host_ports.h"

#include <algorithm>
#include <utility>

#include "libs/model/host_ports.h"

namespace fluxqueue::matcher_core {
namespace {

void AddPortsOf(const Spec& spec, std::set<std::string>* ports) {
  if (spec.jobspec == nullptr) return;
  for (const graph::SlotGroup& group : spec.jobspec->groups) {
    for (const graph::Amount& amount : group.request) {
      if (model::IsHostPort(amount.resource)) ports->insert(amount.resource);
    }
  }
}

}  // namespace

std::optional<std::set<std::string>> MoreHostPorts(const matcher::v1::PoolState& state,
                                                   const Spec& spec,
                                                   const Specs& specs) {
  const auto& known = state.host_ports();
  std::set<std::string> ports;
  AddPortsOf(spec, &ports);
  const bool has_all = std::all_of(ports.begin(), ports.end(), [&known](const std::string& port) {
    return std::binary_search(known.begin(), known.end(), port);
  });
  if (has_all) return std::nullopt;
  ports.insert(known.begin(), known.end());
  if (ports.size() <= kMostHostPorts) return ports;
  ports.clear();
  for (const auto& [key, live] : specs.map()) AddPortsOf(live, &ports);
  if (ports.size() > kMostHostPorts) return std::nullopt;
  return ports;
}

}  // namespace fluxqueue::matcher_core
