#include "libs/graph/pruner.h"

#include <span>

namespace fluxqueue::graph {

bool MeetsConstraint(const ResourceGraph& graph,
                     VertexId node,
                     const JobRequest& job,
                     bool lasting) {
  const Vertex& vertex = graph.vertex(node);
  const bool meets =
      !job.constrained || job.constraint.Matches({vertex.name, vertex.rank, vertex.properties});
  return meets && FirstUntolerated(graph.TaintsOf(node), job.tolerations, lasting) == nullptr;
}

Pruner::Pruner(const ResourceGraph& graph, const GraphState& state, TraverserKind kind)
    : graph_(graph), state_(state), kind_(kind) {
  GraphChanged();
}

void Pruner::GraphChanged() {
  node_type_ = graph_.types().Find("node");
  storage_node_type_ = graph_.types().Find("storage_node");
}

bool Pruner::IsAllowed(VertexId v) const {
  const TypeId type = graph_.vertex(v).type;
  if (type != node_type_ && type != storage_node_type_) return true;
  return MeetsConstraint(graph_, v, *job_, window_.kind == Window::Kind::kEver);
}

bool Pruner::IsOffered(VertexId v) const {
  return (window_.kind == Window::Kind::kEver || graph_.vertex(v).up) && IsAllowed(v);
}

bool Pruner::Prune(VertexId v, const std::vector<RequestLevel>& levels, bool exclusive) const {
  if (!IsOffered(v)) return true;
  if (state_.FreeDuring(v, window_.at_s, window_.duration_s) <= 0) return true;
  return PruneByLevels(v, levels, exclusive);
}

bool Pruner::PruneByLevels(VertexId v,
                           const std::vector<RequestLevel>& levels,
                           bool exclusive) const {
  bool pruned = false;
  for (const RequestLevel& level : levels) {
    if (level.type != graph_.vertex(v).type && !level.is_slot()) continue;
    pruned = PruneByLevel(v, level, exclusive);
    // Of slots that are alternatives, Fluxion lets the last one decide.
    const bool alternative = kind_ == TraverserKind::kFlexible && level.is_slot();
    if (pruned && !alternative) return true;
  }
  return pruned;
}

bool Pruner::PruneByLevel(VertexId v, const RequestLevel& level, bool exclusive) const {
  if (!level.is_slot()) {
    // What is inside a slot cannot be shared.
    if (exclusive && level.request->exclusivity == Exclusivity::kShared) return true;
    // What can be divided is shared by its nature.
    const bool alone = exclusive || level.request->exclusivity == Exclusivity::kExclusive;
    if (alone && !graph_.vertex(v).divisible) {
      // A job beyond its end still holds what it holds.
      if (window_.kind == Window::Kind::kNow && state_.IsAllocated(v)) return true;
      if (!state_.IsUnusedDuring(v, window_.at_s, window_.duration_s)) return true;
    }
  }
  if (level.below.empty() || state_.IsOverheld()) return false;
  const std::span<const TypeId> types = state_.FilterTypes(v);
  const std::span<const Timeline> filters = state_.Filters(v);
  for (size_t i = 0; i < filters.size(); ++i) {
    // A sum of what is not asked for may be below 0: by rules before 15 a node that is closed twice
    // counts twice.
    const auto needed = level.below.find(types[i]);
    if (needed == level.below.end()) continue;
    if (needed->second > filters[i].FreeDuring(window_.at_s, window_.duration_s)) return true;
  }
  return false;
}

}  // namespace fluxqueue::graph
