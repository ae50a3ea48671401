// The engine for Kubernetes: nodes and equal slots in, placements out.
//
// Nodes become a graph (cluster → node → one divisible vertex for each resource) in which the
// general engine finds the places; this class keeps the books by name beside it. What others use is
// held by a job of their own, so that it takes room and not capacity.
//
// Policies: `lonode` and `hinode` as in match_policy.h. `first` tries nodes by what is free on them
// now: those that hold nothing of ours first, then by free cpu, greatest first; the greatest
// ordinal among equals. (Fluxion's goes by what was free when a node was last used, which cannot be
// restored after a restart.) Each visited node is filled with as many slots as fit before the next
// is visited.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <variant>
#include <vector>

#include "libs/graph/engine.h"
#include "libs/graph/general_engine.h"
#include "libs/graph/node_table.h"

namespace fluxqueue::graph {

class NativeEngine final : public Engine {
 public:
  NativeEngine();
  NativeEngine(const NativeEngine&) = delete;
  NativeEngine& operator=(const NativeEngine&) = delete;

  absl::Status SetPolicy(std::string_view policy) override;
  absl::Status AddNode(NodeSpec node) override;
  absl::StatusOr<NodeChange> UpdateNode(NodeSpec node) override;
  absl::StatusOr<std::vector<AllocationKey>> RemoveNode(std::string_view name) override;
  Outcome Match(const MatchRequest& request) override;
  Explanation Explain(const Jobspec& jobspec) const override;
  bool Release(const AllocationKey& key) override;
  std::vector<uint32_t> ReleaseSlots(const AllocationKey& key,
                                     const std::vector<uint32_t>& slots) override;
  absl::Status Restore(const AllocationKey& key, const Placement& placement) override;
  const Placement* Find(const AllocationKey& key) const override;
  std::vector<AllocationKey> KeysOf(std::string_view job_id) const override;
  uint32_t nodes() const override { return table_.size(); }
  uint32_t nodes_up() const override { return table_.schedulable(); }
  uint64_t allocations() const override { return allocations_.size(); }
  std::vector<ResourceUsage> Usage() const override;
  std::vector<NodeUsage> UsageByNode() const override;
  void Checkpoint() override;
  void Commit() override;
  void Rollback() override;
  uint64_t Fingerprint() const override;

 private:
  struct Allocation {
    Placement placement;
    std::vector<Node*> nodes;  // of each slot; null when it is released
    std::vector<Need> needs;
    JobNumber number = 0;  // in the graph
  };

  // `slots` on one node.
  struct Share {
    Node* node;
    int64_t slots;
  };

  // How to take back one change.
  struct UndoPolicy {
    std::string before;
  };
  struct UndoAdd {
    std::string name;
  };
  struct UndoUpdate {
    NodeSpec before;
  };
  struct UndoRemove {
    std::unique_ptr<Node> node;
    std::vector<std::pair<AllocationKey, size_t>> slots;  // that were on it
  };
  struct UndoAllocate {
    AllocationKey key;
  };
  struct UndoRelease {
    AllocationKey key;
    Allocation allocation;
  };
  struct UndoReleaseSlots {
    AllocationKey key;
    std::vector<std::pair<size_t, Node*>> slots;
  };
  using Undo = std::variant<UndoPolicy,
                            UndoAdd,
                            UndoUpdate,
                            UndoRemove,
                            UndoAllocate,
                            UndoRelease,
                            UndoReleaseSlots>;

  void TakeBack(UndoPolicy& undo);
  void TakeBack(UndoAdd& undo);
  void TakeBack(UndoUpdate& undo);
  void TakeBack(UndoRemove& undo);
  void TakeBack(UndoAllocate& undo);
  void TakeBack(UndoRelease& undo);
  void TakeBack(UndoReleaseSlots& undo);
  void Record(Undo undo);

  // The node comes into the graph, changes there, goes.
  void Plant(Node* node);
  void Tend(Node* node);
  void Uproot(Node* node);
  // The resource's vertex below the node; made when it has none.
  Node::Leaf LeafOf(Node* node, size_t resource);
  void HoldForeign(Node* node);
  // Where the node stands in the order of `first`.
  void Reorder(const Node& node);
  VertexId Add(Vertex vertex, std::string_view path, VertexId parent);

  const JobRequest& RequestOf(const Jobspec& jobspec);
  // What the graph gave, in the policy's order.
  std::vector<Share> SharesOf(const Holding& holding, const Jobspec& jobspec) const;
  bool Before(const Node& a, const Node& b) const;
  const Placement& Allocate(const MatchRequest& request,
                            JobNumber number,
                            std::vector<Need> needs,
                            const std::vector<Share>& shares);
  // The books, and what the graph holds for it, follow what is live of the allocation.
  void HoldLive(const Allocation& allocation, int64_t direction);
  void HoldInGraph(const Allocation& allocation);

  std::string policy_ = "first";
  NodeTable table_;
  std::unique_ptr<GeneralEngine> graph_;
  std::unordered_map<VertexId, Node*> by_vertex_;
  // By the jobspec's shape.
  std::unordered_map<std::string, JobRequest> requests_;
  JobNumber next_number_ = 1;
  int64_t next_leaf_ = 0;
  std::map<AllocationKey, Allocation> allocations_;
  bool recording_ = false;
  std::vector<Undo> journal_;
};

}  // namespace fluxqueue::graph
