// The part of a graph from the root down to its nodes, when it has a plain shape: every node is at
// the same depth, below vertices of the same types, and all that it contains are leaves that stand
// in groups (cores, gpus) or can be divided (millicores, bytes): one of a type, or several of one
// size (gpus by the thousandth). That is what Kubernetes clusters look like, and most others.
//
// Vertices of this part are sites. Sites are numbered as a walk along the edges meets them, so that
// what is below a site are the numbers behind its own.
//
// Immutable; not thread-safe.
#pragma once

#include <cstdint>
#include <set>
#include <span>
#include <vector>

#include "libs/graph/graph_state.h"
#include "libs/graph/resource_graph.h"

namespace fluxqueue::graph {

using SiteId = uint32_t;

inline constexpr SiteId kNoSite = UINT32_MAX;

struct Site {
  VertexId vertex = 0;
  EdgeId edge = kNoEdge;    // that leads to it
  SiteId parent = kNoSite;  // none for the root
  SiteId end = 0;           // one behind the last site below
  uint32_t depth = 0;       // 0: the root
  // Of a node's.
  uint32_t first_pool = 0;
  uint32_t pools = 0;
  uint32_t first_run = 0;
  uint32_t runs = 0;
};

// A divisible leaf of a node.
struct Pool {
  TypeId type = 0;
  VertexId vertex = 0;
};

// Leaves of a node with numbers that follow each other, as do those of their edges: one pool, or
// leaves of one group in the order of its bits.
struct LeafRun {
  static constexpr uint32_t kNoGroup = UINT32_MAX;

  VertexId vertex = 0;
  EdgeId edge = 0;
  uint32_t count = 1;
  uint32_t group = kNoGroup;  // of the node's groups; none: a pool
  uint32_t place = 0;         // the first one's bit in the group; of the node's pools
};

class Topology {
 public:
  // Without any site when the graph has no such shape.
  Topology(const ResourceGraph& graph, const GraphState& state);

  std::span<const Site> sites() const { return sites_; }
  const Site& site(SiteId s) const { return sites_[s]; }
  // Of a divisible leaf: its node's. kNoSite when the vertex is none.
  SiteId SiteOf(VertexId v) const { return site_of_[v]; }
  // Those of one type stand together, in the order of their ids.
  std::span<const Pool> PoolsOf(SiteId node) const {
    return std::span(pools_).subspan(sites_[node].first_pool, sites_[node].pools);
  }
  std::span<const Pool> PoolsOf(SiteId node, TypeId type) const;
  // All leaves of a node, in the order of its edges.
  std::span<const LeafRun> LeavesOf(SiteId node) const {
    return std::span(leaves_).subspan(sites_[node].first_run, sites_[node].runs);
  }
  // By depth, from the root to the nodes.
  std::span<const TypeId> types() const { return types_; }
  uint32_t node_depth() const { return static_cast<uint32_t>(types_.size()) - 1; }
  // Whether ids tell all sites of the depth apart.
  bool HasUniqueIds(uint32_t depth) const { return unique_ids_[depth]; }
  bool has_pools() const { return !pools_.empty(); }
  // Beside the sites, above the nodes.
  bool HasElsewhere(TypeId type) const { return elsewhere_.contains(type); }

 private:
  bool AddBelow(const ResourceGraph& graph, const GraphState& state, SiteId parent);
  bool AddNode(const ResourceGraph& graph, const GraphState& state, Site* node);
  bool AddPools(const ResourceGraph& graph, std::vector<VertexId> leaves, Site* node);
  void AddLeaves(const ResourceGraph& graph, const GraphState& state, Site* node);
  void NoteElsewhere(const ResourceGraph& graph, VertexId v);

  std::vector<Site> sites_;
  std::vector<SiteId> site_of_;  // by vertex
  std::vector<Pool> pools_;      // by node
  std::vector<LeafRun> leaves_;  // by node
  std::vector<TypeId> types_;
  std::vector<bool> unique_ids_;
  std::set<TypeId> elsewhere_;
  std::vector<bool> leads_to_node_;  // by vertex
  TypeId node_type_ = NameTable::kUnknown;
};

}  // namespace fluxqueue::graph
