// Graphs for tests and benchmarks.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "libs/base/check.h"
#include "libs/graph/resource_graph.h"
#include "libs/graph/types.h"

namespace fluxqueue::graph::synthetic {

// A vertex "type id" (name "type3") below `parent`, or the root without one. Ids count up from 0 in
// the graph for nodes, and below the parent for all else; a node's number is the rank of what is
// below it.
class GraphBuilder {
 public:
  VertexId Add(const std::string& type,
               const VertexId* parent,
               int64_t size = 1,
               int64_t id = 0,
               bool divisible = false) {
    Vertex vertex;
    vertex.divisible = divisible;
    vertex.type = graph_.InternType(type);
    vertex.basename = type;
    vertex.id = id;
    vertex.name = type.substr(type.rfind('/') + 1) + std::to_string(id);
    vertex.size = size;
    vertex.uniq_id = static_cast<int64_t>(graph_.vertices().size());
    std::string path = "/" + vertex.name;
    if (parent != nullptr) {
      path = std::string(graph_.PathOf(*parent)) + path;
      vertex.rank = type == "node" ? id : graph_.vertex(*parent).rank;
    }
    vertex.paths.emplace_back(ResourceGraph::kContainment, path);
    const auto v = graph_.AddVertex(std::move(vertex));
    CHECK(v.ok());
    if (parent != nullptr) graph_.AddEdge(*parent, *v, ResourceGraph::kContainment);
    return *v;
  }

  ResourceGraph Take() { return std::move(graph_); }

 private:
  ResourceGraph graph_;
};

struct NodeShape {
  int cores = 0;
  int gpus = 0;
  std::vector<int64_t> memory = {};  // one vertex each
  int64_t millicores = 0;            // divisible
  std::vector<int64_t> shares = {};  // divisible gpus, one each, of type kGpuMilli
};

// /cluster0/rack0/node0/core0 …: the nodes in racks of `per_rack` each.
inline ResourceGraph MakeCluster(const std::vector<NodeShape>& nodes, size_t per_rack = 2) {
  GraphBuilder builder;
  const VertexId cluster = builder.Add("cluster", nullptr);
  VertexId rack = cluster;
  for (size_t n = 0; n < nodes.size(); ++n) {
    if (n % per_rack == 0) {
      rack = builder.Add("rack", &cluster, 1, static_cast<int64_t>(n / per_rack));
    }
    const VertexId node = builder.Add("node", &rack, 1, static_cast<int64_t>(n));
    for (int i = 0; i < nodes[n].cores; ++i) builder.Add("core", &node, 1, i);
    for (int i = 0; i < nodes[n].gpus; ++i) builder.Add("gpu", &node, 1, i);
    if (nodes[n].millicores > 0) builder.Add("cpu", &node, nodes[n].millicores, 0, true);
    for (size_t i = 0; i < nodes[n].shares.size(); ++i) {
      builder.Add(std::string(kGpuMilli), &node, nodes[n].shares[i], static_cast<int64_t>(i), true);
    }
    for (size_t i = 0; i < nodes[n].memory.size(); ++i) {
      builder.Add("memory", &node, nodes[n].memory[i], static_cast<int64_t>(i));
    }
  }
  return builder.Take();
}

}  // namespace fluxqueue::graph::synthetic
