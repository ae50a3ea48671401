// What accounting is told of attempts that have ended.
#include "libs/queue_core/attempt.h"

#include <limits>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "libs/model/rules.h"
#include "libs/queue_core/testing_story.h"

namespace fluxqueue::queue_core {
namespace {

using model::JobState;
using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::SizeIs;

const AttemptRecord& Only(const Story& story) {
  static const AttemptRecord kNone;
  const auto& attempts = story.changes().attempts;
  EXPECT_THAT(attempts, SizeIs(1));
  return attempts.empty() ? kNone : attempts[0];
}

TEST(AttemptTest, AJobThatRanAndSucceeded) {
  Story story;
  const int64_t submitted = story.now().count();
  story.Tell(Submitted("a", {.slots = 2, .completions = 9, .cpu = 3'000, .gpus = 2}));
  story.Wait(40'000);
  story.Tell(Answered(1, {{"a"}}));
  story.Tell(Bound("a"));
  story.Wait(5'000);
  story.Tell(Started("a"));
  EXPECT_THAT(story.changes().attempts, IsEmpty());
  story.Wait(95'000);
  story.Tell(Ended("a"));
  const AttemptRecord& row = Only(story);
  EXPECT_EQ(row.job_id, "a");
  EXPECT_EQ(row.attempt, 1U);
  EXPECT_EQ(row.user, "ann");
  EXPECT_EQ(row.name_space, "team");
  EXPECT_EQ(row.name, "name-of-a");
  EXPECT_EQ(row.kind, "Job");
  EXPECT_EQ(row.queue, "default");
  EXPECT_EQ(row.outcome, "Succeeded");
  EXPECT_EQ(row.slots, 2U);
  EXPECT_EQ(row.cpu, 3'000);
  EXPECT_EQ(row.gpu, 2'000);
  EXPECT_EQ(row.cpu_seconds, 300'000) << "3 cpus for 100 s, binding included";
  EXPECT_EQ(row.gpu_seconds, 200'000);
  EXPECT_EQ(row.submitted_ms, submitted);
  EXPECT_EQ(row.waited_ms, 40'000);
  EXPECT_EQ(row.start_ms, submitted + 40'000);
  EXPECT_EQ(row.end_ms, submitted + 140'000);
}

TEST(AttemptTest, ARequeueEndsAnAttempt) {
  Story story;
  story.Bring("a", JobState::kRunning, {.cpu = 1'000});
  story.Wait(10'000);
  story.Tell(NodeLost("a"));
  EXPECT_THAT(story.changes().attempts, IsEmpty()) << "it still holds what it has";
  story.Wait(2'000);
  story.Tell(Stopped("a"));
  EXPECT_EQ(Only(story).outcome, kRequeued);
  EXPECT_EQ(Only(story).reason, "NodeLost");
  EXPECT_EQ(Only(story).cpu_seconds, 12'000);
  // The next one waits from there, the backoff included.
  story.Wait(30'000);
  story.Tell(Tick());
  story.Tell(Answered(story.core().cycle_in_flight(), {{"a", 2}}));
  story.Wait(1'000);
  story.Tell(Ended("a", kJobFailed));
  EXPECT_EQ(Only(story).attempt, 2U);
  EXPECT_EQ(Only(story).outcome, "Failed");
  EXPECT_EQ(Only(story).waited_ms, 30'000);
  EXPECT_EQ(Only(story).cpu_seconds, 1'000);
}

TEST(AttemptTest, WhoNeverStartedHasWaitedAndUsedNothing) {
  Story story;
  story.Bring("a", JobState::kPending, {.cpu = 4'000});
  story.Wait(7'000);
  story.Tell(Cancelled("a"));
  EXPECT_EQ(Only(story).outcome, "Cancelled");
  EXPECT_EQ(Only(story).cpu, 4'000);
  EXPECT_EQ(Only(story).cpu_seconds, 0);
  EXPECT_EQ(Only(story).waited_ms, 7'000);
  EXPECT_EQ(Only(story).start_ms, std::nullopt);
}

TEST(AttemptTest, SlotsGivenBackEarlyCountForTheirOwnTime) {
  Story story;
  story.Bring("g", JobState::kRunning, {.slots = 3, .completions = 3, .cpu = 3'000});
  story.Wait(10'000);
  story.Tell(PodEnded("g", 1));
  story.Tell(PodEnded("g", 1));  // said twice
  story.Wait(20'000);
  story.Tell(Ended("g"));
  EXPECT_EQ(Only(story).cpu_seconds, 10'000 + 2 * 30'000);
}

// Of a gang of pods, also where a pod has failed or was deleted: none comes in its place.
TEST(AttemptTest, AGangGivesBackTheSlotsOfPodsThatHaveEnded) {
  Story story;
  story.Bring("g", JobState::kRunning, {.kind = "PodGroup", .slots = 3, .cpu = 3'000});
  EXPECT_THAT(story.Tell(PodEnded("g", 1, events::v1::PodEnded::RESULT_GONE)),
              ElementsAre("release g/1 slot 1"));
  EXPECT_THAT(story.Tell(PodEnded("g", 1, kPodFailed)), IsEmpty()) << "said twice";
  EXPECT_THAT(story.Tell(PodEnded("g", 2)), ElementsAre("release g/1 slot 2"));
  EXPECT_EQ(story.core().Find("g")->state, JobState::kRunning);

  Story before;
  before.Tell(PoolConfig(0, model::kGangsGiveBack - 1));
  before.Bring("g", JobState::kRunning, {.kind = "PodGroup", .slots = 3, .cpu = 3'000});
  EXPECT_THAT(before.Tell(PodEnded("g", 1)), IsEmpty());
}

TEST(AttemptTest, SlotsThatCameLaterCountFromThen) {
  Story story;
  story.Tell(Submitted("e", {.slots = 6, .completions = 100, .min_slots = 2, .cpu = 6'000}));
  story.Tell(Answered(1, {Said{.job = "e", .slots = 2}}));
  story.Tell(Started("e"));
  story.Wait(10'000);
  story.Tell(Released("x", 1));
  story.Tell(Answered(2, {Said{.job = "e", .slots = 5}}));
  story.Wait(5'000);
  story.Tell(Ended("e"));
  EXPECT_EQ(Only(story).slots, 5U);
  EXPECT_EQ(Only(story).cpu, 6'000) << "asked is the most";
  EXPECT_EQ(Only(story).cpu_seconds, 2 * 15'000 + 3 * 5'000);
}

TEST(AttemptTest, AClaimHoldsFromItsAllocation) {
  Story story;
  story.Tell(Claimed("c", {.duration_ms = 60'000}));
  story.Tell(Answered(1, {{"c"}}));
  story.Wait(60'000);
  story.Tell(Tick());
  EXPECT_EQ(Only(story).outcome, "Succeeded");
  EXPECT_EQ(Only(story).reason, "Expired");
  EXPECT_EQ(Only(story).duration_ms, 60'000);
  EXPECT_EQ(Only(story).end_ms - Only(story).start_ms.value_or(0), 60'000);
}

TEST(AttemptTest, ARollbackTakesItBack) {
  Story story;
  story.Bring("a", JobState::kRunning);
  Outputs outputs;
  ASSERT_TRUE(story.core().Handle(Ended("a"), story.now(), &outputs).ok());
  ASSERT_THAT(story.core().TakeChanges().attempts, SizeIs(1));
  story.core().Rollback();
  EXPECT_THAT(story.core().TakeChanges().attempts, IsEmpty());
  story.Tell(Ended("a"));
  EXPECT_EQ(Only(story).attempt, 1U);
}

TEST(AttemptTest, SumsStopAtTheGreatestNumber) {
  constexpr int64_t kMost = std::numeric_limits<int64_t>::max();
  Story story;
  story.Bring("a", JobState::kRunning, {.cpu = kMost});
  story.Wait(2'000);
  story.Tell(Ended("a"));
  EXPECT_EQ(Only(story).cpu_seconds, kMost);
}

// A row of a version before there was accounting.
TEST(AttemptTest, WhatHeldSomethingBeforeAnUpgradeCountsFromItsLastFact) {
  Story story;
  story.Bring("a", JobState::kAllocated);
  queue::v1::JobRow row = ToRow(*story.core().Find("a"), kPool);
  const int64_t allocated = row.allocated_ms();
  row.clear_allocated_ms();
  row.clear_attempt_since_ms();
  EXPECT_EQ(FromRow(row).allocated_ms, allocated);
  EXPECT_EQ(FromRow(row).attempt_since_ms, FromRow(row).submitted_ms);
}

}  // namespace
}  // namespace fluxqueue::queue_core
