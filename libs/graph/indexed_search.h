// The same answers as a walk (traverser.h), on graphs of the plain shape (topology.h), without
// looking at what cannot change the answer.
//
// A walk looks at every node. But which nodes fit is nearly what it was at the last like request:
// only what has changed since need be looked at again. So for each request shape and time a table
// is kept: below each vertex that candidates are gathered at, a tournament of those that may fit,
// in the policy's order. A search takes the best out, one after another, and looks at them; those
// that do not fit stay out until they change, and GraphState says which did.
//
//   cluster ─► slot[4] ─► core[2]      tournament of the nodes:  who leads is looked at first
//                                          ┌──── 7 ────┐
//   changed since the last search:       ┌─ 5 ─┐   ┌── 7 ──┐
//   node3 ─► back in, as "may fit"       5     out  7     out ◄─ full when it was looked at
//
// A table costs a look at every node. A request without one, as most are where thousands of shapes
// are in line, is first answered by what all requests know together of the nodes (room_index.h):
// few have room, and where they are not enough it is refused without a table.
//
// Not every request is searched: PlanFor says which. Deterministic; not thread-safe.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "libs/graph/graph_state.h"
#include "libs/graph/match_policy.h"
#include "libs/graph/node_slots.h"
#include "libs/graph/packing.h"
#include "libs/graph/pruner.h"
#include "libs/graph/resolved_request.h"
#include "libs/graph/resource_graph.h"
#include "libs/graph/room_index.h"
#include "libs/graph/search_plan.h"
#include "libs/graph/search_tables.h"
#include "libs/graph/selection.h"
#include "libs/graph/topology.h"

namespace fluxqueue::graph {

class IndexedSearch {
 public:
  IndexedSearch(const ResourceGraph& graph,
                const GraphState& state,
                const MatchPolicy& policy,
                const Packing& packing);

  // The policy is another, or the graph has got vertices and edges, or some have left: all plans
  // are void.
  void GraphChanged();
  // Under `packed` places cost something else than before.
  void CostsChanged() { tables_.Clear(); }

  // None when only a walk can answer the request. REQUIRES: the request outlives the plan.
  std::optional<SearchPlan> PlanFor(const ResolvedRequest& request);

  enum class Answer {
    kFound,
    kNothingFits,
    kAskAWalk,  // equals stand in line for the last place, and only a walk knows who gets it
  };
  // `selection` is set when something is found, unless it is null.
  Answer Search(const SearchPlan& plan, const Window& window, Selection* selection);

  // Searches for one request at one time after the other, for as long each time. REQUIRES: nothing
  // changes from BeginSweep to the last of them; times ascend.
  void BeginSweep() { sweep_ = nullptr; }
  Answer SearchNext(const SearchPlan& plan, const Window& window, Selection* selection);
  // Nothing fitted at the last time: the next one at which anything may, a point of the timeline of
  // jobs at the root. Nothing: never.
  std::optional<int64_t> NextTime() const;

 private:
  using Levels = std::vector<RequestLevel>;

  Window Canonical(const Window& window) const;

  struct Taken {
    SiteId node = 0;
    uint32_t slots = 0;
  };
  // A candidate, and what of `taken_` is its.
  struct Unit {
    int64_t score = 0;  // its id, or its performance class
    size_t first = 0;
    size_t last = 0;
    int64_t cost = 0;  // under `packed`
  };
  uint32_t Gather(SiteId at, size_t stage, std::vector<Unit>* units);
  uint32_t GatherRanked(SiteId at, size_t stage, std::vector<Unit>* units);
  void Rank(SearchTable::Ranking* ranking) const;
  uint32_t GatherSlotsByScore(SiteId at, uint32_t wanted);
  std::vector<uint64_t> SlotPriorities(SiteId site, uint32_t slots);
  uint32_t VisitMember(SiteId site, size_t stage, std::vector<Unit>* units);
  // By what it would cost to take the member.
  uint64_t PackedPriority(SiteId site, size_t stage);
  // Of a candidate that has these, or else what was taken since `first`.
  int64_t PackedScore(const std::vector<Unit>& below, size_t first);
  void Choose(size_t stage, size_t first, std::vector<Unit>* units);
  void ChooseSlots(uint32_t wanted, size_t first);
  uint32_t SlotsOn(SiteId site);
  uint32_t CountSlots(SiteId site);
  uint32_t CountSlotsOfNode(SiteId site);
  bool MayReach(SiteId site) const;
  bool MayPass(SiteId site) const;

  // What a search would answer, by a look at few nodes. Nothing: only a search can tell.
  std::optional<Answer> Look(bool selects);
  std::optional<bool> HasRoom(const RoomIndex& room);
  SiteId Above(SiteId site, uint32_t depth) const;
  bool IsReached(SiteId node, const SearchLayout& layout) const;

  Answer SearchIn(SearchTable* table, const Window& window, Selection* selection);
  bool IsRootPruned(const SearchPlan& plan, const Window& window);
  uint32_t CountSlotsInSweep(SiteId node);
  void ExpectOfPruned(SiteId site);
  int64_t PointAfter(SiteId node, int64_t time) const;

  void Collect(Selection* selection);
  void CollectSite(SiteId site, bool exclusive, Selection* selection) const;

  const ResourceGraph& graph_;
  const GraphState& state_;
  const MatchPolicy& policy_;
  Pruner pruner_;
  Topology topology_;
  NodeSlots slots_;
  SearchTables tables_;
  RoomIndex free_;
  RoomIndex capacity_;
  uint64_t plans_ = 0;

  // Of the search that is on.
  const SearchPlan* plan_ = nullptr;
  Window window_;
  SearchTable* table_ = nullptr;
  // Of the sweep that is on, or null before its first search; and its last time and duration.
  SearchTable* sweep_ = nullptr;
  Window swept_;
  bool root_pruned_ = false;
  bool ambiguous_ = false;
  std::vector<Taken> taken_;
};

}  // namespace fluxqueue::graph
