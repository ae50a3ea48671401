#include "libs/graph/resource_graph.h"

#include <algorithm>
#include <map>

#include "libs/base/status_macros.h"

namespace fluxqueue::graph {
namespace {

// Marks the vertices whose parents have all been seen, from the root on: a cycle is never entered.
// `parents`: how many of each vertex have not been.
absl::Status WalkDown(const ResourceGraph& graph,
                      std::vector<uint32_t> parents,
                      std::vector<bool>* seen) {
  const size_t number = graph.vertices().size();
  std::vector<uint32_t> depth(number, 0);
  std::vector<uint64_t> ways(number, 0);
  ways[graph.root()] = 1;
  uint64_t ways_left = ResourceGraph::kMaxWays * (number + graph.edges().size());
  std::vector<VertexId> open = {graph.root()};
  while (!open.empty()) {
    const VertexId v = open.back();
    open.pop_back();
    (*seen)[v] = true;
    if (depth[v] > ResourceGraph::kMaxDepth) {
      return InvalidArgument(
          "\"{}\" is more than {} levels deep", graph.PathOf(v), ResourceGraph::kMaxDepth);
    }
    if (ways[v] > ways_left) {
      return InvalidArgument(
          "too many ways lead from the root to \"{}\": what several vertices contain is contained "
          "in what several contain, and so on",
          graph.PathOf(v));
    }
    ways_left -= ways[v];
    for (const EdgeId e : graph.vertex(v).out) {
      const Edge& edge = graph.edge(e);
      if (edge.subsystem != ResourceGraph::kContainment) continue;
      ways[edge.target] += ways[v];
      depth[edge.target] = std::max(depth[edge.target], depth[v] + 1);
      if (--parents[edge.target] == 0) open.push_back(edge.target);
    }
  }
  return absl::OkStatus();
}

}  // namespace

uint32_t NameTable::Intern(std::string_view name) {
  const auto found = numbers_.find(name);
  if (found != numbers_.end()) return found->second;
  const uint32_t number = size();
  names_.emplace_back(name);
  numbers_.emplace(names_.back(), number);
  return number;
}

uint32_t NameTable::Find(std::string_view name) const {
  const auto found = numbers_.find(name);
  return found == numbers_.end() ? kUnknown : found->second;
}

ResourceGraph::ResourceGraph() {
  subsystems_.Intern("containment");
}

absl::StatusOr<VertexId> ResourceGraph::AddVertex(Vertex vertex) {
  const auto number = static_cast<VertexId>(vertices_.size());
  for (const auto& [subsystem, path] : vertex.paths) {
    const bool is_root = std::count(path.begin(), path.end(), '/') == 1;
    if (is_root && subsystem == kContainment && root_.has_value()) {
      return MakeStatus(absl::StatusCode::kFailedPrecondition,
                        "\"{}\" is a second root of containment beside \"{}\"",
                        path,
                        PathOf(*root_));
    }
    if (!by_path_.emplace(path, number).second) {
      return MakeStatus(absl::StatusCode::kFailedPrecondition, "the path \"{}\" is taken", path);
    }
    if (is_root && subsystem == kContainment) root_ = number;
  }
  if (by_type_.size() <= vertex.type) by_type_.resize(vertex.type + 1);
  by_type_[vertex.type].push_back(number);
  vertices_.push_back(std::move(vertex));
  parents_.push_back(0);
  return number;
}

EdgeId ResourceGraph::AddEdge(VertexId source, VertexId target, SubsystemId subsystem) {
  const auto number = static_cast<EdgeId>(edges_.size());
  if (subsystem == kContainment && ++parents_[target] > 1) ++shared_;
  edges_.push_back({source, target, subsystem, false});
  vertices_[source].out.push_back(number);
  vertices_[target].in.push_back(number);
  return number;
}

absl::Status ResourceGraph::Check() const {
  if (!root_.has_value()) {
    return InvalidArgument("no vertex is the root of containment (a path such as \"/cluster0\")");
  }
  if (parents_[*root_] != 0) {
    return InvalidArgument("the root \"{}\" is contained in a vertex", PathOf(*root_));
  }
  std::vector<bool> seen(vertices_.size(), false);
  RETURN_IF_ERROR(WalkDown(*this, parents_, &seen));
  for (VertexId v = 0; v < vertices_.size(); ++v) {
    const bool contained = !PathOf(v).empty() || parents_[v] > 0;
    if (seen[v] || vertices_[v].gone || !contained) continue;
    return InvalidArgument("\"{}\" does not hang below the root \"{}\", or contains itself",
                           PathOf(v),
                           PathOf(*root_));
  }
  return absl::OkStatus();
}

absl::Status ResourceGraph::CheckMerge(const ResourceGraph& part) const {
  if (PathOf(*root_) != part.PathOf(part.root())) {
    return MakeStatus(absl::StatusCode::kFailedPrecondition,
                      "the root is \"{}\", not \"{}\"",
                      PathOf(*root_),
                      part.PathOf(part.root()));
  }
  for (VertexId v = 0; v < part.vertices_.size(); ++v) {
    const auto here = FindPath(part.PathOf(v));
    if (!here.has_value()) continue;
    const Vertex& there = part.vertices_[v];
    const Vertex& known = vertices_[*here];
    const bool same = part.TypeName(v) == TypeName(*here) && there.id == known.id &&
                      there.rank == known.rank && there.size == known.size;
    if (same) continue;
    return MakeStatus(absl::StatusCode::kFailedPrecondition,
                      "\"{}\" is in the graph with another type, id, rank or size",
                      part.PathOf(v));
  }
  return absl::OkStatus();
}

absl::Status ResourceGraph::Merge(const ResourceGraph& part) {
  RETURN_IF_ERROR(CheckMerge(part));
  ResourceGraph merged = *this;
  RETURN_IF_ERROR(merged.Add(part));
  if (const absl::Status status = merged.Check(); !status.ok()) {
    return MakeStatus(absl::StatusCode::kFailedPrecondition, "{}", Message(status));
  }
  *this = std::move(merged);
  return absl::OkStatus();
}

absl::Status ResourceGraph::Add(const ResourceGraph& part) {
  const auto before = static_cast<VertexId>(vertices_.size());
  std::vector<VertexId> numbers;
  for (VertexId v = 0; v < part.vertices_.size(); ++v) {
    if (const auto here = FindPath(part.PathOf(v))) {
      numbers.push_back(*here);
      continue;
    }
    Vertex vertex = part.vertices_[v];
    vertex.type = InternType(part.TypeName(v));
    vertex.out.clear();
    vertex.in.clear();
    for (auto& [subsystem, path] : vertex.paths) {
      subsystem = InternSubsystem(part.subsystems_[subsystem]);
    }
    ASSIGN_OR_RETURN(const VertexId added, AddVertex(std::move(vertex)));
    numbers.push_back(added);
  }
  for (const Edge& edge : part.edges_) {
    const VertexId source = numbers[edge.source];
    const VertexId target = numbers[edge.target];
    if (source < before && target < before) continue;
    AddEdge(source, target, InternSubsystem(part.subsystems_[edge.subsystem]));
  }
  return absl::OkStatus();
}

void ResourceGraph::Detach(EdgeId e) {
  Edge& edge = edges_[e];
  if (edge.gone) return;
  edge.gone = true;
  if (edge.subsystem == kContainment && --parents_[edge.target] > 0) --shared_;
  std::erase(vertices_[edge.source].out, e);
  std::erase(vertices_[edge.target].in, e);
}

void ResourceGraph::Forget(VertexId v) {
  Vertex& vertex = vertices_[v];
  for (const auto& [subsystem, path] : vertex.paths) by_path_.erase(path);
  vertex.paths.clear();
  taints_.erase(v);
  std::erase(by_type_[vertex.type], v);
  vertex.gone = true;
}

std::vector<VertexId> ResourceGraph::SubtreeOf(VertexId top) const {
  std::vector<VertexId> subtree = {top};
  std::map<VertexId, size_t> parents_in_it;
  for (size_t i = 0; i < subtree.size(); ++i) {
    for (const EdgeId e : vertices_[subtree[i]].out) {
      const VertexId below = edges_[e].target;
      if (edges_[e].subsystem != kContainment) continue;
      if (++parents_in_it[below] == parents_[below]) subtree.push_back(below);
    }
  }
  return subtree;
}

void ResourceGraph::RemoveSubtree(VertexId top) {
  for (const VertexId v : SubtreeOf(top)) {
    for (const EdgeId e : std::vector<EdgeId>(vertices_[v].out)) Detach(e);
    for (const EdgeId e : std::vector<EdgeId>(vertices_[v].in)) Detach(e);
    Forget(v);
  }
}

std::string_view ResourceGraph::PathOf(VertexId v) const {
  for (const auto& [subsystem, path] : vertices_[v].paths) {
    if (subsystem == kContainment) return path;
  }
  return {};
}

std::vector<VertexId> ResourceGraph::ParentsOf(VertexId v) const {
  std::vector<VertexId> parents;
  for (const EdgeId e : vertices_[v].in) {
    if (edges_[e].subsystem == kContainment) parents.push_back(edges_[e].source);
  }
  return parents;
}

bool ResourceGraph::IsShared(VertexId v) const {
  return parents_[v] > 1;
}

std::optional<VertexId> ResourceGraph::FindPath(std::string_view path) const {
  const auto found = by_path_.find(path);
  if (found == by_path_.end()) return std::nullopt;
  return found->second;
}

std::span<const Taint> ResourceGraph::TaintsOf(VertexId v) const {
  const auto found = taints_.find(v);
  if (found == taints_.end()) return {};
  return found->second;
}

void ResourceGraph::SetTaints(VertexId v, std::vector<Taint> taints) {
  if (taints.empty()) {
    taints_.erase(v);
  } else {
    taints_[v] = std::move(taints);
  }
}

std::span<const VertexId> ResourceGraph::OfType(TypeId type) const {
  if (type >= by_type_.size()) return {};
  return by_type_[type];
}

void ResourceGraph::SetProperty(VertexId v, std::string key, std::string value) {
  Labels& properties = vertices_[v].properties;
  const auto place = std::lower_bound(
      properties.begin(), properties.end(), key, [](const auto& entry, const std::string& wanted) {
        return entry.first < wanted;
      });
  if (place != properties.end() && place->first == key) {
    place->second = std::move(value);
  } else {
    properties.emplace(place, std::move(key), std::move(value));
  }
}

}  // namespace fluxqueue::graph
