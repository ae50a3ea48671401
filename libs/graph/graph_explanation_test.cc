#include "libs/graph/graph_explanation.h"

#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "libs/graph/general_engine.h"
#include "libs/graph/synthetic_graphs.h"

namespace fluxqueue::graph {
namespace {

using ::testing::IsEmpty;
using ::testing::SizeIs;

class GraphExplanationTest : public ::testing::Test {
 protected:
  void Make(const std::vector<synthetic::NodeShape>& nodes) {
    auto engine = GeneralEngine::Make(synthetic::MakeCluster(nodes),
                                      {.policy = "low", .prune_filters = "ALL:core,ALL:gpu"});
    ASSERT_TRUE(engine.ok()) << engine.status();
    engine_ = *std::move(engine);
  }

  static JobRequest Request(const std::string& resources,
                            const std::string& system = "{duration: 10}") {
    const auto request = ParseJobRequest("version: 1\nresources: " + resources +
                                         "\ntasks: []\nattributes: {system: " + system + "}");
    EXPECT_TRUE(request.ok()) << request.status();
    return *request;
  }

  static std::string Slots(int count, const std::string& with) {
    return "[{type: slot, label: a, count: " + std::to_string(count) + ", with: [" + with + "]}]";
  }

  MatchStatus Match(JobNumber job, const JobRequest& request) {
    return engine_->Match(MatchOperation::kAllocateWithSatisfiability, job, request)->status;
  }

  std::string Why(const JobRequest& request) { return engine_->Explain(request).sentence; }

  std::unique_ptr<GeneralEngine> engine_;
};

TEST_F(GraphExplanationTest, NamesTheNearestMissAndWhoHoldsIt) {
  Make({{4, 2}, {4, 8}});
  const JobRequest six = Request(Slots(1, "{type: gpu, count: 6}"));
  ASSERT_EQ(Match(1, six), MatchStatus::kAllocated);
  const GraphExplanation why =
      engine_->Explain(Request("[{type: node, count: 1, with: " +
                               Slots(1, "{type: core, count: 1}, {type: gpu, count: 4}") + "}]"));
  EXPECT_EQ(why.sentence, "gpu: needs 4 on one node; the best node has 2 free");
  EXPECT_EQ(why.missing, "gpu");
  ASSERT_THAT(why.levels, SizeIs(2));
  EXPECT_EQ(why.levels[0].there, 2u);
  EXPECT_EQ(why.levels[0].up, 2u);
  EXPECT_EQ(why.levels[0].large_enough, 1u);
  EXPECT_EQ(why.levels[0].free_enough, 0u);
}

TEST_F(GraphExplanationTest, SaysWhoHoldsWhatIsMissing) {
  Make({{4}});
  ASSERT_EQ(Match(7, Request(Slots(1, "{type: core, count: 3}"))), MatchStatus::kAllocated);
  const GraphExplanation why = engine_->Explain(Request(Slots(1, "{type: core, count: 2}")));
  EXPECT_EQ(why.sentence, "core: needs 2 on one node; the best node has 1 free");
  ASSERT_THAT(why.holders, SizeIs(1));
  EXPECT_EQ(why.holders[0].job, 7u);
  EXPECT_EQ(why.holders[0].amount, 3);
  EXPECT_EQ(why.holders[0].until_s, 10);
}

TEST_F(GraphExplanationTest, TellsNeverFromNotNow) {
  Make({{4, 2}, {4, 2}});
  EXPECT_EQ(Why(Request(Slots(1, "{type: gpu, count: 3}"))),
            "gpu: needs 3 on one node; the largest node has 2");
  EXPECT_EQ(Why(Request(Slots(5, "{type: gpu, count: 1}"))),
            "node: needs 5 slots, 4 would fit if all were up and free");
  EXPECT_EQ(Why(Request(Slots(1, "{type: fpga, count: 1}"))), "nothing in the graph contains fpga");
  EXPECT_EQ(
      Why(Request("[{type: zone, count: 1, with: " + Slots(1, "{type: core, count: 1}") + "}]")),
      "zone: the graph has none");
  EXPECT_EQ(Why(Request(Slots(1, "{type: core, count: 1}"),
                        "{duration: 1, constraints: {properties: ['ssd']}}")),
            "constraints: none of 2 nodes meets them");
  EXPECT_EQ(Why(Request(Slots(1, "{type: core, count: 1}"))), "fits now");
}

TEST_F(GraphExplanationTest, CountsLevels) {
  // Racks of two nodes each.
  Make({{2}, {2}, {2}, {2}});
  ASSERT_EQ(Match(1, Request(Slots(1, "{type: core, count: 2}"))), MatchStatus::kAllocated);
  const std::string two_nodes =
      "{type: node, count: 2, with: " + Slots(1, "{type: core, count: 1}") + "}";
  const GraphExplanation why =
      engine_->Explain(Request("[{type: rack, count: 2, with: [" + two_nodes + "]}]"));
  EXPECT_EQ(why.sentence, "rack: needs 2, 1 fit now");
  ASSERT_THAT(why.levels, SizeIs(3));
  EXPECT_EQ(why.levels[0].large_enough, 2u);
  EXPECT_EQ(why.levels[0].free_enough, 1u);
  EXPECT_EQ(why.levels[1].free_enough, 3u);
}

TEST_F(GraphExplanationTest, WhatIsDownIsCapacity) {
  Make({{2}});
  ASSERT_TRUE(engine_->SetUp("/cluster0/rack0/node0", false).ok());
  EXPECT_EQ(Why(Request(Slots(1, "{type: core, count: 1}"))),
            "node: 0 of 1 that may be used are up and not held");
}

}  // namespace
}  // namespace fluxqueue::graph
