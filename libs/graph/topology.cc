#include "libs/graph/topology.h"

#include <algorithm>

namespace fluxqueue::graph {

Topology::Topology(const ResourceGraph& graph, const GraphState& state)
    : site_of_(graph.vertices().size(), kNoSite),
      leads_to_node_(graph.vertices().size(), false),
      node_type_(graph.types().Find("node")) {
  const auto nodes = graph.OfType(node_type_);
  if (nodes.empty() || graph.has_shared()) return;
  for (const VertexId node : nodes) {
    for (VertexId v = node; !leads_to_node_[v];) {
      leads_to_node_[v] = true;
      const auto parents = graph.ParentsOf(v);
      if (!parents.empty()) v = parents.front();
    }
  }
  for (VertexId v = nodes.front();;) {
    types_.insert(types_.begin(), graph.vertex(v).type);
    const auto parents = graph.ParentsOf(v);
    if (parents.empty()) break;
    v = parents.front();
  }
  const std::set<TypeId> types(types_.begin(), types_.end());
  site_of_[graph.root()] = 0;
  sites_.push_back({.vertex = graph.root()});
  const bool plain =
      types.size() == types_.size() && types_.size() > 1 && AddBelow(graph, state, 0);
  if (!plain) {
    sites_.clear();
    return;
  }
  for (uint32_t depth = 0; depth <= node_depth(); ++depth) {
    std::set<int64_t> ids;
    bool unique = true;
    for (const Site& site : sites_) {
      if (site.depth == depth) unique = ids.insert(graph.vertex(site.vertex).id).second && unique;
    }
    unique_ids_.push_back(unique);
  }
}

bool Topology::AddBelow(const ResourceGraph& graph, const GraphState& state, SiteId parent) {
  const Site above = sites_[parent];
  const Vertex& vertex = graph.vertex(above.vertex);
  if (vertex.type != types_[above.depth] || vertex.size != 1) return false;
  if (above.depth == node_depth()) return AddNode(graph, state, &sites_[parent]);
  for (const EdgeId e : vertex.out) {
    const Edge& edge = graph.edge(e);
    if (edge.subsystem != ResourceGraph::kContainment) continue;
    if (!leads_to_node_[edge.target]) {
      NoteElsewhere(graph, edge.target);
      continue;
    }
    const auto site = static_cast<SiteId>(sites_.size());
    site_of_[edge.target] = site;
    sites_.push_back(
        {.vertex = edge.target, .edge = e, .parent = parent, .depth = above.depth + 1});
    if (!AddBelow(graph, state, site)) return false;
  }
  sites_[parent].end = static_cast<SiteId>(sites_.size());
  return true;
}

bool Topology::AddNode(const ResourceGraph& graph, const GraphState& state, Site* node) {
  node->end = static_cast<SiteId>(sites_.size());
  node->first_pool = static_cast<uint32_t>(pools_.size());
  std::set<TypeId> groups;
  std::set<TypeId> pools;
  for (const EdgeId e : graph.vertex(node->vertex).out) {
    const Edge& edge = graph.edge(e);
    if (edge.subsystem != ResourceGraph::kContainment) continue;
    const Vertex& leaf = graph.vertex(edge.target);
    if (state.BitOf(edge.target) != 0) {
      groups.insert(leaf.type);
      continue;
    }
    if (!leaf.divisible || !leaf.out.empty() || !pools.insert(leaf.type).second) return false;
    pools_.push_back({leaf.type, edge.target});
    ++node->pools;
    site_of_[edge.target] = site_of_[node->vertex];
  }
  return std::none_of(
      pools.begin(), pools.end(), [&groups](TypeId type) { return groups.contains(type); });
}

void Topology::NoteElsewhere(const ResourceGraph& graph, VertexId v) {
  elsewhere_.insert(graph.vertex(v).type);
  for (const EdgeId e : graph.vertex(v).out) {
    if (graph.edge(e).subsystem == ResourceGraph::kContainment) {
      NoteElsewhere(graph, graph.edge(e).target);
    }
  }
}

}  // namespace fluxqueue::graph
