// What is held of a resource graph, and when.
//
// Each vertex has a timeline of its own amount, one of the jobs at it or below it (a vertex can be
// held exclusively only when there are none), and, where the prune filters ask for it, timelines of
// what is free below it by type, which tell a traversal where it need not look.
//
// Not thread-safe.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <set>
#include <string_view>
#include <tuple>
#include <utility>
#include <vector>

#include "libs/graph/resource_graph.h"
#include "libs/graph/timeline.h"

#include "absl/status/statusor.h"

namespace fluxqueue::graph {

using JobNumber = uint64_t;

// Which types are summed up at which vertices: "ALL:core,ALL:gpu,node:memory".
class PruneFilters {
 public:
  // InvalidArgument when an item is not "anchor:type". Empty text: none.
  static absl::StatusOr<PruneFilters> Parse(std::string_view text, ResourceGraph* graph);

  // Summed up somewhere.
  bool Tracks(TypeId type) const { return tracked_.contains(type); }
  // What is summed up at vertices of this type, in the order that `first` knows ("the last one").
  std::vector<TypeId> At(TypeId anchor, const NameTable& types) const;
  // Adds a type at one anchor, unless it is summed up everywhere.
  void Add(TypeId anchor, TypeId type);

 private:
  std::set<TypeId> tracked_;
  std::set<TypeId> everywhere_;
  std::map<TypeId, std::set<TypeId>> at_;
};

// One vertex of what a job holds.
struct HeldVertex {
  VertexId vertex = 0;
  // That led to it; kNoEdge for the root.
  EdgeId edge = kNoEdge;
  int64_t amount = 0;
  // Held, rather than only on the way to what is held.
  bool exclusive = false;
  // By the vertex's filter types, how much is held below; empty when it sums up nothing.
  std::vector<int64_t> below;

  friend bool operator==(const HeldVertex&, const HeldVertex&) = default;
};

struct Holding {
  int64_t at_s = 0;
  int64_t duration_s = 0;
  bool reserved = false;
  // Children before their parents.
  std::vector<HeldVertex> vertices;

  friend bool operator==(const Holding&, const Holding&) = default;
};

class GraphState {
 public:
  struct At {
    explicit At(int64_t size) : held(size), jobs(0) {}

    Timeline held;
    Timeline jobs;  // -n: n jobs here or below
    std::vector<TypeId> filter_types;
    std::vector<Timeline> filters;
    uint64_t version = 1;              // rises when anything changes here or below
    std::set<JobNumber> allocations;   // that hold this vertex itself
    std::set<JobNumber> reservations;  // the same
    std::set<JobNumber> passing;       // jobs that hold it or something below
  };

  GraphState(const ResourceGraph& graph, PruneFilters filters);
  // A copy that looks at `graph`, an equal of the one that `other` looks at.
  GraphState(const ResourceGraph& graph, const GraphState& other);
  GraphState(const GraphState&) = delete;
  GraphState& operator=(const GraphState&) = delete;
  // Becomes what `other` is; goes on looking at its own graph.
  void Take(GraphState&& other);

  const At& at(VertexId v) const { return at_[v]; }
  const PruneFilters& filters() const { return filters_; }

  // The graph has got vertices and edges behind those that it had.
  void GraphGrew();
  // Nothing is held of these vertices (any more), and they are leaving: what is free above the
  // first of them, their top, becomes less. To be called before they leave the graph.
  void GraphShrinks(VertexId top);
  // They have left; `had_shared`: the graph had shared vertices before.
  void GraphShrank(bool had_shared);

  // What is held below each vertex, by its filter types, follows from what is held.
  void SumUpBelow(Holding* holding) const;

  // Something about the vertex changed that is not kept here.
  void Touch(VertexId v);

  void Hold(JobNumber job, const Holding& holding);
  void Release(JobNumber job, const Holding& holding);

  // Of what is held.
  uint64_t Fingerprint() const;
  // Of the order in which children are tried.
  uint64_t OrderFingerprint() const;

  // For policies that stop at the first match: the edges to a vertex's children, in the order in
  // which they are tried.
  using TryOrder = std::set<std::tuple<uint64_t, int64_t, EdgeId>, std::greater<>>;
  const TryOrder& Children(VertexId v) const { return children_[v]; }
  // The child was used: it is tried by what is free below it at `now` from here on. Returns what it
  // was tried by, which SetWeight takes back.
  uint64_t Reorder(EdgeId edge, int64_t now);
  void SetWeight(EdgeId edge, uint64_t weight);

 private:
  // Hold and Release: `note` adds the job to a set, or takes it out.
  void Change(const Holding& holding,
              void (Timeline::*change)(int64_t, int64_t, int64_t),
              const std::function<void(std::set<JobNumber>&)>& note);
  // By type, the sizes of the vertex and of all below it that were not seen yet.
  using Sums = std::map<TypeId, int64_t>;
  Sums SumUp(VertexId v, std::vector<bool>* seen, bool make_filters);
  void GrowAbove(VertexId v, const Sums& sums, int64_t direction);
  // Where vertices are shared, sums do not add up: each is counted by itself.
  void Recount();
  void GrowFilters(VertexId v, const Sums& sums, int64_t direction);
  void Track(const Vertex& leaf);

  const ResourceGraph& graph_;
  PruneFilters filters_;
  std::vector<At> at_;
  std::vector<TryOrder> children_;
  std::vector<uint64_t> weights_;  // by edge
  uint64_t changes_ = 1;
};

}  // namespace fluxqueue::graph
