#include "libs/graph/resource_set.h"

#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "libs/base/status_macros.h"
#include "libs/graph/general_engine.h"
#include "libs/graph/hostlist.h"
#include "libs/graph/jgf.h"
#include "libs/graph/synthetic_graphs.h"

namespace fluxqueue::graph {
namespace {

using nlohmann::json;
using synthetic::MakeCluster;
using synthetic::NodeShape;
using ::testing::HasSubstr;

class ResourceSetTest : public ::testing::Test {
 protected:
  // Three nodes; the last has other cores than the first two, and a property.
  void SetUp() override {
    auto engine = GeneralEngine::Make(MakeCluster({{2, 1, {8}}, {2, 1, {8}}, {1}}),
                                      {.policy = "low", .prune_filters = "ALL:core"});
    ASSERT_TRUE(engine.ok()) << engine.status();
    engine_ = *std::move(engine);
    ASSERT_TRUE(engine_->SetProperty("/cluster0/rack1/node2", "ssd", "").ok());
  }

  std::string Write(const std::string& resources, SetFormat format) {
    const auto request = ParseJobRequest("version: 1\nresources: " + resources +
                                         "\ntasks: []\nattributes: {system: {duration: 60}}");
    EXPECT_TRUE(request.ok()) << request.status();
    const auto answer = engine_->Match(MatchOperation::kAllocate, 1, *request);
    EXPECT_TRUE(answer.ok() && answer->status == MatchStatus::kAllocated);
    return WriteResourceSet(engine_->graph(), answer->holding, format);
  }

  std::unique_ptr<GeneralEngine> engine_;
};

const char kAllCores[] = "[{type: slot, count: 5, label: a, with: [{type: core, count: 1}]}]";

TEST_F(ResourceSetTest, RGroupsRanksThatHoldTheSame) {
  EXPECT_EQ(Write(kAllCores, SetFormat::kRv1NoSched),
            R"({"version":1,"execution":{"R_lite":[{"rank":"2","children":{"core":"0"}},)"
            R"({"rank":"0-1","children":{"core":"0-1"}}],"nodelist":["node[0-2]"],)"
            R"("properties":{"ssd":"2"},"starttime":0,"expiration":60}})");
}

TEST_F(ResourceSetTest, RliteKnowsCoresAndGpus) {
  EXPECT_EQ(
      Write("[{type: node, count: 1, exclusive: true, with: [{type: slot, count: 1, label: a, "
            "with: [{type: core, count: 1}]}]}]",
            SetFormat::kRlite),
      R"([{"rank":"0","children":{"core":"0-1","gpu":"0"}}])");
}

TEST_F(ResourceSetTest, JgfIsThePartOfTheGraph) {
  const std::string text = Write(
      "[{type: slot, count: 1, label: a, with: [{type: core, count: 1}, {type: memory, count: "
      "3}]}]",
      SetFormat::kJgf);
  const json graph = json::parse(text)["graph"];
  ASSERT_EQ(graph["nodes"].size(), 5u);
  ASSERT_EQ(graph["edges"].size(), 4u);
  EXPECT_EQ(graph["nodes"][1],
            json::parse(R"({"id": "6", "metadata": {"type": "memory", "id": 0, "rank": 0, "size": 8,
                "exclusive": true, "paths": {"containment": "/cluster0/rack0/node0/memory0"}}})"));
  EXPECT_EQ(graph["edges"][0], json::parse(R"({"source": "2", "target": "3"})"));
  // It reads as what it is.
  const auto part = FindJgfVertices(text, engine_->graph());
  EXPECT_TRUE(part.ok()) << part.status();
}

TEST_F(ResourceSetTest, SimpleIsForPeople) {
  EXPECT_EQ(Write("[{type: slot, count: 1, label: a, with: [{type: memory, count: 3}]}]",
                  SetFormat::kSimple),
            "      ------------memory0[8:x]\n"
            "      ---------node0[1:s]\n"
            "      ------rack0[1:s]\n"
            "      ---cluster0[1:s]\n");
}

TEST_F(ResourceSetTest, TheSchedulingKeyIsTheGraph) {
  const json set = json::parse(Write(kAllCores, SetFormat::kRv1));
  EXPECT_EQ(set["scheduling"]["graph"]["nodes"].size(), 5u + 3u + 2u + 1u);
  EXPECT_THAT(Message(ParseSetFormat("rv2").status()),
              HasSubstr("rv1_nosched, rlite, jgf or simple"));
}

TEST(Hostlist, IsFormatted) {
  const std::pair<std::vector<std::string>, std::string> cases[] = {
      {{}, ""},
      {{"a"}, "a"},
      {{"node3"}, "node3"},
      {{"node10", "node2", "node3", "node7"}, "node[2-3,7,10]"},
      {{"n08", "n09", "n10"}, "n10,n[08-09]"},
      {{"b1", "a2", "a1", "login"}, "login,a[1-2],b1"},
  };
  for (const auto& [hosts, text] : cases) {
    EXPECT_EQ(FormatHostlist(hosts), text);
    std::vector<std::string> expanded;
    if (!hosts.empty()) {
      EXPECT_TRUE(ExpandHostlist(text, 100, &expanded).ok()) << text;
    }
    std::vector<std::string> sorted = hosts;
    std::sort(sorted.begin(), sorted.end());
    std::sort(expanded.begin(), expanded.end());
    EXPECT_EQ(expanded, sorted);
  }
}

}  // namespace
}  // namespace fluxqueue::graph
