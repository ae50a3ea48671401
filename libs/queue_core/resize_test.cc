// Jobs that are of another size once they have started.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "libs/queue_core/testing_story.h"

namespace fluxqueue::queue_core {
namespace {

using model::JobState;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

JobOptions Gang(uint32_t slots) {
  return {.slots = slots, .completions = slots, .cpu = 1000 * slots};
}

Said Has(const std::string& job, uint32_t slots) {
  return {.job = job, .slots = slots};
}
Said Busy(const std::string& job) {
  return {.job = job, .kind = kBusyKind, .reason = "full"};
}

TEST(ResizeCore, AJobThatRunsGrowsAndIsWholeAgainInItsNextAttempt) {
  Story story;
  story.Bring("a", JobState::kRunning, Gang(2));
  EXPECT_THAT(story.Tell(GoesOnWith("a", 2, 4, 4)),
              ElementsAre("fact a v5 Running Resized 2 of 2..4", "cycle 2: a/1+<4>"));
  EXPECT_EQ(story.last().message(),
            "asks for 4 slots now, and holds 2: it grows once others in line leave room");
  EXPECT_TRUE(story.last().resized());
  EXPECT_EQ(story.last().workload().completions(), 4);
  EXPECT_THAT(story.Tell(Answered(2, {Has("a", 3)})),
              ElementsAre("fact a v6 Running Grown 3 of 2..4"));
  EXPECT_THAT(story.Tell(Released("x", 1)), ElementsAre("cycle 3: a/1+<4>"));
  EXPECT_THAT(story.Tell(Answered(3, {Has("a", 4)})),
              ElementsAre("fact a v7 Running Grown 4 of 2..4"));
  EXPECT_THAT(story.Tell(Released("x", 1)), IsEmpty()) << "it has all of them";
  story.Tell(NodeLost("a"));
  EXPECT_THAT(story.Tell(Stopped("a")), Contains("release a/1"));
  EXPECT_FALSE(story.last().resized());
  EXPECT_EQ(story.last().min_slots(), 0U) << "all or nothing";
  EXPECT_EQ(story.last().slots(), 4U);
}

TEST(ResizeCore, AJobThatIsSmallerKeepsWhatItsPodsAreIn) {
  Story story;
  story.Bring("a", JobState::kRunning, Gang(4));
  EXPECT_THAT(story.Tell(GoesOnWith("a", 2, 2, 2)),
              ElementsAre("fact a v5 Running Resized 4 of 2..2"));
  EXPECT_EQ(story.last().message(),
            "asks for 2 slots now, and holds 4: it gives back those whose pods have gone");
  EXPECT_THAT(story.Tell(Vacated("a", {3})),
              ElementsAre("fact a v6 Running Shrunk 3 of 2..2", "release a/1 slot 3"));
  EXPECT_THAT(story.Tell(Vacated("a", {3, 9, 1})),
              ElementsAre("fact a v7 Running Shrunk 2 of 2..2", "release a/1 slot 1"))
      << "one is given back already, one it never had";
  EXPECT_THAT(story.Tell(Vacated("a", {1})), IsEmpty());
  EXPECT_THAT(story.Tell(Released("a", 1)), IsEmpty()) << "it wants no more";
  // And larger again: the new slots have new numbers.
  EXPECT_THAT(story.Tell(GoesOnWith("a", 3, 3, 3)),
              ElementsAre("fact a v8 Running Resized 2 of 2..3", "cycle 2: a/1+<3>"));
  EXPECT_THAT(story.Tell(Answered(2, {Has("a", 5)})),
              ElementsAre("fact a v9 Running Grown 3 of 2..3"));
}

TEST(ResizeCore, WhatOthersWantOrALimitKeepsItDoesNotTake) {
  Story story;
  story.Bring("a", JobState::kRunning, Gang(2));
  events::v1::Envelope limit = QueueMade("default");
  events::v1::Amount* cpu = limit.mutable_queue_configured()->mutable_limits()->add_amounts();
  cpu->set_resource("cpu");
  cpu->set_amount(3000);
  story.Tell(limit);
  EXPECT_THAT(story.Tell(GoesOnWith("a", 2, 9, 9)), Contains("cycle 2: a/1+<3>"));
  EXPECT_THAT(story.Tell(Answered(2, {Busy("a")})), IsEmpty());
  EXPECT_THAT(story.Tell(Submitted("b")), ElementsAre(HasSubstr("fact b"), "cycle 3: b/1"));
}

TEST(ResizeCore, OneThatWaitsOrIsNotBoundIsPlacedWithItsNewSize) {
  Story story;
  story.Tell(Submitted("a", Gang(2)));
  EXPECT_THAT(story.Tell(Answered(1, {Busy("a")})), ElementsAre("fact a v2 Pending Busy"));
  EXPECT_THAT(story.Tell(GoesOnWith("a", 2, 3, 3)),
              ElementsAre("fact a v3 Pending Queued", "cycle 2: a/1"));
  EXPECT_EQ(story.last().slots(), 3U);
  EXPECT_FALSE(story.last().resized());
  story.Tell(Answered(2, {{.job = "a"}}));
  EXPECT_THAT(story.Tell(GoesOnWith("a", 3, 1, 1)),
              ElementsAre("fact a v5 Stopping Resized after=requeue"));
}

TEST(ResizeCore, ALostSlotOfItIsGrownElsewhere) {
  Story story;
  story.Bring("a", JobState::kRunning, Gang(3));
  story.Tell(SlotsLost("a", {{1}}));
  EXPECT_THAT(story.Tell(Answered(2, {Busy("a")})), ElementsAre("fact a v6 Running SlotMissing"));
  EXPECT_THAT(story.Tell(GoesOnWith("a", 2, 4, 4)),
              ElementsAre("fact a v7 Running Resized 2 of 3..4", "cycle 3: a/1+<4>"));
  EXPECT_THAT(story.Tell(Answered(3, {Has("a", 5)})),
              ElementsAre("fact a v8 Running Grown 4 of 3..4"));
  EXPECT_THAT(story.Tell(SlotsLost("a", {{4}})),
              ElementsAre("fact a v9 Running SlotLost 3 of 3..4", "release a/1 slot 4"));
  EXPECT_EQ(story.last().message(), "node n0 is cordoned: goes on with 3 of 4 slots, and grows");
  EXPECT_THAT(story.Tell(Released("a", 1)), ElementsAre("cycle 4: a/1+<4>"));
}

// Who says so errs.
TEST(ResizeCore, APodOfASlotThatItNeverHadGivesNothingBack) {
  Story story;
  story.Bring("a", JobState::kRunning, Gang(2));
  EXPECT_THAT(story.Tell(PodEnded("a", 2)), IsEmpty());
  EXPECT_EQ(story.stale(), 1U);
}

TEST(ResizeCore, PodsThatHaveSucceededAreNamedAndTheirSlotsUsedAgainFromThenOn) {
  Story story;
  story.Bring("a", JobState::kRunning, Gang(3));
  story.Tell(PodEnded("a", 0));
  EXPECT_THAT(story.Tell(GoesOnWith("a", 2, 3, 5)),
              ElementsAre("fact a v5 Running Resized 3 of 3..3", "cycle 2: a/1+<3>"));
  EXPECT_THAT(story.last().done_slots(), ElementsAre(0));
  EXPECT_THAT(story.Tell(PodEnded("a", 1)), IsEmpty()) << "its slot is kept for the next one";
}

TEST(ResizeCore, WhatItHeldWhileItIsStoppedIsWhatItIsChargedFor) {
  Story story;
  story.Bring("a", JobState::kRunning, Gang(4));
  for (const uint32_t slot : {0, 1, 2}) story.Tell(PodEnded("a", slot));
  story.Tell(NodeLost("a"));
  story.Tell(GoesOnWith("a", 2, 1, 1));
  story.Wait(1000);
  story.Tell(Stopped("a"));
  ASSERT_EQ(story.changes().attempts.size(), 1U);
  EXPECT_LE(story.changes().attempts[0].cpu_seconds, 4000);
  EXPECT_EQ(story.last().slots(), 1U);
}

TEST(ResizeCore, SlotsThatCameInPlaceOfLostOnesWhileItChangedAreItsOwn) {
  Story story;
  story.Bring("a", JobState::kRunning, Gang(3));
  EXPECT_THAT(story.Tell(SlotsLost("a", {{1}})), Contains("cycle 2: a/1=<3>-n0"));
  story.Tell(GoesOnWith("a", 2, 2, 2));
  EXPECT_THAT(story.Tell(Answered(2, {Has("a", 4)})),
              ElementsAre("fact a v7 Running Grown 3 of 2..2"));
  EXPECT_THAT(story.Tell(Vacated("a", {3})), Contains("release a/1 slot 3"));
}

}  // namespace
}  // namespace fluxqueue::queue_core
