#include "libs/graph/graph_state.h"

#include <algorithm>
#include <bit>
#include <utility>

#include "libs/base/check.h"
#include "libs/graph/fnv.h"

namespace fluxqueue::graph {
namespace {

// As many leaves as a word has bits.
constexpr size_t kGroupSize = 64;
constexpr size_t kMinLog = 4096;

}  // namespace

GraphState::GraphState(const ResourceGraph& graph, PruneFilters filters)
    : graph_(&graph), filters_(std::move(filters)) {
  GraphGrew();
}

GraphState::GraphState(const ResourceGraph& graph, const GraphState& other) : GraphState(other) {
  graph_ = &graph;
}

void GraphState::Take(GraphState&& other) {
  const ResourceGraph* graph = graph_;
  const uint64_t freed = freed_ + 1;
  *this = std::move(other);
  graph_ = graph;
  freed_ = freed;
}

int64_t GraphState::FreeDuring(VertexId v, int64_t at_s, int64_t duration) const {
  if (!IsGrouped(v)) return at(v).held.FreeDuring(at_s, duration);
  const LeafGroup& group = groups_[places_[v].index];
  return (group.HeldDuring(at_s, duration) & Bit(v)) != 0 ? 0 : group.size;
}

bool GraphState::IsUnusedDuring(VertexId v, int64_t at_s, int64_t duration) const {
  if (!IsGrouped(v)) return at(v).jobs.FreeDuring(at_s, duration) == 0;
  return (groups_[places_[v].index].HeldDuring(at_s, duration) & Bit(v)) == 0;
}

bool GraphState::IsAllocated(VertexId v) const {
  if (!IsGrouped(v)) return at(v).allocations > 0;
  return (groups_[places_[v].index].Allocated() & Bit(v)) != 0;
}

std::span<const TypeId> GraphState::FilterTypes(VertexId v) const {
  if (IsGrouped(v)) return {};
  return at(v).filter_types;
}

std::span<const Timeline> GraphState::Filters(VertexId v) const {
  if (IsGrouped(v)) return {};
  return at(v).filters;
}

uint64_t GraphState::Version(VertexId v) const {
  return at(IsGrouped(v) ? groups_[places_[v].index].parent : v).version;
}

std::span<const LeafGroup> GraphState::GroupsOf(VertexId parent) const {
  if (IsGrouped(parent)) return {};
  return std::span(groups_).subspan(at(parent).first_group, at(parent).groups);
}

uint64_t GraphState::BitOf(VertexId leaf) const {
  return IsGrouped(leaf) ? Bit(leaf) : 0;
}

bool GraphState::GraphGrew() {
  ++freed_;
  const size_t vertices_before = places_.size();
  const size_t edges_before = weights_.size();
  const size_t vertices = graph_->vertices().size();
  places_.resize(vertices);
  sums_at_.resize(vertices, 0);
  weights_.resize(graph_->edges().size(), kUntouched);
  bool ungrouped = false;
  for (auto e = static_cast<EdgeId>(edges_before); e < graph_->edges().size(); ++e) {
    const VertexId source = graph_->edge(e).source;
    if (source >= vertices_before || !IsGrouped(source)) continue;
    Ungroup(places_[source].index);
    ungrouped = true;
  }
  MakeStates(vertices_before);
  Seen seen(vertices_before, vertices);
  for (auto e = static_cast<EdgeId>(edges_before); e < graph_->edges().size(); ++e) {
    const Edge& edge = graph_->edge(e);
    if (edge.subsystem != ResourceGraph::kContainment) continue;
    OrderChild(e);
    // A new vertex below an old one: it and what is below it come on top of what there was.
    if (edge.source >= vertices_before || seen.Contains(edge.target)) continue;
    GrowAbove(edge.source, SumUp(edge.target, &seen, true), 1);
  }
  if (vertices_before == 0) SumUp(graph_->root(), &seen, true);
  if (graph_->has_shared()) Recount();
  return ungrouped;
}

// Of the vertices from `first` on: in groups, or one by one.
void GraphState::MakeStates(size_t first) {
  const auto groups_before = static_cast<uint32_t>(groups_.size());
  for (auto v = static_cast<VertexId>(first); v < places_.size(); ++v) GroupLeaves(v);
  for (auto v = static_cast<VertexId>(first); v < places_.size(); ++v) {
    if (IsGrouped(v)) continue;
    places_[v].index = static_cast<uint32_t>(at_.size());
    at_.emplace_back(graph_->vertex(v).size);
  }
  for (uint32_t group = groups_before; group < groups_.size(); ++group) {
    At& parent = at(groups_[group].parent);
    if (parent.groups++ == 0) parent.first_group = group;
  }
}

// The edge is new.
void GraphState::OrderChild(EdgeId e) {
  const Edge& edge = graph_->edge(e);
  if (const auto order = orders_.find(edge.source); order != orders_.end()) {
    order->second.emplace(kUntouched, graph_->vertex(edge.target).uniq_id, e);
  }
  // Its source is no leaf (any more): those above try it in an order that changes.
  for (const VertexId parent : graph_->ParentsOf(edge.source)) {
    if (!orders_.contains(parent)) orders_.emplace(parent, OrderOf(parent));
  }
}

void GraphState::GroupLeaves(VertexId parent) {
  std::map<TypeId, std::vector<VertexId>> leaves;
  for (const EdgeId e : graph_->vertex(parent).out) {
    const Edge& edge = graph_->edge(e);
    if (edge.subsystem == ResourceGraph::kContainment) {
      leaves[graph_->vertex(edge.target).type].push_back(edge.target);
    }
  }
  for (auto& [type, of_type] : leaves) {
    std::sort(of_type.begin(), of_type.end(), [this](VertexId a, VertexId b) {
      return graph_->vertex(a).id < graph_->vertex(b).id;
    });
    if (!MayGroup(of_type)) continue;
    for (size_t first = 0; first < of_type.size(); first += kGroupSize) {
      const auto number = static_cast<uint32_t>(groups_.size());
      LeafGroup& group = groups_.emplace_back();
      group.parent = parent;
      group.type = type;
      group.size = graph_->vertex(of_type[first]).size;
      for (size_t i = first; i < std::min(first + kGroupSize, of_type.size()); ++i) {
        places_[of_type[i]] = {number, static_cast<uint32_t>(i - first)};
        group.leaves.push_back(of_type[i]);
        group.present |= Bit(of_type[i]);
        if (graph_->vertex(of_type[i]).up) group.up |= Bit(of_type[i]);
      }
    }
  }
}

// Nothing but ids tells them apart, and those order them as their unique ids do.
bool GraphState::MayGroup(const std::vector<VertexId>& leaves) const {
  const Vertex& first = graph_->vertex(leaves.front());
  const Vertex* before = nullptr;
  for (const VertexId leaf : leaves) {
    const Vertex& vertex = graph_->vertex(leaf);
    if (vertex.size != first.size || vertex.size < 1 || graph_->IsShared(leaf)) return false;
    if (!vertex.out.empty() || vertex.divisible) return false;
    if (before != nullptr && (vertex.id == before->id || vertex.uniq_id <= before->uniq_id)) {
      return false;
    }
    before = &vertex;
  }
  return true;
}

void GraphState::Ungroup(uint32_t number) {
  const LeafGroup group = std::move(groups_[number]);
  groups_[number] = {.parent = group.parent, .type = group.type};
  for (const VertexId leaf : group.leaves) {
    const uint64_t bit = Bit(leaf);
    places_[leaf] = {static_cast<uint32_t>(at_.size()), Place::kAlone};
    At& at = at_.emplace_back(group.size);
    for (const LeafGroup::Span& span : group.spans) {
      if ((span.leaves & bit) == 0) continue;
      at.jobs.Hold(span.at, span.end - span.at, 1);
      at.held.Hold(span.at, span.end - span.at, group.size);
      if (!span.reserved) ++at.allocations;
    }
  }
}

void GraphState::GraphShrank(bool had_shared) {
  ++freed_;
  if (had_shared) Recount();
}

void GraphState::Recount() {
  for (VertexId v = 0; v < places_.size(); ++v) {
    const Vertex& vertex = graph_->vertex(v);
    if (vertex.gone || vertex.out.empty()) continue;
    Seen seen(0, places_.size());
    Sums below = SumUp(v, &seen, false);
    if (filters_.Tracks(vertex.type)) below[vertex.type] -= vertex.size;
    At& here = at(v);
    for (size_t i = 0; i < here.filters.size(); ++i) {
      here.filters[i].Grow(below[here.filter_types[i]] - here.filters[i].total());
      below.erase(here.filter_types[i]);
    }
    GrowFilters(v, below, 1);
  }
}

void GraphState::GraphShrinks(VertexId top) {
  Seen seen(0, graph_->vertices().size());
  const Sums sums = SumUp(top, &seen, false);
  for (const EdgeId e : graph_->vertex(top).in) {
    const Edge& edge = graph_->edge(e);
    if (edge.subsystem != ResourceGraph::kContainment) continue;
    GrowAbove(edge.source, sums, -1);
    if (const auto order = orders_.find(edge.source); order != orders_.end()) {
      order->second.erase({weights_[e], graph_->vertex(top).uniq_id, e});
    }
    Touch(edge.source);
  }
  if (IsGrouped(top)) groups_[places_[top].index].present &= ~Bit(top);
}

void GraphState::GrowAbove(VertexId v, const Sums& sums, int64_t direction) {
  while (true) {
    GrowFilters(v, sums, direction);
    const std::vector<VertexId> parents = graph_->ParentsOf(v);
    if (parents.empty()) return;
    v = parents.front();
  }
}

void GraphState::GrowFilters(VertexId v, const Sums& sums, int64_t direction) {
  At& here = at(v);
  for (const auto& [type, sum] : sums) {
    auto filter = std::find(here.filter_types.begin(), here.filter_types.end(), type);
    if (filter == here.filter_types.end()) {
      const std::vector<TypeId> wanted = filters_.At(graph_->vertex(v).type, graph_->types());
      if (std::find(wanted.begin(), wanted.end(), type) == wanted.end()) continue;
      // The first of its type below: behind the others, whose places are known.
      filter = here.filter_types.insert(filter, type);
      here.filters.emplace_back(0);
    }
    here.filters[static_cast<size_t>(filter - here.filter_types.begin())].Grow(direction * sum);
  }
}

// Leaves are always summed up at the cluster: it says at once what there is not.
void GraphState::Track(const Vertex& leaf) {
  const TypeId cluster = graph_->types().Find("cluster");
  if (!filters_.Tracks(leaf.type) && cluster != NameTable::kUnknown) {
    filters_.Add(cluster, leaf.type);
  }
}

GraphState::Sums GraphState::SumUp(VertexId v, Seen* seen, bool make_filters) {
  seen->Insert(v);
  const Vertex& vertex = graph_->vertex(v);
  Sums below;
  for (const EdgeId e : vertex.out) {
    const Edge& edge = graph_->edge(e);
    if (edge.subsystem != ResourceGraph::kContainment || seen->Contains(edge.target)) continue;
    for (const auto& [type, sum] : SumUp(edge.target, seen, make_filters)) below[type] += sum;
  }
  if (make_filters && vertex.out.empty()) Track(vertex);
  if (make_filters && !vertex.out.empty()) {
    At& here = at(v);
    here.filter_types = filters_.At(vertex.type, graph_->types());
    for (const TypeId type : here.filter_types) {
      const auto sum = below.find(type);
      here.filters.emplace_back(sum == below.end() ? 0 : sum->second);
    }
  }
  if (filters_.Tracks(vertex.type)) below[vertex.type] += vertex.size;
  return below;
}

template <typename OnLeaves, typename OnVertex>
void GraphState::ForEach(const HeldVertices& vertices,
                         const OnLeaves& on_leaves,
                         const OnVertex& on_vertex) const {
  uint32_t group = 0;
  uint64_t bits = 0;
  const auto end_group = [&] {
    if (bits != 0) on_leaves(group, std::exchange(bits, 0));
  };
  for (const HeldVertices::Run& run : vertices.runs()) {
    for (uint32_t i = 0; i < run.count; ++i) {
      const Place place = places_[run.first.vertex + i];
      if (place.bit == Place::kAlone) {
        end_group();
        on_vertex(run[i]);
        continue;
      }
      if (place.index != group) end_group();
      group = place.index;
      bits |= uint64_t{1} << place.bit;
    }
  }
  end_group();
}

void GraphState::SumUpBelow(Holding* holding) {
  sums_.clear();
  const auto no_leaves = [](uint32_t, uint64_t) {};
  ForEach(holding->vertices, no_leaves, [&](const HeldVertex& held) {
    sums_at_[held.vertex] = static_cast<uint32_t>(sums_.size() + 1);
    // In front: how many of them there are, once something is added.
    sums_.insert(sums_.end(), at(held.vertex).filter_types.size() + 1, 0);
  });
  const auto add_leaves = [&](uint32_t number, uint64_t bits) {
    const LeafGroup& group = groups_[number];
    AddAbove(group.leaves[std::countr_zero(bits)], group.type, std::popcount(bits) * group.size);
  };
  const auto add_vertex = [&](const HeldVertex& held) {
    const Vertex& vertex = graph_->vertex(held.vertex);
    const int64_t whole = vertex.divisible ? held.amount : vertex.size;
    AddAbove(held.vertex, vertex.type, held.exclusive ? whole : vertex.size - held.amount);
  };
  if (!holding->out_of_sums) ForEach(holding->vertices, add_leaves, add_vertex);
  holding->below.clear();
  ForEach(holding->vertices, no_leaves, [&](const HeldVertex& held) {
    const auto sums = sums_.begin() + sums_at_[held.vertex] - 1;
    holding->below.insert(holding->below.end(), sums, sums + *sums + 1);
    sums_at_[held.vertex] = 0;
  });
}

VertexId GraphState::ParentOf(VertexId v) const {
  for (const EdgeId e : graph_->vertex(v).in) {
    const Edge& edge = graph_->edge(e);
    if (edge.subsystem == ResourceGraph::kContainment) return edge.source;
  }
  return kNobody;
}

// To what each vertex above this one has below itself: once, whatever the way.
void GraphState::AddAbove(VertexId v, TypeId type, int64_t amount) {
  if (!filters_.Tracks(type)) return;
  if (!graph_->has_shared()) {
    // The group knows without a look at the leaf.
    v = IsGrouped(v) ? GroupOf(v).parent : ParentOf(v);
    for (; v != kNobody && sums_at_[v] != 0; v = ParentOf(v)) AddBelow(v, type, amount);
    return;
  }
  above_.assign(1, v);
  for (size_t i = 0; i < above_.size(); ++i) {
    for (const EdgeId e : graph_->vertex(above_[i]).in) {
      const Edge& edge = graph_->edge(e);
      if (edge.subsystem != ResourceGraph::kContainment || sums_at_[edge.source] == 0) continue;
      if (std::find(above_.begin(), above_.end(), edge.source) != above_.end()) continue;
      AddBelow(edge.source, type, amount);
      above_.push_back(edge.source);
    }
  }
}

void GraphState::AddBelow(VertexId v, TypeId type, int64_t amount) {
  const std::span<const TypeId> types = FilterTypes(v);
  int64_t* sums = &sums_[sums_at_[v] - 1];
  *sums = static_cast<int64_t>(types.size());
  const auto place = std::find(types.begin(), types.end(), type);
  if (place != types.end()) sums[1 + (place - types.begin())] += amount;
}

template <typename Apply>
void GraphState::ChangeDivisible(VertexId v, const Apply& apply) {
  const auto is_overheld = [&] { return at(v).held.FreeDuring(0, Timeline::kEnd) < 0; };
  overheld_ -= is_overheld() ? 1 : 0;
  apply();
  overheld_ += is_overheld() ? 1 : 0;
}

void GraphState::Resize(VertexId v, int64_t more) {
  CHECK(!IsGrouped(v) && graph_->vertex(v).divisible);
  ChangeDivisible(v, [&] { at(v).held.Grow(more); });
  for (const VertexId parent : graph_->ParentsOf(v)) {
    GrowAbove(parent, {{graph_->vertex(v).type, more}}, 1);
  }
  Touch(v);
}

void GraphState::Log(VertexId v, bool below) {
  if (log_.size() > std::max(kMinLog, places_.size())) {
    log_begin_ += log_.size();
    log_.clear();
  }
  log_.push_back({v, below});
}

void GraphState::Touch(VertexId v) {
  ++freed_;
  std::vector<VertexId> above = {v};
  for (size_t i = 0; i < above.size(); ++i) {
    if (!IsGrouped(above[i])) at(above[i]).version = ++versions_;
    for (const VertexId parent : graph_->ParentsOf(above[i])) {
      if (std::find(above.begin(), above.end(), parent) == above.end()) above.push_back(parent);
    }
  }
  if (IsGrouped(v)) {
    LeafGroup& group = groups_[places_[v].index];
    group.up = graph_->vertex(v).up ? group.up | Bit(v) : group.up & ~Bit(v);
    Log(group.parent, false);
  } else {
    Log(v, true);
  }
}

std::optional<int64_t> GraphState::FirstStartFrom(int64_t time) const {
  const auto first = starts_.lower_bound(time);
  if (first == starts_.end()) return std::nullopt;
  return first->first;
}

void GraphState::Change(const Holding& holding, bool hold) {
  if (holding.at_s > 0) {
    size_t& holdings = starts_[holding.at_s];
    holdings += hold ? 1 : -1;
    if (holdings == 0) starts_.erase(holding.at_s);
  }
  const int64_t* below = holding.below.data();
  LeafGroup::Span span{holding.at_s, holding.at_s + holding.duration_s, 0, holding.reserved};
  const auto change_leaves = [&](uint32_t group, uint64_t bits) {
    span.leaves = bits;
    ChangeLeaves(&groups_[group], span, hold);
  };
  ForEach(holding.vertices, change_leaves, [&](const HeldVertex& held) {
    below = ChangeVertex(holding, held, below, hold);
  });
}

void GraphState::ChangeLeaves(LeafGroup* group, const LeafGroup::Span& span, bool hold) {
  if (hold) {
    group->spans.push_back(span);
  } else {
    const auto known = std::find(group->spans.rbegin(), group->spans.rend(), span);
    CHECK(known != group->spans.rend());
    *known = group->spans.back();
    group->spans.pop_back();
  }
  at(group->parent).version = ++versions_;
  Log(group->parent, false);
}

const int64_t* GraphState::ChangeVertex(const Holding& holding,
                                        const HeldVertex& held,
                                        const int64_t* below,
                                        bool hold) {
  At& here = at(held.vertex);
  here.version = ++versions_;
  if (held.exclusive) Log(held.vertex, true);
  const auto change = [&](Timeline& timeline, int64_t amount) {
    if (hold) {
      timeline.Hold(holding.at_s, holding.duration_s, amount);
    } else {
      timeline.Release(holding.at_s, holding.duration_s, amount);
    }
  };
  change(here.jobs, 1);
  const int64_t* end = below + 1 + *below;
  size_t filter = 0;
  for (++below; below != end; ++below) change(here.filters[filter++], *below);
  if (held.exclusive) {
    const auto change_held = [&] { change(here.held, held.amount); };
    graph_->vertex(held.vertex).divisible ? ChangeDivisible(held.vertex, change_held)
                                          : change_held();
    if (!holding.reserved) here.allocations += hold ? 1 : -1;
  }
  return below;
}

uint64_t GraphState::Fingerprint() const {
  Fnv hash;
  for (const At& at : at_) {
    at.held.AddTo(&hash);
    at.jobs.AddTo(&hash);
    for (const Timeline& filter : at.filters) filter.AddTo(&hash);
    hash.Add(at.allocations);
  }
  for (const LeafGroup& group : groups_) {
    hash.Add(group.up);
    hash.Add(group.present);
    uint64_t spans = 0;  // in whatever order
    for (const LeafGroup::Span& span : group.spans) {
      Fnv one;
      one.Add(static_cast<uint64_t>(span.at));
      one.Add(static_cast<uint64_t>(span.end));
      one.Add(span.leaves);
      one.Add(static_cast<uint64_t>(span.reserved));
      spans += one.value();
    }
    hash.Add(spans);
  }
  return hash.value();
}

uint64_t GraphState::OrderFingerprint() const {
  Fnv hash;
  for (const uint64_t weight : weights_) hash.Add(weight);
  return hash.value();
}

GraphState::TryOrder GraphState::OrderOf(VertexId v) const {
  TryOrder order;
  for (const EdgeId e : graph_->vertex(v).out) {
    const Edge& edge = graph_->edge(e);
    if (edge.subsystem != ResourceGraph::kContainment) continue;
    order.emplace(weights_[e], graph_->vertex(edge.target).uniq_id, e);
  }
  return order;
}

uint64_t GraphState::Reorder(EdgeId edge, int64_t now) {
  const uint64_t before = weights_[edge];
  const std::span<const Timeline> filters = Filters(graph_->edge(edge).target);
  if (filters.empty()) return before;
  const int64_t free = filters.back().FreeAt(now);
  if (free == 0 && !filters.back().HasSpans()) return before;
  SetWeight(edge, static_cast<uint64_t>(std::max<int64_t>(free, 0)));
  return before;
}

void GraphState::SetWeight(EdgeId edge, uint64_t weight) {
  if (weights_[edge] == weight) return;
  const VertexId target = graph_->edge(edge).target;
  // What has filters is no leaf, so there is an order.
  TryOrder& order = orders_.at(graph_->edge(edge).source);
  const int64_t uniq_id = graph_->vertex(target).uniq_id;
  auto entry = order.extract({weights_[edge], uniq_id, edge});
  weights_[edge] = weight;
  entry.value() = {weight, uniq_id, edge};
  order.insert(std::move(entry));
  Log(target, false);
}

}  // namespace fluxqueue::graph
