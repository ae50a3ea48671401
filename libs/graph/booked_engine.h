// An engine that keeps the books by name (who holds what, and how to take a batch back) and leaves
// it to a placer where jobs go: the cluster's graph in the native engine.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "libs/graph/engine.h"
#include "libs/graph/node_table.h"
#include "libs/graph/placer.h"
#include "libs/graph/preferred_nodes.h"

namespace fluxqueue::graph {

class BookedEngine final : public Engine {
 public:
  explicit BookedEngine(const MakePlacer& make);
  BookedEngine(const BookedEngine&) = delete;
  BookedEngine& operator=(const BookedEngine&) = delete;

  absl::Status SetPolicy(std::string_view policy) override;
  absl::Status SetLevels(const std::vector<std::string>& levels) override;
  void Expect(const Jobspec& jobspec, int64_t jobs) override;
  void SetForecast(std::optional<Workload> forecast) override;
  void HeedPreferences(bool heeds) override;
  absl::Status AddNode(NodeSpec node) override;
  absl::StatusOr<NodeChange> UpdateNode(NodeSpec node) override;
  absl::StatusOr<std::vector<AllocationKey>> RemoveNode(std::string_view name) override;
  Outcome Match(const MatchRequest& request) override;
  Outcome Grow(const MatchRequest& request) override;
  bool Reserve(const AllocationKey& key, const Placement& placement) override;
  void DropReservation(const AllocationKey& key) override;
  void DropReservations() override;
  void SetClosures(std::vector<Closure> closures) override;
  std::vector<AllocationKey> Overran(int64_t now_s) const override;
  Explanation Explain(const Jobspec& jobspec, Wording wording) const override;
  std::vector<Holder> HoldersOf(const Jobspec& jobspec, const Explanation& why) const override;
  bool Release(const AllocationKey& key) override;
  std::vector<uint32_t> ReleaseSlots(const AllocationKey& key,
                                     const std::vector<uint32_t>& slots) override;
  absl::Status Restore(const AllocationKey& key, const Placement& placement) override;
  const Placement* Find(const AllocationKey& key) const override;
  std::vector<AllocationKey> Keys() const override;
  std::vector<AllocationKey> KeysOf(std::string_view job_id) const override;
  std::vector<NodeSpec> Nodes() const override;
  uint64_t inventory_version() const override { return table_.version(); }
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
    std::vector<Node*> nodes;              // of each slot; null when it is released
    std::vector<std::vector<Need>> needs;  // of a slot, by group
    JobNumber number = 0;                  // to the placer: of the first group's job
    int64_t end_s = 0;                     // planned; 0: none
  };

  struct Reservation {
    JobNumber number = 0;  // as of an allocation
    Placement placement;
  };

  // How to take back one change.
  struct UndoPolicy {
    std::string before;
  };
  struct UndoLevels {
    std::vector<Level> before;
  };
  struct UndoExpect {
    Jobspec jobspec;
    int64_t jobs = 0;
  };
  struct UndoForecast {
    std::optional<Workload> before;
  };
  struct UndoHeed {
    bool before = true;
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
  struct UndoExtend {
    AllocationKey key;
    int64_t before = 0;
  };
  struct UndoGrow {
    AllocationKey key;
    size_t slots = 0;  // that it had before
  };
  using Undo = std::variant<UndoPolicy,
                            UndoLevels,
                            UndoExpect,
                            UndoForecast,
                            UndoHeed,
                            UndoAdd,
                            UndoUpdate,
                            UndoRemove,
                            UndoAllocate,
                            UndoRelease,
                            UndoReleaseSlots,
                            UndoExtend,
                            UndoGrow>;

  void TakeBack(UndoPolicy& undo);
  void TakeBack(UndoLevels& undo);
  void TakeBack(UndoExpect& undo);
  void TakeBack(UndoForecast& undo);
  void TakeBack(UndoHeed& undo);
  void TakeBack(UndoAdd& undo);
  void TakeBack(UndoUpdate& undo);
  void TakeBack(UndoRemove& undo);
  void TakeBack(UndoAllocate& undo);
  void TakeBack(UndoRelease& undo);
  void TakeBack(UndoReleaseSlots& undo);
  void TakeBack(UndoExtend& undo);
  void TakeBack(UndoGrow& undo);
  void Record(Undo undo);

  // The placer as it must be for a match.
  Placer& UpToDate();
  // As Placer::Match, on the nodes that the jobspec prefers where they have room.
  std::optional<Placer::Place> Place(JobNumber first,
                                     const MatchRequest& request,
                                     std::span<const std::vector<Need>> needs,
                                     const Placer::When& when);
  // Nothing when no node ever had one of the resources.
  std::optional<std::vector<std::vector<Need>>> NeedsOf(const Jobspec& jobspec) const;
  std::vector<std::vector<Need>> NeedsOf(const Placement& placement);
  // What should have been given back by now is planned to be later.
  void AdvanceTo(int64_t now_s);
  // Its planned end, if it has one, is known among the others', or no more, or is another.
  void Plan(const AllocationKey& key, const Allocation& allocation);
  void Unplan(const Allocation& allocation);
  void Replan(const AllocationKey& key, Allocation* allocation, int64_t end_s);
  const Placement& Allocate(const MatchRequest& request,
                            std::vector<std::vector<Need>> needs,
                            const Placer::Shares& shares);
  const Placement& Reserve(const MatchRequest& request, const Placer::Place& place);
  // The slots of the shares stand behind those that the allocation has, and in the books.
  void Append(const Placer::Shares& shares, Allocation* allocation);
  // The books follow: `direction` 1: the slot holds what it asks for; −1: it gives it back.
  void HoldSlot(const Allocation& allocation, size_t slot, Node* node, int64_t direction);
  // The same of every live slot, in the graph too.
  void HoldLive(const Allocation& allocation, int64_t direction);
  void HoldInPlacer(const Allocation& allocation);
  void UpdateInPlacer(Node* node, const NodeSpec& before);

  NodeTable table_;
  ExpectedWork expected_;
  std::unique_ptr<Placer> placer_;
  PreferredNodes preferred_;
  bool heeds_preferences_ = true;
  JobNumber next_number_ = 1;
  std::map<AllocationKey, Allocation> allocations_;
  // By time and number: planned ends, and the ends of durations.
  std::map<std::pair<int64_t, JobNumber>, AllocationKey> ends_;
  std::map<std::pair<int64_t, JobNumber>, AllocationKey> first_ends_;
  std::map<AllocationKey, Reservation> reservations_;
  std::vector<Closure> closures_;
  // The version of the table for which the placer was told of them; none: it was not.
  std::optional<uint64_t> closed_for_ = 0;
  bool recording_ = false;
  std::vector<Undo> journal_;
};

}  // namespace fluxqueue::graph
