// Why a request does not fit a graph: how far each level of it gets, the nearest miss, and who
// holds what is missing. A look at every vertex, so it is asked for, not given with each refusal.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "libs/graph/graph_state.h"
#include "libs/graph/resolved_request.h"
#include "libs/graph/resource_graph.h"

namespace fluxqueue::graph {

struct GraphExplanation {
  // The vertices of a level that the request names, or those that could be split into its slots,
  // and how many of them pass each filter.
  struct Level {
    std::string type;
    uint64_t wanted = 0;   // in each vertex of the level above; of slots: how many slots
    uint64_t there = 0;    // in the graph
    uint64_t allowed = 0;  // of these, that meet the constraints and whose taints are tolerated
    uint64_t large_enough = 0;  // of the allowed, were all up and nothing held
    uint64_t up = 0;            // of the allowed, with all above them
    uint64_t free_enough = 0;   // of those that are up, now
    uint64_t ever = 0;  // of slots: how many could be made of the allowed; else large_enough
    uint64_t now = 0;   // the same now; else free_enough
  };
  struct Holder {
    JobNumber job = 0;
    int64_t amount = 0;   // of the resource, on the vertex that comes nearest
    int64_t until_s = 0;  // when it is over
  };

  std::vector<Level> levels;  // from the top
  // The level's type or the resource that ran out; empty when it fits now.
  std::string missing;
  // Who holds the missing resource on the vertex that comes nearest; the most first.
  std::vector<Holder> holders;
  // One sentence for people, such as "gpu: needs 8 on one node; the best node has 6 free".
  std::string sentence;
};

// `jobs`: what each of them holds. At time 0.
GraphExplanation ExplainOnGraph(const ResourceGraph& graph,
                                const GraphState& state,
                                const std::map<JobNumber, Holding>& jobs,
                                const ResolvedRequest& request);

}  // namespace fluxqueue::graph
