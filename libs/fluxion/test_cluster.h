// A graph and jobspecs for tests.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "libs/graph/resource_set.h"
#include "libs/graph/synthetic_graphs.h"

namespace fluxqueue::fluxion {

// /cluster0/rack0/node0 …, as JGF.
inline std::string ClusterJgf(size_t nodes, int cores) {
  const graph::ResourceGraph cluster = graph::synthetic::MakeCluster(
      std::vector<graph::synthetic::NodeShape>(nodes, {.cores = cores}));
  graph::Holding all;
  for (graph::VertexId v = 0; v < cluster.vertices().size(); ++v) {
    const auto& in = cluster.vertex(v).in;
    all.vertices.push_back({v, in.empty() ? graph::kNoEdge : in.front(), 1, true});
  }
  return graph::WriteResourceSet(cluster, all, graph::SetFormat::kJgf);
}

// For a minute, on one node.
inline std::string Cores(int count) {
  return fmt::format(
      R"({{"version": 1, "resources": [{{"type": "slot", "count": 1, "label": "s",
           "with": [{{"type": "core", "count": {}}}]}}],
          "tasks": [{{"command": ["x"], "slot": "s", "count": {{"per_slot": 1}}}}],
          "attributes": {{"system": {{"duration": 60}}}}}})",
      count);
}

}  // namespace fluxqueue::fluxion
