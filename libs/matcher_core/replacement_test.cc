// A job that runs has others in place of slots that it has lost.
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "libs/matcher_core/codec.h"
#include "libs/matcher_core/core_fixture.h"
#include "libs/matcher_core/test_messages.h"

namespace fluxqueue::matcher_core {
namespace {

using events::v1::CycleAnswered;
using events::v1::Outcome;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

// Nodes of one core in racks of two: r0 has n0 and n1, r1 has n2 and n3 …
class ReplacementTest : public MatcherCoreTest {
 protected:
  void Begin(int nodes, const std::vector<std::string>& levels = {}) {
    Feed(Configured("lonode", levels));
    for (int i = 0; i < nodes; ++i) Feed(Upserted(Node(i)));
    Feed(Synced());
  }
  static events::v1::Node Node(int i, bool open = true, int64_t version = 1) {
    events::v1::Node node = MakeNode("n" + std::to_string(i), 1000, version);
    node.set_unschedulable(!open);
    events::v1::Label* rack = node.add_labels();
    rack->set_key("rack");
    rack->set_value("r" + std::to_string(i / 2));
    return node;
  }
  // One whose slots, of one core each, are to be in one rack, or rather are.
  static std::string InOneRack(uint32_t slots, bool required) {
    const std::string of = R"({"type":"slot","count":)" + std::to_string(slots) +
                           R"(,"label":"pod","with":[{"type":"cpu","count":1000}]})";
    const std::string tasks =
        R"("tasks":[{"command":["pod"],"slot":"pod","count":{"per_slot":1}}])";
    if (required) {
      return R"({"version":1,"resources":[{"type":"rack","count":1,"with":[)" + of + "]}]," +
             tasks + "}";
    }
    return R"({"version":1,"resources":[)" + of + "]," + tasks +
           R"(,"attributes":{"system":{"topology":{"preferred":"rack"}}}})";
  }
  void Start(const std::string& job, uint32_t slots, const std::string& jobspec = "") {
    Feed(Submitted(job, slots, jobspec.empty() ? JobspecText(slots, 1000) : jobspec));
    ASSERT_EQ(Ask({{.job = job}}).outcomes(0).kind(), Outcome::KIND_ALLOCATED) << job;
  }
  CycleAnswered Ask(const std::vector<Tried>& jobs) {
    return MatcherCoreTest::Ask(Backfill(++cycle_, jobs));
  }
  static Tried Replace(const std::string& job,
                       uint32_t most,
                       const std::vector<std::string>& closed = {},
                       const std::vector<std::string>& avoided = {}) {
    return {.job = job,
            .may_reserve = false,
            .grow = true,
            .most_slots = most,
            .replace = true,
            .closed = closed,
            .avoided = avoided};
  }
  // Where its slots are; those that were given back are "-".
  std::vector<std::string> NodesOf(const std::string& job) {
    std::vector<std::string> nodes;
    for (const graph::PlacedSlot& slot : core_.engine().Find({job, 1, 0})->slots) {
      nodes.push_back(slot.released ? "-" : slot.node);
    }
    return nodes;
  }

  uint64_t cycle_ = 0;
};

TEST_F(ReplacementTest, AnotherNodeInPlaceOfTheOneThatIsClosed) {
  Begin(4);
  Start("a", 3);
  EXPECT_THAT(NodesOf("a"), ElementsAre("n0", "n1", "n2"));
  Feed(Upserted(Node(1, /*open=*/false, 2)));
  Feed(Release("a", {1}));
  const CycleAnswered answer = Ask({Replace("a", 3)});
  EXPECT_EQ(answer.outcomes(0).kind(), Outcome::KIND_ALLOCATED);
  EXPECT_EQ(answer.outcomes(0).slots(), 4U);
  EXPECT_THAT(NodesOf("a"), ElementsAre("n0", "-", "n2", "n3"));
  EXPECT_EQ(answer.outcomes(0).placement_hash(),
            PlacementHash(ToProto(*core_.engine().Find({"a", 1, 0}))));
  // Asked again, as the answer was not heard: the same, and nothing more is held.
  const uint64_t before = core_.engine().Fingerprint();
  const CycleAnswered again = Ask({Replace("a", 3)});
  EXPECT_EQ(again.outcomes(0).slots(), 4U);
  EXPECT_EQ(again.outcomes(0).placement_hash(), answer.outcomes(0).placement_hash());
  EXPECT_EQ(core_.engine().Fingerprint(), before);
}

// Its size is another since it was started.
TEST_F(ReplacementTest, WhatIsLargerGrowsBesideItsOwn) {
  Begin(6, {"rack"});
  Start("a", 1, InOneRack(1, /*required=*/true));
  Start("b", 1);
  EXPECT_THAT(NodesOf("b"), ElementsAre("n1"));
  Envelope larger = Updated("a", 2, 2, 1000);
  std::swap(*larger.mutable_job_updated()->mutable_resized(),
            *larger.mutable_job_updated()->mutable_spec());
  larger.mutable_job_updated()->clear_spec();
  larger.mutable_job_updated()->mutable_resized()->set_jobspec(InOneRack(2, /*required=*/true));
  EXPECT_EQ(Ask({{.job = "a", .grow = true}}).outcomes(0).kind(), Outcome::KIND_BUSY);
  Feed(larger);
  EXPECT_EQ(Ask({{.job = "a", .grow = true}}).outcomes(0).kind(), Outcome::KIND_BUSY)
      << "there is room in other racks only";
  Feed(Release("b", {0}));
  const CycleAnswered answer = Ask({{.job = "a", .grow = true}});
  EXPECT_EQ(answer.outcomes(0).slots(), 2U);
  EXPECT_THAT(NodesOf("a"), ElementsAre("n0", "n1"));
  EXPECT_EQ(Ask({{.job = "a", .grow = true}}).outcomes(0).kind(), Outcome::KIND_BUSY)
      << "it has all of them";
}

// The matcher has not heard that it is closed.
TEST_F(ReplacementTest, AClosedNodeIsNotTakenAndOthersMayTakeIt) {
  Begin(3);
  Start("a", 3);
  Feed(Release("a", {1}));
  Feed(Submitted("b", 1, 1000));
  const CycleAnswered answer = Ask({Replace("a", 3, {"n1"}), {.job = "b", .may_reserve = false}});
  EXPECT_EQ(answer.outcomes(0).kind(), Outcome::KIND_BUSY);
  EXPECT_EQ(answer.outcomes(1).kind(), Outcome::KIND_ALLOCATED) << "nothing keeps n1 from b";
  EXPECT_THAT(NodesOf("b"), ElementsAre("n1"));
}

TEST_F(ReplacementTest, AnAvoidedNodeIsTakenWhereNoOtherHasRoom) {
  Begin(4);
  Start("a", 3);
  Feed(Release("a", {0}));
  Ask({Replace("a", 3, {}, {"n0"})});
  EXPECT_THAT(NodesOf("a"), ElementsAre("-", "n1", "n2", "n3"));
  Feed(Release("a", {1}));
  Feed(Upserted(Node(0, /*open=*/false, 2)));
  Ask({Replace("a", 3, {}, {"n0", "n1"})});
  EXPECT_THAT(NodesOf("a"), ElementsAre("-", "-", "n2", "n3", "n1"));
}

TEST_F(ReplacementTest, GoesBeforeAllWhoWaitAndTheirReservations) {
  Begin(3);
  Start("a", 2);
  Feed(Submitted("b", 2, 1000));
  Feed(Submitted("c", 1, 1000));
  Ask({{.job = "b"}});
  Feed(Upserted(Node(0, /*open=*/false, 2)));
  Feed(Release("a", {0}));
  const CycleAnswered answer =
      Ask({Replace("a", 2), {.job = "b"}, {.job = "c", .may_reserve = false}});
  EXPECT_EQ(answer.outcomes(0).kind(), Outcome::KIND_ALLOCATED);
  EXPECT_THAT(NodesOf("a"), ElementsAre("-", "n1", "n2"));
  EXPECT_NE(answer.outcomes(1).kind(), Outcome::KIND_ALLOCATED);
}

TEST_F(ReplacementTest, WhatIsReservedBehindItIsVoidWhereItIsOfUse) {
  Begin(2);
  Feed(Submitted("a", 1, 1000));
  Feed(Submitted("other", 1, 1000));
  Ask({{.job = "a"}, {.job = "other", .duration_s = 100}});
  Feed(Submitted("b", 1, 1000));
  ASSERT_EQ(Ask({{.job = "b"}}).outcomes(0).kind(), Outcome::KIND_RESERVED);
  Feed(Release("other", {}, /*ended=*/true));
  Feed(Upserted(Node(0, /*open=*/false, 2)));
  Feed(Release("a", {0}));
  const CycleAnswered answer = Ask({Replace("a", 1), {.job = "b"}});
  EXPECT_EQ(answer.outcomes(0).kind(), Outcome::KIND_ALLOCATED);
  EXPECT_THAT(NodesOf("a"), ElementsAre("-", "n1"));
  EXPECT_EQ(answer.outcomes(1).kind(), Outcome::KIND_BUSY);
  EXPECT_EQ(answer.outcomes(1).slip().by(), "a");
}

TEST_F(ReplacementTest, OnlyBesideItsGangWhereThatIsRequired) {
  Begin(6, {"rack"});
  Start("x", 1);
  Start("a", 2, InOneRack(2, /*required=*/true));
  EXPECT_THAT(NodesOf("a"), ElementsAre("n2", "n3"));
  Feed(Upserted(Node(2, /*open=*/false, 2)));
  Feed(Release("a", {0}));
  CycleAnswered answer = Ask({Replace("a", 2)});
  EXPECT_EQ(answer.outcomes(0).kind(), Outcome::KIND_BUSY) << "n1, n4 and n5 are in other racks";
  EXPECT_THAT(answer.outcomes(0).reason(), HasSubstr("of 6 nodes 2 may be used, 1 are up"));
  Feed(Upserted(Node(2, /*open=*/true, 3)));
  answer = Ask({Replace("a", 2)});
  EXPECT_THAT(NodesOf("a"), ElementsAre("-", "n3", "n2"));
}

TEST_F(ReplacementTest, RatherBesideItsGangWhereThatIsPreferred) {
  Begin(6, {"rack"});
  Start("x", 1);
  Start("a", 1, InOneRack(1, /*required=*/false));
  Start("y", 1);
  Feed(Release("x", {}, /*ended=*/true));
  // It has n1, and y has n2: of what is free n0 is in its rack.
  ASSERT_THAT(NodesOf("a"), ElementsAre("n1"));
  Feed(Submitted("g", 2, InOneRack(2, /*required=*/false)));
  Ask({{.job = "g"}});
  ASSERT_THAT(NodesOf("g"), ElementsAre("n4", "n5"));
  Feed(Release("g", {0}));
  Ask({Replace("g", 2)});
  EXPECT_THAT(NodesOf("g"), ElementsAre("-", "n5", "n4")) << "though n0 stands before it";
  Feed(Upserted(Node(4, /*open=*/false, 2)));
  Feed(Release("g", {2}));
  Ask({Replace("g", 2)});
  EXPECT_THAT(NodesOf("g"), ElementsAre("-", "n5", "-", "n0"));
}

TEST_F(ReplacementTest, AsManyAsHaveRoom) {
  Begin(4);
  Start("a", 3);
  Feed(Release("a", {0, 1}));
  Feed(Upserted(Node(0, /*open=*/false, 2)));
  Feed(Upserted(Node(1, /*open=*/false, 2)));
  const CycleAnswered answer = Ask({Replace("a", 3)});
  EXPECT_EQ(answer.outcomes(0).slots(), 4U);
  EXPECT_THAT(NodesOf("a"), ElementsAre("-", "-", "n2", "n3"));
  const Outcome busy = Ask({Replace("a", 3)}).outcomes(0);
  EXPECT_EQ(busy.kind(), Outcome::KIND_BUSY);
  EXPECT_EQ(busy.slots(), 4U) << "the answer that gave it one may not have been heard";
  EXPECT_EQ(busy.placement_hash(), answer.outcomes(0).placement_hash());
  // A slot whose pod had succeeded is not wanted any more.
  Feed(Release("a", {2}));
  EXPECT_EQ(Ask({Replace("a", 1)}).outcomes(0).kind(), Outcome::KIND_ALLOCATED);
  EXPECT_THAT(NodesOf("a"), ElementsAre("-", "-", "-", "n3"));
}

TEST_F(ReplacementTest, AGangThatHasLostAllIsNotSplit) {
  Begin(4, {"rack"});
  Start("a", 2, InOneRack(2, /*required=*/true));
  ASSERT_THAT(NodesOf("a"), ElementsAre("n0", "n1"));
  Start("x", 1);
  ASSERT_THAT(NodesOf("x"), ElementsAre("n2"));
  Feed(Upserted(Node(1, /*open=*/false, 2)));
  Feed(Release("a", {0, 1}));
  EXPECT_EQ(Ask({Replace("a", 2)}).outcomes(0).kind(), Outcome::KIND_BUSY)
      << "n0 and n3 are in two racks";
  EXPECT_THAT(NodesOf("a"), ElementsAre("-", "-"));
  Feed(Release("x", {}, /*ended=*/true));
  EXPECT_EQ(Ask({Replace("a", 2)}).outcomes(0).kind(), Outcome::KIND_ALLOCATED);
  EXPECT_THAT(NodesOf("a"), ElementsAre("-", "-", "n2", "n3"));
}

// In the next cycle what they give back would be another's.
TEST_F(ReplacementTest, NobodyIsStoppedForRoomThatOneAheadTakes) {
  Begin(4);
  Start("a", 2);
  Start("low", 1);
  Start("high", 1);
  Feed(Upserted(Node(0, /*open=*/false, 2)));
  Feed(Release("a", {0}));
  Feed(Submitted("urgent", 1, 1000));
  const auto ask = [this](const Tried& ahead) {
    Envelope cycle = Backfill(++cycle_, {ahead, {.job = "urgent", .may_reserve = false}});
    auto* low = cycle.mutable_cycle_requested()->add_stoppable();
    low->mutable_key()->set_job_id("low");
    low->mutable_key()->set_attempt(1);
    cycle.mutable_cycle_requested()->mutable_candidates(1)->set_stoppable("\xff");
    return MatcherCoreTest::Ask(cycle);
  };
  const CycleAnswered in_vain = ask(Replace("a", 2));
  EXPECT_EQ(in_vain.outcomes(0).kind(), Outcome::KIND_BUSY);
  EXPECT_THAT(Victims(in_vain.outcomes(1)), IsEmpty());
  const CycleAnswered of_use = ask(Replace("a", 2, /*closed=*/{"n2"}));
  EXPECT_EQ(of_use.outcomes(0).kind(), Outcome::KIND_BUSY);
  EXPECT_THAT(Victims(of_use.outcomes(1)), ElementsAre("low")) << "a does not take its node";
}

TEST_F(ReplacementTest, AlsoOfOneThatRunsForLongerThanItSaid) {
  Begin(3);
  Feed(Submitted("a", 2, 1000));
  Ask({{.job = "a", .duration_s = 1}});
  cycle_ += 100;
  Feed(Upserted(Node(0, /*open=*/false, 2)));
  Feed(Release("a", {0}));
  EXPECT_EQ(Ask({Replace("a", 2)}).outcomes(0).kind(), Outcome::KIND_ALLOCATED);
  EXPECT_THAT(NodesOf("a"), ElementsAre("-", "n1", "n2"));
}

TEST_F(ReplacementTest, WhatHoldsNothingHasNothingInItsPlace) {
  Begin(2);
  Feed(Submitted("a", 1, 1000));
  CycleAnswered answer = Ask({Replace("a", 1)});
  EXPECT_EQ(answer.outcomes(0).kind(), Outcome::KIND_BUSY);
  EXPECT_THAT(answer.outcomes(0).reason(), HasSubstr("it holds nothing"));
}

TEST_F(ReplacementTest, ARestoredCoreIsTheSame) {
  Begin(4);
  Start("a", 3);
  Feed(Release("a", {1}));
  Ask({Replace("a", 3, {"n1"})});
  Tables tables;
  tables.Apply(core_.TakeChanges());
  core_.Commit();
  MatcherCore restored("default");
  ASSERT_TRUE(restored.Restore(tables.All()).ok());
  EXPECT_EQ(restored.Fingerprint(), core_.Fingerprint());
}

}  // namespace
}  // namespace fluxqueue::matcher_core
