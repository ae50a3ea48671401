#include "libs/graph/jgf_writer.h"

#include <string>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "libs/graph/jgf.h"

namespace fluxqueue::graph {
namespace {

const char kGraph[] = R"({"graph": {"nodes": [
    {"id": "0", "metadata": {"type": "cluster", "paths": {"containment": "/cluster0"}}},
    {"id": "1", "metadata": {"type": "node", "id": 0, "rank": 0, "name": "a-7", "basename": "a",
        "properties": {"ssd": "", "zone": "\"z\""}, "paths": {"containment": "/cluster0/a-7"}}},
    {"id": "2", "metadata": {"type": "node", "id": 1, "rank": 1, "status": 1,
        "paths": {"containment": "/cluster0/node1"}}},
    {"id": "3", "metadata": {"type": "memory", "id": 0, "rank": 0, "size": 64, "unit": "GiB",
        "divisible": true,
        "paths": {"containment": ["/cluster0/a-7/memory0", "/cluster0/node1/memory0"],
                  "power": "/power0/memory0"}}},
    {"id": "4", "metadata": {"type": "power", "id": 0, "paths":
        {"power": "/power0", "containment": "/cluster0/power0"}}}],
  "edges": [{"source": "0", "target": "1"}, {"source": "0", "target": "2"},
    {"source": "1", "target": "3"}, {"source": "2", "target": "3"},
    {"source": "0", "target": "4"},
    {"source": "4", "target": "3", "metadata": {"subsystem": "power"}}]}})";

std::string All(const ResourceGraph& graph, size_t bytes, int* pieces) {
  JgfWriter writer(graph);
  std::string text;
  for (std::string piece = writer.Next(bytes); !piece.empty(); piece = writer.Next(bytes)) {
    text += piece;
    ++*pieces;
  }
  return text;
}

TEST(JgfWriterTest, WhatIsWrittenIsTheSameGraph) {
  const auto graph = ParseJgf(kGraph);
  ASSERT_TRUE(graph.ok()) << graph.status();
  int pieces = 0;
  const std::string text = All(*graph, 1 << 20, &pieces);
  EXPECT_EQ(pieces, 1);
  const auto again = ParseJgf(text);
  ASSERT_TRUE(again.ok()) << again.status() << text;
  ASSERT_EQ(again->vertices().size(), graph->vertices().size());
  ASSERT_EQ(again->edges().size(), graph->edges().size());
  for (VertexId v = 0; v < graph->vertices().size(); ++v) {
    const Vertex& wanted = graph->vertex(v);
    const Vertex& got = again->vertex(v);
    EXPECT_EQ(again->TypeName(v), graph->TypeName(v));
    EXPECT_EQ(got.name, wanted.name);
    EXPECT_EQ(got.basename, wanted.basename);
    EXPECT_EQ(got.unit, wanted.unit);
    EXPECT_EQ(got.id, wanted.id);
    EXPECT_EQ(got.uniq_id, wanted.uniq_id);
    EXPECT_EQ(got.rank, wanted.rank);
    EXPECT_EQ(got.size, wanted.size);
    EXPECT_EQ(got.up, wanted.up);
    EXPECT_EQ(got.divisible, wanted.divisible);
    EXPECT_EQ(got.properties, wanted.properties);
    EXPECT_EQ(got.paths, wanted.paths);
  }
  int more = 0;
  EXPECT_EQ(All(*again, 1 << 20, &more), text);
}

TEST(JgfWriterTest, PiecesPutTogetherAreTheWhole) {
  const auto graph = ParseJgf(kGraph);
  ASSERT_TRUE(graph.ok()) << graph.status();
  int one = 0;
  int many = 0;
  EXPECT_EQ(All(*graph, 1, &many), All(*graph, 1 << 20, &one));
  EXPECT_GT(many, 8);
}

}  // namespace
}  // namespace fluxqueue::graph
