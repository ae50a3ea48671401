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
    : graph_(graph),
      filters_(std::move(filters)),
      children_(graph.vertices().size()),
      weights_(graph.edges().size(), kUntouched) {
  at_.reserve(graph.vertices().size());
  for (const Vertex& vertex : graph.vertices()) at_.emplace_back(vertex.size);
  for (EdgeId e = 0; e < graph.edges().size(); ++e) {
    const Edge& edge = graph.edge(e);
    if (edge.subsystem != ResourceGraph::kContainment) continue;
    children_[edge.source].emplace(kUntouched, graph.vertex(edge.target).uniq_id, e);
  }
  std::vector<bool> seen(graph.vertices().size(), false);
  SumUp(graph.root(), &seen);
}

// By type, the sizes of the vertex and of all below it, of types that are tracked.
std::map<TypeId, int64_t> GraphState::SumUp(VertexId v, std::vector<bool>* seen) {
  (*seen)[v] = true;
  const Vertex& vertex = graph_.vertex(v);
  std::map<TypeId, int64_t> below;
  for (const EdgeId e : vertex.out) {
    const Edge& edge = graph_.edge(e);
    if (edge.subsystem != ResourceGraph::kContainment || (*seen)[edge.target]) continue;
    for (const auto& [type, sum] : SumUp(edge.target, seen)) below[type] += sum;
  }
  // Leaves are always summed up at the cluster: it says at once what there is not.
  const TypeId cluster = graph_.types().Find("cluster");
  if (vertex.out.empty() && !filters_.Tracks(vertex.type) && cluster != NameTable::kUnknown) {
    filters_.Add(cluster, vertex.type);
  }
  if (!vertex.out.empty()) {
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
  std::map<VertexId, std::map<TypeId, int64_t>> sums;
  for (HeldVertex& held : holding->vertices) {
    const Vertex& vertex = graph_.vertex(held.vertex);
    const std::map<TypeId, int64_t> below = std::move(sums[held.vertex]);
    held.below.clear();
    if (!below.empty()) {
      for (const TypeId type : at_[held.vertex].filter_types) {
        const auto sum = below.find(type);
        held.below.push_back(sum == below.end() ? 0 : sum->second);
      }
    }
    if (held.edge == kNoEdge) continue;
    std::map<TypeId, int64_t>& above = sums[graph_.edge(held.edge).source];
    if (filters_.Tracks(vertex.type)) {
      above[vertex.type] += held.exclusive ? vertex.size : vertex.size - held.amount;
    }
    for (const auto& [type, amount] : below) above[type] += amount;
  }
}

void GraphState::Hold(JobNumber job, const Holding& holding) {
  for (const HeldVertex& held : holding.vertices) {
    At& at = at_[held.vertex];
    at.passing.insert(job);
    at.jobs.Hold(holding.at_s, holding.duration_s, 1);
    for (size_t i = 0; i < held.below.size(); ++i) {
      at.filters[i].Hold(holding.at_s, holding.duration_s, held.below[i]);
    }
    if (!held.exclusive) continue;
    at.held.Hold(holding.at_s, holding.duration_s, held.amount);
    (holding.reserved ? at.reservations : at.allocations).insert(job);
  }
}

void GraphState::Release(JobNumber job, const Holding& holding) {
  for (const HeldVertex& held : holding.vertices) {
    At& at = at_[held.vertex];
    at.passing.erase(job);
    at.jobs.Release(holding.at_s, holding.duration_s, 1);
    for (size_t i = 0; i < held.below.size(); ++i) {
      at.filters[i].Release(holding.at_s, holding.duration_s, held.below[i]);
    }
    if (!held.exclusive) continue;
    at.held.Release(holding.at_s, holding.duration_s, held.amount);
    (holding.reserved ? at.reservations : at.allocations).erase(job);
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

void GraphState::Reorder(EdgeId edge, int64_t now) {
  const auto [source, target, subsystem] = graph_.edge(edge);
  const At& at = at_[target];
  if (at.filters.empty()) return;
  const int64_t free = at.filters.back().FreeAt(now);
  if (free == 0 && !at.filters.back().HasSpans()) return;
  const int64_t uniq_id = graph_.vertex(target).uniq_id;
  children_[source].erase({weights_[edge], uniq_id, edge});
  weights_[edge] = static_cast<uint64_t>(std::max<int64_t>(free, 0));
  children_[source].emplace(weights_[edge], uniq_id, edge);
}

}  // namespace fluxqueue::graph
