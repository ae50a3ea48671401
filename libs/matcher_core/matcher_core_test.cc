#include "libs/matcher_core/matcher_core.h"

#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "libs/base/status_macros.h"
#include "libs/matcher_core/codec.h"
#include "libs/matcher_core/core_fixture.h"
#include "libs/matcher_core/pool_config.h"
#include "libs/matcher_core/test_messages.h"
#include "libs/model/rules.h"

namespace fluxqueue::matcher_core {
namespace {

using events::v1::CycleAnswered;
using events::v1::InventoryChanged;
using events::v1::Outcome;
using ::testing::HasSubstr;

TEST_F(MatcherCoreTest, AllocatesAndSaysWhere) {
  Feed(Upserted(MakeNode("a", 4000)));
  Feed(Synced());
  Feed(Submitted("job", 2, 1000));
  const CycleAnswered answer = Ask(Cycle(1, {"job"}));
  EXPECT_EQ(said_[0].pool(), "default");
  EXPECT_EQ(said_[0].time_ms(), 5000);
  ASSERT_EQ(answer.outcomes_size(), 1);
  EXPECT_EQ(answer.outcomes(0).kind(), Outcome::KIND_ALLOCATED);
  EXPECT_EQ(answer.outcomes(0).at_s(), 101);

  const Changes changes = core_.TakeChanges();
  ASSERT_EQ(changes.allocations.size(), 1u);
  events::v1::Placement placement;
  ASSERT_TRUE(placement.ParseFromString(changes.allocations[0].placement));
  EXPECT_EQ(placement.slots_size(), 2);
  EXPECT_EQ(placement.slots(1).node(), "a");
  EXPECT_EQ(placement.duration_s(), 60);
  EXPECT_EQ(PlacementHash(placement), answer.outcomes(0).placement_hash());
  EXPECT_EQ(changes.answers.size(), 1u);
  EXPECT_EQ(changes.specs.size(), 1u);
  EXPECT_EQ(changes.nodes.size(), 1u);
}

TEST_F(MatcherCoreTest, TellsOfEachCandidateAsItHasItsOutcome) {
  std::vector<std::string> tried;
  core_.OnTried([&tried](const Outcome& outcome) {
    tried.push_back(outcome.job_id() + " " + Outcome::Kind_Name(outcome.kind()));
  });
  Feed(Upserted(MakeNode("a", 1000)));
  Feed(Synced());
  Feed(Submitted("x", 1, 1000));
  Feed(Submitted("y", 1, 1000));
  const auto both = ::testing::ElementsAre("x KIND_ALLOCATED", "y KIND_BUSY");
  Ask(Cycle(1, {"x", "y"}));
  EXPECT_THAT(tried, both);
  Ask(Cycle(1, {"x", "y"}));  // the stored answer
  EXPECT_THAT(tried, both);
}

TEST_F(MatcherCoreTest, AClaimIsMatchedLikeAnyJob) {
  Feed(Upserted(MakeNode("a", 4000)));
  Feed(Synced());
  Feed(Claimed("claim", 2, JobspecText(2, 1500)));
  Feed(CancelCommand("claim"));  // the queue's business
  Feed(Submitted("job", 1, 2000));
  const CycleAnswered answer = Ask(Cycle(1, {"claim", "job"}));
  ASSERT_EQ(answer.outcomes_size(), 2);
  EXPECT_EQ(answer.outcomes(0).kind(), Outcome::KIND_ALLOCATED);
  EXPECT_EQ(answer.outcomes(1).kind(), Outcome::KIND_BUSY);
  EXPECT_EQ(core_.jobs(), 2U);
  EXPECT_FALSE(Give(Release("claim", {}, /*ended=*/true)).nothing_held());
  EXPECT_EQ(core_.jobs(), 1U);
}

TEST_F(MatcherCoreTest, ARepeatedCycleOrAnOlderOneGetsTheStoredAnswer) {
  Feed(Upserted(MakeNode("a", 1000)));
  Feed(Submitted("x", 1, 1000));
  Feed(Submitted("y", 1, 1000));
  const std::string first = Ask(Cycle(4, {"x"})).SerializeAsString();
  // The same id with other candidates is still the same cycle.
  EXPECT_EQ(Ask(Cycle(4, {"y"})).SerializeAsString(), first);
  // The queue's table went back, and the log with what it had asked since is lost: it learns how
  // far it was.
  EXPECT_EQ(Ask(Cycle(3, {"y"})).SerializeAsString(), first);
  EXPECT_TRUE(absl::IsInvalidArgument(Handle(Cycle(0, {"y"}))));
}

TEST_F(MatcherCoreTest, HeldKeyIsAnsweredWithTheFirstAnswer) {
  Feed(Upserted(MakeNode("a", 4000)));
  Feed(Submitted("x", 2, 1000));
  const Outcome first = Ask(Cycle(1, {"x"})).outcomes(0);
  Give(Release("x", {0}));
  const Outcome second = Ask(Cycle(2, {"x"})).outcomes(0);
  EXPECT_EQ(second.SerializeAsString(), first.SerializeAsString());
}

TEST_F(MatcherCoreTest, WhatIsWithdrawnAndHoldsNothingIsForgotten) {
  Envelope withdrawn;
  withdrawn.mutable_job_withdrawn()->set_job_id("x");
  Feed(Upserted(MakeNode("a", 1000)));
  Feed(Submitted("x", 1, 1000));
  Feed(withdrawn);
  EXPECT_EQ(Ask(Cycle(1, {"x"})).outcomes(0).kind(), Outcome::KIND_INVALID);
  Feed(Submitted("x", 1, 1000));
  EXPECT_EQ(Ask(Cycle(2, {"x"})).outcomes(0).kind(), Outcome::KIND_ALLOCATED);
  Feed(withdrawn);
  EXPECT_EQ(Ask(Cycle(3, {"x"})).outcomes(0).kind(), Outcome::KIND_ALLOCATED);
  // By older rules only the queue's word counts.
  Envelope configured = Configured("");
  configured.mutable_pool_configured()->set_rules(model::kForgetsWithdrawn - 1);
  Feed(configured);
  Feed(Submitted("y", 1, 1000));
  withdrawn.mutable_job_withdrawn()->set_job_id("y");
  Feed(withdrawn);
  EXPECT_EQ(Ask(Cycle(4, {"y"})).outcomes(0).kind(), Outcome::KIND_BUSY);
}

TEST_F(MatcherCoreTest, WhatIsOverIsNotKeptForAnUpdateThatComesLate) {
  Feed(Upserted(MakeNode("a", 1000)));
  Feed(Submitted("x", 1, 1000));
  Feed(Release("x", {}, /*ended=*/true));
  Feed(Updated("x", 2, 1, 1000));
  EXPECT_EQ(Ask(Cycle(1, {"x"})).outcomes(0).kind(), Outcome::KIND_INVALID);
}

TEST_F(MatcherCoreTest, StopsBehindTheFirstThatIsBusy) {
  Feed(Upserted(MakeNode("a", 4000)));
  Feed(Synced());
  Feed(Submitted("half", 1, 2000));
  Feed(Submitted("whole", 1, 4000));
  Feed(Submitted("never", 1, 5000));
  Feed(Submitted("bad", 1, "{"));
  const CycleAnswered strict = Ask(Cycle(1, {"never", "bad", "half", "whole", "half"}, true));
  ASSERT_EQ(strict.outcomes_size(), 4);
  EXPECT_EQ(strict.outcomes(0).kind(), Outcome::KIND_UNSATISFIABLE);
  EXPECT_EQ(strict.outcomes(1).kind(), Outcome::KIND_INVALID);
  EXPECT_EQ(strict.outcomes(2).kind(), Outcome::KIND_ALLOCATED);
  EXPECT_EQ(strict.outcomes(3).kind(), Outcome::KIND_BUSY);
  EXPECT_THAT(strict.outcomes(3).reason(), HasSubstr("cpu: 0 of 1 slots fit now"));
  const CycleAnswered all = Ask(Cycle(2, {"whole", "half"}, false));
  EXPECT_EQ(all.outcomes_size(), 2);
}

TEST_F(MatcherCoreTest, ARefusedShapeIsNotTriedAgain) {
  Feed(Upserted(MakeNode("a", 4000)));
  Feed(Synced());
  for (const char* job : {"x", "y", "z"}) Feed(Submitted(job, 1, job[0] == 'y' ? 1000 : 4000));
  // x takes nothing; y takes a part; z has x's shape and gets x's answer.
  Feed(Submitted("w", 1, 500));
  ASSERT_EQ(Ask(Cycle(1, {"w"})).outcomes(0).kind(), Outcome::KIND_ALLOCATED);
  const CycleAnswered answer = Ask(Cycle(2, {"x", "y", "z"}));
  EXPECT_EQ(answer.outcomes(1).kind(), Outcome::KIND_ALLOCATED);
  EXPECT_EQ(answer.outcomes(2).reason(), answer.outcomes(0).reason());
  EXPECT_THAT(answer.outcomes(2).reason(), HasSubstr("the best node has 3.5 free"));
}

TEST_F(MatcherCoreTest, NothingIsUnsatisfiableBeforeTheInventoryIsKnown) {
  Feed(Submitted("x", 1, 9000));
  Outcome outcome = Ask(Cycle(1, {"x"})).outcomes(0);
  EXPECT_EQ(outcome.kind(), Outcome::KIND_BUSY);
  EXPECT_EQ(outcome.reason(), "pool default has no nodes yet");
  Feed(Upserted(MakeNode("a", 4000)));
  outcome = Ask(Cycle(2, {"x"})).outcomes(0);
  EXPECT_EQ(outcome.kind(), Outcome::KIND_BUSY);
  EXPECT_THAT(outcome.reason(), HasSubstr("not all nodes of pool default are known yet"));
  const InventoryChanged* synced = Inventory(Synced());
  ASSERT_NE(synced, nullptr);
  EXPECT_TRUE(synced->synced());
  EXPECT_TRUE(synced->grew());
  EXPECT_EQ(Inventory(Synced()), nullptr);
  outcome = Ask(Cycle(3, {"x"})).outcomes(0);
  EXPECT_EQ(outcome.kind(), Outcome::KIND_UNSATISFIABLE);
  EXPECT_EQ(outcome.reason(), "cpu: a slot needs 9, the largest node has 4");
  Feed(Gone("a"));
  outcome = Ask(Cycle(4, {"x"})).outcomes(0);
  EXPECT_EQ(outcome.kind(), Outcome::KIND_BUSY);
  EXPECT_EQ(outcome.reason(), "pool default has no nodes");
}

TEST_F(MatcherCoreTest, BadJobspecsAreInvalidOutcomesNotPoison) {
  Feed(Upserted(MakeNode("a", 4000)));
  Feed(Submitted("bad", 1, R"({"version":1,"resources":[]})"));
  Feed(Submitted("two", 2, JobspecText(3, 1000)));
  const CycleAnswered answer = Ask(Cycle(1, {"bad", "two", "unknown"}));
  for (const Outcome& outcome : answer.outcomes()) EXPECT_EQ(outcome.kind(), Outcome::KIND_INVALID);
  EXPECT_THAT(answer.outcomes(0).reason(), HasSubstr("resources: must be a list of slots"));
  EXPECT_THAT(answer.outcomes(1).reason(), HasSubstr("asks for 3 slots"));
  EXPECT_THAT(answer.outcomes(2).reason(), HasSubstr("no jobspec of part 0"));
}

TEST_F(MatcherCoreTest, LevelsAreThePoolsAndSlotsMayDiffer) {
  EXPECT_THAT(Message(Handle(Configured("first", {"zone", "zone"}))),
              HasSubstr("pool default: levels: \"zone\": the name is another level's"));
  Feed(Configured("first", {"zone"}));
  for (const auto& [name, zone] : {std::pair("n0", "a"), std::pair("n1", "b")}) {
    events::v1::Node node = MakeNode(name, 2000);
    auto* label = node.add_labels();
    label->set_key("zone");
    label->set_value(zone);
    Feed(Upserted(node));
  }
  Feed(Submitted("wide", 3, GroupsText(3, 1000)));
  Feed(Submitted("close", 2, GroupsText(2, 1000)));
  Feed(Synced());
  const auto answer = Ask(Cycle(1, {"wide", "close"}));
  EXPECT_EQ(answer.outcomes(0).kind(), Outcome::KIND_UNSATISFIABLE) << answer.outcomes(0).reason();
  ASSERT_EQ(answer.outcomes(1).kind(), Outcome::KIND_ALLOCATED) << answer.outcomes(1).reason();
  const auto rows = core_.TakeChanges().allocations;
  ASSERT_EQ(rows.size(), 1u);
  events::v1::Placement placement;
  ASSERT_TRUE(placement.ParseFromString(rows[0].placement));
  ASSERT_EQ(placement.groups_size(), 2);
  EXPECT_EQ(placement.groups(0).requests(0).amount(), 500);
  EXPECT_EQ(placement.slots(0).node(), placement.slots(1).node());
}

TEST_F(MatcherCoreTest, ANewerRevisionReplacesTheJobspec) {
  Feed(Upserted(MakeNode("a", 4000)));
  Feed(Synced());
  Feed(Submitted("x", 1, 9000));
  Feed(Updated("x", 2, 1, 1000));
  Feed(Updated("x", 1, 1, 9000));  // late
  EXPECT_EQ(Ask(Cycle(1, {"x"})).outcomes(0).kind(), Outcome::KIND_ALLOCATED);
}

TEST_F(MatcherCoreTest, Releases) {
  Feed(Upserted(MakeNode("a", 4000)));
  Feed(Submitted("x", 4, 1000));
  Feed(Submitted("y", 1, 1000));
  ASSERT_EQ(Ask(Cycle(1, {"x"})).outcomes(0).kind(), Outcome::KIND_ALLOCATED);
  core_.Commit();

  EXPECT_FALSE(Give(Release("x", {3})).nothing_held());
  EXPECT_TRUE(Give(Release("x", {3})).nothing_held());
  EXPECT_EQ(said_[0].released().slots(0), 3u);
  EXPECT_EQ(core_.TakeChanges().allocations.size(), 1u);
  EXPECT_EQ(Ask(Cycle(2, {"y"})).outcomes(0).kind(), Outcome::KIND_ALLOCATED);
  core_.Commit();

  EXPECT_FALSE(Give(Release("x", {}, true)).nothing_held());
  EXPECT_TRUE(Give(Release("x", {}, true)).nothing_held());
  const Changes changes = core_.TakeChanges();
  EXPECT_EQ(changes.released.size(), 1u);
  EXPECT_EQ(changes.specs_dropped.size(), 1u);
  EXPECT_EQ(core_.jobs(), 1u);
  EXPECT_EQ(core_.engine().Usage()[0].held, 1000);
  // Handed in again it is as new, whatever its revision.
  Feed(Submitted("x", 1, 1000));
  EXPECT_EQ(core_.jobs(), 2u);
}

// By a release that is said again what a later attempt holds is not given back.
TEST_F(MatcherCoreTest, AReleaseOfAnEndedAttemptLeavesALaterOne) {
  Feed(Upserted(MakeNode("a", 4000)));
  Feed(Submitted("x", 1, 1000));
  Envelope cycle = Cycle(1, {"x"});
  cycle.mutable_cycle_requested()->mutable_candidates(0)->set_attempt(2);
  ASSERT_EQ(Ask(cycle).outcomes(0).kind(), Outcome::KIND_ALLOCATED);
  core_.Commit();
  EXPECT_TRUE(Give(Release("x", {}, true)).nothing_held());
  EXPECT_EQ(core_.engine().Usage()[0].held, 1000);
}

// The release of the first was lost: it is one when the second is to be placed, on the same node.
TEST_F(MatcherCoreTest, AnAttemptGivesBackWhatAnEarlierOneHolds) {
  Feed(Upserted(MakeNode("a", 4000)));
  Feed(Submitted("x", 1, 4000));
  ASSERT_EQ(Ask(Cycle(1, {"x"})).outcomes(0).kind(), Outcome::KIND_ALLOCATED);
  core_.Commit();
  core_.TakeChanges();
  Envelope again = Cycle(2, {"x"});
  again.mutable_cycle_requested()->mutable_candidates(0)->set_attempt(2);
  EXPECT_EQ(Ask(again).outcomes(0).kind(), Outcome::KIND_ALLOCATED);
  EXPECT_EQ(core_.engine().KeysOf("x"), (std::vector<graph::AllocationKey>{{"x", 2, 0}}));
  const Changes changes = core_.TakeChanges();
  ASSERT_EQ(changes.released.size(), 1u);
  EXPECT_EQ(changes.released[0].attempt, 1u);
}

TEST_F(MatcherCoreTest, MadeAndReleasedInOneBatchIsOneReleasedRow) {
  Feed(Upserted(MakeNode("a", 4000)));
  Feed(Submitted("x", 1, 1000));
  Ask(Cycle(1, {"x"}));
  Give(Release("x"));
  const Changes changes = core_.TakeChanges();
  EXPECT_TRUE(changes.released.empty());
  ASSERT_EQ(changes.allocations.size(), 1u);
  EXPECT_TRUE(changes.allocations[0].released);
}

TEST_F(MatcherCoreTest, InventoryIsSaidWhenItMatters) {
  const InventoryChanged* changed = Inventory(Upserted(MakeNode("a", 4000, 5)));
  ASSERT_NE(changed, nullptr);
  EXPECT_EQ(changed->node(), "a");
  EXPECT_EQ(changed->nodes(), 1u);
  EXPECT_EQ(changed->nodes_up(), 1u);
  EXPECT_TRUE(changed->grew());
  EXPECT_FALSE(changed->synced());
  EXPECT_EQ(Inventory(Upserted(MakeNode("a", 4000, 5))), nullptr);
  EXPECT_EQ(Inventory(Upserted(MakeNode("a", 4000, 6))), nullptr);  // a heartbeat
  EXPECT_EQ(Inventory(Upserted(MakeNode("a", 3000, 7))), nullptr);  // less room helps nobody
  EXPECT_EQ(Inventory(Upserted(MakeNode("a", 9000, 6))), nullptr);  // late
  EXPECT_EQ(core_.engine().Usage()[0].total, 3000);
  EXPECT_TRUE(Inventory(Upserted(MakeNode("a", 3500, 8)))->grew());
  events::v1::Node cordoned = MakeNode("a", 3500, 9);
  cordoned.set_unschedulable(true);
  changed = Inventory(Upserted(cordoned));
  ASSERT_NE(changed, nullptr);
  EXPECT_FALSE(changed->grew());
  EXPECT_EQ(changed->nodes_up(), 0u);
}

TEST_F(MatcherCoreTest, ANodeThatGoesBreaksWhatHeldIt) {
  Feed(Upserted(MakeNode("a", 1000)));
  Feed(Upserted(MakeNode("b", 1000)));
  Feed(Submitted("x", 2, 1000));
  ASSERT_EQ(Ask(Cycle(1, {"x"})).outcomes(0).kind(), Outcome::KIND_ALLOCATED);
  EXPECT_EQ(Inventory(Gone("a", "another")), nullptr);
  const InventoryChanged* gone = Inventory(Gone("a"));
  ASSERT_NE(gone, nullptr);
  ASSERT_EQ(gone->broken_size(), 1);
  EXPECT_EQ(gone->broken(0).job_id(), "x");
  EXPECT_EQ(gone->nodes(), 1u);
  EXPECT_EQ(Inventory(Gone("a")), nullptr);
  EXPECT_FALSE(Give(Release("x")).nothing_held());
}

TEST_F(MatcherCoreTest, ANodeMadeAgainUnderItsNameIsANewOne) {
  Feed(Upserted(MakeNode("a", 1000, 7, "old")));
  Feed(Upserted(MakeNode("b", 1000, 8)));
  Feed(Submitted("x", 2, 1000));
  ASSERT_EQ(Ask(Cycle(1, {"x"})).outcomes(0).kind(), Outcome::KIND_ALLOCATED);
  const InventoryChanged* changed = Inventory(Upserted(MakeNode("a", 1000, 3, "new")));
  ASSERT_NE(changed, nullptr);
  EXPECT_EQ(changed->broken_size(), 1);
  EXPECT_TRUE(changed->grew());
  EXPECT_EQ(Inventory(Gone("a", "old")), nullptr);  // late
  // It has the last place now.
  for (const NodeRow& row : core_.TakeChanges().nodes) {
    EXPECT_EQ(row.ordinal, row.name == "a" ? 2u : 1u);
  }
}

TEST_F(MatcherCoreTest, ANodeThatComesBackKeepsItsPlace) {
  Feed(Upserted(MakeNode("a", 1000, 7)));
  Feed(Upserted(MakeNode("b", 1000, 8)));
  Feed(Gone("a"));
  EXPECT_EQ(Inventory(Upserted(MakeNode("a", 1000, 6))), nullptr);  // late
  ASSERT_NE(Inventory(Upserted(MakeNode("a", 1000, 9))), nullptr);
  EXPECT_EQ(core_.TakeChanges().nodes[0].ordinal, 0u);
}

TEST_F(MatcherCoreTest, FewGoneNodesAreRemembered) {
  Tables tables;
  for (size_t i = 0; i < kGoneNodesKept + 5; ++i) {
    Feed(Upserted(MakeNode("n" + std::to_string(i), 1)));
    Feed(Gone("n" + std::to_string(i)));
    tables.Apply(core_.TakeChanges());
    core_.Commit();
  }
  EXPECT_EQ(tables.All().nodes.size(), kGoneNodesKept);
}

TEST_F(MatcherCoreTest, Configuration) {
  Feed(Upserted(MakeNode("a", 1000)));
  Feed(Upserted(MakeNode("b", 1000)));
  Feed(Configured("lonode"));
  const uint64_t before = core_.Fingerprint();
  EXPECT_THAT(Message(Handle(Configured("best"))),
              HasSubstr("knows first, lonode, hinode, packed"));
  Envelope fluxion = Configured("first");
  fluxion.mutable_pool_configured()->set_engine("mauve");
  EXPECT_TRUE(IsPoison(Handle(fluxion)));
  // Others may have it: this replica must not go on with another one.
  fluxion.mutable_pool_configured()->set_engine("fluxion");
  EXPECT_EQ(Handle(fluxion).code(), absl::StatusCode::kInternal);
  Envelope future = Configured("first");
  future.mutable_pool_configured()->set_rules(99);
  EXPECT_TRUE(IsPoison(Handle(future)));
  EXPECT_EQ(core_.Fingerprint(), before);
  Feed(Submitted("x", 1, 500));
  Ask(Cycle(1, {"x"}));
  EXPECT_EQ(core_.engine().Find({"x", 1, 0})->slots[0].node, "a");
}

TEST(PolicyTest, PackedIsThatOfItsRules) {
  events::v1::PoolConfigured config;
  EXPECT_EQ(PolicyOf(config), "first");
  config.set_policy("packed");
  EXPECT_EQ(PolicyOf(config), "packed");
  for (uint32_t rules = 1; rules < model::kSetsNodesAside; ++rules) {
    config.set_rules(rules);
    EXPECT_EQ(PolicyOf(config), "packed-3") << rules;
  }
  config.set_rules(model::kSetsNodesAside);
  EXPECT_EQ(PolicyOf(config), "packed-4");
  config.set_rules(model::kForecastDecays);
  EXPECT_EQ(PolicyOf(config), "packed");
  config.set_policy("lonode");
  config.set_rules(1);
  EXPECT_EQ(PolicyOf(config), "lonode");
}

TEST(PoolConfigTest, PreferencesCountFromTheirRulesOn) {
  const auto jobspec = graph::ParseJobspec(
      R"({"version":1,"resources":[{"type":"slot","label":"s","count":1,
          "with":[{"type":"cpu","count":1}]}],
          "tasks":[{"command":["x"],"slot":"s","count":{"per_slot":1}}],"attributes":{"system":{
          "job":{"preferences":{"terms":[{"weight":1,"constraint":{"hostlist":["n0"]}}]}}}}})");
  ASSERT_TRUE(jobspec.ok()) << jobspec.status();
  const auto node_by = [&jobspec](uint32_t rules) {
    const auto engine = graph::MakeNativeEngine();
    for (uint64_t i = 0; i < 2; ++i) {
      graph::NodeSpec node;
      node.name = fmt::format("n{}", i);
      node.ordinal = i;
      node.resources = {{"cpu", 1000}};
      EXPECT_TRUE(engine->AddNode(std::move(node)).ok());
    }
    events::v1::PoolConfigured config;
    config.set_rules(rules);
    EXPECT_TRUE(Configure(config, engine.get()).ok());
    const auto outcome = engine->Match({.key = {"j", 1, 0}, .jobspec = *jobspec});
    return outcome.placement == nullptr ? "" : outcome.placement->slots.at(0).node;
  };
  EXPECT_EQ(node_by(model::kPrefersNodes - 1), "n1");
  EXPECT_EQ(node_by(model::kPrefersNodes), "n0");
}

TEST_F(MatcherCoreTest, PoisonChangesNothing) {
  const uint64_t before = core_.Fingerprint();
  EXPECT_TRUE(IsPoison(Handle(Submitted("", 1, 1000))));
  EXPECT_TRUE(IsPoison(Handle(Upserted(MakeNode("", 1000)))));
  EXPECT_TRUE(IsPoison(Handle(Release(""))));
  EXPECT_EQ(core_.Fingerprint(), before);
  EXPECT_TRUE(core_.TakeChanges().empty());
}

TEST_F(MatcherCoreTest, AnswersAreKeptForAWhile) {
  Tables tables;
  for (uint64_t id = 1; id <= kAnswersKept + 3; ++id) {
    Feed(Cycle(id, {}));
    if (id % 7 == 0) tables.Apply(core_.TakeChanges());
    if (id % 7 == 0) core_.Commit();
  }
  tables.Apply(core_.TakeChanges());
  EXPECT_EQ(tables.All().answers.size(), kAnswersKept);
}

TEST_F(MatcherCoreTest, RowsThatContradictEachOtherAreRefused) {
  Feed(Upserted(MakeNode("a", 4000)));
  Feed(Submitted("x", 1, 1000));
  Ask(Cycle(1, {"x"}));
  Tables tables;
  tables.Apply(core_.TakeChanges());
  const Rows good = tables.All();
  EXPECT_TRUE(MatcherCore("default").Restore(good).ok());

  const auto refused = [](const Rows& rows) {
    return MatcherCore("default").Restore(rows).code() == absl::StatusCode::kDataLoss;
  };
  Rows bad = good;
  bad.nodes.clear();
  EXPECT_TRUE(refused(bad));
  bad = good;
  bad.answers.clear();
  EXPECT_TRUE(refused(bad));
  bad = good;
  bad.allocations[0].placement_hash ^= 1;
  EXPECT_TRUE(refused(bad));
  bad = good;
  bad.pool.reset();
  EXPECT_TRUE(refused(bad));
}

}  // namespace
}  // namespace fluxqueue::matcher_core
