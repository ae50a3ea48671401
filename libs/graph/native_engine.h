// The engine for Kubernetes' shape: one level of nodes, divisible resources, equal slots.
//
// The naive match sorts all nodes by the policy's order, walks them, and puts as many slots on each
// as fit until all are placed. (That greedy walk finds a place whenever there is one: slots are
// equal, and what a node takes does not depend on the others.) This engine visits the same nodes in
// the same order and leaves out those that cannot take a slot:
//   - MaxTree skips subtrees of nodes in which a resource falls short;
//   - the order of `first` needs no sorting: nodes without slots of ours count as infinitely free
//   and
//     come first, by position; the others follow by free cpu, and the tree finds the greatest;
//   - constraints are evaluated once for each distinct text (MatchingCache). Where few nodes meet
//     them, those alone are looked at, and the trees are not asked.
//
// Policies: `first` (free cpu, greatest first; untouched nodes as infinite; then ordinal, greatest
// first), `lonode` and `hinode` (ordinal, lowest or highest first). Each visited node is filled
// with as many slots as fit before the next is visited, as in Fluxion's depth-first walk.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "libs/graph/engine.h"
#include "libs/graph/matching_nodes.h"
#include "libs/graph/node_table.h"

namespace fluxqueue::graph {

class NativeEngine final : public Engine {
 public:
  NativeEngine() = default;
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
  enum class Policy { kFirst, kLonode, kHinode };

  struct Allocation {
    Placement placement;
    std::vector<Node*> nodes;  // of each slot; null when it is released
    std::vector<Need> needs;
  };

  // `slots` on one node.
  struct Share {
    Node* node;
    int64_t slots;
  };

  // How to take back one change.
  struct UndoPolicy {
    Policy before;
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

  void ApplyPolicy(Policy policy);
  // Where `slots` slots go; empty when not all find a place.
  std::vector<Share> Choose(std::span<const Need> needs,
                            const MatchingNodes& matching,
                            int64_t slots);
  template <typename Visit>
  void WalkFew(std::span<const Need> needs,
               const MatchingNodes& matching,
               const Visit& visit) const;
  template <typename Visit>
  void Walk(std::span<const Need> needs, const MatchingNodes& matching, const Visit& visit);
  template <typename Visit>
  void WalkFirst(std::span<const Need> needs, const MatchingNodes& matching, const Visit& visit);
  // The policy's order.
  bool Before(const Node& a, const Node& b) const;
  bool CouldEverFit(std::span<const Need> needs,
                    const MatchingNodes& matching,
                    int64_t slots) const;

  const Placement& Allocate(const MatchRequest& request,
                            std::vector<Need> needs,
                            const std::vector<Share>& shares);
  void HoldLive(const Allocation& allocation, int64_t direction);

  Policy policy_ = Policy::kFirst;
  NodeTable table_;
  // A memo: it changes what is computed, never what comes out.
  mutable MatchingCache matching_{table_};
  std::map<AllocationKey, Allocation> allocations_;
  bool recording_ = false;
  std::vector<Undo> journal_;
};

}  // namespace fluxqueue::graph
