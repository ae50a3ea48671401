// What pods ask for (jobspec.h) as requests on a cluster's graph (cluster_graph.h). Pure,
// thread-safe.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "libs/graph/constraint.h"
#include "libs/graph/jobspec.h"
#include "libs/graph/levels.h"
#include "libs/graph/node_table.h"
#include "libs/graph/request.h"

namespace fluxqueue::graph {

// Which of `levels` has that name; behind the last one: none has.
size_t DepthOf(std::string_view name, std::span<const Level> levels);

// One way to meet a jobspec.
struct SlotRequests {
  // All slots are below one vertex of it; none: wherever.
  std::optional<Level> level;
  // One for each group of slots.
  std::vector<JobRequest> requests;
};

// All ways, in the order in which they are tried: the preferred level, each one above it, then any
// nodes, or the required level. None when the graph has not the level that is required. `levels`:
// all that there could be; `in_use`: those of them that the graph has.
std::vector<SlotRequests> WaysToMeet(const Jobspec& jobspec,
                                     std::span<const Level> levels,
                                     std::span<const Level> in_use);

// In which orders groups of slots are tried: the one that is hardest to place first, then each of
// the others first.
std::vector<std::vector<uint32_t>> OrdersOf(const Jobspec& jobspec, const NodeTable& table);

// The same request where the nodes must meet `also`; `name` tells it apart from others.
JobRequest Constrained(const JobRequest& request, Constraint also, std::string_view name);

// The nodes that are below the same vertex of the last of `levels` as this one.
Constraint InGroupOf(const NodeSpec& node, std::span<const Level> levels);

// The same, all of whose slots are below the same vertex of the last of `levels` as the node.
// REQUIRES: there are levels.
Jobspec Beside(const NodeSpec& node, std::span<const Level> levels, const Jobspec& jobspec);

}  // namespace fluxqueue::graph
