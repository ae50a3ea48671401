// The general traversal: finds resources for a request on any graph, as Fluxion's depth-first
// traverser does (flux-sched 0.54, resource/traversers). It is the reference that every faster way
// must agree with.
//
// A walk from the root visits each vertex at most once (what several vertices contain: at most once
// for each vertex that the request names). A vertex is left out when it is down, does not meet the
// constraint, is taken, or its prune filters say that there is too little below it. Levels of the
// graph above the first that the request names are passed through. Where all types of a slot are
// children of a vertex, that vertex is split into slots. On the way back each vertex says what fits
// below it; a vertex that the request names takes the best of that, and marks the edges to it.
// Marks below a vertex that is not taken in the end are never looked at.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "libs/graph/candidates.h"
#include "libs/graph/graph_state.h"
#include "libs/graph/match_policy.h"
#include "libs/graph/packing.h"
#include "libs/graph/pruner.h"
#include "libs/graph/resolved_request.h"
#include "libs/graph/resource_graph.h"
#include "libs/graph/selection.h"
#include "libs/graph/visit_cache.h"

namespace fluxqueue::graph {

class Traverser {
 public:
  Traverser(const ResourceGraph& graph,
            const GraphState& state,
            const MatchPolicy& policy,
            const Packing& packing,
            TraverserKind kind);

  // What was remembered is forgotten: the policy is another, or the graph has got vertices and
  // edges behind those that it had, or some have left.
  void GraphChanged();

  // Marks where the request goes. False when it does not fit.
  bool Select(const ResolvedRequest& request, const Window& window);

  // What the last Select marked.
  Selection Collect(const ResolvedRequest& request, const Window& window);

 private:
  using Levels = std::vector<RequestLevel>;

  enum class Kind { kNone, kPassing, kResource, kSlot };
  // How a vertex and a list of levels go together.
  struct Fit {
    Kind kind = Kind::kNone;
    // What to look for below; for kSlot: the levels among which the slots are.
    const Levels* next = nullptr;
    const RequestLevel* slot = nullptr;
  };
  // How a vertex's children are visited.
  struct Descent {
    bool pristine = false;          // levels of the graph may be passed: none that the request
                                    // names is above
    bool exclusive = false;         // what is found is held exclusively
    bool exclusive_shared = false;  // the same of children that other vertices contain too
    uint64_t shares = 1;            // how often what is found is wanted: so many slots
  };
  struct Mark {
    uint64_t walk = 0;
    int64_t amount = 0;
    bool exclusive = false;
  };

  Fit Test(VertexId v, const Levels& levels, bool pristine) const;
  Fit TestFlexibly(VertexId v, const Levels& levels, bool pristine) const;
  bool HasChildrenFor(VertexId v, const RequestLevel& slot) const;

  bool Visit(
      VertexId v, const Levels& levels, bool pristine, bool* exclusive, Candidates* to_parent);
  // The same as Visit, for a node that may not have changed since a like request was there. What is
  // remembered has left no marks: MarkRemembered makes them.
  bool VisitRemembered(
      VertexId v, const Levels& levels, bool pristine, bool* exclusive, Candidates* to_parent);
  bool MayRemember(VertexId v, const Levels& levels) const;
  VisitCache::Outcomes& Table(const Levels& levels, bool pristine, bool exclusive);
  void MarkRemembered(VertexId v);
  bool WasSeen(VertexId v) const;
  bool VisitChild(EdgeId e, const Levels& levels, const Descent& descent, Candidates* found);
  // Adds what a divisible vertex has to give, as so many candidates; itself, when more is wanted
  // than any has and nothing of it is held. False when it is too little.
  bool AddShares(EdgeId e, const Levels& levels, const Descent& descent, Candidates* found) const;
  uint64_t LargestBeside(EdgeId e) const;
  bool Explore(VertexId v, const Levels& levels, const Descent& descent, Candidates* found);
  bool ExploreInOrder(VertexId v, const Levels& levels, const Descent& descent, Candidates* found);
  void SplitIntoSlots(VertexId v, const Fit& fit, bool exclusive, Candidates* found);
  // By what it costs the node to make them, one after another.
  void ScoreByCost(VertexId v, bool whole, std::vector<Candidate>* slots) const;
  // Under `packed`: the mean of what was taken below; of a leaf, which of several goes first.
  int64_t PackedScore(VertexId v, const Candidates& found) const;

  bool FinishVertex(VertexId v, const Levels& levels, Candidates* found) const;

  void MarkTaken(const Candidates& found, bool up_to_root);
  void MarkAncestors(const Candidates& found, EdgeId edge);
  EdgeId ParentEdge(VertexId v) const;

  struct Collection;
  // Whether something here or below is held.
  bool CollectBelow(const HeldVertex& here, bool forced_above, Collection* collection);

  const ResourceGraph& graph_;
  const GraphState& state_;
  const MatchPolicy& policy_;
  const Packing& packing_;
  TraverserKind kind_;
  TypeId node_type_ = NameTable::kUnknown;
  Pruner pruner_;

  // Of the walk that is on.
  const ResolvedRequest* request_ = nullptr;
  Window window_;
  uint64_t walk_ = 0;
  int64_t node_score_ = 0;  // of the nodes above the vertex that is visited
  // Shared vertices that were visited for the named vertex that is being visited: within it each
  // counts once, and the next one may have it too.
  std::vector<VertexId> shared_seen_;
  VisitCache cache_;
  // The table that was asked for last, which is mostly the next one too.
  struct {
    uint64_t walk = 0;
    uint32_t list = 0;
    bool pristine = false;
    bool exclusive = false;
    VisitCache::Outcomes* outcomes = nullptr;
  } last_table_;
  bool remembering_ = false;           // inside a node whose visit is going to be remembered
  std::vector<uint32_t> node_places_;  // by vertex; kNoPlace for what is no node
  size_t nodes_ = 0;
  // By place: the visit that was answered from memory.
  struct Remembered {
    uint64_t walk = 0;
    const Levels* levels = nullptr;
    bool pristine = false;
    bool exclusive = false;
  };
  std::vector<Remembered> remembered_;
  std::vector<Mark> marks_;  // by edge
  Mark root_mark_;
};

}  // namespace fluxqueue::graph
