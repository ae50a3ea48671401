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
// Not every request is searched: PlanFor says which. Deterministic; not thread-safe.
#pragma once

#include <cstdint>
#include <list>
#include <memory>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "libs/graph/graph_state.h"
#include "libs/graph/match_policy.h"
#include "libs/graph/pruner.h"
#include "libs/graph/resolved_request.h"
#include "libs/graph/resource_graph.h"
#include "libs/graph/search_plan.h"
#include "libs/graph/selection.h"
#include "libs/graph/topology.h"
#include "libs/graph/tournament.h"

namespace fluxqueue::graph {

class IndexedSearch {
 public:
  IndexedSearch(const ResourceGraph& graph, const GraphState& state, const MatchPolicy& policy);

  // The policy is another, or the graph has got vertices and edges, or some have left: all plans
  // are void.
  void GraphChanged();

  // None when only a walk can answer the request. REQUIRES: the request outlives the plan.
  std::optional<SearchPlan> PlanFor(const ResolvedRequest& request);

  enum class Answer {
    kFound,
    kNothingFits,
    kAskAWalk,  // equals stand in line for the last place, and only a walk knows who gets it
  };
  // `selection` is set when something is found, unless it is null.
  Answer Search(const SearchPlan& plan, const Window& window, Selection* selection);

 private:
  using Levels = std::vector<RequestLevel>;
  static constexpr uint32_t kUnknown = UINT32_MAX;
  static constexpr uint32_t kNoGroup = UINT32_MAX;

  // At which sites candidates are gathered, and which sites are candidates there.
  struct Layout {
    struct Group {
      size_t tree = 0;  // where its tournament begins
      uint32_t first = 0;
      uint32_t size = 0;
    };
    std::vector<bool> gathers;  // by depth
    std::vector<Group> groups;
    std::vector<uint32_t> group_at;  // by site: the group that is gathered there
    std::vector<uint32_t> group_of;  // by site: the group that it is a member of
    std::vector<uint32_t> place_in;  // by site: where in that group
    std::vector<SiteId> members;     // by group
    size_t tree_length = 0;
  };

  struct Key {
    uint64_t plan = 0;
    Window window;

    friend bool operator==(const Key&, const Key&) = default;
  };
  struct Table {
    Key key;
    const Layout* layout = nullptr;
    bool slots_compete = false;  // nodes are ordered by the best slot that they can make
    uint64_t seen = 0;           // of the state's changes
    std::vector<uint64_t> trees;
    std::vector<uint32_t> slots;  // by site: how many a node has room for; kUnknown
  };

  struct Taken {
    SiteId node = 0;
    uint32_t slots = 0;
  };
  // A candidate, and what of `taken_` is its.
  struct Unit {
    int64_t id = 0;
    int64_t run = 0;  // the first id of the run that it is in; see SortByRuns
    size_t first = 0;
    size_t last = 0;
  };
  // A leaf of a node, by the node's groups.
  struct LeafRef {
    uint32_t group = 0;
    uint32_t bit = 0;
  };

  const Layout& LayoutFor(const SearchPlan& plan);
  Layout MakeLayout(const std::vector<bool>& gathers) const;
  Table* TableFor(const SearchPlan& plan, const Window& window);
  void Reset(Table* table) const;
  void Update(Table* table) const;
  void Mark(Table* table, SiteId site, bool below) const;
  uint64_t FirstPriority(const Table& table, SiteId site) const;
  static Tournament TreeOf(Table* table, uint32_t group);

  uint32_t Gather(SiteId at, size_t stage, std::vector<Unit>* units);
  uint32_t GatherAll(std::vector<Unit>* units);
  static void SortByRuns(std::vector<Unit>* units);
  uint32_t GatherSlotsByScore(SiteId at, uint32_t wanted);
  std::vector<uint64_t> SlotPriorities(SiteId site, uint32_t slots);
  uint32_t VisitMember(SiteId site, size_t stage, std::vector<Unit>* units);
  void Choose(size_t stage, size_t first, std::vector<Unit>* units);
  void ChooseSlots(uint32_t wanted, size_t first);
  uint32_t SlotsOn(SiteId site);
  uint32_t CountSlots(SiteId site);
  bool MayReach(SiteId site) const;
  uint64_t Usable(const LeafGroup& group) const;
  const Pool* PoolOf(SiteId node, const SearchPlan::Part& part) const;
  int64_t AmountOf(TypeId type, uint32_t slots) const;
  // Puts the leaves of the part's type into `leaves_`, in the order in which slots take them.
  void PutInOrder(VertexId node, const SearchPlan::Part& part);
  // Of the first slots that the node can make.
  std::vector<int64_t> SlotScores(SiteId site, uint32_t slots);

  bool HoldsWholeNodes() const { return plan_->exclusive_nodes || policy_.node_exclusive; }
  size_t HeldAtMost() const;
  void Collect(Selection* selection);
  void CollectNode(const Taken& taken, Selection* selection);
  // Which leaves of each of the node's groups are taken.
  std::vector<uint64_t> PickLeaves(const Taken& taken);
  void CollectSite(SiteId site, bool exclusive, Selection* selection) const;

  const ResourceGraph& graph_;
  const GraphState& state_;
  const MatchPolicy& policy_;
  Pruner pruner_;
  Topology topology_;
  uint64_t plans_ = 0;
  std::list<Layout> layouts_;
  std::list<Table> tables_;  // the last asked for first

  // Of the search that is on.
  const SearchPlan* plan_ = nullptr;
  Table* table_ = nullptr;
  bool ambiguous_ = false;
  std::vector<Taken> taken_;
  std::vector<LeafRef> leaves_;  // of PutInOrder, for whoever called it
};

}  // namespace fluxqueue::graph
