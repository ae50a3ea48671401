// Preemption: who is named, who is stopped, and what becomes of them.
#include <gtest/gtest.h>

#include "libs/model/rules.h"
#include "libs/queue_core/testing_story.h"
#include "libs/scheduling/victims.h"

namespace fluxqueue::queue_core {
namespace {

using model::JobState;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

struct Rules {
  bool reclaim = false;
  bool by_priority = false;
  int64_t grace_ms = 0;
  int64_t guaranteed_cpu = 0;
  std::string strategy = "fcfs";
};

events::v1::Envelope QueueWith(const std::string& name, const Rules& rules) {
  events::v1::Envelope message = QueueMade(name, 0, 0, rules.strategy);
  auto* queue = message.mutable_queue_configured();
  queue->mutable_preemption()->set_reclaim(rules.reclaim);
  queue->mutable_preemption()->set_by_priority(rules.by_priority);
  queue->mutable_preemption()->set_grace_ms(rules.grace_ms);
  if (rules.guaranteed_cpu > 0) {
    events::v1::Amount* cpu = queue->add_guarantee();
    cpu->set_resource("cpu");
    cpu->set_amount(rules.guaranteed_cpu);
  }
  return message;
}

events::v1::Envelope Refused(uint64_t cycle,
                             const std::string& job,
                             const std::vector<std::string>& victims) {
  return WithVictims(Answered(cycle, {{job, 1, kBusyKind}}), victims);
}

TEST(PreemptionTest, OffUnlessTheQueueSaysSo) {
  Story story;
  story.Tell(PoolConfig(0, /*rules=*/2));
  story.Bring("low", JobState::kRunning);
  EXPECT_THAT(story.Tell(Submitted("high", {.priority = 9})),
              ElementsAre("fact high v1 Pending Queued", "cycle 2: high/1"));
}

TEST(PreemptionTest, TheVictimIsStoppedAndKeepsItsPlace) {
  Story story;
  story.Tell(PoolConfig(0, /*rules=*/2));
  story.Tell(QueueWith("default", {.by_priority = true, .grace_ms = 30'000}));
  story.Bring("low", JobState::kRunning);
  story.Tell(Submitted("later"));
  EXPECT_THAT(story.Tell(Answered(2, {{"later", 1, kBusyKind, "full"}})),
              ElementsAre("fact later v2 Pending Busy"));
  EXPECT_THAT(story.Tell(Submitted("high", {.priority = 9})),
              ElementsAre("fact high v1 Pending Queued", "cycle 3: high/1!low/1 later/1"));
  EXPECT_THAT(story.Tell(Refused(3, "high", {"low"})),
              ElementsAre("fact high v2 Pending Busy",
                          "fact low v5 Stopping Preempted after=requeue grace=30000"));
  EXPECT_EQ(story.last().message(),
            "stopped for job team/name-of-high of higher priority: 9, and its own is 0");
  EXPECT_THAT(story.Tell(Stopped("low")),
              ElementsAre("fact low v6 Pending Queued", "release low/1"));
  EXPECT_EQ(story.last().message(),
            "in line again; stopped for job team/name-of-high of higher priority: 9, and its own "
            "is 0");
  // Before the one that came later, and not as a failure.
  EXPECT_THAT(story.Tell(Released("low", 1)), ElementsAre("cycle 4: high/1 low/2 later/1"));
  EXPECT_THAT(story.Tell(Answered(4, {{"high"}, {"low", 2, kBusyKind, "full"}})),
              ElementsAre("fact high v3 Allocated", "fact low v7 Pending Busy"));
  EXPECT_EQ(story.core().Find("low")->failures, 0U);
  EXPECT_EQ(story.core().Find("low")->grace_ms, 0);
}

TEST(PreemptionTest, TheVictimIsNotToldANameOfAnotherNamespace) {
  for (const uint32_t rules : {8U, 9U}) {
    Story story;
    story.Tell(PoolConfig(0, rules));
    story.Tell(QueueWith("default", {.by_priority = true, .grace_ms = 30'000}));
    story.Bring("low", JobState::kRunning);
    story.Tell(Submitted("high", {.slots = 2, .priority = 9, .space = "others"}));
    story.Tell(Refused(2, "high", {"low"}));
    const std::string who = rules == 8 ? "job others/name-of-high" : "a job of 2 slots";
    EXPECT_EQ(story.last().message(),
              fmt::format("stopped for {} of higher priority: 9, and its own is 0", who));
  }
}

TEST(PreemptionTest, WhileItsVictimsStopNobodyElseIsStopped) {
  Story story;
  story.Tell(PoolConfig(0, /*rules=*/2));
  story.Tell(QueueWith("default", {.by_priority = true}));
  story.Bring("a", JobState::kRunning);
  story.Bring("b", JobState::kRunning);
  story.Tell(Submitted("high", {.priority = 9}));
  story.Tell(Refused(3, "high", {"a"}));
  // Something else gives room back: the same job is asked for, with what stops named first.
  EXPECT_THAT(story.Tell(Inventory(true, true)), ElementsAre("cycle 4: high/1!a/1!b/1"));
  EXPECT_THAT(story.Tell(Refused(4, "high", {"a"})), IsEmpty());
  EXPECT_EQ(story.core().Find("b")->state, JobState::kRunning);
  // It is not enough any more: others are stopped, too.
  story.Tell(Inventory(true, true));
  EXPECT_THAT(story.Tell(Refused(5, "high", {"a", "b"})),
              ElementsAre("fact b v5 Stopping Preempted after=requeue"));
}

TEST(PreemptionTest, WhatHasChangedSinceIsAskedForAgain) {
  Story story;
  story.Tell(PoolConfig(0, /*rules=*/2));
  story.Tell(QueueWith("default", {.by_priority = true}));
  story.Bring("a", JobState::kRunning);
  story.Bring("b", JobState::kRunning);
  story.Tell(Submitted("high", {.priority = 9}));
  // Its priority is that of the one that waits, by now.
  story.Tell(Prioritised("a", 9));
  EXPECT_THAT(story.Tell(Refused(3, "high", {"a", "b"})),
              ElementsAre("fact high v2 Pending Busy", "cycle 4: high/1!b/1"));
  // It has ended: it need not be stopped.
  story.Tell(Prioritised("a", 0));
  story.Tell(Refused(4, "high", {}));
  story.Tell(Inventory(true, true));
  story.Tell(Ended("a"));
  EXPECT_THAT(story.Tell(Refused(5, "high", {"a", "b"})),
              ElementsAre("fact b v5 Stopping Preempted after=requeue"));
}

TEST(PreemptionTest, NotWhatNobodyMakesAgainNorClaims) {
  Story story;
  story.Tell(PoolConfig(0, /*rules=*/2));
  story.Tell(QueueWith("default", {.by_priority = true}));
  story.Bring("pod", JobState::kRunning, BarePod());
  story.Tell(Claimed("claim"));
  story.Tell(Answered(2, {{"claim"}}));
  EXPECT_THAT(story.Tell(Submitted("high", {.priority = 9})),
              ElementsAre("fact high v1 Pending Queued", "cycle 3: high/1"));
}

TEST(PreemptionTest, AGuaranteeIsReclaimed) {
  Story story;
  story.Tell(PoolConfig(0, /*rules=*/2));
  story.Tell(QueueMade("borrower"));
  story.Tell(QueueWith("default", {.reclaim = true, .guaranteed_cpu = 1000}));
  story.Bring("lent", JobState::kRunning, {.queue = "borrower", .priority = 100});
  EXPECT_THAT(story.Tell(Submitted("mine")),
              ElementsAre("fact mine v1 Pending Queued", "cycle 2: mine/1!lent/1"));
  EXPECT_THAT(
      story.Tell(Refused(2, "mine", {"lent"})),
      ElementsAre("fact mine v2 Pending Busy", "fact lent v5 Stopping Preempted after=requeue"));
  EXPECT_EQ(story.last().message(),
            "stopped for job team/name-of-mine, to give queue default back its guarantee");
  // The next one of the queue would be beyond the guarantee: that is nobody's right.
  EXPECT_THAT(story.Tell(Submitted("more")), ElementsAre("fact more v1 Pending Queued"));
  EXPECT_THAT(story.Tell(Stopped("lent")), testing::Contains("cycle 3: mine/1 lent/2 more/1"));
}

// Its place among those that are started first was that of a job that had started.
TEST(PreemptionTest, WhoWasStoppedStandsBehindWhomItWasStoppedFor) {
  for (const char* strategy : {"easy", "adaptive"}) {
    Story story;
    auto up = Inventory(true, true);
    auto* cpu = up.mutable_inventory_changed()->add_capacity();
    cpu->set_resource("cpu");
    cpu->set_amount(1000);
    story.Tell(up);
    auto queue = QueueWith("default", {.by_priority = true, .strategy = strategy});
    queue.mutable_queue_configured()->set_default_duration_ms(3'600'000);
    story.Tell(queue);
    story.Bring("low", JobState::kRunning);
    story.Wait(5000);
    story.Tell(Submitted("high", {.priority = 9}));
    story.Tell(Refused(2, "high", {"low"}));
    story.Tell(Stopped("low"));
    story.Tell(Answered(3, {{"high", 1, kBusyKind}}));
    EXPECT_THAT(story.Tell(Released("low", 1)),
                testing::Contains(testing::MatchesRegex("cycle [0-9]+: high/1 low/2")))
        << strategy;
  }
}

TEST(PreemptionTest, BeingAllowedIsReasonToAskAgain) {
  Story story;
  story.Tell(PoolConfig(0, /*rules=*/2));
  story.Bring("low", JobState::kRunning);
  story.Tell(Submitted("high", {.priority = 9}));
  story.Tell(Answered(2, {{"high", 1, kBusyKind, "full"}}));
  EXPECT_THAT(story.Tell(QueueWith("default", {.by_priority = true})),
              ElementsAre("cycle 3: high/1!low/1"));
  EXPECT_THAT(story.Tell(QueueWith("default", {.grace_ms = -1})), ElementsAre("poison"));
  EXPECT_THAT(story.error(), HasSubstr("preemption.grace_ms is -1"));
}

TEST(PreemptionTest, NotBeforeAllNodesAreKnown) {
  Story story(nullptr);
  story.Tell(PoolConfig());
  story.Tell(QueueWith("default", {.by_priority = true}));
  story.Bring("low", JobState::kRunning);
  EXPECT_THAT(story.Tell(Submitted("high", {.priority = 9})),
              ElementsAre("fact high v1 Pending Queued", "cycle 2: high/1"));
}

TEST(PreemptionTest, OnlyTheFirstFewOfALine) {
  Story story;
  story.Tell(PoolConfig(0, /*rules=*/2));
  story.Tell(QueueWith("default", {.by_priority = true}));
  story.Bring("low", JobState::kRunning);
  story.Tell(Submitted("h1", {.priority = 9}));
  for (const char* id : {"h2", "h3", "h4", "h5"}) story.Tell(Submitted(id, {.priority = 9}));
  EXPECT_THAT(story.Tell(Answered(2, {{"h1"}})),
              testing::Contains("cycle 3: h2/1!low/1 h3/1!low/1 h4/1!low/1 h5/1!low/1"));
  story.Tell(Submitted("h6", {.priority = 9}));
  EXPECT_THAT(story.Tell(Refused(3, "h2", {})), testing::Contains("fact h2 v2 Pending Busy"));
  EXPECT_THAT(story.Tell(Inventory(true, true)),
              ElementsAre("cycle 4: h2/1!low/1 h3/1!low/1 h4/1!low/1 h5/1!low/1 h6/1"));
}

// ---- by rules 3: all that may be stopped are named, and the matcher chooses

class StopListTest : public testing::Test {
 protected:
  StopListTest() { story_.Tell(PoolConfig(0, model::kMatcherChooses)); }

  const events::v1::CycleRequested& Cycle() {
    cycle_.ParseFromString(story_.changes().cycles_requested.back().requested);
    return cycle_;
  }

  Story story_;
  events::v1::CycleRequested cycle_;
};

TEST_F(StopListTest, AllThatMayBeStoppedWithWhatIsLost) {
  auto up = Inventory(true, true);
  auto* cpu = up.mutable_inventory_changed()->add_capacity();
  cpu->set_resource("cpu");
  cpu->set_amount(1'000'000);
  story_.Tell(up);
  story_.Tell(QueueWith("default", {.by_priority = true, .grace_ms = 30'000}));
  for (int i = 0; i < 100; ++i) {
    const std::string id = fmt::format("low{:02}", i);
    story_.Bring(id, JobState::kBound);
    auto started = Started(id);
    started.mutable_job_started()->set_started_ms(story_.now().count());
    story_.Tell(started);
    story_.Wait(1000);
  }
  story_.Tell(Submitted("high", {.priority = 9}));
  ASSERT_EQ(Cycle().stoppable_size(), 100);
  // Those that ran for the shortest time first: seconds × a thousandth of the pool.
  EXPECT_EQ(Cycle().stoppable(0).key().job_id(), "low99");
  EXPECT_EQ(Cycle().stoppable(0).lost(), (1 << 30) / 1000);
  EXPECT_EQ(Cycle().stoppable(99).key().job_id(), "low00");
  EXPECT_EQ(Cycle().stoppable(99).lost(), 100LL * ((1 << 30) / 1000));
  EXPECT_EQ(Cycle().stoppable(0).lender(), 0U);
  EXPECT_TRUE(Cycle().candidates(0).victims().empty());
  EXPECT_EQ(Cycle().candidates(0).stop_s(), 35);
  EXPECT_TRUE(HasBit(Cycle().candidates(0).stoppable(), 99));
  // The one that is of use, wherever it stands.
  const uint64_t cycle = story_.core().cycle_in_flight();
  EXPECT_THAT(story_.Tell(Refused(cycle, "high", {"low42"})),
              ElementsAre("fact high v2 Pending Busy",
                          "fact low42 v5 Stopping Preempted after=requeue grace=30000"));
}

TEST_F(StopListTest, WhileItsVictimsStopNobodyElseIsStopped) {
  story_.Tell(QueueWith("default", {.by_priority = true}));
  story_.Bring("a", JobState::kRunning);
  story_.Bring("b", JobState::kRunning);
  EXPECT_THAT(story_.Tell(Submitted("high", {.priority = 9})),
              ElementsAre("fact high v1 Pending Queued", "cycle 3: high/1?a?b"));
  story_.Tell(Refused(3, "high", {"b"}));
  EXPECT_THAT(story_.Tell(Inventory(true, true)), ElementsAre("cycle 4: high/1?b?a"));
  EXPECT_TRUE(Cycle().stoppable(0).stopping());
  EXPECT_FALSE(Cycle().stoppable(1).stopping());
  EXPECT_THAT(story_.Tell(Refused(4, "high", {"b"})), IsEmpty());
  EXPECT_EQ(story_.core().Find("a")->state, JobState::kRunning);
  story_.Tell(Stopped("b"));
  EXPECT_THAT(story_.Tell(Released("b", 1)), ElementsAre("cycle 5: high/1?a b/2"));
  EXPECT_THAT(story_.Tell(Answered(5, {{"high"}, {"b", 2, kBusyKind}})),
              testing::Contains("fact high v3 Allocated"));
}

TEST_F(StopListTest, WhatHasChangedSinceIsAskedForAgain) {
  story_.Tell(QueueWith("default", {.by_priority = true}));
  story_.Bring("a", JobState::kRunning);
  story_.Bring("b", JobState::kRunning);
  story_.Tell(Submitted("high", {.priority = 9}));
  story_.Tell(Prioritised("a", 9));
  // Nobody is stopped of a choice that does not hold, and the next one knows.
  EXPECT_THAT(story_.Tell(Refused(3, "high", {"a", "b"})),
              ElementsAre("fact high v2 Pending Busy", "cycle 4: high/1?b"));
  story_.Tell(Ended("b"));
  EXPECT_THAT(story_.Tell(Refused(4, "high", {"b"})),
              Not(testing::Contains(HasSubstr("Stopping"))));
}

TEST_F(StopListTest, WhatAQueueCanSpareTravelsAlong) {
  story_.Tell(QueueMade("borrower"));
  auto borrower = QueueMade("borrower");
  auto* guarantee = borrower.mutable_queue_configured()->add_guarantee();
  guarantee->set_resource("cpu");
  guarantee->set_amount(1000);
  story_.Tell(borrower);
  story_.Tell(QueueWith("default", {.reclaim = true, .guaranteed_cpu = 2000}));
  for (const char* id : {"x", "y", "z"})
    story_.Bring(id, JobState::kRunning, {.queue = "borrower"});
  EXPECT_THAT(story_.Tell(Submitted("mine", {.cpu = 2000})),
              testing::Contains("cycle 4: mine/1?x?y?z"));
  ASSERT_EQ(Cycle().lenders_size(), 1);
  EXPECT_THAT(
      Cycle().lenders(0).spare(),
      ElementsAre(
          2000, scheduling::VictimRules::kNoGuarantee, scheduling::VictimRules::kNoGuarantee));
  EXPECT_TRUE(HasBit(Cycle().candidates(0).lenders(), 0));
  EXPECT_EQ(Cycle().stoppable(2).lender(), 1U);
  EXPECT_THAT(Cycle().stoppable(2).holds(), ElementsAre(1000, 0, 0));
  // More than that is refused as a whole.
  EXPECT_THAT(story_.Tell(Refused(4, "mine", {"x", "y", "z"})),
              ElementsAre("fact mine v2 Pending Busy", "cycle 5: mine/1?x?y?z"));
  EXPECT_THAT(story_.Tell(Refused(5, "mine", {"z", "x"})),
              ElementsAre("fact z v5 Stopping Preempted after=requeue",
                          "fact x v5 Stopping Preempted after=requeue"));
  story_.Tell(Inventory(true, true));
  EXPECT_THAT(Cycle().lenders(), IsEmpty());  // y cannot be spared: nobody lends
}

// Both queues are guaranteed fpgas, and `borrower` holds 3 of which 1 is its own.
TEST_F(StopListTest, AGuaranteeOfAnyResourceIsReclaimedFromRules7On) {
  const auto with_fpgas = [](events::v1::Envelope queue, int64_t fpgas) {
    events::v1::Amount* guarantee = queue.mutable_queue_configured()->add_guarantee();
    guarantee->set_resource("example.com/fpga");
    guarantee->set_amount(fpgas);
    return queue;
  };
  story_.Tell(PoolConfig(0, /*rules=*/6));
  story_.Tell(with_fpgas(QueueMade("borrower"), 1));
  story_.Tell(with_fpgas(QueueWith("default", {.reclaim = true}), 2));
  for (const char* id : {"x", "y", "z"}) {
    story_.Bring(id, JobState::kRunning, {.queue = "borrower", .fpgas = 1});
  }
  EXPECT_THAT(story_.Tell(Submitted("mine", {.fpgas = 2})), testing::Contains("cycle 4: mine/1"));
  story_.Tell(Refused(4, "mine", {}));
  EXPECT_THAT(story_.Tell(PoolConfig(0, /*rules=*/7)), ElementsAre("cycle 5: mine/1?x?y?z"));
  ASSERT_EQ(Cycle().lenders_size(), 1);
  const int64_t all = scheduling::VictimRules::kNoGuarantee;
  EXPECT_THAT(Cycle().lenders(0).spare(), ElementsAre(all, all, all, 2));
  EXPECT_THAT(Cycle().stoppable(2).holds(), ElementsAre(1000, 0, 0, 1));
  EXPECT_THAT(story_.Tell(Refused(5, "mine", {"x", "y", "z"})),
              ElementsAre("cycle 6: mine/1?x?y?z"));
  EXPECT_THAT(story_.Tell(Refused(6, "mine", {"z", "x"})),
              ElementsAre("fact z v5 Stopping Preempted after=requeue",
                          "fact x v5 Stopping Preempted after=requeue"));
}

TEST_F(StopListTest, OfOlderRulesAFewAreNamed) {
  story_.Tell(PoolConfig(0, /*rules=*/2));
  story_.Tell(QueueWith("default", {.by_priority = true}));
  for (int i = 0; i < 70; ++i) story_.Bring(fmt::format("low{:02}", i), JobState::kRunning);
  story_.Tell(Submitted("high", {.priority = 9}));
  EXPECT_EQ(Cycle().candidates(0).victims_size(), 64);
  EXPECT_TRUE(Cycle().stoppable().empty());
  EXPECT_TRUE(Cycle().candidates(0).stoppable().empty());
}

}  // namespace
}  // namespace fluxqueue::queue_core
