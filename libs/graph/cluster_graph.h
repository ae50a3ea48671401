// Kubernetes nodes as a graph for the general engine, and what pods ask for as requests on it:
//
//   cluster ─► zone ─► rack ─► node ─► cpu | memory | pods | …      one divisible vertex a resource
//              levels that the nodes' labels name (levels.h)
//
// What others use of a node is held by a job of their own, so that it takes room and not capacity.
//
// Policies: `lonode`, `hinode` and `packed` as in match_policy.h. `first` tries nodes, and the
// zones and racks above them, by what is free on them now: those that hold nothing of ours first,
// then by free cpu, greatest first; the last among equals (of nodes the greatest ordinal).
// (Fluxion's goes by what was free when a node was last used, which cannot be restored after a
// restart.) Each visited node is filled with as many slots as fit before the next is visited.
//
// The graph follows from the node table, the levels and the policy: where it would have to change
// its shape (a level, or a vertex of one, that was not there), it is only noted, and made anew when
// it is needed. Not thread-safe.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "libs/graph/general_engine.h"
#include "libs/graph/jobspec.h"
#include "libs/graph/levels.h"
#include "libs/graph/node_table.h"
#include "libs/graph/placer.h"
#include "libs/graph/slot_requests.h"

#include "absl/status/status.h"

namespace fluxqueue::graph {

class ClusterGraph final : public Placer {
 public:
  // See MakePlacer. Where the nodes are in the graph is written to them.
  ClusterGraph(NodeTable* table, ExpectedWork* expected);

  absl::Status SetPolicy(std::string_view policy) override;
  const std::string& policy() const override { return policy_; }
  void LevelsChanged() override { stale_ = true; }
  void Add(Node* node) override;
  bool Update(Node* node, const NodeSpec& before) override;
  void Remove(Node* node) override;
  void Reorder(Node* node) override;
  bool is_stale() const override { return stale_; }
  void Rebuild() override;
  std::optional<Place> Match(JobNumber first, const Jobspec& jobspec, const When& when) override;
  Jobspec AsTaken(const Jobspec& jobspec) const override { return jobspec; }
  std::string_view remark() const override { return ""; }
  bool CouldEver(const Jobspec& jobspec) override;
  void Hold(JobNumber first,
            const Shares& shares,
            std::span<const std::vector<Need>> needs,
            const Span& span) override;
  void Replan(JobNumber first, size_t groups, int64_t end_s) override;
  void Release(JobNumber first, size_t groups) override;
  void SetClosures(const std::vector<Closure>& closures) override;

  // The graph with all that is held, and its levels. REQUIRES: it is not stale.
  const GeneralEngine& engine() const { return *engine_; }
  const std::vector<Level>& levels_in_use() const { return in_use_; }
  // The least that nobody holds or has reserved of it at any of these times; negative where more
  // is held than there is, and 0 where the node has none. REQUIRES: it is not stale.
  int64_t FreeDuring(const Node::Leaf& leaf, const When& when) const;

 private:
  // A vertex of a level.
  struct Group {
    VertexId vertex = 0;
    EdgeId edge = kNoEdge;
    Group* above = nullptr;  // null: the cluster
    int64_t order = 0;       // among its siblings
    // Of all nodes below.
    int64_t free_cpu = 0;
    int64_t live_slots = 0;

    uint64_t weight() const;
  };
  // What is known of a node beside the table.
  struct Planted {
    Group* group = nullptr;  // null: the cluster
    // As counted in the groups above.
    int64_t free_cpu = 0;
    int64_t live_slots = 0;
  };
  std::string PathOf(const Node& node) const;
  // The group in which the node is; null, and the graph is stale, when it is not there yet.
  bool FindGroup(const Node& node, Group** group);
  Group* AddGroup(const std::string& name, size_t depth, Group* above, int64_t order);
  void AddGroups();
  VertexId AddVertex(Vertex vertex, std::string_view path, VertexId parent);
  void Plant(Node* node, Group* group);
  void Uproot(Node* node);
  // Everything but name, ordinal and group may have changed.
  void Tend(Node* node);
  // The resource's vertex below the node; made when it has none. REQUIRES: it is one vertex.
  Node::Leaf LeafOf(Node* node, size_t resource);
  void AddDevices(Node* node);
  Node::Leaf AddLeaf(
      Node* node, size_t resource, int64_t id, const std::string& name, int64_t size);
  void HoldForeign(Node* node);
  void CountAbove(Group* group, int64_t free_cpu, int64_t live_slots);

  const std::vector<SlotRequests>& WaysToMeet(const Jobspec& jobspec);
  // At one time: now, or as a reservation.
  struct Time {
    GeneralEngine::When when;
    bool later = false;
  };
  bool Try(JobNumber number, const JobRequest& request, const Time& time);
  bool TryWay(JobNumber first, const Jobspec& jobspec, const SlotRequests& way, const Time& time);
  // The groups of slots, in this order; all below the vertex of the level where the first one is.
  bool TryTogether(JobNumber first,
                   const SlotRequests& way,
                   const std::vector<uint32_t>& order,
                   const Time& time);
  // When all of it can be had; nothing: never, as things are planned.
  std::optional<int64_t> Reserve(JobNumber first, const Jobspec& jobspec, const When& when);
  std::optional<int64_t> ReserveTogether(JobNumber first,
                                         const Jobspec& jobspec,
                                         const SlotRequests& way,
                                         const GeneralEngine::When& after,
                                         int64_t before_s);
  const Node& AnyNodeOf(JobNumber number) const;
  Shares SharesOf(JobNumber first, const Jobspec& jobspec) const;
  void AddShares(JobNumber number, const SlotGroup& slots, uint32_t group, Shares* shares) const;
  Share ShareOf(Node* node, const std::vector<HeldVertex>& leaves, const SlotGroup& slots) const;
  static void HoldDevices(const Share& share, const std::vector<Need>& needs, Holding* holding);
  // Vertices of the cluster's levels by depth, the deepest first.
  using Above = std::map<size_t, std::map<VertexId, EdgeId>, std::greater<>>;
  void NoteAbove(const Node& node, Above* above) const;
  // The root, too.
  void AddAbove(const Above& above, Holding* holding) const;
  // Its nodes, by a job that holds the nodes themselves.
  struct Closed {
    Closure closure;
    JobNumber number = 0;
  };
  void Close(const Closed& closed);
  void AdvanceTo(int64_t now_s);
  // No node is closed any more.
  void OpenNodes();
  bool Before(const Node& a, const Node& b) const;
  // Negative, 0, positive.
  int Compare(const Group* a, const Group* b) const;

  NodeTable& table_;
  ExpectedWork& expected_;
  std::string policy_ = "first";
  bool stale_ = false;

  // What follows from these.
  std::vector<Level> in_use_;
  std::unique_ptr<GeneralEngine> engine_;
  // By depth and GroupOf.
  std::unordered_map<std::string, std::unique_ptr<Group>> groups_;
  std::unordered_map<const Node*, Planted> planted_;
  std::unordered_map<VertexId, Node*> by_vertex_;
  int64_t next_leaf_ = 0;
  std::vector<Closed> closed_;
  JobNumber next_closure_ = 0;
  uint64_t closed_for_ = 0;  // the table's version
  int64_t now_s_ = 0;        // of the last match
  // By the jobspec's shape.
  std::unordered_map<std::string, std::vector<SlotRequests>> ways_;
  // Of jobspecs whose slots differ, by shape: whether they could ever be met, on the nodes of that
  // version of the table.
  struct Ever {
    uint64_t version = 0;
    bool could = false;
  };
  std::unordered_map<std::string, Ever> ever_;
};

// Whether all slots would fit together on these nodes, empty and up. Makes a graph of them.
bool FitsEmptyCluster(const NodeTable& table, const Jobspec& jobspec);

std::unique_ptr<Placer> MakeClusterGraph(NodeTable* table, ExpectedWork* expected);

}  // namespace fluxqueue::graph
