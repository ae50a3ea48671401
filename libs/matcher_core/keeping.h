// Which nodes are kept for a job that has waited as the first of its queue for too long, and that
// no time can be named for, as something without an end stands in its way.
//
// What is kept from others is as little as does: a node that is kept takes no new job without an
// end. Jobs that have an end go on there; once the last one without an end that stands in the way
// has left, a time can be named, and the job has a reservation like any other.
//
// Of the nodes that the job may use, those come first on which a slot of it fits soonest as far as
// what runs there has an end, and no more than it needs. Nodes that only something without an end
// keeps from it are none of them. Where one rack (or another level) is asked for, the nodes are of
// the one that has room for the most of its slots soonest.
//
// Pure. O(nodes + all that is held · log).
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "libs/graph/engine.h"
#include "libs/graph/jobspec.h"
#include "libs/graph/levels.h"

namespace fluxqueue::matcher_core {

// Names, in the order of the nodes.
std::vector<std::string> NodesToKeep(const graph::Engine& engine,
                                     const std::vector<graph::Level>& levels,
                                     const graph::Jobspec& jobspec);

}  // namespace fluxqueue::matcher_core
