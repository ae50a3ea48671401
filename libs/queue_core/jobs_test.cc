// The lives of jobs, as stories: log in, facts out.
#include <gtest/gtest.h>

#include "libs/queue_core/job_book.h"
#include "libs/queue_core/testing_story.h"

namespace fluxqueue::queue_core {
namespace {

using model::JobState;
using testing::Contains;
using testing::ElementsAre;
using testing::ElementsAreArray;
using testing::HasSubstr;
using testing::IsEmpty;

TEST(JobStoryTest, APodFromItsSubmissionToItsEnd) {
  Story story;
  EXPECT_THAT(story.Tell(Submitted("a", BarePod())),
              ElementsAre("fact a v1 Pending Queued", "cycle 1: a/1"));
  EXPECT_THAT(story.Tell(Answered(1, {{"a"}})), ElementsAre("fact a v2 Allocated"));
  EXPECT_EQ(story.last().placement_hash(), 77U);
  EXPECT_THAT(story.Tell(Bound("a")), ElementsAre("fact a v3 Bound"));
  EXPECT_THAT(story.Tell(Started("a")), ElementsAre("fact a v4 Running"));
  EXPECT_EQ(story.last().start_ms(), 456);
  // A pod's only slot goes with the job, which ends in the same moment.
  EXPECT_THAT(story.Tell(PodEnded("a", 0)), IsEmpty());
  EXPECT_THAT(story.Tell(Ended("a")), ElementsAre("fact a v5 Succeeded", "release a/1 ended"));
  EXPECT_EQ(story.last().placement_hash(), 0U);
  EXPECT_EQ(story.core().Find("a"), nullptr);
  // Until the matcher has confirmed, the id is remembered; then the job is forgotten.
  EXPECT_THAT(story.Tell(Submitted("a")), IsEmpty());
  EXPECT_EQ(story.stale(), 1U);
  EXPECT_THAT(story.Tell(Released("a", 1)), IsEmpty());
  EXPECT_EQ(story.core().size(), 0U);
}

TEST(JobStoryTest, AGangGivesItsSlotsBackOneByOne) {
  Story story;
  story.Bring("g", JobState::kRunning, {.slots = 3, .completions = 3});
  EXPECT_THAT(story.Tell(PodEnded("g", 2)), ElementsAre("release g/1 slot 2"));
  EXPECT_THAT(story.Tell(PodEnded("g", 2)), IsEmpty());  // said twice, released once
  // The replacement of a pod that failed wants its slot.
  EXPECT_THAT(story.Tell(PodEnded("g", 0, kPodFailed)), IsEmpty());
  EXPECT_THAT(story.Tell(PodEnded("g", 0)), ElementsAre("release g/1 slot 0"));
  EXPECT_THAT(story.Tell(Ended("g")), ElementsAre("fact g v5 Succeeded", "release g/1 ended"));
}

TEST(JobStoryTest, SlotsOfAJobWithMoreCompletionsAreKept) {
  Story story;
  story.Bring("g", JobState::kRunning, {.slots = 2, .completions = 10});
  EXPECT_THAT(story.Tell(PodEnded("g", 0)), IsEmpty());
}

TEST(JobStoryTest, RequeuedAfterAFailedBinding) {
  Story story;
  story.Bring("a", JobState::kAllocated);
  EXPECT_THAT(story.Tell(BindFailed("a")),
              ElementsAre("fact a v3 Stopping BindFailed after=requeue"));
  EXPECT_EQ(story.last().message(), "StartTimeout: no pods came within 60 s");
  EXPECT_THAT(story.Tell(BindFailed("a")), IsEmpty());
  EXPECT_THAT(story.Tell(Stopped("a")), ElementsAre("fact a v4 Pending Retry", "release a/1"));
  EXPECT_EQ(story.last().message(),
            "attempt 2 in 1.0 s; BindFailed: StartTimeout: no pods came within 60 s");
  // Nothing is asked before its time, which the core names.
  EXPECT_THAT(story.Tell(Released("a", 1)), IsEmpty());
  EXPECT_EQ(story.core().NextDeadline(), story.now() + Millis(1000));
  EXPECT_EQ(story.core().Position("a"), 0U);
  story.Wait(1000);
  EXPECT_THAT(story.Tell(Tick()), ElementsAre("cycle 2: a/2"));
  // What is said of attempt 1 is too late now.
  EXPECT_THAT(story.Tell(Bound("a", 1)), IsEmpty());
  EXPECT_EQ(story.stale(), 1U);
  EXPECT_THAT(story.Tell(Answered(2, {{"a", 2}})), ElementsAre("fact a v5 Allocated"));
  // The second failure waits twice as long.
  story.Tell(BindFailed("a", 2));
  EXPECT_THAT(story.Tell(Stopped("a", 2)), ElementsAre("fact a v7 Pending Retry", "release a/2"));
  EXPECT_EQ(story.core().NextDeadline(), story.now() + Millis(2000));
}

TEST(JobStoryTest, FailsAfterItsLastAttempt) {
  Story story;
  story.Tell(PoolConfig(/*max_attempts=*/2));
  story.Bring("a", JobState::kAllocated);
  story.Tell(BindFailed("a"));
  story.Tell(Stopped("a"));
  story.Wait(1000);
  EXPECT_THAT(story.Tell(Tick()), ElementsAre("cycle 2: a/2"));
  story.Tell(Answered(2, {{"a", 2}}));
  EXPECT_THAT(story.Tell(BindFailed("a", 2)),
              ElementsAre("fact a v6 Stopping BindFailed after=fail"));
  EXPECT_THAT(story.last().message(), HasSubstr("attempt 2 of 2"));
  EXPECT_THAT(story.Tell(Stopped("a", 2)),
              ElementsAre("fact a v7 Failed BindFailed", "release a/2 ended"));
}

TEST(JobStoryTest, ABarePodOnALostNodeFails) {
  Story story;
  story.Bring("p", JobState::kRunning, BarePod());
  EXPECT_THAT(story.Tell(NodeLost("p")), ElementsAre("fact p v5 Stopping NodeLost after=fail"));
  EXPECT_THAT(story.last().message(), HasSubstr("no controller makes the Pod again"));
  // The binder's deletion shows as the job's end.
  EXPECT_THAT(story.Tell(Ended("p", kJobDeleted)),
              ElementsAre("fact p v6 Failed NodeLost", "release p/1 ended"));
}

TEST(JobStoryTest, AJobOnALostNodeIsRequeued) {
  Story story;
  story.Bring("a", JobState::kRunning);
  EXPECT_THAT(story.Tell(NodeLost("a")), ElementsAre("fact a v5 Stopping NodeLost after=requeue"));
  EXPECT_THAT(story.Tell(Stopped("a")), ElementsAre("fact a v6 Pending Retry", "release a/1"));
}

TEST(JobStoryTest, ANodeThatGoesTakesItsAllocationsAlong) {
  Story story;
  story.Bring("p", JobState::kAllocated, BarePod());
  EXPECT_THAT(story.Tell(NodeGone("n1", "p", 1)),
              ElementsAre("fact p v3 Stopping NodeLost after=requeue"));
  EXPECT_EQ(story.last().message(), "node n1 is gone");
  // It turns out that the pod had been bound: nobody makes it again.
  EXPECT_THAT(story.Tell(Bound("p")), ElementsAre("fact p v4 Stopping NodeLost after=fail"));
  EXPECT_THAT(story.Tell(Stopped("p")),
              ElementsAre("fact p v5 Failed NodeLost", "release p/1 ended"));
  EXPECT_THAT(story.Tell(NodeGone("n1", "p", 1)), IsEmpty());  // its last release is on its way
}

TEST(JobStoryTest, CancelledInEachState) {
  const struct {
    JobState state;
    std::vector<std::string> said;
    std::vector<std::string> then;  // to JobStopped
  } kCases[] = {
      {JobState::kPending, {"fact a v2 Cancelled Cancelled", "release a/1 ended"}, {}},
      {JobState::kAllocated,
       {"fact a v3 Stopping Cancelled after=cancel"},
       {"fact a v4 Cancelled Cancelled", "release a/1 ended"}},
      {JobState::kBound,
       {"fact a v4 Stopping Cancelled after=cancel"},
       {"fact a v5 Cancelled Cancelled", "release a/1 ended"}},
      {JobState::kRunning,
       {"fact a v5 Stopping Cancelled after=cancel"},
       {"fact a v6 Cancelled Cancelled", "release a/1 ended"}},
      // On its way to be requeued: now it is not.
      {JobState::kStopping,
       {"fact a v6 Stopping Cancelled after=cancel"},
       {"fact a v7 Cancelled Cancelled", "release a/1 ended"}},
  };
  for (const auto& c : kCases) {
    Story story;
    story.Bring("a", c.state);
    EXPECT_EQ(story.Tell(Cancelled("a")), c.said) << model::Name(c.state);
    EXPECT_THAT(story.Tell(Cancelled("a")), IsEmpty());
    EXPECT_EQ(story.Tell(Stopped("a")), c.then) << model::Name(c.state);
    EXPECT_THAT(story.Tell(Cancelled("a")), IsEmpty());
  }
}

TEST(JobStoryTest, WithdrawnInEachState) {
  for (JobState state :
       {JobState::kAllocated, JobState::kBound, JobState::kRunning, JobState::kStopping}) {
    Story story;
    story.Bring("a", state);
    const auto lines = story.Tell(Withdrawn("a"));
    ASSERT_EQ(lines.size(), 1U) << model::Name(state);
    EXPECT_THAT(lines[0], HasSubstr("Stopping Withdrawn after=cancel")) << model::Name(state);
    EXPECT_THAT(story.Tell(Ended("a", kJobDeleted)),
                ElementsAre(HasSubstr("Cancelled Withdrawn"), "release a/1 ended"));
  }
  Story story;
  story.Bring("a", JobState::kPending);
  EXPECT_THAT(story.Tell(Withdrawn("a")),
              ElementsAre("fact a v2 Cancelled Withdrawn", "release a/1 ended"));
  // The cycle had allocated it meanwhile: the release above, behind the request in the log, covers
  // that.
  EXPECT_THAT(story.Tell(Answered(1, {{"a"}})), IsEmpty());
  EXPECT_THAT(story.Tell(Withdrawn("nobody")), IsEmpty());
}

TEST(JobStoryTest, LaterFactsOvertakeEarlierOnes) {
  Story story;
  story.Bring("a", JobState::kAllocated);
  EXPECT_THAT(story.Tell(Started("a")), ElementsAre("fact a v3 Running"));
  EXPECT_THAT(story.Tell(Bound("a")), IsEmpty());
  EXPECT_EQ(story.stale(), 1U);

  story.Bring("b", JobState::kAllocated);
  EXPECT_THAT(story.Tell(Ended("b")), ElementsAre("fact b v3 Succeeded", "release b/1 ended"));
  EXPECT_THAT(story.Tell(Bound("b")), IsEmpty());
  EXPECT_THAT(story.Tell(Started("b")), IsEmpty());

  story.Bring("c", JobState::kPending);
  EXPECT_THAT(story.Tell(Ended("c", kJobDeleted)),
              ElementsAre("fact c v2 Cancelled Deleted", "release c/1 ended"));
}

TEST(JobStoryTest, EndsByItselfWhileItIsStopped) {
  Story story;
  story.Bring("a", JobState::kRunning);
  story.Tell(Cancelled("a"));
  EXPECT_THAT(story.Tell(Ended("a", kJobSucceeded)),
              ElementsAre("fact a v6 Succeeded", "release a/1 ended"));

  story.Bring("b", JobState::kStopping);  // to be requeued
  EXPECT_THAT(story.Tell(Ended("b", kJobFailed)),
              ElementsAre("fact b v6 Failed Failed", "release b/1 ended"));

  story.Bring("c", JobState::kRunning);
  story.Tell(Cancelled("c"));
  EXPECT_THAT(story.Tell(Ended("c", kJobFailed)),
              ElementsAre("fact c v6 Cancelled Cancelled", "release c/1 ended"));
}

TEST(JobStoryTest, HeldAndLetGo) {
  Story story;
  EXPECT_THAT(story.Tell(Submitted("a", {.hold = true})), ElementsAre("fact a v1 Pending Held"));
  EXPECT_THAT(story.Tell(Held("a", true)), IsEmpty());  // known already
  EXPECT_THAT(story.Tell(Held("a", false)),
              ElementsAre("fact a v2 Pending Queued", "cycle 1: a/1"));
  // Held while it is being asked for: the answer is not wanted any more.
  EXPECT_THAT(story.Tell(Held("a", true)), ElementsAre("fact a v3 Pending Held"));
  EXPECT_EQ(story.last().attempt(), 2U);
  EXPECT_THAT(story.Tell(Answered(1, {{"a", 1}})), ElementsAre("release a/1"));
  EXPECT_THAT(story.Tell(Held("a", false)),
              ElementsAre("fact a v4 Pending Queued", "cycle 2: a/2"));
}

// An id that is too long for a std::string to hold in itself: a change of the whole job moves it.
TEST(JobStoryTest, AChangedJobIsFoundByItsId) {
  const std::string id = "87068ba6-200e-4ff0-a371-e02a3c191c3c";
  Story story;
  story.Tell(Submitted(id, {.hold = true}));
  story.Tell(Prioritised(id, 7));
  story.Tell(Held(id, false));
  EXPECT_THAT(story.Tell(Answered(1, {{id, 1}})),
              ElementsAre(fmt::format("fact {} v4 Allocated", id)));
  EXPECT_THAT(story.Tell(Cancelled(id)),
              ElementsAre(fmt::format("fact {} v5 Stopping Cancelled after=cancel", id)));
}

TEST(JobStoryTest, WaitsForItsQueue) {
  Story story;
  EXPECT_THAT(story.Tell(Submitted("a", {.queue = "gpu"})),
              ElementsAre("fact a v1 Submitted NoQueue"));
  EXPECT_EQ(story.last().message(),
            "FluxQueue gpu does not exist in pool main: make it, or name another");
  EXPECT_THAT(story.Tell(Submitted("b", {.queue = "gpu"})),
              ElementsAre("fact b v1 Submitted NoQueue"));
  EXPECT_THAT(
      story.Tell(QueueMade("gpu")),
      ElementsAre("fact a v2 Pending Queued", "fact b v2 Pending Queued", "cycle 1: a/1 b/1"));
  story.Tell(Answered(1, {{"a"}, {"b", 1, kBusyKind, "no room"}}));
  // Deleted: who has started goes on, who waits, waits for the queue.
  EXPECT_THAT(story.Tell(QueueDeleted("gpu")), ElementsAre("fact b v4 Submitted NoQueue"));
  EXPECT_THAT(story.Tell(Bound("a")), ElementsAre("fact a v4 Bound"));
  // A started job that is requeued waits for it too.
  story.Tell(NodeLost("a"));
  EXPECT_THAT(story.Tell(Stopped("a")), ElementsAre("fact a v6 Submitted NoQueue", "release a/1"));
  // Or moves to one that there is.
  EXPECT_THAT(story.Tell(Moved("b", "default")),
              ElementsAre("fact b v5 Pending Queued", "cycle 2: b/1"));
}

TEST(JobStoryTest, ANewRevisionRequeuesWhatIsAllocated) {
  for (JobState state : {JobState::kAllocated, JobState::kBound}) {
    Story story;
    story.Bring("a", state);
    ASSERT_THAT(story.Tell(Resized("a", 2, 4)),
                ElementsAre(HasSubstr("Stopping Resized after=requeue")));
    // It is no failure: it is in line at once.
    EXPECT_THAT(story.Tell(Stopped("a")),
                ElementsAre(HasSubstr("Pending Queued"), "release a/1", "cycle 2: a/2"));
    EXPECT_EQ(story.last().slots(), 4U);
    EXPECT_EQ(story.last().revision(), 2U);
    EXPECT_THAT(story.Tell(Resized("a", 2, 9)), IsEmpty());  // known already
  }
  // A bound bare pod goes on with what it has.
  Story story;
  story.Bring("p", JobState::kBound, BarePod());
  EXPECT_THAT(story.Tell(Resized("p", 2, 1)), ElementsAre("fact p v4 Bound"));
}

TEST(JobStoryTest, ANewRevisionInFlightIsAskedForAgain) {
  Story story;
  story.Bring("a", JobState::kPending);
  EXPECT_THAT(story.Tell(Resized("a", 2, 4)), ElementsAre("fact a v2 Pending Queued"));
  EXPECT_THAT(story.Tell(Answered(1, {{"a", 1}})), ElementsAre("release a/1", "cycle 2: a/2"));
}

TEST(JobStoryTest, WhatCannotBeIsPoisonAndChangesNothing) {
  Story story;
  story.Bring("a", JobState::kPending);
  const uint64_t before = story.core().Fingerprint();
  for (const auto& message :
       {Bound("a", 1), Bound("a", 2), Stopped("a", 1), Submitted("z", {.slots = 0})}) {
    EXPECT_THAT(story.Tell(message), ElementsAre("poison")) << message.ShortDebugString();
    EXPECT_TRUE(story.changes().empty());
  }
  EXPECT_EQ(story.core().Fingerprint(), before);
  story.Tell(Bound("a", 1));
  EXPECT_EQ(story.error(), "job a: Bound is impossible in state Pending (attempt 1, version 1)");
  events::v1::Envelope queue = QueueMade("q");
  queue.mutable_queue_configured()->set_strategy("lifo");
  story.Tell(queue);
  EXPECT_EQ(story.error(),
            "queue q: strategy \"lifo\" does not exist; allowed: fcfs, easy, conservative, hybrid, "
            "adaptive");
  events::v1::Envelope stranger = Tick();
  stranger.set_pool("other");
  EXPECT_THAT(story.Tell(stranger), ElementsAre("poison"));
}

TEST(JobStoryTest, RowsAndEventsOfAChange) {
  Story story;
  story.Tell(Submitted("a", {.slots = 2, .priority = 7}));
  const Changes& changes = story.changes();
  ASSERT_EQ(changes.jobs.size(), 1U);
  const JobChange& row = changes.jobs[0];
  EXPECT_EQ(row.job_id, "a");
  EXPECT_EQ(row.queue, "default");
  EXPECT_EQ(row.name_space, "team");
  EXPECT_EQ(row.name, "name-of-a");
  EXPECT_EQ(row.kind, "Job");
  EXPECT_EQ(row.state, JobState::kPending);
  EXPECT_EQ(row.version, 1U);
  EXPECT_EQ(row.slots, 2U);
  EXPECT_EQ(row.priority, 7);
  EXPECT_EQ(row.created_ms, 123);
  EXPECT_EQ(row.updated_ms, story.now().count());
  ASSERT_EQ(changes.events.size(), 1U);
  EXPECT_EQ(changes.events[0].version, 1U);
  ASSERT_EQ(changes.cycles_requested.size(), 1U);
  EXPECT_THAT(changes.cycles_answered, IsEmpty());
  // A repeated refusal is neither a fact nor a row.
  story.Tell(Answered(1, {{"a", 1, kBusyKind, "no room"}}));
  EXPECT_EQ(story.changes().jobs.size(), 1U);
  story.Tell(Inventory(true, true));
  story.Tell(Answered(2, {{"a", 1, kBusyKind, "no room"}}));
  EXPECT_THAT(story.changes().jobs, IsEmpty());
  EXPECT_THAT(story.changes().cycles_answered, ElementsAre(2U));
}

TEST(JobStoryTest, CountsAndPositions) {
  Story story;
  for (const char* id : {"a", "b", "c"}) story.Tell(Submitted(id));
  story.Tell(Submitted("h", {.hold = true}));
  EXPECT_EQ(story.core().Position("a"), 1U);
  EXPECT_EQ(story.core().Position("c"), 3U);
  EXPECT_EQ(story.core().Position("h"), 0U);
  story.Tell(Prioritised("c", 5));
  EXPECT_EQ(story.core().Position("c"), 1U);
  EXPECT_EQ(story.core().Position("b"), 3U);
  story.Tell(Answered(1, {{"a"}}));
  const auto counts = story.core().Counts();
  EXPECT_EQ(counts.at({"default", JobState::kPending}), 3U);
  EXPECT_EQ(counts.at({"default", JobState::kAllocated}), 1U);
  EXPECT_EQ(counts.size(), 2U);
  EXPECT_THAT(story.core().Front(9), ElementsAre("c", "b", "h", "a"));
  EXPECT_THAT(story.core().Front(1), ElementsAre("c", "h"));
}

TEST(JobStoryTest, OfEachQueueTheFirstThatLacksNothingButNodesIsNamed) {
  Story story;
  for (const char* id : {"a", "b", "c", "d", "e"}) story.Tell(Submitted(id));
  EXPECT_THAT(story.core().LackNodes(), IsEmpty()) << "none was tried";
  story.Tell(Answered(1, {{"a"}}));
  story.Tell(Answered(2, {{"b", 1, kBusyKind, "no room"}, {"c", 1, kBusyKind, "no room"}}));
  EXPECT_THAT(story.core().LackNodes(), ElementsAre("b")) << "a has its nodes, c is behind b";
  story.Tell(Prioritised("d", 5));
  EXPECT_THAT(story.core().LackNodes(), ElementsAre("b")) << "d was not tried yet";
  story.Tell(Held("b", true));
  EXPECT_THAT(story.core().LackNodes(), ElementsAre("c")) << "no node would start what is held";
}

// Such jobs hold up no other: each waits for nodes of its own, and no user's hide those of others.
TEST(JobStoryTest, OfWhatNoNodeCouldRunTheFirstOfEachUserIsNamed) {
  Story story;
  uint64_t cycle = 0;
  const auto submit = [&](const std::string& id, const std::string& user) {
    story.Tell(Submitted(id, {.user = user}));
    story.Tell(Answered(++cycle, {{id, 1, kUnsatisfiableKind, "too large"}}));
  };
  for (const char* id : {"a1", "a2"}) submit(id, "ann");
  submit("b", "bob");
  EXPECT_THAT(story.core().LackNodes(), ElementsAre("a1", "b"));
  // Other nodes come: until it is tried with them it is named as before.
  story.Tell(Inventory(true, true));
  EXPECT_THAT(story.core().LackNodes(), ElementsAre("a1", "b"));
}

TEST(JobStoryTest, WhatWasRejectedIsHandedInAgain) {
  Story story;
  story.Tell(Submitted("a", {.slots = 3}));
  story.Tell(Answered(1, {{"a", 1, kInvalidKind, "asks for a moon"}}));
  ASSERT_EQ(story.last().state(), events::v1::JOB_STATE_REJECTED);
  // The matcher has still to forget it.
  EXPECT_THAT(story.Tell(HandedInAgain("a", 2, 1, {.slots = 1})), IsEmpty());
  EXPECT_EQ(story.stale(), 1U);
  story.Tell(Released("a", 1, /*nothing_held=*/true));
  story.Wait(5000);
  EXPECT_THAT(story.Tell(HandedInAgain("a", 2, 1, {.slots = 1, .priority = 4})),
              ElementsAre("fact a v3 Pending Queued", "cycle 2: a/2"));
  EXPECT_EQ(story.last().message(), "in line: handed in again after it was rejected");
  EXPECT_EQ(story.last().slots(), 1U);
  EXPECT_EQ(story.last().priority(), 4);
  ASSERT_EQ(story.changes().jobs.size(), 1U);
  EXPECT_EQ(story.changes().jobs[0].ending, 0U);
  // Said twice, it is known.
  EXPECT_THAT(story.Tell(HandedInAgain("a", 2, 1)), IsEmpty());
  EXPECT_EQ(story.stale(), 1U);
  story.Wait(1000);
  EXPECT_THAT(story.Tell(Answered(2, {{"a", 2}})), ElementsAre("fact a v4 Allocated"));
  story.Tell(Started("a", 2));
  EXPECT_THAT(story.Tell(Ended("a")), ElementsAre("fact a v6 Succeeded", "release a/2 ended"));
  // It waited anew.
  ASSERT_EQ(story.changes().attempts.size(), 1U);
  EXPECT_EQ(story.changes().attempts[0].attempt, 2U);
  EXPECT_EQ(story.changes().attempts[0].waited_ms, 1000);
  EXPECT_EQ(story.changes().jobs[0].ending, 2U);
}

TEST(JobStoryTest, WhoComesLaterWaitsForWhatWasHandedInAgain) {
  Story story;
  story.Tell(Submitted("a"));
  story.Tell(Answered(1, {{"a", 1, kInvalidKind, "bad"}}));
  story.Tell(Released("a", 1, /*nothing_held=*/true));
  EXPECT_THAT(story.Tell(Submitted("b", {.depends_on = {"afterok:a"}})),
              ElementsAre("fact b v1 Pending Queued",
                          "fact b v2 Cancelled DependencyNeverSatisfied",
                          "release b/1 ended"));
  story.Tell(HandedInAgain("a", 2, 1));
  EXPECT_THAT(story.Tell(Submitted("c", {.depends_on = {"afterok:name-of-a"}})),
              ElementsAre("fact c v1 Pending Dependency"));
  story.Tell(Answered(2, {{"a", 2}}));
  EXPECT_THAT(
      story.Tell(Ended("a")),
      ElementsAre(
          "fact a v5 Succeeded", "fact c v2 Pending Queued", "release a/2 ended", "cycle 3: c/1"));
}

TEST(JobStoryTest, HandedInAgainFromNowhereIsPoison) {
  Story story;
  EXPECT_THAT(story.Tell(HandedInAgain("a", 2, 0)), ElementsAre("poison"));
  EXPECT_THAT(story.Tell(HandedInAgain("a", 0, 1)), ElementsAre("poison"));
  EXPECT_EQ(story.error(),
            "job a: JobSubmitted goes on from version 0, attempt 1; one that is handed in again "
            "names both");
}

TEST(JobStoryTest, AJobIsSmall) {
  EXPECT_LE(sizeof(Entry), 712U);
}

}  // namespace
}  // namespace fluxqueue::queue_core
