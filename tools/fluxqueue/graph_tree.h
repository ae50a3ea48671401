// The cluster as the graph that jobs are matched on: levels (zone, rack) above nodes, each with its
// use. As text, for Graphviz, or as a picture. Pure.
#pragma once

#include <map>
#include <string>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "tools/fluxqueue/cluster_view.h"

namespace fluxqueue::cli {

struct GraphTree {
  std::string name;                          // "pool default", "rack r1"
  std::map<std::string, GraphTree> below{};  // by name
  std::vector<NodeView> nodes{};

  size_t CountNodes() const;
  // Of the resource that is used most of all nodes together.
  double Use() const;
};

// One for each pool, by its name.
std::vector<GraphTree> BuildTrees(const std::vector<NodeView>& nodes);

// `all`: nodes too, not only the levels.
std::string TreeText(const GraphTree& tree, bool all, bool colour);
std::string TreeDot(const std::vector<GraphTree>& trees);
std::string TreeSvg(const std::vector<GraphTree>& trees);
nlohmann::json TreeJson(const GraphTree& tree);

}  // namespace fluxqueue::cli
