#include "libs/fluxion/cluster_vertices.h"

#include <algorithm>
#include <iterator>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "libs/base/check.h"
#include "libs/base/status_macros.h"
#include "libs/graph/levels.h"
#include "libs/graph/resource_set.h"
#include "libs/graph/resource_set_reader.h"

namespace fluxqueue::fluxion {
namespace {

using graph::kNoEdge;
using graph::Node;
using graph::NodeTable;
using graph::Taint;
using graph::VertexId;

// "fluxqueue.io/taint-3": the vertices' property. A taint's own text could not be told from a
// label.
std::string PropertyOf(size_t taint) {
  return fmt::format("fluxqueue.io/taint-{}", taint);
}

graph::EdgeId EdgeTo(const graph::ResourceGraph& graph, VertexId v) {
  const std::vector<graph::EdgeId>& in = graph.vertex(v).in;
  return in.empty() ? kNoEdge : in.front();
}

}  // namespace

ClusterVertices::ClusterVertices(const NodeTable& table,
                                 const std::set<size_t>& resources,
                                 const Granules& granules) {
  graph::Vertex cluster;
  cluster.type = graph_.InternType("cluster");
  cluster.basename = "cluster";
  cluster.name = "cluster0";
  cluster.paths.emplace_back(graph::ResourceGraph::kContainment, "/cluster0");
  CHECK(graph_.AddVertex(std::move(cluster)).ok());
  AddGroups(table);
  NumberTaints(table);
  for (const auto& [ordinal, node] : table.nodes()) Plant(*node, table, resources, granules);
}

VertexId ClusterVertices::Add(std::string_view type,
                              std::string name,
                              int64_t id,
                              int64_t rank,
                              graph::Labels properties,
                              VertexId parent) {
  graph::Vertex vertex;
  vertex.type = graph_.InternType(type);
  vertex.basename = type;
  vertex.id = id;
  vertex.uniq_id = static_cast<int64_t>(graph_.vertices().size());
  vertex.rank = rank;
  vertex.properties = std::move(properties);
  vertex.paths.emplace_back(graph::ResourceGraph::kContainment,
                            fmt::format("{}/{}", graph_.PathOf(parent), name));
  vertex.name = std::move(name);
  const absl::StatusOr<VertexId> added = graph_.AddVertex(std::move(vertex));
  CHECK(added.ok(), "{}", Message(added.status()));
  graph_.AddEdge(parent, *added, graph::ResourceGraph::kContainment);
  return *added;
}

void ClusterVertices::AddGroups(const NodeTable& table) {
  levels_ = table.LevelsInUse();
  std::vector<int64_t> next(levels_.size(), 0);
  for (const graph::LevelGroup& group : table.Groups()) {
    const size_t slash = group.name.rfind('/');
    const VertexId above =
        slash == std::string::npos ? graph_.root() : groups_.at(group.name.substr(0, slash));
    const std::string name = group.name.substr(slash + 1);
    groups_[group.name] = Add(levels_[group.depth].name, name, next[group.depth]++, -1, {}, above);
  }
}

void ClusterVertices::NumberTaints(const NodeTable& table) {
  for (const auto& [ordinal, node] : table.nodes()) {
    for (const Taint& taint : node->spec.taints) {
      const bool known = std::any_of(taints_.begin(), taints_.end(), [&taint](const auto& entry) {
        return entry.first == taint;
      });
      if (known || taint.effect == "PreferNoSchedule") continue;
      const nlohmann::json has = {
          {"properties", nlohmann::json::array({PropertyOf(taints_.size())})}};
      const auto constraint = graph::Constraint::Parse(has, "taint", nullptr);
      CHECK(constraint.ok(), "{}", Message(constraint.status()));
      taints_.emplace_back(taint, *constraint);
    }
  }
}

graph::Labels ClusterVertices::PropertiesOf(const graph::NodeSpec& node) const {
  std::map<std::string, std::string> properties;
  for (const auto& [key, value] : node.labels) {
    properties[key] = value;
    properties[fmt::format("{}={}", key, value)];
  }
  for (size_t i = 0; i < taints_.size(); ++i) {
    const auto& taints = node.taints;
    if (std::find(taints.begin(), taints.end(), taints_[i].first) != taints.end()) {
      properties[PropertyOf(i)];
    }
  }
  return {properties.begin(), properties.end()};
}

void ClusterVertices::Plant(const Node& node,
                            const NodeTable& table,
                            const std::set<size_t>& resources,
                            const Granules& granules) {
  const std::string group = graph::GroupOf(node.spec, levels_);
  const auto rank = static_cast<int64_t>(node.spec.ordinal);
  Planted& planted = planted_[&node];
  planted.vertex = Add("node",
                       node.spec.name,
                       rank,
                       rank,
                       PropertiesOf(node.spec),
                       group.empty() ? graph_.root() : groups_.at(group));
  for (const size_t resource : resources) {
    const std::string& name = table.resources()[resource];
    const std::string type = TypeOf(name);
    Leaves leaves{.first = static_cast<VertexId>(graph_.vertices().size())};
    const int64_t count = granules.In(name, node.capacity[resource]);
    for (; leaves.count < count; ++leaves.count) {
      Add(type, fmt::format("{}{}", type, leaves.count), leaves.count, rank, {}, planted.vertex);
    }
    if (count == 0) continue;
    planted.leaves.emplace(resource, leaves);
    leaves_.emplace(leaves.first, LeavesOf{leaves.count, &node, resource});
  }
}

std::string ClusterVertices::Jgf() const {
  graph::Holding all;
  for (VertexId v = 0; v < graph_.vertices().size(); ++v) {
    all.vertices.push_back({v, EdgeTo(graph_, v), 1, false});
  }
  return graph::WriteResourceSet(graph_, all, graph::SetFormat::kJgf);
}

std::string ClusterVertices::ResourceSetOf(const std::vector<Piece>& pieces) const {
  graph::Holding holding;
  holding.duration_s = graph::kForever;
  std::set<VertexId> above;
  for (const Piece& piece : pieces) {
    const Planted& planted = planted_.at(piece.node);
    const Leaves& leaves = planted.leaves.at(piece.resource);
    for (const uint32_t granule : piece.granules) {
      const VertexId v = leaves.first + granule;
      holding.vertices.push_back({v, EdgeTo(graph_, v), 1, true});
    }
    above.insert(planted.vertex);
    for (const VertexId v : AboveOf(*piece.node)) above.insert(v);
  }
  // Children have greater numbers than what contains them.
  for (auto v = above.rbegin(); v != above.rend(); ++v) {
    holding.vertices.push_back({*v, EdgeTo(graph_, *v), 1, false});
  }
  return graph::WriteResourceSet(graph_, holding, graph::SetFormat::kRv1);
}

absl::StatusOr<std::vector<Piece>> ClusterVertices::PiecesOf(std::string_view resource_set) const {
  ASSIGN_OR_RETURN(const graph::ResourceSet set, graph::ReadResourceSet(resource_set, graph_));
  std::map<std::pair<uint64_t, size_t>, Piece> pieces;
  for (const graph::HeldVertex& held : set.holding.vertices) {
    auto leaves = leaves_.upper_bound(held.vertex);
    if (leaves == leaves_.begin()) continue;
    const auto& [first, of] = *--leaves;
    if (held.vertex >= first + of.count) continue;
    Piece& piece = pieces[{of.node->spec.ordinal, of.resource}];
    piece.node = of.node;
    piece.resource = of.resource;
    piece.granules.push_back(held.vertex - first);
  }
  std::vector<Piece> sorted;
  for (auto& [where, piece] : pieces) {
    std::sort(piece.granules.begin(), piece.granules.end());
    sorted.push_back(std::move(piece));
  }
  return sorted;
}

std::string ClusterVertices::PathOf(const Node& node) const {
  return std::string(graph_.PathOf(planted_.at(&node).vertex));
}

std::vector<VertexId> ClusterVertices::AboveOf(const Node& node) const {
  std::vector<VertexId> above;
  VertexId v = planted_.at(&node).vertex;
  while (v != graph_.root()) {
    v = graph_.edge(EdgeTo(graph_, v)).source;
    above.push_back(v);
  }
  std::reverse(above.begin(), above.end());
  return above;
}

std::vector<const Node*> ClusterVertices::OneOfEach(size_t depth) const {
  std::map<VertexId, const Node*> groups;
  // The first is the cluster.
  for (const auto& [node, planted] : planted_) groups.emplace(AboveOf(*node)[depth + 1], node);
  std::vector<const Node*> nodes;
  for (const auto& [group, node] : groups) nodes.push_back(node);
  return nodes;
}

graph::Constraint ClusterVertices::Usable(const graph::Constraint& constraint,
                                          const std::vector<graph::Toleration>& tolerations) const {
  std::vector<const graph::NodeSpec*> nodes;
  for (const auto& [node, planted] : planted_) nodes.push_back(&node->spec);
  std::vector<graph::Constraint> all = {constraint.WithoutComparisons(nodes)};
  for (const auto& [taint, has] : taints_) {
    if (graph::FirstUntolerated({&taint, 1}, tolerations, /*lasting=*/false) == nullptr) continue;
    all.push_back(graph::Constraint::Not(has));
  }
  return graph::Constraint::And(std::move(all));
}

}  // namespace fluxqueue::fluxion
