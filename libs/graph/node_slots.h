// What slots take of one node (topology.h): how many it has room for, which of its leaves each of
// them gets, and how good that is by the policy. As in a walk, whose answers a search repeats.
//
// Not thread-safe.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "libs/graph/graph_state.h"
#include "libs/graph/match_policy.h"
#include "libs/graph/packing.h"
#include "libs/graph/pruner.h"
#include "libs/graph/resource_graph.h"
#include "libs/graph/search_plan.h"
#include "libs/graph/topology.h"

namespace fluxqueue::graph {

class NodeSlots {
 public:
  NodeSlots(const ResourceGraph& graph,
            const GraphState& state,
            const MatchPolicy& policy,
            const Packing& packing,
            const Topology& topology)
      : graph_(graph), state_(state), policy_(policy), packing_(packing), topology_(topology) {}

  // What all else is about. REQUIRES: the plan outlives that.
  void Begin(const SearchPlan* plan, const Window& window) {
    plan_ = plan;
    window_ = window;
  }

  // For how many slots the node's leaves are enough.
  uint64_t Count(SiteId node) const;
  // The first time from `time` on from which the node may have room for so many slots for so long:
  // before, it surely has not. Nothing: never. (By leaves that are alone of their type; nothing is
  // said of others.)
  std::optional<int64_t> RoomFrom(SiteId node,
                                  uint64_t slots,
                                  int64_t time,
                                  int64_t duration) const;
  // Whether several slots may get parts of one leaf.
  bool MayShare(SiteId node) const;
  // Of the first slots that the node can make.
  std::vector<int64_t> Scores(SiteId node, uint32_t slots);
  // Appends the leaves that so many slots take.
  void Collect(SiteId node, uint32_t slots, HeldVertices* held);
  // They are held with all that they contain.
  bool takes_whole_nodes() const { return plan_->exclusive_nodes || policy_.node_exclusive; }

 private:
  // By the node's groups.
  struct LeafRef {
    uint32_t group = 0;
    uint32_t bit = 0;
  };
  struct ScoredLeaf {
    int64_t score = 0;
    LeafRef leaf;
  };
  // Where in a list of leaves those of a part begin, and how many of them one slot takes.
  struct SlotsOfPart {
    size_t first = 0;
    size_t each = 0;
  };

  std::span<const LeafGroup> GroupsOf(SiteId node) const {
    return state_.GroupsOf(topology_.site(node).vertex);
  }
  uint64_t Usable(const LeafGroup& group) const;
  // The vertices that the part is an amount of, if it is that; else it is counted in leaves.
  std::span<const Pool> PoolsOf(SiteId node, const SearchPlan::Part& part) const {
    return topology_.PoolsOf(node, part.type);
  }
  bool IsShareOf(std::span<const Pool> pools, const SearchPlan::Part& part) const;
  uint64_t PicksPerSlot(std::span<const Pool> pools, const SearchPlan::Part& part) const;
  // How often the pool can be picked for the part.
  uint64_t PicksOf(const Pool& pool, const SearchPlan::Part& part) const;
  // What a pick takes of the pool.
  int64_t AmountOf(const Pool& pool, const SearchPlan::Part& part) const;
  // Puts what the first slots take of the pools into `picks_`, slot by slot.
  void PickPools(std::span<const Pool> pools, const SearchPlan::Part& part, uint32_t slots);
  // How many slots are wanted at most of one node.
  uint64_t SlotsWanted() const {
    return plan_->names_nodes ? plan_->slots_per_node : plan_->stages.back().wanted;
  }
  // Puts the leaves of the part's type into `leaves_`, in the order in which slots take them.
  void PutInOrder(SiteId node, const SearchPlan::Part& part);
  // Scores under `packed`.
  std::vector<int64_t> Costs(SiteId node, uint32_t slots);
  // Into `picked_` and `of_pools_`.
  void PickLeaves(SiteId node, uint32_t slots);
  void PickLeavesByClass(SiteId node, uint32_t wanted);
  void AddUsable(SiteId node, TypeId type, std::vector<ScoredLeaf>* leaves) const;

  const ResourceGraph& graph_;
  const GraphState& state_;
  const MatchPolicy& policy_;
  const Packing& packing_;
  const Topology& topology_;

  const SearchPlan* plan_ = nullptr;
  Window window_;
  std::vector<LeafRef> leaves_;     // of PutInOrder, for whoever called it
  std::vector<const Pool*> picks_;  // of PickPools, likewise
  std::vector<uint64_t> picked_;    // leaves of a node that are taken, by its groups
  std::vector<int64_t> of_pools_;   // what is taken of a node's pools
};

}  // namespace fluxqueue::graph
