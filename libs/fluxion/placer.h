// Where the slots of a job go, decided by Fluxion's library (libs/graph/placer.h).
//
// Slots over any nodes cannot be said in one of Fluxion's jobspecs: a slot above the nodes holds
// them whole, or takes its cores from several. So a job is asked for node by node, as
//
//   node: 1 ─► slot: 1 to n ─► core: 2, memory: 4
//
// until all slots have a place. Where they are to be below one rack, the racks are tried in turn.
//
// The library matches at one time only, and its graph is kept at what is held now. So whether all
// of a job fits, and when if not now, is planned on the native engine's graph, in whole granules;
// there it is reserved. The library is asked where a job goes that has room now. What is to be kept
// of a node from that job (what others use, what rounding leaves over, what is reserved in the
// job's time) is held by a job of the node's own meanwhile, so that Fluxion never has more to give
// than the plan has. Nodes that are closed at some time of the job's, or on which what is reserved
// leaves no room for it, are excluded by its constraint.
//
// The library is asked through a Context. When that is lost, or the graph changes its shape,
// another is made from the table, all that is held is restored in it, and the call is repeated:
// callers see a delay.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "libs/fluxion/cluster_vertices.h"
#include "libs/fluxion/context.h"
#include "libs/fluxion/granules.h"
#include "libs/graph/cluster_graph.h"
#include "libs/graph/expected_work.h"
#include "libs/graph/placer.h"

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace fluxqueue::fluxion {

struct PlacerOptions {
  // The way to a context, in this process or in another (MakeContext, MakeChildContext).
  std::function<absl::StatusOr<std::unique_ptr<Context>>(const std::string& jgf,
                                                         const Context::Settings& settings)>
      open;
  Granules granules;
  // Told whenever a context was lost, and why.
  std::function<void(const absl::Status& why)> lost = [](const absl::Status&) {};
  // Called when no context can be had after several tries. Where it returns, nothing is given out
  // any more: what the placer says is of no use then.
  std::function<void(const absl::Status& why)> failed;
  // Nobody waits for an answer any longer: no more tries.
  std::function<bool()> abandoned = [] { return false; };
};

class FluxionPlacer final : public graph::Placer {
 public:
  // `table` must outlive it.
  FluxionPlacer(graph::NodeTable* table, PlacerOptions options);

  // Fluxion's policies but those that hold whole nodes: the books know of slots only.
  absl::Status SetPolicy(std::string_view policy) override;
  const std::string& policy() const override { return policy_; }
  void LevelsChanged() override;
  void Add(graph::Node* node) override;
  bool Update(graph::Node* node, const graph::NodeSpec& before) override;
  void Remove(graph::Node* node) override;
  void Reorder(graph::Node* node) override;
  // A context is made anew when it is needed.
  bool is_stale() const override { return plan_.is_stale(); }
  void Rebuild() override { plan_.Rebuild(); }
  std::optional<Place> Match(graph::JobNumber first,
                             const graph::Jobspec& jobspec,
                             const When& when) override;
  graph::Jobspec AsTaken(const graph::Jobspec& jobspec) const override;
  std::string_view remark() const override { return remark_; }
  bool CouldEver(const graph::Jobspec& jobspec) override {
    return plan_.CouldEver(AsTaken(jobspec));
  }
  void Hold(graph::JobNumber first,
            const Shares& shares,
            std::span<const std::vector<graph::Need>> needs,
            const Span& span) override;
  void Replan(graph::JobNumber first, size_t groups, int64_t end_s) override {
    plan_.Replan(first, groups, end_s);
  }
  void Release(graph::JobNumber first, size_t groups) override;
  void SetClosures(const std::vector<graph::Closure>& closures) override;

 private:
  // What one of Fluxion's jobs holds.
  struct Part {
    uint64_t id = 0;  // of the job; each is used once
    std::vector<Piece> pieces = {};
  };
  enum class Use : uint8_t { kFree, kHeld, kKept };
  struct NodeState {
    bool up = true;                           // as the context knows it
    bool shut = false;                        // see ShutNodesOf
    std::map<size_t, std::vector<Use>> uses;  // of the granules, by resource
    Part kept;                                // from our jobs
  };

  // Greater numbers come first.
  bool IsDescending() const { return policy_.starts_with("hi"); }
  void Renew() { context_.reset(); }
  void Lose(const absl::Status& why);
  // A context in which everything is as the books say; null when none can be had.
  Context* Ready();
  absl::Status Open();
  // What is free, up and kept is as the table and the plan have it, for the time of the match.
  absl::Status Settle();
  absl::Status SettleNode(const graph::Node& node);
  // How much of a resource of the node the match under way has got: the books do not know it yet.
  int64_t UnbookedOn(const graph::Node& node, size_t resource) const;
  // What must be kept from our jobs.
  std::vector<Piece> ToKeep(const graph::Node& node, const NodeState& state) const;
  void Unkeep(const graph::Node& node, NodeState* state);
  // The library refuses what is held there: nothing more is given out on these nodes.
  void ShutNodesOf(const Part& part, const absl::Status& why);
  // Those of its granules that still are there.
  void Trim(Part* part) const;
  void Mark(const std::vector<Piece>& pieces, Use use);
  std::vector<Use>& UsesOf(const graph::Node& node, size_t resource);
  const std::string& NameOf(size_t resource) const { return table_.resources()[resource]; }

  // REQUIRES: some node had each of the resources.
  std::vector<std::vector<graph::Need>> NeedsOf(const graph::Jobspec& jobspec) const;
  // In whole granules.
  std::vector<std::vector<graph::Need>> AsTaken(
      std::span<const std::vector<graph::Need>> needs) const;
  // They have vertices from now on.
  void Know(std::span<const graph::Need> needs);
  // Below the first vertex of the level that has room for all, in the policy's order.
  bool TryWay(graph::JobNumber first,
              const graph::Jobspec& jobspec,
              const std::optional<graph::Level>& level,
              const std::vector<uint32_t>& order);
  // All groups of slots, in this order, on nodes that meet the constraint; or none.
  bool TryTogether(graph::JobNumber first,
                   const graph::Jobspec& jobspec,
                   const std::vector<uint32_t>& order,
                   const graph::Constraint& where);
  // Now. REQUIRES: by the plan it has room.
  std::optional<Shares> MatchNow(graph::JobNumber first, const graph::Jobspec& jobspec);
  // The jobspec without nodes that are closed at some time of the match, or reserved for others. Of
  // those on which others have reserved less, that is to be kept.
  graph::Jobspec OnNodesWithRoom(const graph::Jobspec& jobspec,
                                 std::span<const std::vector<graph::Need>> needs);
  // For a slot of some group, in whole granules, all the while.
  bool HasRoom(const graph::Node& node, std::span<const std::vector<graph::Need>> needs) const;
  bool Fill(graph::JobNumber number, const graph::SlotGroup& group, const graph::Constraint& where);
  // The same of a jobspec's slots, each on a node of its own.
  bool FillNodes(graph::JobNumber number,
                 const graph::Jobspec& jobspec,
                 const graph::Constraint& where);
  std::optional<Part> Ask(const std::string& jobspec);
  // That nothing of it is held already.
  absl::Status CheckFree(const std::vector<Piece>& pieces);
  Shares SharesOf(graph::JobNumber first, const graph::Jobspec& jobspec) const;
  // By node, in the order of zones and racks.
  Shares SharesOf(const std::vector<Part>& parts, const graph::SlotGroup& slots) const;
  // Until it is released.
  void NoteReserved(graph::JobNumber first, const Shares& shares);
  // In the library only.
  void Withdraw(graph::JobNumber first, size_t groups);
  std::vector<Piece> Choose(const Share& share, std::span<const graph::Need> needs);
  std::vector<uint32_t> ChooseGranules(const Share& share, const graph::Need& need);

  graph::NodeTable& table_;
  PlacerOptions options_;
  std::string remark_;
  std::string policy_ = "first";
  std::set<size_t> resources_ = {graph::NodeTable::kCpu};
  uint64_t next_id_ = 1;
  std::map<graph::JobNumber, std::vector<Part>> jobs_;
  std::unordered_map<const graph::Node*, NodeState> nodes_;
  std::map<uint64_t, graph::Node*> unsettled_;  // by ordinal
  // All that is held and reserved, and until when.
  graph::ExpectedWork expected_;  // nothing: only `packed` looks at it
  graph::ClusterGraph plan_;
  // The nodes on which something is reserved.
  std::map<graph::JobNumber, std::vector<graph::Node*>> reserved_;
  std::vector<graph::Closure> closures_;
  // Null: to be made anew. The vertices are those that it has.
  std::unique_ptr<Context> context_;
  bool given_up_ = false;
  // Of the match under way, or the last one: its first job, its time, and whether the library fails
  // on it whenever it is asked.
  std::optional<graph::JobNumber> matching_;
  When during_;
  bool hopeless_ = false;
  std::optional<ClusterVertices> vertices_;
};

}  // namespace fluxqueue::fluxion
