// Which vertices of a graph meet criteria, as it is held now.
#pragma once

#include <map>
#include <vector>

#include "libs/graph/find_criteria.h"
#include "libs/graph/graph_state.h"
#include "libs/graph/resource_graph.h"

namespace fluxqueue::graph {

// Those that meet the criteria and those above them, children before their parents. `jobs`: what
// each of them holds.
std::vector<VertexId> FindOnGraph(const ResourceGraph& graph,
                                  const GraphState& state,
                                  const std::map<JobNumber, Holding>& jobs,
                                  const FindCriteria& criteria);

}  // namespace fluxqueue::graph
