#include "libs/graph/jgf.h"

#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "libs/base/status_macros.h"

namespace fluxqueue::graph {
namespace {

using ::testing::HasSubstr;

const char kRoot[] =
    R"({"id": "0", "metadata": {"type": "cluster", "id": 0, "paths": {"containment": "/c0"}}})";

std::string Jgf(const std::string& nodes, const std::string& edges) {
  return R"({"graph": {"nodes": [)" + nodes + R"(], "edges": [)" + edges + "]}}";
}

std::string WithNode(const std::string& metadata, const std::string& edges = "") {
  return Jgf(std::string(kRoot) + R"(, {"id": "1", "metadata": )" + metadata + "}",
             edges.empty() ? R"({"source": "0", "target": "1"})" : edges);
}

TEST(Jgf, FillsInWhatIsLeftOut) {
  const auto graph = ParseJgf(WithNode(
      R"({"type": "node", "name": "host12", "paths": {"containment": "/c0/host12"}, "rank": 3,
          "properties": {"ssd": "", "arch": "arm64"}})"));
  ASSERT_TRUE(graph.ok()) << graph.status();
  const Vertex& root = graph->vertex(graph->root());
  EXPECT_EQ(root.name, "cluster0");
  EXPECT_EQ(root.uniq_id, 0);
  EXPECT_EQ(root.size, 1);
  EXPECT_EQ(root.rank, -1);
  const auto v = graph->FindPath("/c0/host12");
  ASSERT_TRUE(v.has_value());
  const Vertex& node = graph->vertex(*v);
  EXPECT_EQ(node.basename, "node");
  EXPECT_EQ(node.id, 12);  // the number at the end of the name
  EXPECT_EQ(node.uniq_id, 1);
  EXPECT_EQ(node.rank, 3);
  EXPECT_TRUE(node.up);
  ASSERT_EQ(node.properties.size(), 2u);
  EXPECT_EQ(node.properties[0].first, "arch");
}

TEST(Jgf, KnowsBothWaysToNameASubsystem) {
  const std::string node = R"({"type": "node", "paths": {"containment": "/c0/n"}})";
  for (const std::string metadata :
       {R"({"subsystem": "power"})", R"({"name": {"power": "supplies"}})"}) {
    const auto graph = ParseJgf(
        WithNode(node,
                 R"({"source": "0", "target": "1"}, {"source": "0", "target": "1", "metadata": )" +
                     metadata + "}"));
    ASSERT_TRUE(graph.ok()) << graph.status();
    ASSERT_EQ(graph->edges().size(), 2u);
    EXPECT_EQ(graph->edge(0).subsystem, ResourceGraph::kContainment);
    EXPECT_EQ(graph->subsystems()[graph->edge(1).subsystem], "power");
  }
}

struct BadCase {
  std::string text;
  std::string error;
};

TEST(Jgf, RefusesAndNamesThePlace) {
  const std::string good = R"({"type": "node", "paths": {"containment": "/c0/n"}})";
  const BadCase cases[] = {
      {"", "JGF: is no JSON"},
      {"{\"graph\": \"\xff\"}", "JGF: is no JSON (byte 12): "},
      {std::string(100, '[') + std::string(100, ']'), "[0][0]: is nested deeper than 16 levels"},
      {"[]", "JGF: must be an object"},
      {"{}", "JGF.graph: is missing"},
      {R"({"graph": {"nodes": []}})", "graph.edges: is missing"},
      {R"({"graph": {"nodes": {}, "edges": []}})", "graph.nodes: must be a list, is object"},
      {R"({"graph": {"nodes": {"a": {}}, "edges": []}})", "graph.nodes: must be a list"},
      {R"({"graph": {"nodes": [], "edges": 1}})", "graph.edges: must be a list, is number"},
      {R"({"graph": [{"nodes": [], "edges": []}]})", "graph: must be an object, is array"},
      {R"({"graph": {"nodes": [[1, 2]], "edges": []}})", "graph.nodes[0]: must be an object"},
      {R"({"graph": {"nodes": [], "nodes": []}})", "JGF: graph: the key \"nodes\" stands twice"},
      {Jgf("", ""), "no vertex is the root"},
      {Jgf(R"({"metadata": {}})", ""), "graph.nodes[0].id: is missing"},
      {Jgf(R"({"id": 0})", ""), "graph.nodes[0].id: must be a string"},
      {Jgf(R"({"id": "0"})", ""), "graph.nodes[0].metadata: is missing"},
      {Jgf(R"({"id": "0", "metadata": {}})", ""), "graph.nodes[0].metadata.type: is missing"},
      {Jgf(R"({"id": "x", "metadata": {"type": "cluster", "paths": {"containment": "/c"}}})", ""),
       "uniq_id: is missing, and the vertex's id \"x\" is no number"},
      {Jgf(std::string(kRoot) + "," + kRoot, ""), "is a second root"},
      {WithNode(R"({"type": "node"})"), "graph.nodes[1].metadata.paths: is missing"},
      {WithNode(R"({"type": "node", "paths": {"containment": 1}})"), "paths.containment"},
      {WithNode(R"({"type": "node", "paths": {"containment": "n"}})"), "must begin with \"/\""},
      {WithNode(R"({"type": "node", "paths": {"containment": "/c0"}})"), "second root"},
      {Jgf(std::string(kRoot) + R"(, {"id": "1", "metadata": )" + good +
               R"(}, {"id": "2", "metadata": )" + good + "}",
           ""),
       "graph.nodes[2].metadata.paths: the path \"/c0/n\" is taken"},
      {Jgf(std::string(kRoot) + R"(, {"id": "0", "metadata": )" + good + "}", ""),
       "graph.nodes[1].id: \"0\" stands twice"},
      {WithNode(R"({"type": "node", "uniq_id": 0, "paths": {"containment": "/c0/n"}})"),
       "graph.nodes[1].metadata.uniq_id: 0 stands twice"},
      {WithNode(R"({"type": "node", "size": -1, "paths": {"containment": "/c0/n"}})"),
       "graph.nodes[1].metadata.size: must be an integer from 0 to 2147483647, is -1"},
      {WithNode(
           R"({"type": "node", "size": 18446744073709551615, "paths": {"containment": "/c0/n"}})"),
       "size: must be an integer"},
      {WithNode(R"({"type": "node", "status": 2, "paths": {"containment": "/c0/n"}})"),
       "status: must be 0 (up) or 1 (down), is 2"},
      {WithNode(R"({"type": "node", "properties": {"a": 1}, "paths": {"containment": "/c0/n"}})"),
       "graph.nodes[1].metadata.properties.a: must be a string"},
      {WithNode(R"({"type": "node", "properties": [], "paths": {"containment": "/c0/n"}})"),
       "properties: must be an object"},
      {WithNode(good, R"({"source": "0"})"), "graph.edges[0].target: is missing"},
      {WithNode(good, R"({"source": "0", "target": "9"})"),
       "graph.edges[0].target: there is no vertex \"9\""},
      {WithNode(good, R"({"source": "0", "target": "1"}, {"source": "1", "target": "1"})"),
       "\"/c0/n\" does not hang below the root \"/c0\", or contains itself"},
      {WithNode(good, R"({"source": "1", "target": "0"})"), "the root \"/c0\" is contained"},
      {Jgf(std::string(kRoot) + R"(, {"id": "1", "metadata": )" + good +
               R"(}, {"id": "2", "metadata": {"type": "x", "paths": {"containment": "/c0/n/x"}}})",
           R"({"source": "0", "target": "1"}, {"source": "1", "target": "2"},
              {"source": "2", "target": "1"})"),
       "graph.edges: \"/c0/n\" does not hang below the root \"/c0\", or contains itself"},
  };
  for (const BadCase& bad : cases) {
    const auto graph = ParseJgf(bad.text);
    EXPECT_TRUE(absl::IsInvalidArgument(graph.status())) << bad.text.substr(0, 300);
    EXPECT_THAT(Message(graph.status()), HasSubstr(bad.error)) << bad.text.substr(0, 300);
  }
}

TEST(Jgf, IsNotDeeperThanAWalkMayGo) {
  std::string nodes = kRoot;
  std::string edges;
  for (int i = 1; i <= 100; ++i) {
    const std::string id = std::to_string(i);
    nodes += R"(, {"id": ")" + id +
             R"(", "metadata": {"type": "box", "paths": {"containment": "/c0/)" + id + R"("}}})";
    edges += std::string(i == 1 ? "" : ", ") + R"({"source": ")" + std::to_string(i - 1) +
             R"(", "target": ")" + id + R"("})";
  }
  EXPECT_THAT(Message(ParseJgf(Jgf(nodes, edges)).status()), HasSubstr("more than 64 levels deep"));
}

TEST(Jgf, EdgesMayComeFirst) {
  const auto graph = ParseJgf(
      R"({"graph": {"edges": [{"source": "0", "target": "1"}], "nodes": [)" + std::string(kRoot) +
      R"(, {"id": "1", "metadata": {"type": "node", "paths": {"containment": "/c0/n"}}}]}})");
  ASSERT_TRUE(graph.ok()) << graph.status();
  EXPECT_EQ(graph->edges().size(), 1u);
}

// Refused before anything is built: in the time and memory that it takes to read the text.
TEST(Jgf, HasSoManyVerticesAtMost) {
  std::string nodes = "0";
  for (size_t i = 0; i < kMaxVertices; ++i) nodes += ",0";
  EXPECT_THAT(Message(ParseJgf(Jgf(nodes, "")).status()),
              HasSubstr("JGF: graph.nodes: has more than 5000000 items"));
}

TEST(Jgf, AVertexIsNoWayToHaveMore) {
  std::string list = "0";
  for (int i = 0; i < 1'000'000; ++i) list += ",0";
  EXPECT_THAT(Message(ParseJgf(Jgf(R"({"id": ["0", [)" + list + "]]}", "")).status()),
              HasSubstr("graph.nodes[0]: has more than 1000000 values"));
}

TEST(Jgf, AnObjectHasSoManyKeysAtMost) {
  std::string keys;
  for (int i = 0; i <= 1'000'000; ++i) keys += fmt::format("{}\"{}\":0", i == 0 ? "" : ",", i);
  EXPECT_THAT(Message(ParseJgf(R"({"x": {)" + keys + "}}").status()),
              HasSubstr("JGF: x: has more than 1000000 keys"));
}

// Ten thousand million steps, were each edge to look at those before it.
TEST(Jgf, ManyEdgesToOneVertexAreNotLookedAtAgain) {
  std::string edges = R"({"source": "0", "target": "1"})";
  for (int i = 1; i < 100'000; ++i) edges += R"(,{"source": "0", "target": "1"})";
  const auto graph =
      ParseJgf(WithNode(R"({"type": "node", "paths": {"containment": "/c0/n"}})", edges));
  // 100,000 ways to one vertex are as many as there are edges.
  ASSERT_TRUE(graph.ok()) << graph.status();
  EXPECT_EQ(graph->edges().size(), 100'000u);
  EXPECT_TRUE(graph->has_shared());
}

// Twenty levels of two vertices, each of which contains both below it: 2^20 ways.
TEST(Jgf, WaysThroughSharedVerticesAreBounded) {
  std::string nodes = kRoot;
  std::string edges = R"({"source": "0", "target": "1"}, {"source": "0", "target": "2"})";
  for (int i = 1; i <= 40; ++i) {
    const std::string id = std::to_string(i);
    nodes += R"(, {"id": ")" + id +
             R"(", "metadata": {"type": "box", "paths": {"containment": "/c0/)" + id + R"("}}})";
    const int next = i + 2 - (i + 1) % 2;
    for (int target = next; i <= 38 && target < next + 2; ++target) {
      edges += R"(, {"source": ")" + id + R"(", "target": ")" + std::to_string(target) + R"("})";
    }
  }
  EXPECT_THAT(Message(ParseJgf(Jgf(nodes, edges)).status()),
              HasSubstr("graph.edges: too many ways lead from the root to \"/c0/"));
}

TEST(Jgf, LongValuesDoNotMakeLongMessages) {
  const auto graph = ParseJgf(WithNode(R"({"type": "node", "size": ")" + std::string(10'000, 'x') +
                                       R"(", "paths": {"containment": "/c0/n"}})"));
  EXPECT_THAT(Message(graph.status()), HasSubstr("graph.nodes[1].metadata.size: "));
  EXPECT_LT(Message(graph.status()).size(), 600u);
}

TEST(Jgf, FindsAPartOfAGraph) {
  const auto graph =
      ParseJgf(WithNode(R"({"type": "node", "rank": 0, "paths": {"containment": "/c0/n"}})"));
  ASSERT_TRUE(graph.ok()) << graph.status();
  const auto part = [&](const std::string& metadata) {
    return FindJgfVertices(Jgf(R"({"id": "1", "metadata": )" + metadata + "}", ""), *graph);
  };
  const auto found = part(R"({"type": "node", "rank": 0, "paths": {"containment": "/c0/n"}})");
  ASSERT_TRUE(found.ok()) << found.status();
  EXPECT_EQ(found->size(), 1u);
  EXPECT_THAT(
      Message(part(R"({"type": "node", "rank": 9, "paths": {"containment": "/c0/n"}})").status()),
      HasSubstr("\"/c0/n\" is not as it is in the graph"));
  EXPECT_THAT(
      Message(part(R"({"type": "node", "rank": 0, "paths": {"containment": "/c0/x"}})").status()),
      HasSubstr("the graph has no path \"/c0/x\""));
}

}  // namespace
}  // namespace fluxqueue::graph
