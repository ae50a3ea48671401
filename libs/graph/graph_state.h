// What is held of a resource graph, and when.
//
// Each vertex has a timeline of its own amount, one of the jobs at it or below it (a vertex can be
// held exclusively only when there are none), and, where the prune filters ask for it, timelines of
// what is free below it by type, which tell a traversal where it need not look. Leaves that differ
// in nothing but their ids have no timelines: they are bits of a group.
//
// Not thread-safe.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <span>
#include <string_view>
#include <tuple>
#include <unordered_map>
#include <utility>
#include <vector>

#include "libs/graph/holding.h"
#include "libs/graph/prune_filters.h"
#include "libs/graph/resource_graph.h"
#include "libs/graph/timeline.h"

namespace fluxqueue::graph {

using JobNumber = uint64_t;

// Up to 64 like leaves of one vertex (its cores): a bit each, in the order of their ids.
struct LeafGroup {
  // Held by one job in [at, end).
  struct Span {
    int64_t at = 0;
    int64_t end = 0;
    uint64_t leaves = 0;
    bool reserved = false;

    friend bool operator==(const Span&, const Span&) = default;
  };

  VertexId parent = 0;
  TypeId type = 0;
  int64_t size = 1;      // of each
  uint64_t present = 0;  // not gone
  uint64_t up = 0;
  std::vector<VertexId> leaves = {};
  std::vector<Span> spans = {};  // in no order

  // Held at some time in [at, at + duration).
  uint64_t HeldDuring(int64_t at, int64_t duration) const {
    uint64_t held = 0;
    for (const Span& span : spans) {
      if (span.at - at < duration && span.end > at) held |= span.leaves;
    }
    return held;
  }
  // Allocated, whether or not the time is over.
  uint64_t Allocated() const {
    uint64_t allocated = 0;
    for (const Span& span : spans) allocated |= span.reserved ? 0 : span.leaves;
    return allocated;
  }
};

class GraphState {
 public:
  GraphState(const ResourceGraph& graph, PruneFilters filters);
  // A copy that looks at `graph`, an equal of the one that `other` looks at.
  GraphState(const ResourceGraph& graph, const GraphState& other);
  // Becomes what `other` is; goes on looking at its own graph.
  void Take(GraphState&& other);

  const PruneFilters& filters() const { return filters_; }

  // The least of the vertex's own amount that is not held in [at, at + duration).
  int64_t FreeDuring(VertexId v, int64_t at, int64_t duration) const;
  // No job is at it or below it in that time.
  bool IsUnusedDuring(VertexId v, int64_t at, int64_t duration) const;
  // Some job was allocated the vertex itself, and has not given it back, be its time over or not.
  bool IsAllocated(VertexId v) const;
  // The vertex's own amount. REQUIRES: it is in no group of leaves.
  const Timeline& HeldAt(VertexId v) const { return at(v).held; }
  // −n: n jobs are at the vertex or below it. REQUIRES: it is in no group of leaves.
  const Timeline& JobsAt(VertexId v) const { return at(v).jobs; }
  // What the vertex sums up, and what is free of it below; empty for leaves.
  std::span<const TypeId> FilterTypes(VertexId v) const;
  std::span<const Timeline> Filters(VertexId v) const;
  // Rises when anything changes here or below.
  uint64_t Version(VertexId v) const;

  // The groups of a vertex's leaves; a type may have several, of ascending ids. Leaves that cannot
  // be grouped (see GroupLeaves) are in none.
  std::span<const LeafGroup> GroupsOf(VertexId parent) const;
  // REQUIRES: the leaf is in one.
  const LeafGroup& GroupOf(VertexId leaf) const { return groups_[places_[leaf].index]; }
  // The leaf's bit in its group; none when it is in no group.
  uint64_t BitOf(VertexId leaf) const;

  // What changed, in the order of the changes: vertices that are held (not only passed), touched,
  // or tried in another order; leaves in groups are told by their parents. The first of them has
  // the number changes_begin(): old ones go.
  struct ChangedVertex {
    VertexId vertex = 0;
    bool below = false;  // so that everything below it may answer otherwise
  };
  std::span<const ChangedVertex> changes() const { return log_; }
  uint64_t changes_begin() const { return log_begin_; }
  // More is held of a divisible vertex than it has (it was resized, or a job restored): sums over
  // several vertices are then less than what some of them have.
  bool IsOverheld() const { return overheld_ > 0; }
  // Rises whenever something may be free that was not, at whatever time: while it stands, more and
  // more is held.
  uint64_t freed() const { return freed_; }
  // The first time at or after this one, later than 0, at which something begins to be held.
  std::optional<int64_t> FirstStartFrom(int64_t time) const;
  uint64_t changes_end() const { return log_begin_ + log_.size(); }

  // The graph has got vertices and edges behind those that it had. True: some that were leaves of a
  // group are not any more, and all that is held is to be summed up again (SumUpBelow).
  bool GraphGrew();
  // Nothing is held of these vertices (any more), and they are leaving: what is free above the
  // first of them, their top, becomes less. To be called before they leave the graph.
  void GraphShrinks(VertexId top);
  // They have left; `had_shared`: the graph had shared vertices before.
  void GraphShrank(bool had_shared);

  // A divisible vertex has so much more, or less, than before. What is held may be more than it
  // has.
  void Resize(VertexId v, int64_t more);

  // What is held below each vertex, by its filter types, follows from what is held.
  void SumUpBelow(Holding* holding);

  // Something about the vertex changed that is not kept here.
  void Touch(VertexId v);

  void Hold(const Holding& holding) { Change(holding, true); }
  void Release(const Holding& holding) {
    ++freed_;
    Change(holding, false);
  }

  // Of what is held, whoever holds it.
  uint64_t Fingerprint() const;
  // Of the order in which children are tried.
  uint64_t OrderFingerprint() const;

  // For policies that stop at the first match: the edges to a vertex's children, in the order in
  // which they are tried; until `visit(edge)` says that it is enough.
  template <typename Visit>
  void VisitChildren(VertexId v, const Visit& visit) const;
  // What the edge's target is tried by: greatest first, then the greatest unique id.
  uint64_t Weight(EdgeId edge) const { return weights_[edge]; }
  // The child was used: it is tried by what is free below it at `now` from here on. Returns what it
  // was tried by, which SetWeight takes back.
  uint64_t Reorder(EdgeId edge, int64_t now);
  // REQUIRES: the edge leads to a vertex with children.
  void SetWeight(EdgeId edge, uint64_t weight);

  // The weight of what was never used.
  static constexpr uint64_t kUntouched = UINT64_MAX;

 private:
  // Of a vertex that is in no group of leaves.
  struct At {
    explicit At(int64_t size) : held(size), jobs(0) {}

    Timeline held;
    Timeline jobs;  // -n: n jobs here or below
    std::vector<TypeId> filter_types;
    std::vector<Timeline> filters;
    uint32_t allocations = 0;  // of the vertex itself
    uint32_t first_group = 0;  // of its leaves
    uint32_t groups = 0;
    uint64_t version = 1;
  };
  // Where the state of a vertex is: at_[index], or a leaf of groups_[index].
  struct Place {
    static constexpr uint32_t kAlone = UINT32_MAX;

    uint32_t index = 0;
    uint32_t bit = kAlone;
  };

  const At& at(VertexId v) const { return at_[places_[v].index]; }
  At& at(VertexId v) { return at_[places_[v].index]; }
  bool IsGrouped(VertexId v) const { return places_[v].bit != Place::kAlone; }
  uint64_t Bit(VertexId v) const { return uint64_t{1} << places_[v].bit; }

  void Change(const Holding& holding, bool hold);
  // `below`: of the vertices from this one on. Returns those of the vertices behind it.
  const int64_t* ChangeVertex(const Holding& holding,
                              const HeldVertex& held,
                              const int64_t* below,
                              bool hold);
  // Changes a divisible vertex by `apply`, and keeps count of those that are overheld.
  template <typename Apply>
  void ChangeDivisible(VertexId v, const Apply& apply);
  void ChangeLeaves(LeafGroup* group, const LeafGroup::Span& span, bool hold);
  void Log(VertexId v, bool below);

  // Puts the leaves of a new vertex that are alike but for their ids into groups.
  void GroupLeaves(VertexId parent);
  bool MayGroup(const std::vector<VertexId>& leaves) const;
  void Ungroup(uint32_t number);
  void MakeStates(size_t first);
  void OrderChild(EdgeId e);

  // By type, the sizes of the vertex and of all below it that were not seen yet.
  using Sums = std::map<TypeId, int64_t>;
  // Vertices that were met; those before `first` count as met.
  struct Seen {
    Seen(size_t first_vertex, size_t vertices) : first(first_vertex), met(vertices - first) {}
    bool Contains(VertexId v) const { return v < first || met[v - first]; }
    void Insert(VertexId v) { met[v - first] = true; }

    size_t first;
    std::vector<bool> met;
  };
  Sums SumUp(VertexId v, Seen* seen, bool make_filters);
  void GrowAbove(VertexId v, const Sums& sums, int64_t direction);
  // Where vertices are shared, sums do not add up: each is counted by itself.
  void Recount();
  void GrowFilters(VertexId v, const Sums& sums, int64_t direction);
  void Track(const Vertex& leaf);

  // By weight and unique id.
  using TryOrder = std::set<std::tuple<uint64_t, int64_t, EdgeId>, std::greater<>>;

  GraphState(const GraphState&) = default;
  GraphState& operator=(GraphState&&) = default;

  // Calls on_leaves(group, bits) for leaves of one group that stand together, and on_vertex(held)
  // for all others.
  template <typename OnLeaves, typename OnVertex>
  void ForEach(const HeldVertices& vertices,
               const OnLeaves& on_leaves,
               const OnVertex& on_vertex) const;
  static constexpr VertexId kNobody = UINT32_MAX;
  // One of those that contain it; kNobody for the root.
  VertexId ParentOf(VertexId v) const;
  void AddAbove(VertexId v, TypeId type, int64_t amount);
  void AddBelow(VertexId v, TypeId type, int64_t amount);
  TryOrder OrderOf(VertexId v) const;

  const ResourceGraph* graph_;
  PruneFilters filters_;
  std::vector<Place> places_;  // by vertex
  std::vector<At> at_;
  std::vector<LeafGroup> groups_;
  // Of vertices with a child that is no leaf. Leaves have no filters, and so are tried in one order
  // for ever.
  std::unordered_map<VertexId, TryOrder> orders_;
  std::vector<uint64_t> weights_;  // by edge
  uint64_t versions_ = 1;
  uint64_t freed_ = 0;
  std::map<int64_t, size_t> starts_;  // of holdings, those after 0: how many
  uint64_t overheld_ = 0;             // divisible vertices
  std::vector<ChangedVertex> log_;
  uint64_t log_begin_ = 0;
  // Of SumUpBelow: by vertex, one more than where its sums begin; 0: it is not held.
  std::vector<uint32_t> sums_at_;
  std::vector<int64_t> sums_;
  std::vector<VertexId> above_;
};

template <typename Visit>
void GraphState::VisitChildren(VertexId v, const Visit& visit) const {
  const auto known = orders_.find(v);
  const auto until_enough = [&visit](const TryOrder& order) {
    for (const auto& [weight, uniq_id, edge] : order) {
      if (visit(edge)) return;
    }
  };
  until_enough(known != orders_.end() ? known->second : OrderOf(v));
}

}  // namespace fluxqueue::graph
