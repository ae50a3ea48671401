// Whether, and how, a request can be searched for by indexes (indexed_search.h): so many of one
// depth, below each of them so many of the next, and at the end nodes with slots, or slots on
// whichever nodes.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "libs/graph/match_policy.h"
#include "libs/graph/resolved_request.h"
#include "libs/graph/topology.h"

namespace fluxqueue::graph {

struct SearchPlan {
  struct Stage {
    uint32_t depth = 0;
    uint32_t wanted = 0;
    const std::vector<RequestLevel>* levels = nullptr;  // where the request names it
  };
  struct Part {
    TypeId type = 0;
    uint64_t count = 0;  // in one slot
  };

  uint64_t number = 0;
  const ResolvedRequest* request = nullptr;
  std::vector<Stage> stages;  // the last one: nodes, or slots
  // What is gathered at the root is chosen by runs of ids (`locality`, unless the root is named).
  bool by_runs = false;
  bool by_class = false;  // by performance class, wherever it is gathered (`variation`)
  bool names_nodes = false;
  bool exclusive_nodes = false;
  uint32_t slots_per_node = 0;  // when nodes are named
  std::vector<Part> parts;      // of a slot, of different types

  // With fewer a node is of no use.
  uint32_t least_slots() const { return names_nodes ? slots_per_node : 1; }

  // Whether all that fit there are put in order before some are taken: which of equals those are
  // depends on how many there are.
  bool Ranks(size_t stage) const { return by_class || (by_runs && stage == 0); }
};

// None when only a walk can answer the request. REQUIRES: the request outlives the plan.
std::optional<SearchPlan> PlanSearch(const Topology& topology,
                                     const MatchPolicy& policy,
                                     const ResolvedRequest& request);

}  // namespace fluxqueue::graph
