#include "libs/graph/general_engine.h"

#include <algorithm>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "libs/base/status_macros.h"
#include "libs/graph/synthetic_graphs.h"

namespace fluxqueue::graph {
namespace {

using synthetic::GraphBuilder;
using synthetic::MakeCluster;
using synthetic::NodeShape;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

JobRequest Request(const std::string& resources, const std::string& system = "{duration: 10}") {
  const auto request = ParseJobRequest("version: 1\nresources: " + resources +
                                       "\ntasks: []\nattributes: {system: " + system + "}");
  EXPECT_TRUE(request.ok()) << request.status();
  return *request;
}

std::string Slots(int count, const std::string& with) {
  return "[{type: slot, label: a, count: " + std::to_string(count) + ", with: [" + with + "]}]";
}

std::string Some(const std::string& type, int count) {
  return "{type: " + type + ", count: " + std::to_string(count) + "}";
}

class GeneralEngineTest : public ::testing::Test {
 protected:
  void Make(const std::vector<NodeShape>& nodes,
            const std::string& policy,
            const std::string& filters = "ALL:core",
            const std::string& traverser = "simple") {
    auto engine = GeneralEngine::Make(
        MakeCluster(nodes), {.policy = policy, .prune_filters = filters, .traverser = traverser});
    ASSERT_TRUE(engine.ok()) << engine.status();
    engine_ = *std::move(engine);
  }

  MatchAnswer Match(JobNumber job,
                    const JobRequest& request,
                    MatchOperation operation = MatchOperation::kAllocateWithSatisfiability) {
    const auto answer = engine_->Match(operation, job, request);
    EXPECT_TRUE(answer.ok()) << answer.status();
    return *answer;
  }

  // What is held itself, without the way to it.
  std::vector<std::string> Held(const MatchAnswer& answer) const {
    std::vector<std::string> paths;
    for (const HeldVertex& held : answer.holding.vertices) {
      if (held.exclusive) paths.emplace_back(engine_->graph().PathOf(held.vertex));
    }
    std::sort(paths.begin(), paths.end());
    return paths;
  }

  std::unique_ptr<GeneralEngine> engine_;
};

TEST_F(GeneralEngineTest, PoliciesChooseByIds) {
  const JobRequest one = Request(Slots(1, Some("core", 1)));
  const std::pair<std::string, std::string> cases[] = {
      {"low", "/cluster0/rack0/node0/core0"},
      {"high", "/cluster0/rack0/node0/core1"},  // the nodes' slots score the same
      {"lonode", "/cluster0/rack0/node0/core0"},
      {"hinode", "/cluster0/rack1/node3/core1"},
      {"first", "/cluster0/rack1/node3/core1"},
      {"locality", "/cluster0/rack0/node0/core1"},
      {"packed", "/cluster0/rack0/node0/core0"},
  };
  for (const auto& [policy, path] : cases) {
    Make({{2}, {2}, {2}, {2}}, policy);
    EXPECT_THAT(Held(Match(1, one)), ElementsAre(path)) << policy;
  }
}

TEST_F(GeneralEngineTest, FirstSpreads) {
  Make({{2}, {2}}, "first");
  const JobRequest one = Request(Slots(1, Some("core", 1)));
  EXPECT_THAT(Held(Match(1, one)), ElementsAre("/cluster0/rack0/node1/core1"));
  EXPECT_THAT(Held(Match(2, one)), ElementsAre("/cluster0/rack0/node0/core1"));
  EXPECT_THAT(Held(Match(3, one)), ElementsAre("/cluster0/rack0/node1/core0"));
}

TEST_F(GeneralEngineTest, NodeExclusivePoliciesHoldAllOfANode) {
  Make({{2}, {2, 1}}, "lonodex");
  const JobRequest one = Request(Slots(1, Some("core", 1)));
  EXPECT_THAT(
      Held(Match(1, one)),
      ElementsAre(
          "/cluster0/rack0/node0", "/cluster0/rack0/node0/core0", "/cluster0/rack0/node0/core1"));
  EXPECT_EQ(Held(Match(2, one)).size(), 4u);
  EXPECT_EQ(Match(3, one).status, MatchStatus::kBusy);
}

TEST_F(GeneralEngineTest, MemoryIsTakenInWholeVertices) {
  Make({{4, 0, {4, 4}}}, "low");
  const JobRequest wants = Request(Slots(1, Some("core", 1) + ", " + Some("memory", 5)));
  EXPECT_THAT(Held(Match(1, wants)),
              ElementsAre("/cluster0/rack0/node0/core0",
                          "/cluster0/rack0/node0/memory0",
                          "/cluster0/rack0/node0/memory1"));
  EXPECT_EQ(Match(2, wants).status, MatchStatus::kBusy);
}

TEST_F(GeneralEngineTest, TellsBusyFromUnsatisfiable) {
  Make({{2}, {2}}, "low");
  EXPECT_EQ(Match(1, Request(Slots(1, Some("core", 3)))).status, MatchStatus::kUnsatisfiable);
  EXPECT_EQ(Match(1, Request(Slots(1, Some("gpu", 1)))).status, MatchStatus::kUnsatisfiable);
  EXPECT_EQ(Match(1, Request(Slots(4, Some("core", 1)))).status, MatchStatus::kAllocated);
  EXPECT_EQ(Match(2, Request(Slots(1, Some("core", 1)))).status, MatchStatus::kBusy);
  EXPECT_EQ(Match(2, Request(Slots(1, Some("core", 3))), MatchOperation::kAllocate).status,
            MatchStatus::kBusy);
  EXPECT_EQ(Match(2, Request(Slots(1, Some("core", 1))), MatchOperation::kSatisfiability).status,
            MatchStatus::kMatched);
}

TEST_F(GeneralEngineTest, TwoOfATypeBesideEachOtherNeverMatch) {
  Make({{4}}, "low");
  EXPECT_EQ(Match(1, Request(Slots(1, Some("core", 1) + ", " + Some("core", 1)))).status,
            MatchStatus::kUnsatisfiable);
  // Nothing in it is exclusive.
  EXPECT_THAT(Held(Match(1, Request("[" + Some("node", 1) + "]"))), IsEmpty());
}

// As Fluxion: below a named level no other is passed, and slots stand on nodes.
TEST_F(GeneralEngineTest, SlotsOfARackWithoutANodeBetweenNeverMatch) {
  const std::string slot = Slots(1, Some("core", 1));
  const JobRequest request = Request("[{type: rack, count: 1, with: " + slot + "}]");
  for (const std::string policy : {"low", "hinode", "first", "lonodex"}) {
    Make({{2}, {2}}, policy);
    EXPECT_THAT(Held(Match(1, request)), IsEmpty()) << policy;
    EXPECT_EQ(Match(1, request).status, MatchStatus::kBusy);
    EXPECT_EQ(Match(1, request, MatchOperation::kSatisfiability).status, MatchStatus::kMatched);
    // Nor later.
    Match(1, Request(slot));
    const auto later = engine_->ReserveFirst(2, request, {0, 10}, kForever);
    EXPECT_EQ(later->status, MatchStatus::kBusy);
    EXPECT_EQ(engine_->Find(2), nullptr);
  }
}

// Whether indexes find it or a walk does.
TEST_F(GeneralEngineTest, LevelsBelowANamedOneAreLeftOutWhereTheyMay) {
  const std::string slot = Slots(3, Some("core", 1));
  JobRequest request = Request("[{type: rack, count: 1, with: " + slot + "}]");
  request.levels_may_be_left_out = true;
  for (const std::string policy : {"low", "hinode", "first", "locality", "variation", "packed"}) {
    for (const bool indexes : {true, false}) {
      auto engine = GeneralEngine::Make(MakeCluster({{2}, {0}, {2}, {2}}),
                                        {.policy = policy, .indexes = indexes});
      ASSERT_TRUE(engine.ok());
      engine_ = *std::move(engine);
      const MatchAnswer answer = Match(1, request);
      EXPECT_EQ(answer.status, MatchStatus::kAllocated) << policy << indexes;
      EXPECT_EQ(Held(answer).size(), 3u) << policy << indexes;
    }
  }
}

TEST_F(GeneralEngineTest, ReservesAtTheFirstTimeThatHasRoom) {
  Make({{2}}, "low");
  const JobRequest both = Request(Slots(2, Some("core", 1)), "{duration: 10}");
  const JobRequest one = Request(Slots(1, Some("core", 1)), "{duration: 5}");
  EXPECT_EQ(Match(1, one).status, MatchStatus::kAllocated);
  EXPECT_EQ(Match(2, Request(Slots(1, Some("core", 1)), "{duration: 7}")).status,
            MatchStatus::kAllocated);
  const MatchAnswer later = Match(3, both, MatchOperation::kAllocateOrElseReserve);
  EXPECT_EQ(later.status, MatchStatus::kReserved);
  EXPECT_EQ(later.holding.at_s, 7);
  // Core 0 is free from 5 to 7, which is too short.
  const MatchAnswer after = Match(4, one, MatchOperation::kAllocateOrElseReserve);
  EXPECT_EQ(after.holding.at_s, 17);
  const MatchAnswer between = Match(5,
                                    Request(Slots(1, Some("core", 1)), "{duration: 2}"),
                                    MatchOperation::kAllocateOrElseReserve);
  EXPECT_EQ(between.holding.at_s, 5);
  EXPECT_TRUE(engine_->Cancel(3));
  EXPECT_EQ(Match(6, both, MatchOperation::kWithoutAllocatingFuture).holding.at_s, 7);
  EXPECT_EQ(engine_->Find(6), nullptr);
}

TEST_F(GeneralEngineTest, ModeratesCounts) {
  Make({{7}}, "low");
  const JobRequest request =
      Request(Slots(1, "{type: core, count: {min: 2, max: 8, operator: \"*\", operand: 2}}"));
  EXPECT_EQ(Held(Match(1, request)).size(), 4u);
  EXPECT_EQ(Held(Match(2, request)).size(), 2u);
  EXPECT_EQ(Match(3, request).status, MatchStatus::kBusy);
}

TEST_F(GeneralEngineTest, ConstraintsAndStatus) {
  Make({{1}, {1}, {1}}, "low");
  ASSERT_TRUE(engine_->SetProperty("/cluster0/rack0/node1", "ssd", "").ok());
  const JobRequest ssd =
      Request(Slots(1, Some("core", 1)), "{duration: 1, constraints: {properties: [\"ssd\"]}}");
  const JobRequest other =
      Request(Slots(1, Some("core", 1)), "{duration: 1, constraints: {properties: [\"^ssd\"]}}");
  const JobRequest rank =
      Request(Slots(1, Some("core", 1)), "{duration: 1, constraints: {ranks: [\"2\"]}}");
  ASSERT_TRUE(engine_->SetUp("/cluster0/rack0/node0", false).ok());
  EXPECT_THAT(Held(Match(1, other)), ElementsAre("/cluster0/rack1/node2/core0"));
  EXPECT_THAT(Held(Match(2, ssd)), ElementsAre("/cluster0/rack0/node1/core0"));
  EXPECT_EQ(Match(3, ssd).status, MatchStatus::kBusy);
  EXPECT_EQ(Match(3, rank).status, MatchStatus::kBusy);
  ASSERT_TRUE(engine_->SetUp("/cluster0/rack0/node0", true).ok());
  EXPECT_THAT(Held(Match(3, other)), ElementsAre("/cluster0/rack0/node0/core0"));
  EXPECT_TRUE(absl::IsNotFound(engine_->SetUp("/cluster0/node9", true)));
}

TEST_F(GeneralEngineTest, GivesPartsBack) {
  Make({{2}, {2}}, "low");
  ASSERT_EQ(Match(1, Request(Slots(4, Some("core", 1)))).status, MatchStatus::kAllocated);
  const auto at = [this](const std::string& path) { return *engine_->graph().FindPath(path); };
  const auto part = engine_->CancelPart(
      1, {at("/cluster0/rack0/node0/core0"), at("/cluster0/rack0/node0/core1")});
  ASSERT_TRUE(part.ok()) << part.status();
  EXPECT_FALSE(*part);
  EXPECT_THAT(Held(Match(2, Request(Slots(2, Some("core", 1))))),
              ElementsAre("/cluster0/rack0/node0/core0", "/cluster0/rack0/node0/core1"));
  EXPECT_THAT(Message(engine_->CancelPart(1, {at("/cluster0/rack0/node0/core0")}).status()),
              HasSubstr("job 1 does not hold \"/cluster0/rack0/node0/core0\""));
  const auto rest = engine_->CancelPart(
      1, {at("/cluster0/rack0/node1/core0"), at("/cluster0/rack0/node1/core1")});
  ASSERT_TRUE(rest.ok()) << rest.status();
  EXPECT_TRUE(*rest);
  EXPECT_EQ(engine_->Find(1), nullptr);
  EXPECT_FALSE(engine_->Cancel(1));
}

TEST_F(GeneralEngineTest, GrowsAndShrinks) {
  Make({{2}, {2}}, "low", "ALL:core,ALL:node");
  const JobRequest three =
      Request("[{type: node, count: 3, with: " + Slots(1, Some("core", 2)) + "}]");
  const JobRequest two =
      Request("[{type: node, count: 2, with: " + Slots(1, Some("core", 2)) + "}]");
  const JobRequest gpu = Request(Slots(1, Some("gpu", 1)));
  EXPECT_EQ(Match(1, three).status, MatchStatus::kUnsatisfiable);
  EXPECT_EQ(Match(1, gpu).status, MatchStatus::kUnsatisfiable);
  // A third node, in a rack of its own, with the first gpu.
  ASSERT_TRUE(engine_->AddSubgraph(MakeCluster({{2}, {2}, {2, 1}})).ok());
  EXPECT_EQ(Match(1, gpu).status, MatchStatus::kAllocated);
  EXPECT_EQ(Match(2, three).status, MatchStatus::kAllocated);
  EXPECT_EQ(Match(3, two, MatchOperation::kAllocateOrElseReserve).holding.at_s, 10);

  const auto losers = engine_->RemoveSubgraph("/cluster0/rack1/node2");
  ASSERT_TRUE(losers.ok()) << losers.status();
  EXPECT_THAT(*losers, ElementsAre(1, 2));
  EXPECT_EQ(engine_->Find(1), nullptr);
  ASSERT_NE(engine_->Find(2), nullptr);
  EXPECT_TRUE(engine_->Cancel(2));
  EXPECT_EQ(Match(4, three).status, MatchStatus::kUnsatisfiable);
  EXPECT_EQ(Match(4, gpu).status, MatchStatus::kUnsatisfiable);
  EXPECT_EQ(Match(4, two).status, MatchStatus::kAllocated);  // until 10, when job 3 begins
  EXPECT_EQ(Match(5, two).status, MatchStatus::kBusy);

  EXPECT_TRUE(absl::IsNotFound(engine_->RemoveSubgraph("/cluster0/rack1/node2").status()));
  EXPECT_TRUE(absl::IsInvalidArgument(engine_->RemoveSubgraph("/cluster0").status()));
  GraphBuilder other;
  const VertexId cluster = other.Add("cluster", nullptr);
  const VertexId rack = other.Add("rack", &cluster);
  other.Add("node", &rack, /*size=*/2);
  EXPECT_THAT(Message(engine_->AddSubgraph(other.Take())),
              HasSubstr("\"/cluster0/rack0/node0\" is in the graph with another type"));
}

TEST_F(GeneralEngineTest, FindsWhatIsHeld) {
  Make({{2}, {2}}, "low");
  ASSERT_EQ(Match(1, Request(Slots(1, Some("core", 1)))).status, MatchStatus::kAllocated);
  const auto find = [this](const std::string& text) {
    std::vector<std::string> paths;
    for (const VertexId v : engine_->FindVertices(*FindCriteria::Parse(text))) {
      paths.emplace_back(engine_->graph().PathOf(v));
    }
    return paths;
  };
  EXPECT_THAT(
      find("sched-now=allocated"),
      ElementsAre(
          "/cluster0/rack0/node0/core0", "/cluster0/rack0/node0", "/cluster0/rack0", "/cluster0"));
  EXPECT_THAT(find("jobid-alloc=2"), IsEmpty());
  EXPECT_THAT(find("names=node1"),
              ElementsAre("/cluster0/rack0/node1", "/cluster0/rack0", "/cluster0"));
}

TEST_F(GeneralEngineTest, FlexibleSlotsAreAlternatives) {
  Make({{3, 1}}, "low", "ALL:core", "flexible");
  const JobRequest request = Request(
      "[{type: node, count: 1, with: ["
      "{type: slot, count: 1, label: a, with: [{type: core, count: 3}]},"
      "{type: slot, count: 1, label: b, with: [{type: core, count: 1}, {type: gpu, count: 1}]}]}]");
  // Either fits; one is made: the first, of three cores.
  EXPECT_THAT(Held(Match(1, request)),
              ElementsAre("/cluster0/rack0/node0/core0",
                          "/cluster0/rack0/node0/core1",
                          "/cluster0/rack0/node0/core2"));
}

TEST_F(GeneralEngineTest, RefusesWhatItDoesNotKnow) {
  const auto make = [](GeneralEngine::Options options) {
    return Message(GeneralEngine::Make(MakeCluster({{1}}), options).status());
  };
  EXPECT_THAT(make({.policy = "best"}), HasSubstr("\"best\" is neither one of first"));
  EXPECT_THAT(make({.policy = "policy=up"}), HasSubstr("policy must be high or low, is \"up\""));
  EXPECT_THAT(make({.policy = "node_centric=true"}), HasSubstr("need policy=high or policy=low"));
  EXPECT_THAT(make({.prune_filters = "core"}), HasSubstr("\"core\" must be anchor:type"));
  EXPECT_THAT(make({.traverser = "fast"}), HasSubstr("simple or flexible, is \"fast\""));
}

// Cores of one node in several groups.
TEST_F(GeneralEngineTest, NodesMayHaveMoreCoresThanAWordHasBits) {
  for (const std::string policy : {"low", "high", "first", "hinodex"}) {
    std::vector<Holding> answers;
    for (const bool indexes : {true, false}) {
      auto engine =
          GeneralEngine::Make(MakeCluster({{150}, {150}}),
                              {.policy = policy, .prune_filters = "ALL:core", .indexes = indexes});
      ASSERT_TRUE(engine.ok());
      for (JobNumber job = 1; job <= 3; ++job) {
        const auto answer = (*engine)->Match(
            MatchOperation::kAllocate,
            job,
            Request("[{type: node, count: 1, with: " + Slots(1, Some("core", 70)) + "}]"));
        answers.push_back(answer->holding);
      }
    }
    EXPECT_FALSE(answers[0].vertices.empty()) << policy;
    for (size_t i = 0; i < 3; ++i) EXPECT_EQ(answers[i], answers[i + 3]) << policy << " " << i;
  }
}

TEST_F(GeneralEngineTest, LeavesThatAreHeldMayGetChildren) {
  auto engine = GeneralEngine::Make(MakeCluster({{4}}),
                                    {.policy = "low", .prune_filters = "ALL:core,ALL:pu"});
  ASSERT_TRUE(engine.ok());
  const uint64_t empty = (*engine)->Fingerprint();
  const auto held =
      (*engine)->Match(MatchOperation::kAllocate, 1, Request(Slots(1, Some("core", 3))));
  ASSERT_EQ(held->status, MatchStatus::kAllocated);
  const VertexId core = *(*engine)->graph().FindPath("/cluster0/rack0/node0/core0");
  Vertex pu;
  pu.type = (*engine)->InternType("pu");
  pu.basename = "pu";
  pu.name = "pu0";
  pu.uniq_id = 1000;
  pu.paths.emplace_back(ResourceGraph::kContainment, "/cluster0/rack0/node0/core0/pu0");
  ASSERT_TRUE((*engine)->AddVertex(std::move(pu), core).ok());
  EXPECT_TRUE((*engine)->Cancel(1));
  EXPECT_NE((*engine)->Fingerprint(), empty);
  EXPECT_EQ(
      (*engine)->Match(MatchOperation::kAllocate, 2, Request(Slots(1, Some("core", 4))))->status,
      MatchStatus::kAllocated);
}

TEST_F(GeneralEngineTest, WhatIsDivisibleIsTakenInAmounts) {
  Make({{.cores = 1, .gpus = 0, .memory = {}, .millicores = 2500}}, "low");
  const JobRequest two = Request(Slots(2, Some("cpu", 900)));
  const Holding holding = Match(1, two).holding;
  ASSERT_EQ(holding.vertices.size(), 4u);
  EXPECT_EQ(engine_->graph().TypeName((*holding.vertices.begin()).vertex), "cpu");
  EXPECT_EQ((*holding.vertices.begin()).amount, 1800);
  EXPECT_EQ(Match(2, Request(Slots(1, Some("cpu", 701)))).status, MatchStatus::kBusy);
  EXPECT_EQ(Match(2, Request(Slots(1, Some("cpu", 700)))).status, MatchStatus::kAllocated);
  EXPECT_EQ(Match(3, Request(Slots(1, Some("cpu", 2501)))).status, MatchStatus::kUnsatisfiable);
  EXPECT_TRUE(engine_->Cancel(1));
  EXPECT_EQ(Match(3, two).status, MatchStatus::kAllocated);
}

// What a job holds is given back as it was taken, also when the graph sums up more types by now.
TEST_F(GeneralEngineTest, MoreMayBeSummedUpWhileAJobRuns) {
  Make({{2}, {2}}, "low", "ALL:core,ALL:gpu");
  ASSERT_EQ(Match(1, Request(Slots(3, Some("core", 1)))).status, MatchStatus::kAllocated);
  ASSERT_TRUE(engine_->AddSubgraph(MakeCluster({{2}, {2}, {2, 1}})).ok());
  EXPECT_TRUE(engine_->Cancel(1));
  EXPECT_EQ(Match(2, Request(Slots(1, Some("gpu", 1)))).status, MatchStatus::kAllocated);
  EXPECT_EQ(Match(3, Request(Slots(6, Some("core", 1)))).status, MatchStatus::kAllocated);
  EXPECT_EQ(Match(4, Request(Slots(1, Some("core", 1)))).status, MatchStatus::kBusy);
}

// One vertex that has less than is held of it hides nothing of what others have.
TEST_F(GeneralEngineTest, AnOverheldVertexTakesNothingFromOthers) {
  Make({{.cores = 1, .gpus = 0, .memory = {}, .millicores = 4000},
        {.cores = 1, .gpus = 0, .memory = {}, .millicores = 1000}},
       "low",
       "ALL:cpu");
  ASSERT_EQ(Match(1, Request(Slots(1, Some("cpu", 4000)))).status, MatchStatus::kAllocated);
  engine_->Resize(*engine_->graph().FindPath("/cluster0/rack0/node0/cpu0"), 1000);
  EXPECT_THAT(Held(Match(2, Request(Slots(1, Some("cpu", 500))))),
              ElementsAre("/cluster0/rack0/node1/cpu0"));
  EXPECT_TRUE(engine_->Cancel(1));
  EXPECT_THAT(Held(Match(3, Request(Slots(1, Some("cpu", 1000))))),
              ElementsAre("/cluster0/rack0/node0/cpu0"));
}

TEST_F(GeneralEngineTest, HugeCountsAreOnlyTooMany) {
  Make({{2}}, "low");
  const std::string huge = "4294967295";
  const JobRequest request =
      Request("[{type: rack, count: " + huge + ", with: [{type: node, count: " + huge +
              ", with: [{type: slot, label: a, count: " + huge +
              ", with: [{type: core, count: " + huge + "}]}]}]}]");
  EXPECT_EQ(Match(1, request).status, MatchStatus::kUnsatisfiable);
}

TEST_F(GeneralEngineTest, RestoreWantsATime) {
  Make({{2}}, "low");
  Holding holding = Match(1, Request(Slots(1, Some("core", 1)))).holding;
  EXPECT_TRUE(engine_->Cancel(1));
  EXPECT_TRUE(engine_->Restore(1, holding).ok());
  holding.at_s = -1;
  EXPECT_TRUE(absl::IsInvalidArgument(engine_->Restore(2, holding)));
  holding = Holding();
  EXPECT_TRUE(absl::IsInvalidArgument(engine_->Restore(2, holding)));
}

TEST_F(GeneralEngineTest, AJobHoldsOnce) {
  Make({{2}}, "low");
  const JobRequest one = Request(Slots(1, Some("core", 1)));
  Match(1, one);
  EXPECT_TRUE(
      absl::IsFailedPrecondition(engine_->Match(MatchOperation::kAllocate, 1, one).status()));
}

}  // namespace
}  // namespace fluxqueue::graph
