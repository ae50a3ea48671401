// Elastic jobs give slots back before any job is stopped.
#include <gtest/gtest.h>

#include "libs/model/rules.h"
#include "libs/queue_core/testing_story.h"

namespace fluxqueue::queue_core {
namespace {

using model::JobState;
using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

class ShrinkTest : public testing::Test {
 protected:
  ShrinkTest() {
    events::v1::Envelope queue = QueueMade("default");
    queue.mutable_queue_configured()->mutable_preemption()->set_by_priority(true);
    queue.mutable_queue_configured()->mutable_preemption()->set_grace_ms(30'000);
    story_.Tell(queue);
  }

  // It runs with four slots, of which it needs two.
  void BringElastic(JobOptions options = kElastic) {
    story_.Bring("e", JobState::kRunning, options);
    ASSERT_EQ(story_.last().slots(), 4U);
  }
  // Of the last cycle.
  const events::v1::CycleRequested& Cycle() {
    cycle_.ParseFromString(story_.changes().cycles_requested.back().requested);
    return cycle_;
  }
  // It cannot start, but for these slots of the elastic one.
  Story::Lines Want(const std::string& id, const std::vector<uint32_t>& slots) {
    const uint64_t cycle = story_.core().cycle_in_flight();
    return story_.Tell(WithSlots(Answered(cycle, {{id, 1, kBusyKind, "full"}}), "e", slots));
  }

  inline static const JobOptions kElastic{
      .slots = 4, .completions = 10, .min_slots = 2, .cpu = 4000, .ignores_disruptions = true};
  Story story_;
  events::v1::CycleRequested cycle_;
};

TEST_F(ShrinkTest, GoesOnWithFewerSlotsAndGrowsAgain) {
  BringElastic();
  EXPECT_THAT(story_.Tell(Submitted("high", {.priority = 9})), Contains(HasSubstr("high/1?e")));
  EXPECT_EQ(Cycle().stoppable(0).spare_slots(), 2U);
  EXPECT_THAT(Want("high", {2, 3}),
              ElementsAre("fact high v2 Pending Busy",
                          "fact e v5 Running Shrinking 4 of 2..4 -2 -3 grace=30000"));
  EXPECT_EQ(story_.last().message(),
            "gives 2 of its slots back for job team/name-of-high of higher priority: 9, and its "
            "own is 0");
  // They come free anyway; no more of them can be spared.
  story_.Tell(Inventory(true, true));
  EXPECT_THAT(Cycle().stoppable(0).vacating(), ElementsAre(2, 3));
  EXPECT_EQ(Cycle().stoppable(0).spare_slots(), 0U);
  EXPECT_THAT(Want("high", {2, 3}), IsEmpty());

  EXPECT_THAT(
      story_.Tell(Vacated("e", {3})),
      ElementsAre("fact e v6 Running Shrunk 3 of 2..4 -2 grace=30000", "release e/1 slot 3"));
  EXPECT_THAT(story_.Tell(Vacated("e", {2, 3})),
              ElementsAre("fact e v7 Running Shrunk 2 of 2..4", "release e/1 slot 2"));
  EXPECT_EQ(story_.last().message(), "goes on with 2 of at most 4 slots, 1 fewer than before");
  EXPECT_THAT(story_.Tell(Vacated("e", {2, 3})), IsEmpty());
  EXPECT_EQ(story_.stale(), 1U);
  EXPECT_THAT(story_.Tell(Released("e", 1)), Contains(HasSubstr("high/1")));
  const uint64_t cycle = story_.core().cycle_in_flight();
  // It would have its slots back, and there are none.
  EXPECT_THAT(story_.Tell(Answered(cycle, {{"high"}})),
              ElementsAre("fact high v3 Allocated", HasSubstr(": e/1+")));
  EXPECT_THAT(story_.Tell(Answered(cycle + 1, {{"e", 1, kBusyKind}})), IsEmpty());

  story_.Tell(Ended("high"));
  EXPECT_THAT(story_.Tell(Released("high", 1)), ElementsAre(HasSubstr(": e/1+")));
  // The numbers of the slots go on.
  const uint64_t grows = story_.core().cycle_in_flight();
  EXPECT_THAT(story_.Tell(Answered(grows, {{"e", 1, kAllocatedKind, "", 0, /*slots=*/6}})),
              ElementsAre("fact e v8 Running Grown 4 of 2..4"));
  EXPECT_EQ(story_.last().message(), "holds 4 of at most 4 slots, 2 more than before");
  // What was heard late of a slot that was vacated counts all the same.
  story_.Tell(PodEnded("e", 3, kPodSucceeded));
  EXPECT_EQ(story_.core().Find("e")->succeeded, 1U);
}

TEST_F(ShrinkTest, IsToldAgainWhenTheSlotsDoNotComeFree) {
  BringElastic();
  story_.Tell(Submitted("high", {.priority = 9}));
  Want("high", {3});
  story_.Wait(60'000);
  story_.Tell(Inventory(true, true));
  EXPECT_THAT(Want("high", {3}), IsEmpty());
  // Though nothing else happens.
  EXPECT_EQ(story_.core().NextDeadline(), story_.now() + Millis(30'000));
  story_.Wait(30'000);
  EXPECT_THAT(story_.Tell(Tick()), ElementsAre(HasSubstr("high/1?e")));
  EXPECT_THAT(Want("high", {3}),
              ElementsAre("fact e v6 Running Shrinking 4 of 2..4 -3 grace=30000"));
}

TEST_F(ShrinkTest, HoldsLessForLimitsAndAccounts) {
  BringElastic();
  story_.Tell(Submitted("high", {.priority = 9}));
  Want("high", {0, 1});
  story_.Wait(10'000);
  story_.Tell(Vacated("e", {0, 1}));
  story_.Wait(10'000);
  story_.Tell(Ended("e"));
  ASSERT_EQ(story_.changes().attempts.size(), 1U);
  // Four slots of a core each for ten seconds, then two.
  EXPECT_EQ(story_.changes().attempts[0].cpu_seconds, 4000 * 10 + 2000 * 10);
}

TEST_F(ShrinkTest, KeepsTheSlotsOfPodsThatSucceedFromThenOn) {
  JobOptions options = kElastic;
  options.completions = 4;  // one for each slot
  BringElastic(options);
  EXPECT_THAT(story_.Tell(PodEnded("e", 0, kPodSucceeded)), Contains("release e/1 slot 0"));
  story_.Tell(Submitted("high", {.priority = 9}));
  EXPECT_EQ(Cycle().stoppable(0).spare_slots(), 1U);
  Want("high", {3});
  EXPECT_THAT(story_.last().done_slots(), ElementsAre(0));
  EXPECT_THAT(story_.Tell(PodEnded("e", 1, kPodSucceeded)), IsEmpty());
  EXPECT_THAT(story_.Tell(Vacated("e", {3})), Contains("release e/1 slot 3"));
  // Two pods are still to come, for the two slots that it has.
  story_.Tell(Cancelled("high"));
  EXPECT_THAT(story_.Tell(Released("e", 1)), IsEmpty());
}

TEST_F(ShrinkTest, IsStoppedAsAWholeWherePodsThatAreDeletedCountAgainstIt) {
  JobOptions options = kElastic;
  options.ignores_disruptions = false;
  BringElastic(options);
  story_.Tell(Submitted("high", {.priority = 9}));
  EXPECT_EQ(Cycle().stoppable(0).spare_slots(), 0U);
  EXPECT_THAT(Want("high", {3}), ElementsAre("fact high v2 Pending Busy", HasSubstr("high/1?e")));
}

TEST_F(ShrinkTest, WhatHasChangedSinceIsAskedForAgain) {
  BringElastic();
  story_.Tell(Submitted("high", {.priority = 9}));
  // More than it can spare; slots that it does not have.
  EXPECT_THAT(Want("high", {1, 2, 3}),
              ElementsAre("fact high v2 Pending Busy", HasSubstr("high/1?e")));
  EXPECT_THAT(Want("high", {7}), IsEmpty());
  story_.Tell(Inventory(true, true));
  story_.Tell(Prioritised("e", 9));
  EXPECT_THAT(Want("high", {3}), Not(Contains(HasSubstr("Shrinking"))));
}

TEST_F(ShrinkTest, OneThatIsStoppedMeanwhileGivesAllBackOnce) {
  BringElastic();
  story_.Tell(Submitted("high", {.priority = 9}));
  Want("high", {3});
  EXPECT_THAT(story_.Tell(Cancelled("e")),
              Contains("fact e v6 Stopping Cancelled 4 of 2..4 after=cancel"));
  EXPECT_THAT(story_.Tell(Vacated("e", {3})), IsEmpty());
  EXPECT_THAT(story_.Tell(Stopped("e")), Contains("release e/1 ended"));
}

// Two more than it is guaranteed, and more than can be spared as a whole.
TEST_F(ShrinkTest, AJobTooLargeToBeStoppedGivesBackWhatExceedsAGuarantee) {
  const auto guaranteed = [this](const std::string& name, int64_t cpu, bool reclaims) {
    events::v1::Envelope queue = QueueMade(name);
    queue.mutable_queue_configured()->mutable_preemption()->set_reclaim(reclaims);
    events::v1::Amount* amount = queue.mutable_queue_configured()->add_guarantee();
    amount->set_resource("cpu");
    amount->set_amount(cpu);
    story_.Tell(queue);
  };
  guaranteed("lent", 4000, false);
  guaranteed("mine", 4000, true);
  story_.Bring("e",
               JobState::kRunning,
               {.slots = 6,
                .completions = 20,
                .min_slots = 1,
                .queue = "lent",
                .cpu = 6000,
                .ignores_disruptions = true});
  EXPECT_THAT(story_.Tell(Submitted("m1", {.slots = 2, .queue = "mine", .cpu = 2000})),
              Contains(HasSubstr("m1/1?e")));
  ASSERT_EQ(Cycle().lenders_size(), 1);
  EXPECT_EQ(Cycle().lenders(0).spare(0), 2000);
  // Not the whole of it, nor more than that.
  EXPECT_THAT(Want("m1", {3, 4, 5}), Not(Contains(HasSubstr("Shrinking"))));
  EXPECT_THAT(Want("m1", {4, 5}), Contains(HasSubstr("Shrinking 6 of 1..6 -4 -5")));
  // What is on its way out counts as gone: nothing more can be spared.
  EXPECT_THAT(story_.Tell(Submitted("m2", {.slots = 2, .queue = "mine", .cpu = 2000})),
              Contains("fact m2 v1 Pending Queued"));
  story_.Tell(Inventory(true, true));
  for (const auto& candidate : Cycle().candidates()) EXPECT_THAT(candidate.stoppable(), IsEmpty());
}

TEST_F(ShrinkTest, OneThatHasHadTooManySlotsIsStoppedAsAWhole) {
  BringElastic();
  for (uint32_t held = 4; held < 1100; held += 2) {
    story_.Tell(Submitted(fmt::format("high-{}", held), {.priority = 9}));
    if (Cycle().stoppable(0).spare_slots() == 0) {
      EXPECT_EQ(held, 1026U);
      return;
    }
    const std::string high = fmt::format("high-{}", held);
    Want(high, {held - 2, held - 1});
    story_.Tell(Vacated("e", {held - 2, held - 1}));
    story_.Tell(Cancelled(high));
    story_.Tell(Released("e", 1));
    const uint64_t cycle = story_.core().cycle_in_flight();
    story_.Tell(Answered(cycle, {{"e", 1, kAllocatedKind, "", 0, held + 2}}));
    ASSERT_EQ(story_.core().Find("e")->held_slots, held + 2);
  }
  FAIL() << "it goes on for ever";
}

TEST_F(ShrinkTest, ByOlderRulesNoSlotsAreNamed) {
  story_.Tell(PoolConfig(0, model::kShrinksFirst - 1));
  BringElastic();
  story_.Tell(Submitted("high", {.priority = 9}));
  EXPECT_EQ(Cycle().stoppable(0).spare_slots(), 0U);
}

}  // namespace
}  // namespace fluxqueue::queue_core
