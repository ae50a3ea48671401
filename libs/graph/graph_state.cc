#include "libs/graph/graph_state.h"

#include <algorithm>

#include "libs/base/status_macros.h"
#include "libs/graph/fnv.h"

namespace fluxqueue::graph {
namespace {

// Children that were never used are tried first.
constexpr uint64_t kUntouched = UINT64_MAX;

}  // namespace

absl::StatusOr<PruneFilters> PruneFilters::Parse(std::string_view text, ResourceGraph* graph) {
  PruneFilters filters;
  while (!text.empty()) {
    const size_t comma = text.find(',');
    const std::string_view item = text.substr(0, comma);
    const size_t colon = item.find(':');
    if (colon == std::string_view::npos || colon == 0 || colon + 1 == item.size()) {
      return InvalidArgument(
          "prune filters: \"{}\" must be anchor:type, such as ALL:core or node:memory", item);
    }
    const TypeId type = graph->InternType(item.substr(colon + 1));
    if (item.substr(0, colon) == "ALL") {
      filters.tracked_.insert(type);
      filters.everywhere_.insert(type);
      for (auto& [anchor, types] : filters.at_) types.erase(type);
    } else {
      filters.Add(graph->InternType(item.substr(0, colon)), type);
    }
    text = comma == std::string_view::npos ? std::string_view() : text.substr(comma + 1);
  }
  return filters;
}

std::vector<TypeId> PruneFilters::At(TypeId anchor, const NameTable& names) const {
  std::vector<TypeId> types;
  if (const auto found = at_.find(anchor); found != at_.end()) {
    types.assign(found->second.begin(), found->second.end());
  }
  const auto by_name = [&](TypeId a, TypeId b) { return names[a] < names[b]; };
  std::sort(types.begin(), types.end(), by_name);
  const auto own = static_cast<ptrdiff_t>(types.size());
  for (const TypeId type : everywhere_) {
    if (type != anchor) types.push_back(type);
  }
  std::sort(types.begin() + own, types.end(), by_name);
  return types;
}

void PruneFilters::Add(TypeId anchor, TypeId type) {
  tracked_.insert(type);
  if (!everywhere_.contains(type)) at_[anchor].insert(type);
}

GraphState::GraphState(const ResourceGraph& graph, PruneFilters filters)
    : graph_(graph), filters_(std::move(filters)) {
  GraphGrew();
}

GraphState::GraphState(const ResourceGraph& graph, const GraphState& other)
    : graph_(graph),
      filters_(other.filters_),
      at_(other.at_),
      children_(other.children_),
      weights_(other.weights_),
      changes_(other.changes_) {}

void GraphState::Take(GraphState&& other) {
  filters_ = std::move(other.filters_);
  at_ = std::move(other.at_);
  children_ = std::move(other.children_);
  weights_ = std::move(other.weights_);
  changes_ = other.changes_;
}

void GraphState::GraphGrew() {
  const size_t vertices_before = at_.size();
  const size_t edges_before = weights_.size();
  at_.reserve(graph_.vertices().size());
  for (size_t v = vertices_before; v < graph_.vertices().size(); ++v) {
    at_.emplace_back(graph_.vertices()[v].size);
  }
  children_.resize(graph_.vertices().size());
  weights_.resize(graph_.edges().size(), kUntouched);
  std::vector<bool> seen(vertices_before, true);
  seen.resize(graph_.vertices().size(), false);
  for (auto e = static_cast<EdgeId>(edges_before); e < graph_.edges().size(); ++e) {
    const Edge& edge = graph_.edge(e);
    if (edge.subsystem != ResourceGraph::kContainment) continue;
    children_[edge.source].emplace(kUntouched, graph_.vertex(edge.target).uniq_id, e);
    // A new vertex below an old one: it and what is below it come on top of what there was.
    if (edge.source >= vertices_before || seen[edge.target]) continue;
    GrowAbove(edge.source, SumUp(edge.target, &seen, true), 1);
  }
  if (vertices_before == 0) SumUp(graph_.root(), &seen, true);
  if (graph_.has_shared()) Recount();
}

void GraphState::GraphShrank(bool had_shared) {
  if (had_shared) Recount();
}

void GraphState::Recount() {
  for (VertexId v = 0; v < at_.size(); ++v) {
    const Vertex& vertex = graph_.vertex(v);
    if (vertex.gone || vertex.out.empty()) continue;
    std::vector<bool> seen(at_.size(), false);
    Sums below = SumUp(v, &seen, false);
    if (filters_.Tracks(vertex.type)) below[vertex.type] -= vertex.size;
    At& at = at_[v];
    for (size_t i = 0; i < at.filters.size(); ++i) {
      at.filters[i].Grow(below[at.filter_types[i]] - at.filters[i].total());
      below.erase(at.filter_types[i]);
    }
    GrowFilters(v, below, 1);
  }
}

void GraphState::GraphShrinks(VertexId top) {
  std::vector<bool> seen(graph_.vertices().size(), false);
  const Sums sums = SumUp(top, &seen, false);
  for (const EdgeId e : graph_.vertex(top).in) {
    const Edge& edge = graph_.edge(e);
    if (edge.subsystem != ResourceGraph::kContainment) continue;
    GrowAbove(edge.source, sums, -1);
    children_[edge.source].erase({weights_[e], graph_.vertex(top).uniq_id, e});
  }
}

void GraphState::GrowAbove(VertexId v, const Sums& sums, int64_t direction) {
  while (true) {
    GrowFilters(v, sums, direction);
    const std::vector<VertexId> parents = graph_.ParentsOf(v);
    if (parents.empty()) return;
    v = parents.front();
  }
}

void GraphState::GrowFilters(VertexId v, const Sums& sums, int64_t direction) {
  At& at = at_[v];
  const std::vector<TypeId> wanted = filters_.At(graph_.vertex(v).type, graph_.types());
  for (const auto& [type, sum] : sums) {
    if (std::find(wanted.begin(), wanted.end(), type) == wanted.end()) continue;
    auto filter = std::find(at.filter_types.begin(), at.filter_types.end(), type);
    if (filter == at.filter_types.end()) {
      // The first of its type below: behind the others, whose places are known.
      filter = at.filter_types.insert(filter, type);
      at.filters.emplace_back(0);
    }
    at.filters[static_cast<size_t>(filter - at.filter_types.begin())].Grow(direction * sum);
  }
}

// Leaves are always summed up at the cluster: it says at once what there is not.
void GraphState::Track(const Vertex& leaf) {
  const TypeId cluster = graph_.types().Find("cluster");
  if (!filters_.Tracks(leaf.type) && cluster != NameTable::kUnknown) {
    filters_.Add(cluster, leaf.type);
  }
}

GraphState::Sums GraphState::SumUp(VertexId v, std::vector<bool>* seen, bool make_filters) {
  (*seen)[v] = true;
  const Vertex& vertex = graph_.vertex(v);
  Sums below;
  for (const EdgeId e : vertex.out) {
    const Edge& edge = graph_.edge(e);
    if (edge.subsystem != ResourceGraph::kContainment || (*seen)[edge.target]) continue;
    for (const auto& [type, sum] : SumUp(edge.target, seen, make_filters)) below[type] += sum;
  }
  if (make_filters && vertex.out.empty()) Track(vertex);
  if (make_filters && !vertex.out.empty()) {
    at_[v].filter_types = filters_.At(vertex.type, graph_.types());
    for (const TypeId type : at_[v].filter_types) {
      const auto sum = below.find(type);
      at_[v].filters.emplace_back(sum == below.end() ? 0 : sum->second);
    }
  }
  if (filters_.Tracks(vertex.type)) below[vertex.type] += vertex.size;
  return below;
}

void GraphState::SumUpBelow(Holding* holding) const {
  std::set<VertexId> held_here;
  for (const HeldVertex& held : holding->vertices) held_here.insert(held.vertex);
  std::map<VertexId, Sums> sums;
  std::vector<VertexId> above;
  for (const HeldVertex& held : holding->vertices) {
    const Vertex& vertex = graph_.vertex(held.vertex);
    if (!filters_.Tracks(vertex.type)) continue;
    const int64_t amount = held.exclusive ? vertex.size : vertex.size - held.amount;
    // Once for each vertex above it, whatever the way.
    above = {held.vertex};
    for (size_t i = 0; i < above.size(); ++i) {
      for (const VertexId parent : graph_.ParentsOf(above[i])) {
        const bool known = std::find(above.begin(), above.end(), parent) != above.end();
        if (known || !held_here.contains(parent)) continue;
        sums[parent][vertex.type] += amount;
        above.push_back(parent);
      }
    }
  }
  for (HeldVertex& held : holding->vertices) {
    held.below.clear();
    const auto below = sums.find(held.vertex);
    if (below == sums.end()) continue;
    for (const TypeId type : at_[held.vertex].filter_types) {
      const auto sum = below->second.find(type);
      held.below.push_back(sum == below->second.end() ? 0 : sum->second);
    }
  }
}

void GraphState::Touch(VertexId v) {
  std::vector<VertexId> above = {v};
  for (size_t i = 0; i < above.size(); ++i) {
    at_[above[i]].version = ++changes_;
    for (const VertexId parent : graph_.ParentsOf(above[i])) {
      const bool known = std::find(above.begin(), above.end(), parent) != above.end();
      if (!known) above.push_back(parent);
    }
  }
}

void GraphState::Hold(JobNumber job, const Holding& holding) {
  Change(holding, &Timeline::Hold, [job](std::set<JobNumber>& jobs) { jobs.insert(job); });
}

void GraphState::Release(JobNumber job, const Holding& holding) {
  Change(holding, &Timeline::Release, [job](std::set<JobNumber>& jobs) { jobs.erase(job); });
}

void GraphState::Change(const Holding& holding,
                        void (Timeline::*change)(int64_t, int64_t, int64_t),
                        const std::function<void(std::set<JobNumber>&)>& note) {
  for (const HeldVertex& held : holding.vertices) {
    At& at = at_[held.vertex];
    at.version = ++changes_;
    note(at.passing);
    (at.jobs.*change)(holding.at_s, holding.duration_s, 1);
    for (size_t i = 0; i < held.below.size(); ++i) {
      (at.filters[i].*change)(holding.at_s, holding.duration_s, held.below[i]);
    }
    if (!held.exclusive) continue;
    (at.held.*change)(holding.at_s, holding.duration_s, held.amount);
    note(holding.reserved ? at.reservations : at.allocations);
  }
}

uint64_t GraphState::Fingerprint() const {
  Fnv hash;
  const auto add = [&hash](const std::set<JobNumber>& jobs) {
    hash.Add(jobs.size());
    for (const JobNumber job : jobs) hash.Add(job);
  };
  for (const At& at : at_) {
    at.held.AddTo(&hash);
    at.jobs.AddTo(&hash);
    for (const Timeline& filter : at.filters) filter.AddTo(&hash);
    add(at.allocations);
    add(at.reservations);
    add(at.passing);
  }
  return hash.value();
}

uint64_t GraphState::OrderFingerprint() const {
  Fnv hash;
  for (const uint64_t weight : weights_) hash.Add(weight);
  return hash.value();
}

uint64_t GraphState::Reorder(EdgeId edge, int64_t now) {
  const uint64_t before = weights_[edge];
  const At& at = at_[graph_.edge(edge).target];
  if (at.filters.empty()) return before;
  const int64_t free = at.filters.back().FreeAt(now);
  if (free == 0 && !at.filters.back().HasSpans()) return before;
  SetWeight(edge, static_cast<uint64_t>(std::max<int64_t>(free, 0)));
  return before;
}

void GraphState::SetWeight(EdgeId edge, uint64_t weight) {
  TryOrder& order = children_[graph_.edge(edge).source];
  const int64_t uniq_id = graph_.vertex(graph_.edge(edge).target).uniq_id;
  order.erase({weights_[edge], uniq_id, edge});
  weights_[edge] = weight;
  order.emplace(weight, uniq_id, edge);
}

}  // namespace fluxqueue::graph
