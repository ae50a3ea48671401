#include "libs/graph/topology.h"

#include <algorithm>
#include <bit>
#include <map>
#include <utility>

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
  std::map<TypeId, std::vector<VertexId>> pools;
  for (const EdgeId e : graph.vertex(node->vertex).out) {
    const Edge& edge = graph.edge(e);
    if (edge.subsystem != ResourceGraph::kContainment) continue;
    const Vertex& leaf = graph.vertex(edge.target);
    if (state.BitOf(edge.target) != 0) {
      groups.insert(leaf.type);
      continue;
    }
    if (!leaf.divisible || !leaf.out.empty()) return false;
    pools[leaf.type].push_back(edge.target);
  }
  for (auto& [type, of_type] : pools) {
    if (groups.contains(type) || !AddPools(graph, std::move(of_type), node)) return false;
  }
  AddLeaves(graph, state, node);
  return true;
}

// Several of a type: nothing but ids tells them apart, and those order them as their unique ids do.
bool Topology::AddPools(const ResourceGraph& graph, std::vector<VertexId> leaves, Site* node) {
  std::sort(leaves.begin(), leaves.end(), [&graph](VertexId a, VertexId b) {
    return graph.vertex(a).id < graph.vertex(b).id;
  });
  const Vertex* before = nullptr;
  for (const VertexId leaf : leaves) {
    const Vertex& vertex = graph.vertex(leaf);
    const bool alike =
        before == nullptr ||
        (vertex.size == before->size && vertex.id > before->id && vertex.uniq_id > before->uniq_id);
    if (!alike) return false;
    before = &vertex;
    pools_.push_back({vertex.type, leaf});
    ++node->pools;
    site_of_[leaf] = site_of_[node->vertex];
  }
  return true;
}

void Topology::AddLeaves(const ResourceGraph& graph, const GraphState& state, Site* node) {
  node->first_run = static_cast<uint32_t>(leaves_.size());
  const std::span<const Pool> pools = std::span(pools_).subspan(node->first_pool, node->pools);
  const LeafGroup* groups = state.GroupsOf(node->vertex).data();
  for (const EdgeId e : graph.vertex(node->vertex).out) {
    const Edge& edge = graph.edge(e);
    if (edge.subsystem != ResourceGraph::kContainment) continue;
    LeafRun leaf{.vertex = edge.target, .edge = e};
    if (const uint64_t bit = state.BitOf(edge.target); bit != 0) {
      leaf.group = static_cast<uint32_t>(&state.GroupOf(edge.target) - groups);
      leaf.place = static_cast<uint32_t>(std::countr_zero(bit));
      LeafRun* last = leaves_.size() > node->first_run ? &leaves_.back() : nullptr;
      if (last != nullptr && last->group == leaf.group &&
          last->vertex + last->count == leaf.vertex && last->edge + last->count == e &&
          last->place + last->count == leaf.place) {
        ++last->count;
        continue;
      }
    } else {
      const auto pool = std::find_if(pools.begin(), pools.end(), [&edge](const Pool& one) {
        return one.vertex == edge.target;
      });
      leaf.place = static_cast<uint32_t>(pool - pools.begin());
    }
    leaves_.push_back(leaf);
  }
  node->runs = static_cast<uint32_t>(leaves_.size()) - node->first_run;
}

std::span<const Pool> Topology::PoolsOf(SiteId node, TypeId type) const {
  const std::span<const Pool> all = PoolsOf(node);
  const auto of_type = [type](const Pool& pool) { return pool.type == type; };
  const auto first = std::find_if(all.begin(), all.end(), of_type);
  const auto end = std::find_if_not(first, all.end(), of_type);
  return all.subspan(static_cast<size_t>(first - all.begin()), static_cast<size_t>(end - first));
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
