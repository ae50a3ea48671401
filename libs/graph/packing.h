// The policy `packed` on a graph: what it costs to put slots on a node, by what the rest of the
// node is worth to the slots that are to come (fragmentation.h).
//
// Nodes that are set aside (set_aside.h) are used after all others. Of places that cost the same it
// prefers the node with fewer free gpus, then the fuller one. Slots without gpus go to nodes
// without gpus first. A slot costs at least what the slot before it on the same node does, so that
// whoever takes the cheapest slots of several nodes takes the first of each.
//
// Not thread-safe.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

#include "libs/graph/fragmentation.h"
#include "libs/graph/graph_state.h"
#include "libs/graph/match_policy.h"
#include "libs/graph/pruner.h"
#include "libs/graph/resource_graph.h"
#include "libs/graph/set_aside.h"
#include "libs/graph/workload.h"

namespace fluxqueue::graph {

// What several scores are together. REQUIRES: there are some.
int64_t MeanScore(std::span<const int64_t> scores);

class Packing {
  // Of a gpu that has no vertex of its own, but is one of an amount.
  static constexpr VertexId kManyGpus = UINT32_MAX;

 public:
  Packing(const ResourceGraph& graph,
          const GraphState& state,
          const MatchPolicy& policy,
          Workload workload);

  const Workload& workload() const { return workload_; }
  void SetWorkload(Workload workload) { workload_ = std::move(workload); }
  // The graph, the workload or the policy is another.
  void GraphChanged();

  // One of several gpus of a node goes to a share by this, the least first: the fullest that fits.
  int64_t GpuScore(VertexId gpu, const Window& window) const;
  bool IsGpu(VertexId v) const { return graph_.vertex(v).type == gpu_type_; }

  // Slots on one node.
  class Filling {
   public:
    // The next slot takes so much of a leaf of the node.
    void Take(VertexId leaf, int64_t amount);
    // It takes the whole node, and nothing of it is left to others.
    void TakeAll();
    // That was all of the slot. What it costs, at least 1; the least is the best.
    int64_t FinishSlot();

   private:
    friend class Packing;

    // One of the node's.
    struct Gpu {
      TypeId type = 0;
      VertexId vertex = kManyGpus;
    };

    explicit Filling(const Packing& packing) : packing_(packing) {}

    const Packing& packing_;
    std::span<const WeighedShape> shapes_;
    std::vector<Gpu> gpus_;  // those of `room_`
    NodeRoom room_;
    LastUse last_use_ = LastUse::kNone;
    int64_t worth_ = 0;      // of what is left
    int64_t cost_ = 0;       // of the costliest slot so far
    int64_t otherwise_ = 0;  // what decides among equal costs
    bool takes_gpu_ = false;
  };
  Filling Fill(VertexId node, const Window& window) const;

 private:
  // Alike to the workload: nodes that meet the same of its constraints.
  struct NodeClass {
    std::vector<bool> meets;
    std::vector<WeighedShape> shapes;
  };
  struct Node {
    uint32_t node_class = 0;
    uint32_t first_leaf = 0;
    uint32_t leaves = 0;
    uint32_t kind = 0;
    LastUse last_use = LastUse::kNone;
  };
  using Constraints = std::vector<const Constraint*>;

  std::vector<ExpectedSlots> ExpectedShapes(Constraints* constraints);
  void AddNode(VertexId v, const Constraints& constraints);
  uint32_t ClassOf(VertexId v, const Constraints& constraints);
  // Of those that have the same when they are empty; nodes_ are told theirs.
  std::vector<NodeKind> FindKinds();
  void Weigh(const std::vector<ExpectedSlots>& expected, const std::vector<NodeKind>& kinds);
  std::vector<Demand> DemandsOf(const std::vector<ExpectedSlots>& expected,
                                const std::vector<NodeKind>& kinds) const;
  // Those of the highest ids first.
  void SetNodesAside(const std::vector<ExpectedSlots>& expected,
                     const std::vector<NodeKind>& kinds);
  bool SetsAny() const { return policy_.sets_aside != MatchPolicy::SetsAside::kNothing; }
  // All that the node has, free or not.
  NodeRoom RoomWhenEmpty(VertexId v) const;
  int64_t FreeOf(VertexId leaf, const Window& window) const;
  std::span<const VertexId> LeavesOf(const Node& node) const {
    return std::span(leaves_).subspan(node.first_leaf, node.leaves);
  }
  // How many thousandths of a gpu one of them is; 0: no gpu.
  int64_t ThousandthsOf(TypeId type) const {
    return type < thousandths_.size() ? thousandths_[type] : 0;
  }
  // Among NodeRoom::amounts; nothing when the workload does not name the type.
  std::optional<size_t> NumberOf(TypeId type) const;

  const ResourceGraph& graph_;
  const GraphState& state_;
  const MatchPolicy& policy_;
  Workload workload_;
  TypeId gpu_type_ = NameTable::kUnknown;  // kGpuMilli: of those that are given out in parts
  std::vector<int64_t> thousandths_;       // by type
  TypeId cpu_type_ = NameTable::kUnknown;  // which tells how full a node is
  std::vector<TypeId> named_;              // of NodeRoom::amounts
  std::vector<NodeClass> classes_;
  std::vector<Node> nodes_;
  std::vector<uint32_t> places_;  // by vertex, among nodes_
  std::vector<VertexId> leaves_;  // of the nodes, those in no group
  int64_t all_gpus_ = 0;          // of all nodes, in thousandths
};

}  // namespace fluxqueue::graph
