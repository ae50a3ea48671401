// A pool's nodes as Fluxion's vertices, each a granule:
//
//   cluster0 ─► zone ─► rack ─► node ─► core0 core1 … memory0 memory1 …
//
// Labels are properties, "disk" and "disk=ssd"; so are taints, each as a number of its own. It is a
// picture of the table at one moment, and made anew when nodes come, go, or change otherwise than
// in what is free. Pure; not thread-safe.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "libs/fluxion/granules.h"
#include "libs/graph/constraint.h"
#include "libs/graph/holding.h"
#include "libs/graph/jobspec.h"
#include "libs/graph/node_table.h"
#include "libs/graph/resource_graph.h"

#include "absl/status/statusor.h"

namespace fluxqueue::fluxion {

// Granules of a resource of one node, by their numbers there.
struct Piece {
  const graph::Node* node = nullptr;
  size_t resource = 0;  // its number in the table
  std::vector<uint32_t> granules = {};

  friend bool operator==(const Piece&, const Piece&) = default;
};

class ClusterVertices {
 public:
  // `resources`: those that have vertices.
  ClusterVertices(const graph::NodeTable& table,
                  const std::set<size_t>& resources,
                  const Granules& granules);

  // All of it, for Fluxion to load.
  std::string Jgf() const;
  // What holds these pieces: R version 1 with its scheduling key. REQUIRES: they are here.
  std::string ResourceSetOf(const std::vector<Piece>& pieces) const;
  // The pieces that R names. InvalidArgument when it names what is not here.
  absl::StatusOr<std::vector<Piece>> PiecesOf(std::string_view resource_set) const;

  // REQUIRES: the node was in the table.
  std::string PathOf(const graph::Node& node) const;
  // What contains the node, from the cluster on. Of siblings the lesser number comes first.
  std::vector<graph::VertexId> AboveOf(const graph::Node& node) const;
  // A node below each vertex of that level, in their order.
  std::vector<const graph::Node*> OneOfEach(size_t depth) const;
  // Met by the nodes that such jobs may use. `constraint` is what they ask for themselves.
  graph::Constraint Usable(const graph::Constraint& constraint,
                           const std::vector<graph::Toleration>& tolerations) const;

 private:
  struct Leaves {
    graph::VertexId first = 0;
    uint32_t count = 0;
  };
  struct Planted {
    graph::VertexId vertex = 0;
    std::map<size_t, Leaves> leaves;  // by resource
  };
  struct LeavesOf {
    uint32_t count = 0;
    const graph::Node* node = nullptr;
    size_t resource = 0;
  };

  graph::VertexId Add(std::string_view type,
                      std::string name,
                      int64_t id,
                      int64_t rank,
                      graph::Labels properties,
                      graph::VertexId parent);
  void AddGroups(const graph::NodeTable& table);
  void NumberTaints(const graph::NodeTable& table);
  void Plant(const graph::Node& node,
             const graph::NodeTable& table,
             const std::set<size_t>& resources,
             const Granules& granules);
  graph::Labels PropertiesOf(const graph::NodeSpec& node) const;

  graph::ResourceGraph graph_;
  std::vector<graph::Level> levels_;  // in use
  std::unordered_map<std::string, graph::VertexId> groups_;
  std::unordered_map<const graph::Node*, Planted> planted_;
  std::map<graph::VertexId, LeavesOf> leaves_;  // by the first
  // Those that keep jobs away, and what meets nodes that have them.
  std::vector<std::pair<graph::Taint, graph::Constraint>> taints_;
};

}  // namespace fluxqueue::fluxion
