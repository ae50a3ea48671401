#include "libs/graph/resource_graph.h"

#include <algorithm>

#include "libs/base/status_macros.h"

namespace fluxqueue::graph {

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
  return number;
}

EdgeId ResourceGraph::AddEdge(VertexId source, VertexId target, SubsystemId subsystem) {
  const auto number = static_cast<EdgeId>(edges_.size());
  edges_.push_back({source, target, subsystem});
  vertices_[source].out.push_back(number);
  vertices_[target].in.push_back(number);
  return number;
}

absl::Status ResourceGraph::Check() const {
  if (!root_.has_value()) {
    return InvalidArgument("no vertex is the root of containment (a path such as \"/cluster0\")");
  }
  // Vertices whose parents have all been seen, from the root on: a cycle is never entered.
  std::vector<uint32_t> parents(vertices_.size(), 0);
  for (const Edge& edge : edges_) {
    if (edge.subsystem == kContainment) ++parents[edge.target];
  }
  if (parents[*root_] != 0) {
    return InvalidArgument("the root \"{}\" is contained in a vertex", PathOf(*root_));
  }
  std::vector<VertexId> open = {*root_};
  std::vector<bool> seen(vertices_.size(), false);
  while (!open.empty()) {
    const VertexId v = open.back();
    open.pop_back();
    seen[v] = true;
    for (const EdgeId e : vertices_[v].out) {
      if (edges_[e].subsystem == kContainment && --parents[edges_[e].target] == 0) {
        open.push_back(edges_[e].target);
      }
    }
  }
  for (VertexId v = 0; v < vertices_.size(); ++v) {
    if (seen[v] || PathOf(v).empty()) continue;
    return InvalidArgument("\"{}\" does not hang below the root \"{}\", or contains itself",
                           PathOf(v),
                           PathOf(*root_));
  }
  return absl::OkStatus();
}

std::string_view ResourceGraph::PathOf(VertexId v) const {
  for (const auto& [subsystem, path] : vertices_[v].paths) {
    if (subsystem == kContainment) return path;
  }
  return {};
}

std::optional<VertexId> ResourceGraph::FindPath(std::string_view path) const {
  const auto found = by_path_.find(path);
  if (found == by_path_.end()) return std::nullopt;
  return found->second;
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
