// What each node has of each type, for all requests together: what is free of it now, or all that
// there is of it.
//
// A request that comes for the first time has no table (search_tables.h), and making one is a look
// at every node. Most requests of a full cluster are refused, and only a few nodes have enough of
// everything. Those are found here: nodes stand in blocks, and of each block it is known what one
// of its nodes has at most, so that most blocks are passed over by a look at a few numbers.
//
//   3 cpu, 20 memory?      block 0, at most  5 cpu, 60 memory ─► node0   5 cpu,  9 memory
//                                                               node1   0 cpu, 60 memory
//                          block 1, at most  2 cpu, 64 memory   (passed over)
//                          block 2, at most 32 cpu, 64 memory ─► node7  32 cpu, 64 memory  ◄ may
//
// These are upper bounds: a node that is found may have no room (what is free now may be reserved
// from tomorrow on, or a constraint keeps the request away), one that is not found has none.
//
// With n nodes of t types: memory for n·t numbers. A change costs its block, a question the blocks
// that may do and n / 64 numbers for each type that it names. Not thread-safe.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "libs/graph/graph_state.h"
#include "libs/graph/resource_graph.h"
#include "libs/graph/search_plan.h"
#include "libs/graph/topology.h"

namespace fluxqueue::graph {

class RoomIndex {
 public:
  enum class Of {
    kNow,   // what is free, of nodes that are up
    kEver,  // all there is
  };

  RoomIndex(const ResourceGraph& graph, const GraphState& state, const Topology& topology, Of of)
      : graph_(graph), state_(state), topology_(topology), of_(of) {}

  // The topology is another.
  void Clear() { nodes_.clear(); }
  // It is about this time, and what has changed by now counts.
  void AdvanceTo(int64_t now_s);
  size_t nodes() const { return nodes_.size(); }

  // Calls visit(node) for each node that may have room for as many slots of the plan as a node must
  // have to be of use, in the order of their numbers, until that says false. REQUIRES: nothing has
  // changed since AdvanceTo.
  template <typename Visit>
  void ForEach(const SearchPlan& plan, const Visit& visit) const;

 private:
  static constexpr size_t kBlock = 64;

  struct Need {
    size_t column = 0;
    int64_t amount = 0;
  };

  bool IsOutdated(int64_t earlier_s, int64_t later_s) const;
  void LoadAll();
  void LoadChanged();
  void Load(size_t node);
  void FindMost(size_t block);
  // False when no node has as much.
  bool FindNeeds(const SearchPlan& plan, std::vector<Need>* needs) const;
  // By bit: nodes of the block that have as much.
  uint64_t ThoseWith(size_t block, std::span<const Need> needs) const;
  size_t blocks() const { return (nodes_.size() + kBlock - 1) / kBlock; }
  size_t columns() const { return types_.size(); }

  const ResourceGraph& graph_;
  const GraphState& state_;
  const Topology& topology_;
  Of of_;

  int64_t now_s_ = 0;
  uint64_t seen_ = 0;             // of the state's changes
  std::vector<SiteId> nodes_;     // empty before the first AdvanceTo
  std::vector<TypeId> types_;     // by column, ascending
  std::vector<int64_t> amounts_;  // by block, column, and node in the block
  std::vector<int64_t> most_;     // by block and column
};

template <typename Visit>
void RoomIndex::ForEach(const SearchPlan& plan, const Visit& visit) const {
  std::vector<Need> needs;
  if (!FindNeeds(plan, &needs)) return;
  for (size_t block = 0; block < blocks(); ++block) {
    for (uint64_t with = ThoseWith(block, needs); with != 0; with &= with - 1) {
      const auto place = static_cast<size_t>(std::countr_zero(with));
      if (!visit(nodes_[block * kBlock + place])) return;
    }
  }
}

}  // namespace fluxqueue::graph
