// Which host ports (libs/model/host_ports.h) the nodes of a pool have in the graph: those that
// jobspecs of live jobs name. Pure.
#pragma once

#include <cstddef>
#include <optional>
#include <set>
#include <string>

#include "fluxqueue/matcher/v1/state.pb.h"

#include "libs/matcher_core/specs.h"

namespace fluxqueue::matcher_core {

// Of all jobs that live. A job that names another finds no node that has it.
inline constexpr size_t kMostHostPorts = 128;

// As many as the state has and those that the spec names, of which `specs` are all; without those
// that no spec names any more, where they are too many. Nothing: the state has them, or there is no
// room for more.
std::optional<std::set<std::string>> MoreHostPorts(const matcher::v1::PoolState& state,
                                                   const Spec& spec,
                                                   const Specs& specs);

}  // namespace fluxqueue::matcher_core
