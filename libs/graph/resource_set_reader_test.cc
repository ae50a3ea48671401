#include "libs/graph/resource_set_reader.h"

#include <string>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "libs/base/status_macros.h"
#include "libs/graph/general_engine.h"
#include "libs/graph/jgf.h"
#include "libs/graph/resource_set.h"
#include "libs/graph/synthetic_graphs.h"

namespace fluxqueue::graph {
namespace {

using nlohmann::json;
using synthetic::MakeCluster;
using ::testing::HasSubstr;

class ResourceSetReaderTest : public ::testing::Test {
 protected:
  // Two racks of two nodes; a node has two cores, a gpu and a memory of 8.
  void SetUp() override {
    auto engine =
        GeneralEngine::Make(MakeCluster({{2, 1, {8}}, {2, 1, {8}}, {2, 1, {8}}, {2, 1, {8}}}),
                            {.policy = "low", .prune_filters = "ALL:core"});
    ASSERT_TRUE(engine.ok()) << engine.status();
    engine_ = *std::move(engine);
  }

  const ResourceGraph& graph() const { return engine_->graph(); }

  Holding Allocate(JobNumber job, const std::string& resources) {
    const auto request = ParseJobRequest("version: 1\nresources: " + resources +
                                         "\ntasks: []\nattributes: {system: {duration: 60}}");
    EXPECT_TRUE(request.ok()) << request.status();
    const auto answer = engine_->Match(MatchOperation::kAllocate, job, *request);
    EXPECT_TRUE(answer.ok() && answer->status == MatchStatus::kAllocated);
    return *engine_->Find(job);
  }

  std::vector<std::string> Held(const Holding& holding) const {
    std::vector<std::string> paths;
    for (const HeldVertex& held : holding.vertices) {
      if (held.exclusive) paths.emplace_back(graph().PathOf(held.vertex));
    }
    return paths;
  }

  std::string Complaint(const std::string& text) const {
    return Message(ReadResourceSet(text, graph()).status());
  }

  std::unique_ptr<GeneralEngine> engine_;
};

const char kSlots[] =
    "[{type: node, count: 2, with: [{type: slot, count: 1, label: a, with: "
    "[{type: core, count: 1}, {type: gpu, count: 1}, {type: memory, count: 3}]}]}]";

TEST_F(ResourceSetReaderTest, WhatWasWrittenWithItsGraphIsHeldAgain) {
  for (const std::string resources :
       {kSlots,
        "[{type: rack, count: 1, exclusive: true, with: [{type: slot, count: 1, label: a, with: "
        "[{type: core, count: 1}]}]}]"}) {
    const Holding before = Allocate(1, resources);
    const uint64_t fingerprint = engine_->Fingerprint();
    const std::string written = WriteResourceSet(graph(), before, SetFormat::kRv1);
    ASSERT_TRUE(engine_->Cancel(1));
    const auto read = ReadResourceSet(written, graph());
    ASSERT_TRUE(read.ok()) << read.status();
    EXPECT_TRUE(read->by_vertices);
    ASSERT_TRUE(engine_->Restore(1, read->holding).ok());
    EXPECT_EQ(engine_->Fingerprint(), fingerprint);
    EXPECT_EQ(WriteResourceSet(graph(), *engine_->Find(1), SetFormat::kRv1), written);
    ASSERT_TRUE(engine_->Cancel(1));
  }
}

TEST_F(ResourceSetReaderTest, AmountsOfWhatIsDividedComeBack) {
  auto graph = ParseJgf(R"({"graph": {"nodes": [
      {"id": "0", "metadata": {"type": "cluster", "id": 0, "paths": {"containment": "/cluster0"}}},
      {"id": "1", "metadata": {"type": "node", "rank": 0, "id": 0,
                               "paths": {"containment": "/cluster0/node0"}}},
      {"id": "2", "metadata": {"type": "memory", "rank": 0, "id": 0, "size": 8, "divisible": true,
                               "paths": {"containment": "/cluster0/node0/memory0"}}}],
      "edges": [{"source": "0", "target": "1"}, {"source": "1", "target": "2"}]}})");
  ASSERT_TRUE(graph.ok()) << graph.status();
  auto engine = GeneralEngine::Make(*std::move(graph), {});
  ASSERT_TRUE(engine.ok()) << engine.status();
  engine_ = *std::move(engine);
  for (const int amount : {1, 3, 8}) {
    const Holding before = Allocate(
        1,
        fmt::format("[{{type: slot, count: 1, label: a, with: [{{type: memory, count: {}}}]}}]",
                    amount));
    const auto read =
        ReadResourceSet(WriteResourceSet(this->graph(), before, SetFormat::kRv1), this->graph());
    ASSERT_TRUE(read.ok()) << read.status();
    EXPECT_EQ(read->holding.vertices, before.vertices);
    ASSERT_TRUE(engine_->Cancel(1));
  }
}

TEST_F(ResourceSetReaderTest, WithoutItsGraphCoresAndGpusComeBack) {
  const Holding before = Allocate(1, kSlots);
  const auto read =
      ReadResourceSet(WriteResourceSet(graph(), before, SetFormat::kRv1NoSched), graph());
  ASSERT_TRUE(read.ok()) << read.status();
  EXPECT_FALSE(read->by_vertices);
  EXPECT_THAT(Held(read->holding),
              ::testing::ElementsAre("/cluster0/rack0/node0/core0",
                                     "/cluster0/rack0/node0/gpu0",
                                     "/cluster0/rack0/node1/core0",
                                     "/cluster0/rack0/node1/gpu0"));
  EXPECT_EQ(read->holding.at_s, 0);
  EXPECT_EQ(read->holding.duration_s, 60);
  EXPECT_FALSE(read->holding.reserved);
  // With the way to them, from the leaves to the root.
  EXPECT_EQ(read->holding.vertices.size(), 4u + 2u + 1u + 1u);
  EXPECT_EQ(read->holding.vertices.back().vertex, graph().root());
  EXPECT_EQ(read->holding.vertices.back().edge, kNoEdge);
}

TEST_F(ResourceSetReaderTest, TimesAreThoseOfR) {
  const auto read_with = [this](const std::string& times) {
    return ReadResourceSet(R"({"version": 1, "execution": {"R_lite": [{"rank": "0", "children":
                              {"core": "1"}}])" +
                               times + "}}",
                           graph());
  };
  const auto later = read_with(R"(, "starttime": 10, "expiration": 25.5)");
  ASSERT_TRUE(later.ok()) << later.status();
  EXPECT_EQ(later->holding.at_s, 10);
  EXPECT_EQ(later->holding.duration_s, 15);
  EXPECT_TRUE(later->holding.reserved);
  const auto unlimited = read_with(R"(, "starttime": 0, "expiration": 0)");
  ASSERT_TRUE(unlimited.ok());
  EXPECT_EQ(unlimited->holding.duration_s, int64_t{100} * 365 * 24 * 3600);
  EXPECT_THAT(Message(read_with(R"(, "starttime": 30, "expiration": 30)").status()),
              HasSubstr("must be later than starttime (30), is 30"));
  EXPECT_THAT(Message(read_with(R"(, "starttime": -1)").status()),
              HasSubstr("execution.starttime: must be a number of seconds from 0"));
  EXPECT_THAT(Message(read_with(R"(, "expiration": "soon")").status()), HasSubstr(R"(is "soon")"));
}

TEST_F(ResourceSetReaderTest, ComplaintsNamePlaceValueAndWhatIsAllowed) {
  const auto lite = [](const std::string& entries) {
    return R"({"version": 1, "execution": {"R_lite": )" + entries + "}}";
  };
  const std::pair<std::string, std::string> cases[] = {
      {"", "R: is no JSON"},
      {"[]", "R: must be an object, is array"},
      {R"({"execution": {}})", "R.version: is missing"},
      {R"({"version": 2, "execution": {}})", "version: must be 1, is 2"},
      {R"({"version": 1})", "R.execution: is missing"},
      {R"({"version": 1, "execution": {}})", "execution.R_lite: is missing"},
      {lite("{}"), "execution.R_lite: must be a list, is object"},
      {lite("[]"), "names nothing"},
      {lite(R"([{"children": {}}])"), "execution.R_lite[0].rank: is missing"},
      {lite(R"([{"rank": 0, "children": {}}])"),
       R"(execution.R_lite[0].rank: must be a string such as "0-3,7", is number)"},
      {lite(R"([{"rank": "x", "children": {}}])"), R"(execution.R_lite[0].rank: "x")"},
      {lite(R"([{"rank": "0,0", "children": {}}])"), "a number stands twice"},
      {lite(R"([{"rank": "0-9999999999", "children": {}}])"), "must be at most"},
      {lite(R"([{"rank": "0-4999999", "children": {"core": "0-4999999"}}])"), "names more than"},
      {lite(R"([{"rank": "9", "children": {"core": "0"}}])"), "no node of the graph has rank 9"},
      {lite(R"([{"rank": "0", "children": []}])"), "children: must be an object"},
      {lite(R"([{"rank": "0", "children": {"core": 1}}])"), "children.core: must be a string"},
      {lite(R"([{"rank": "0", "children": {"core": "2"}}])"),
       R"(execution.R_lite[0].children.core: "/cluster0/rack0/node0" has no core 2)"},
      {lite(R"([{"rank": "0", "children": {"core": "1"}}, {"rank": "0", "children":
           {"core": "0-1"}}])"),
       R"(core 1 of "/cluster0/rack0/node0" stands twice)"},
      {R"({"version": 1, "execution": {"R_lite": []}, "scheduling": {"graph": {"nodes": [{"id": "9",
           "metadata": {"type": "core", "paths": {"containment": "/elsewhere"}}}]}}})",
       R"(scheduling: graph.nodes[0]: the graph has no path "/elsewhere")"},
      {R"({"graph": {"nodes": [{"id": "0", "metadata": {"type": "cluster", "exclusive": "yes",
           "paths": {"containment": "/cluster0"}}}]}})",
       R"(graph.nodes[0].metadata.exclusive: must be true or false, is "yes")"},
  };
  for (const auto& [text, complaint] : cases) EXPECT_THAT(Complaint(text), HasSubstr(complaint));
}

TEST_F(ResourceSetReaderTest, ANumberThatTwoHaveNeedsTheGraph) {
  synthetic::GraphBuilder builder;
  const VertexId cluster = builder.Add("cluster", nullptr);
  const VertexId node = builder.Add("node", &cluster);
  for (const int64_t id : {0, 1}) {
    const VertexId socket = builder.Add("socket", &node, 1, id);
    builder.Add("core", &socket, 1, 0);
  }
  const ResourceGraph sockets = builder.Take();
  EXPECT_THAT(Message(ReadResourceSet(R"({"version": 1, "execution": {"R_lite":
                      [{"rank": "0", "children": {"core": "0"}}]}})",
                                      sockets)
                          .status()),
              HasSubstr("several core 0: give R with its scheduling key"));
}

const char kMachine[] = R"({"version": 1, "execution": {
    "R_lite": [{"rank": "0,4", "children": {"core": "0-1"}},
               {"rank": "2", "children": {"core": "0", "gpu": "1"}}],
    "nodelist": ["fluke[07-08]", "login"], "properties": {"ssd": "2-4", "old": "4"}}})";

TEST(ResourceSetAsGraph, IsAClusterOfNodes) {
  const auto graph = ReadResourceSetAsGraph(kMachine);
  ASSERT_TRUE(graph.ok()) << graph.status();
  ASSERT_TRUE(graph->Check().ok());
  EXPECT_EQ(graph->vertices().size(), 1u + 3u + 2u * 2u + 2u);
  const auto node = graph->FindPath("/cluster0/fluke08");
  ASSERT_TRUE(node.has_value());
  EXPECT_EQ(graph->vertex(*node).rank, 2);
  EXPECT_EQ(graph->vertex(*node).id, 8);
  EXPECT_EQ(graph->vertex(*node).basename, "fluke");
  EXPECT_EQ(graph->TypeName(*node), "node");
  EXPECT_EQ(graph->vertex(*node).properties, (Labels{{"ssd", ""}}));
  const auto login = graph->FindPath("/cluster0/login");
  ASSERT_TRUE(login.has_value());
  EXPECT_EQ(graph->vertex(*login).id, 4);
  EXPECT_EQ(graph->vertex(*login).properties, (Labels{{"old", ""}, {"ssd", ""}}));
  const auto gpu = graph->FindPath("/cluster0/fluke08/gpu1");
  ASSERT_TRUE(gpu.has_value());
  EXPECT_EQ(graph->vertex(*gpu).rank, 2);
}

TEST(ResourceSetAsGraph, IsReadBackFromWhatIsAllocatedOnIt) {
  auto engine = GeneralEngine::Make(*ReadResourceSetAsGraph(kMachine), {.policy = "low"});
  ASSERT_TRUE(engine.ok()) << engine.status();
  const auto request = ParseJobRequest(
      "version: 1\nresources: [{type: slot, count: 1, label: a, with: [{type: gpu, count: 1}]}]\n"
      "tasks: []\nattributes: {system: {duration: 60}}");
  const auto answer = (*engine)->Match(MatchOperation::kAllocate, 1, *request);
  ASSERT_TRUE(answer.ok() && answer->status == MatchStatus::kAllocated);
  const json written =
      json::parse(WriteResourceSet((*engine)->graph(), answer->holding, SetFormat::kRv1NoSched));
  EXPECT_EQ(written["execution"]["R_lite"],
            json::parse(R"([{"rank": "2", "children": {"gpu": "1"}}])"));
  EXPECT_EQ(written["execution"]["nodelist"], json::parse(R"(["fluke08"])"));
}

TEST(ResourceSetAsGraph, ComplaintsNamePlaceValueAndWhatIsAllowed) {
  const auto execution = [](const std::string& members) {
    return R"({"version": 1, "execution": {)" + members + "}}";
  };
  const std::string two = R"("R_lite": [{"rank": "0-1", "children": {"core": "0"}}])";
  const std::pair<std::string, std::string> cases[] = {
      {R"({"graph": {}})", "R.execution: is missing"},
      {execution(two), "execution.nodelist: is missing"},
      {execution(two + R"(, "nodelist": "n[0-1]")"), "execution.nodelist: must be a list"},
      {execution(two + R"(, "nodelist": [7])"), "execution.nodelist[0]: must be a hostlist"},
      {execution(two + R"(, "nodelist": ["n[0-"])"), "execution.nodelist[0]: "},
      {execution(two + R"(, "nodelist": ["n0"])"),
       "must name as many nodes as there are ranks (2), names 1"},
      {execution(two + R"(, "nodelist": ["n0", "n0"])"),
       R"(execution.R_lite[0]: rank 1: the path "/cluster0/n0" is taken)"},
      {execution(R"("R_lite": [{"rank": "0", "children": {"a/b": "0"}}], "nodelist": ["n0"])"),
       R"("a/b0" has a "/" in its name)"},
      {execution(two + R"(, "nodelist": ["n[0-1]"], "properties": [])"),
       "execution.properties: must be an object"},
      {execution(two + R"(, "nodelist": ["n[0-1]"], "properties": {"ssd": 1})"),
       "execution.properties.ssd: must be a string"},
  };
  for (const auto& [text, complaint] : cases) {
    EXPECT_THAT(Message(ReadResourceSetAsGraph(text).status()), HasSubstr(complaint));
  }
}

}  // namespace
}  // namespace fluxqueue::graph
