// Preemption: who is named, who is stopped, and what becomes of them.
#include <gtest/gtest.h>

#include "libs/queue_core/testing_story.h"

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
  story.Bring("low", JobState::kRunning);
  EXPECT_THAT(story.Tell(Submitted("high", {.priority = 9})),
              ElementsAre("fact high v1 Pending Queued", "cycle 2: high/1"));
}

TEST(PreemptionTest, TheVictimIsStoppedAndKeepsItsPlace) {
  Story story;
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

TEST(PreemptionTest, WhileItsVictimsStopNobodyElseIsStopped) {
  Story story;
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
  story.Tell(QueueWith("default", {.by_priority = true}));
  story.Bring("pod", JobState::kRunning, BarePod());
  story.Tell(Claimed("claim"));
  story.Tell(Answered(2, {{"claim"}}));
  EXPECT_THAT(story.Tell(Submitted("high", {.priority = 9})),
              ElementsAre("fact high v1 Pending Queued", "cycle 3: high/1"));
}

TEST(PreemptionTest, AGuaranteeIsReclaimed) {
  Story story;
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

}  // namespace
}  // namespace fluxqueue::queue_core
