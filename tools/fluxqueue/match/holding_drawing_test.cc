#include "tools/fluxqueue/match/holding_drawing.h"

#include <string>
#include <vector>

#include <gtest/gtest.h>

namespace fluxqueue::cli {
namespace {

using graph::EdgeId;
using graph::Holding;
using graph::kNoEdge;
using graph::ResourceGraph;
using graph::Vertex;
using graph::VertexId;

class HoldingDrawingTest : public ::testing::Test {
 protected:
  // Below each of `parents`, the first of which leads to it.
  VertexId Add(const std::string& type,
               int64_t id,
               const std::vector<VertexId>& parents,
               Vertex vertex = {}) {
    vertex.type = graph_.InternType(type);
    vertex.basename = type;
    if (vertex.name.empty()) vertex.name = type + std::to_string(id);
    vertex.id = id;
    vertex.uniq_id = static_cast<int64_t>(graph_.vertices().size());
    const std::string above = parents.empty() ? "" : std::string(graph_.PathOf(parents.front()));
    vertex.paths = {{ResourceGraph::kContainment, above + "/" + vertex.name}};
    const auto v = graph_.AddVertex(vertex);
    EXPECT_TRUE(v.ok()) << v.status();
    for (const VertexId parent : parents) graph_.AddEdge(parent, *v, ResourceGraph::kContainment);
    return *v;
  }

  void Hold(VertexId v, bool exclusive = true, int64_t amount = 1) {
    const auto& in = graph_.vertex(v).in;
    const EdgeId edge = in.empty() ? kNoEdge : in.front();
    holding_.vertices.push_back({v, edge, amount, exclusive});
  }

  std::string Draw() const { return "\n" + DrawHolding(graph_, holding_); }

  ResourceGraph graph_;
  Holding holding_;
};

TEST_F(HoldingDrawingTest, LikeLeavesAreRunTogether) {
  const VertexId cluster = Add("cluster", 0, {});
  const VertexId rack = Add("rack", 3, {cluster});
  const VertexId node = Add("node", 7, {rack});
  for (const int64_t id : {9, 1, 0, 2}) Hold(Add("core", id, {node}));
  Add("core", 3, {node});
  Hold(Add("gpu", 0, {node}));
  for (const VertexId v : {node, rack, cluster}) Hold(v, false);
  EXPECT_EQ(Draw(), R"(
cluster0
└─ rack3
   └─ node7
      ├─ core[0-2,9]
      └─ gpu0
)");
}

TEST_F(HoldingDrawingTest, NodesThatAreAlikeAreOneLine) {
  const VertexId cluster = Add("cluster", 0, {});
  for (int64_t id = 0; id < 4; ++id) {
    const VertexId node = Add("node", id, {cluster});
    Hold(Add("core", 0, {node}));
    if (id == 2) Hold(Add("core", 1, {node}));
    Hold(node, /*exclusive=*/id == 3);
  }
  Hold(cluster, false);
  EXPECT_EQ(Draw(), R"(
cluster0
├─ node[0-1]
│  └─ core0
├─ node2
│  └─ core[0-1]
└─ node3 (exclusive)
   └─ core0
)");
}

TEST_F(HoldingDrawingTest, AmountsOfWhatIsDividedAndSizesOfWhatIsNot) {
  const VertexId cluster = Add("cluster", 0, {});
  Vertex divisible;
  divisible.divisible = true;
  divisible.size = 64;
  divisible.unit = "GiB";
  Hold(Add("memory", 0, {cluster}, divisible), true, 3);
  Hold(Add("memory", 1, {cluster}, divisible), true, 5);
  Vertex whole;
  whole.size = 4;
  Hold(Add("disk", 0, {cluster}, whole), true, 4);
  Hold(Add("disk", 1, {cluster}, whole), true, 4);
  Hold(cluster, false);
  EXPECT_EQ(Draw(), R"(
cluster0
├─ disk[0-1]: 4 each
├─ memory0: 3 of 64 GiB
└─ memory1: 5 of 64 GiB
)");
}

TEST_F(HoldingDrawingTest, WhatSeveralContainIsDrawnInFullOnce) {
  const VertexId cluster = Add("cluster", 0, {});
  const VertexId one = Add("container", 0, {cluster});
  const VertexId other = Add("container", 1, {cluster});
  for (int64_t id = 0; id < 2; ++id) {
    const VertexId node = Add("node", id, {one, other});
    Hold(Add("gpu", 0, {node}));
    Hold(node, false);
  }
  for (const VertexId v : {one, other, cluster}) Hold(v, false);
  EXPECT_EQ(Draw(), R"(
cluster0
├─ container0
│  └─ node[0-1]
│     └─ gpu0
└─ container1
   └─ node[0-1] (as above)
)");
}

TEST_F(HoldingDrawingTest, NamesOfAnyForm) {
  Vertex named;
  named.name = "tiny0";
  const VertexId cluster = Add("cluster", 5, {}, named);
  for (const char* name : {"login", "gpu-b", "gpu-a", "n08", "n09"}) {
    named.name = name;
    Hold(Add("node", -1, {cluster}, named));
  }
  Hold(cluster);
  EXPECT_EQ(Draw(), R"(
tiny0 (exclusive)
└─ gpu-a,gpu-b,login,n[08-09]
)");
}

}  // namespace
}  // namespace fluxqueue::cli
