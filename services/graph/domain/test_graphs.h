// The graph and the jobspecs of the tests of the API.
#pragma once

#include <string>

#include <fmt/format.h>

#include "libs/graph/jgf_writer.h"
#include "libs/graph/synthetic_graphs.h"

namespace fluxqueue::graph_service {

// Nodes of 4 cores, 2 gpus and 8 GiB of memory that can be divided (in units of MiB), two a rack;
// every second one has the property ssd.
inline std::string TestGraph(int nodes = 4) {
  graph::synthetic::GraphBuilder builder;
  const graph::VertexId cluster = builder.Add("cluster", nullptr);
  graph::VertexId rack = cluster;
  for (int n = 0; n < nodes; ++n) {
    if (n % 2 == 0) rack = builder.Add("rack", &cluster, 1, n / 2);
    const graph::VertexId node = builder.Add("node", &rack, 1, n);
    for (int i = 0; i < 4; ++i) builder.Add("core", &node, 1, i);
    for (int i = 0; i < 2; ++i) builder.Add("gpu", &node, 1, i);
    builder.Add("memory", &node, 8192, 0, true);
  }
  graph::ResourceGraph graph = builder.Take();
  const auto all = graph.OfType(graph.types().Find("node"));
  const std::vector<graph::VertexId> vertices(all.begin(), all.end());
  for (size_t i = 1; i < vertices.size(); i += 2) graph.SetProperty(vertices[i], "ssd", "");
  graph::JgfWriter writer(graph);
  return writer.Next(1 << 30);
}

// So many slots of so many cores, each on a node of its own.
inline std::string TestJobspec(int nodes, int cores, int duration_s = 3600) {
  return fmt::format(
      R"({{"version": 1, "resources": [{{"type": "node", "count": {}, "with": [
             {{"type": "slot", "count": 1, "label": "task",
               "with": [{{"type": "core", "count": {}}}]}}]}}],
          "tasks": [], "attributes": {{"system": {{"duration": {}}}}}}})",
      nodes,
      cores,
      duration_s);
}

}  // namespace fluxqueue::graph_service
