// Begins, dependencies, users and what is kept of them.
#include <gtest/gtest.h>

#include "libs/queue_core/testing_story.h"

namespace fluxqueue::queue_core {
namespace {

using model::JobState;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

// "name-of-a" is what Submitted() names the workload of the job a.

TEST(BeginTest, WaitsForItsTime) {
  Story story;
  const int64_t now = story.now().count();
  EXPECT_THAT(story.Tell(Submitted("a", {.begin_ms = now + 5000})),
              ElementsAre("fact a v1 Pending NotYet"));
  EXPECT_EQ(story.last().message(), "not to be started before 1970-01-01T00:16:45Z");
  EXPECT_EQ(story.core().NextDeadline(), Millis(now + 5000));
  EXPECT_EQ(story.core().Position("a"), 0U);
  story.Wait(4999);
  EXPECT_THAT(story.Tell(Tick()), IsEmpty());
  story.Wait(1);
  EXPECT_THAT(story.Tell(Tick()), ElementsAre("fact a v2 Pending Queued", "cycle 1: a/1"));
}

TEST(BeginTest, MovesWhileItWaits) {
  Story story;
  const int64_t now = story.now().count();
  story.Tell(Submitted("a"));
  // The cycle under way had it: that attempt is not wanted any more.
  EXPECT_THAT(story.Tell(BeginAt("a", now + 1000)), ElementsAre("fact a v2 Pending NotYet"));
  EXPECT_THAT(story.Tell(Answered(1, {{"a"}})), ElementsAre("release a/1"));
  EXPECT_THAT(story.Tell(BeginAt("a", 0)), ElementsAre("fact a v3 Pending Queued", "cycle 2: a/2"));
}

TEST(DependencyTest, AChainByIdAndByName) {
  Story story;
  story.Bring("a", JobState::kPending);
  EXPECT_THAT(story.Tell(Submitted("b", {.depends_on = {"afterok:a"}})),
              ElementsAre("fact b v1 Pending Dependency"));
  EXPECT_EQ(story.last().message(), "waits for afterok:name-of-a (a), which is Pending");
  EXPECT_THAT(story.Tell(Submitted("c", {.depends_on = {"afterany:name-of-b"}})),
              ElementsAre("fact c v1 Pending Dependency"));
  story.Tell(Answered(1, {{"a"}}));
  EXPECT_THAT(
      story.Tell(Ended("a")),
      ElementsAre(
          "fact a v3 Succeeded", "fact b v2 Pending Queued", "release a/1 ended", "cycle 2: b/1"));
  EXPECT_THAT(
      story.Tell(Cancelled("b")),
      ElementsAre(
          "fact b v3 Cancelled Cancelled", "fact c v2 Pending Queued", "release b/1 ended"));
}

TEST(DependencyTest, WhatCanNeverBeIsCancelledAndThoseBehindItToo) {
  Story story;
  story.Bring("a", JobState::kRunning);
  story.Tell(Submitted("b", {.depends_on = {"afterok:a"}}));
  story.Tell(Submitted("c", {.depends_on = {"afterok:b"}}));
  story.Tell(Submitted("d", {.depends_on = {"afternotok:c"}}));
  story.Tell(Submitted("e", {.depends_on = {"afternotok:a", "afterany:b"}}));
  EXPECT_THAT(story.Tell(Ended("a", kJobFailed)),
              testing::IsSupersetOf({"fact b v2 Cancelled DependencyNeverSatisfied",
                                     "fact c v2 Cancelled DependencyNeverSatisfied",
                                     "fact d v2 Pending Queued",
                                     "fact e v3 Pending Queued",
                                     "cycle 2: d/1 e/1"}));
}

TEST(DependencyTest, OnOneThatHasEndedBefore) {
  Story story;
  story.Bring("a", JobState::kRunning);
  story.Tell(Ended("a", kJobFailed));
  story.Tell(Released("a", 1, false));
  EXPECT_THAT(story.Tell(Submitted("b", {.depends_on = {"afternotok:name-of-a"}})),
              ElementsAre("fact b v1 Pending Queued", "cycle 2: b/1"));
  EXPECT_THAT(story.Tell(Submitted("c", {.depends_on = {"afterok:a"}})),
              ElementsAre("fact c v1 Pending Queued",
                          "fact c v2 Cancelled DependencyNeverSatisfied",
                          "release c/1 ended"));
  EXPECT_EQ(story.last().message(),
            "afterok:a can never come true: the job has ended without success");
  // Of the same name in another namespace nothing is known.
  EXPECT_THAT(story.Tell(Submitted("d", {.space = "other", .depends_on = {"afterany:name-of-a"}})),
              ElementsAre("fact d v1 Pending Dependency"));
}

TEST(DependencyTest, OnOneThatComesLater) {
  Story story;
  EXPECT_THAT(story.Tell(Submitted("b", {.depends_on = {"afterok:name-of-a"}})),
              ElementsAre("fact b v1 Pending Dependency"));
  EXPECT_EQ(story.last().message(), "waits for afterok:name-of-a, of which nothing is known here");
  story.Bring("a", JobState::kRunning);
  // Bound to it: another of its name changes nothing.
  auto again = Submitted("z");
  again.mutable_job_submitted()->mutable_workload()->set_name("name-of-a");
  story.Tell(again);
  story.Tell(Cancelled("z"));
  EXPECT_THAT(story.Tell(Ended("a")), testing::Contains("fact b v2 Pending Queued"));
}

TEST(DependencyTest, CyclesAreRefused) {
  Story story;
  EXPECT_THAT(story.Tell(Submitted("s", {.depends_on = {"afterok:name-of-s"}})),
              ElementsAre("fact s v1 Pending Dependency",
                          "fact s v2 Rejected DependencyCycle",
                          "release s/1 ended"));
  story.Tell(Submitted("a", {.depends_on = {"afterany:name-of-c"}}));
  story.Tell(Submitted("b", {.depends_on = {"afterok:a"}}));
  EXPECT_THAT(story.Tell(Submitted("c", {.depends_on = {"afterok:name-of-b"}})),
              ElementsAre("fact c v1 Pending Dependency",
                          "fact c v2 Rejected DependencyCycle",
                          "fact a v2 Pending Queued",
                          "release c/1 ended",
                          "cycle 1: a/1"));
  // Where its queue does not exist, too.
  story.Tell(Submitted("d", {.depends_on = {"afterok:name-of-e"}}));
  EXPECT_THAT(story.Tell(Submitted("e", {.queue = "nowhere", .depends_on = {"afterok:d"}})),
              testing::Contains("fact e v2 Cancelled DependencyCycle"));
}

TEST(DependencyTest, HeldAndTimedBesides) {
  Story story;
  const int64_t now = story.now().count();
  story.Bring("a", JobState::kRunning);
  story.Tell(Submitted("b", {.hold = true, .depends_on = {"afterok:a"}}));
  story.Tell(Submitted("c", {.begin_ms = now + 1000, .depends_on = {"afterok:a"}}));
  EXPECT_THAT(story.Tell(Ended("a")),
              ElementsAre("fact a v5 Succeeded", "fact c v2 Pending NotYet", "release a/1 ended"));
  EXPECT_THAT(story.Tell(HoldCommand("b", false)),
              ElementsAre("fact b v2 Pending Queued", "cycle 2: b/1"));
}

TEST(DependencyTest, ALongChainOfCancellationsIsNoRecursion) {
  Story story;
  story.Bring("j0", JobState::kRunning);
  constexpr int kJobs = 5000;
  for (int i = 1; i < kJobs; ++i) {
    story.Tell(
        Submitted(fmt::format("j{}", i), {.depends_on = {fmt::format("afterok:j{}", i - 1)}}));
  }
  EXPECT_EQ(story.Tell(Ended("j0", kJobFailed)).size(), 2U * kJobs);
  EXPECT_EQ(story.core().size(), 0U);
}

TEST(UserTest, IsSaidAndKept) {
  Story story;
  story.Tell(Submitted("a", {.user = "ann"}));
  EXPECT_EQ(story.last().user(), "ann");
  story.Tell(Claimed("c"));
  EXPECT_EQ(story.last().user(), "ann");  // the owner of the claim
}

TEST(MoveTest, BetweenQueuesInEveryState) {
  for (JobState state : {JobState::kPending, JobState::kRunning, JobState::kStopping}) {
    Story story;
    story.Tell(QueueMade("other"));
    story.Bring("a", state);
    EXPECT_THAT(story.Tell(MoveCommand("a", "other")), testing::SizeIs(testing::Ge(1)));
    EXPECT_EQ(story.last().queue(), "other");
    EXPECT_EQ(story.core().Counts().at({"other", state}), 1U);
    EXPECT_THAT(story.Tell(MoveCommand("a", "other")), IsEmpty());
  }
}

TEST(ConfigurationTest, BadQueuesAreNamed) {
  const auto message_of = [](const std::function<void(events::v1::QueueConfigured*)>& spoil) {
    Story story;
    events::v1::Envelope message = QueueMade("q");
    spoil(message.mutable_queue_configured());
    EXPECT_THAT(story.Tell(message), ElementsAre("poison"));
    return story.error();
  };
  EXPECT_EQ(message_of([](auto* queue) { queue->set_order("random"); }),
            "queue q: order \"random\" does not exist; allowed: priority, fair-share");
  EXPECT_EQ(message_of([](auto* queue) { queue->set_weight(-1); }),
            "queue q: weight is -1; it must not be below 0");
  EXPECT_EQ(message_of([](auto* queue) { queue->mutable_user_limits()->set_gpu_seconds(-2); }),
            "queue q: user_limits.gpu_seconds is -2; it must not be below 0");
  EXPECT_EQ(message_of([](auto* queue) {
              queue->mutable_limits()->add_amounts()->set_resource("cpu");
              queue->mutable_limits()->mutable_amounts(0)->set_amount(-3);
            }),
            "queue q: limits of cpu is -3; it must not be below 0");
}

}  // namespace
}  // namespace fluxqueue::queue_core
