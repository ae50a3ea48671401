// Commands in every state, and the lives of claims.
#include <limits>

#include <gtest/gtest.h>

#include "libs/model/rules.h"
#include "libs/queue_core/testing_story.h"

namespace fluxqueue::queue_core {
namespace {

using model::JobState;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

TEST(CommandTest, DoesInEachStateWhatAnnotationsDo) {
  for (JobState state : {JobState::kSubmitted,
                         JobState::kPending,
                         JobState::kAllocated,
                         JobState::kBound,
                         JobState::kRunning,
                         JobState::kStopping}) {
    JobOptions options;
    if (state == JobState::kSubmitted) options.queue = "nowhere";
    const std::pair<events::v1::Envelope, events::v1::Envelope> kSame[] = {
        {CancelCommand("a"), Cancelled("a")},
        {PriorityCommand("a", 7), Prioritised("a", 7)},
        {HoldCommand("a", true), Held("a", true)},
    };
    for (const auto& [command, annotation] : kSame) {
      Story commanded;
      Story annotated;
      commanded.Bring("a", state, options);
      annotated.Bring("a", state, options);
      const Story::Lines lines = commanded.Tell(command);
      EXPECT_THAT(lines, testing::Not(IsEmpty())) << model::Name(state);
      EXPECT_EQ(lines, annotated.Tell(annotation)) << model::Name(state);
      EXPECT_EQ(commanded.last().priority(), annotated.last().priority());
      // Said twice it changes nothing, and is no defect.
      EXPECT_THAT(commanded.Tell(command), IsEmpty());
      EXPECT_EQ(commanded.stale(), 1U);
    }
  }
}

TEST(CommandTest, HeldAndReleased) {
  Story story;
  story.Bring("a", JobState::kPending);
  EXPECT_THAT(story.Tell(HoldCommand("a", true)), ElementsAre("fact a v2 Pending Held"));
  EXPECT_EQ(story.core().Position("a"), 0U);
  EXPECT_THAT(story.Tell(HoldCommand("a", true)), IsEmpty());
  // The cycle under way had it: that attempt is not wanted any more.
  EXPECT_THAT(story.Tell(Answered(1, {{"a"}})), ElementsAre("release a/1"));
  EXPECT_THAT(story.Tell(HoldCommand("a", false)),
              ElementsAre("fact a v3 Pending Queued", "cycle 2: a/2"));
  EXPECT_THAT(story.Tell(HoldCommand("a", false)), IsEmpty());
}

TEST(CommandTest, SaysWhoCancelled) {
  Story story;
  story.Bring("a", JobState::kRunning);
  EXPECT_THAT(story.Tell(CancelCommand("a")),
              ElementsAre("fact a v5 Stopping Cancelled after=cancel"));
  EXPECT_EQ(story.last().message(), "cancelled by ann");
  events::v1::Envelope anonymous = CancelCommand("b");
  anonymous.mutable_command_accepted()->clear_asked_by();
  story.Bring("b", JobState::kPending);
  EXPECT_THAT(story.Tell(anonymous),
              ElementsAre("fact b v2 Cancelled Cancelled", "release b/1 ended"));
  EXPECT_EQ(story.last().message(), "cancelled by a command");
}

TEST(CommandTest, SaysWhoHeldReleasedMovedOrRaised) {
  for (const uint32_t rules : {model::kSaysWhoAsked - 1, model::kSaysWhoAsked}) {
    Story story;
    story.Tell(PoolConfig(0, rules));
    story.Tell(QueueMade("night"));
    story.Bring("a", JobState::kPending);
    const auto tell = [&story](events::v1::Envelope command, const char* user) {
      command.mutable_command_accepted()->set_asked_by(user);
      story.Tell(command);
      EXPECT_THAT(story.changes().events, testing::SizeIs(1));
      return story.changes().events.back().message;
    };
    EXPECT_THAT(tell(HoldCommand("a", true), "bob"), testing::StartsWith("held by bob"));
    const bool said = rules == model::kSaysWhoAsked;
    EXPECT_EQ(story.last().message() == "held by bob", said) << story.last().message();
    EXPECT_EQ(tell(HoldCommand("a", false), "eve"), "released by eve: in line");
    EXPECT_EQ(story.last().message(), said ? "released by eve: in line" : "in line");
    EXPECT_EQ(tell(MoveCommand("a", "night"), "ann"), "moved to queue night by ann: in line");
    EXPECT_THAT(tell(PriorityCommand("a", 7), "bob"), testing::StartsWith("priority 7 by bob: "));
    EXPECT_EQ(story.last().message().starts_with("priority"), false);
    // Nobody is known; and it is not said of what comes later.
    story.Tell(HoldCommand("a", true));
    EXPECT_EQ(story.changes().events.back().message, story.last().message());
    EXPECT_THAT(story.last().message(), testing::StartsWith("held by its user"));
  }
}

TEST(CommandTest, OfAJobThatIsNotKnownOrHasEndedIsStale) {
  Story story;
  story.Bring("a", JobState::kRunning);
  story.Tell(Ended("a"));
  for (const std::string id : {"a", "nobody"}) {
    for (const events::v1::Envelope& command : {CancelCommand(id),
                                                PriorityCommand(id, 3),
                                                HoldCommand(id, true),
                                                HoldCommand(id, false)}) {
      EXPECT_THAT(story.Tell(command), IsEmpty());
      EXPECT_EQ(story.stale(), 1U);
    }
  }
}

TEST(CommandTest, WhatIsNoCommandIsPoison) {
  Story story;
  events::v1::Envelope none = ForPool();
  none.mutable_command_accepted();
  EXPECT_THAT(story.Tell(none), ElementsAre("poison"));
  EXPECT_THAT(story.error(), HasSubstr("holds no command that this version knows"));
  EXPECT_THAT(story.Tell(CancelCommand("")), ElementsAre("poison"));
  EXPECT_THAT(story.error(), HasSubstr("names no job"));
  EXPECT_THAT(story.Tell(Claimed("a", {.slots = 0})), ElementsAre("poison"));
  EXPECT_THAT(story.error(), HasSubstr("0 slots"));
  EXPECT_THAT(story.Tell(Claimed("a", {.duration_ms = -1})), ElementsAre("poison"));
  EXPECT_THAT(story.error(), HasSubstr("a duration of -1 ms"));
}

// ------------------------------------------------------------------------------------------ claims

TEST(ClaimTest, RunsFromItsAllocationUntilItsTimeIsOver) {
  Story story;
  EXPECT_THAT(story.Tell(Claimed("c", {.slots = 2, .duration_ms = 60'000})),
              ElementsAre("fact c v1 Pending Queued", "cycle 1: c/1"));
  EXPECT_EQ(story.last().workload().kind(), "Claim");
  EXPECT_EQ(story.last().workload().api_version(), "fluxqueue.io/v1");
  EXPECT_EQ(story.last().workload().namespace_(), "");
  EXPECT_EQ(story.last().workload().name(), "claim-c");
  EXPECT_EQ(story.last().workload().owner(), "ann");
  EXPECT_EQ(story.last().slots(), 2U);
  EXPECT_EQ(story.core().NextDeadline(), story.now() + Millis(2000));  // the cycle's answer
  story.Wait(500);
  EXPECT_THAT(story.Tell(Answered(1, {{"c"}})),
              ElementsAre("fact c v2 Allocated", "fact c v3 Running"));
  EXPECT_EQ(story.last().start_ms(), story.now().count());
  EXPECT_EQ(story.last().placement_hash(), 77U);
  EXPECT_EQ(story.core().NextDeadline(), story.now() + Millis(60'000));
  story.Wait(59'999);
  EXPECT_THAT(story.Tell(Tick()), IsEmpty());
  story.Wait(1);
  EXPECT_THAT(story.Tell(Tick()), ElementsAre("fact c v4 Succeeded Expired", "release c/1 ended"));
  EXPECT_EQ(story.last().message(), "its time is over");
  EXPECT_TRUE(story.core().Remembers("c"));
  story.Tell(Released("c", 1));
  EXPECT_EQ(story.core().NextDeadline(), std::nullopt);
  EXPECT_FALSE(story.core().Remembers("c"));
}

TEST(ClaimTest, ItsCallerIsChargedWhereHeIsKnown) {
  Story story;
  story.Tell(Claimed("a"));
  EXPECT_EQ(story.last().user(), "ann") << "the owner: as in logs of before";
  events::v1::Envelope claim = Claimed("b");
  claim.mutable_command_accepted()->mutable_submit_claim()->set_user("eve");
  story.Tell(claim);
  EXPECT_EQ(story.last().user(), "eve");
  EXPECT_EQ(story.last().workload().owner(), "ann");
}

TEST(ClaimTest, EndsBeforeTheMessageThatBringsTheTimeIsRead) {
  Story story;
  story.Tell(Claimed("c", {.duration_ms = 1000}));
  story.Tell(Answered(1, {{"c"}}));
  story.Wait(1000);
  EXPECT_THAT(story.Tell(CancelCommand("c")),
              ElementsAre("fact c v4 Succeeded Expired", "release c/1 ended"));
  EXPECT_EQ(story.stale(), 1U);
}

TEST(ClaimTest, KeepsTheDurationThatItStartedWith) {
  Story story;
  events::v1::Envelope queue = QueueMade("default");
  queue.mutable_queue_configured()->set_default_duration_ms(5000);
  story.Tell(queue);
  story.Tell(Claimed("c"));
  story.Tell(Answered(1, {{"c"}}));
  EXPECT_EQ(story.last().duration_ms(), 5000);
  queue.mutable_queue_configured()->set_default_duration_ms(90'000);
  story.Tell(queue);
  EXPECT_THAT(story.Tell(PriorityCommand("c", 3)), ElementsAre("fact c v4 Running"));
  EXPECT_EQ(story.last().duration_ms(), 5000);
  EXPECT_EQ(story.core().NextDeadline(), story.now() + Millis(5000));
}

TEST(ClaimTest, WithoutADurationItRunsUntilItIsCancelled) {
  for (const int64_t duration : {int64_t{0}, std::numeric_limits<int64_t>::max()}) {
    Story story;
    story.Tell(Claimed("c", {.duration_ms = duration}));
    story.Tell(Answered(1, {{"c"}}));
    EXPECT_EQ(story.core().NextDeadline(), std::nullopt);
    story.Wait(1'000'000'000);
    EXPECT_THAT(story.Tell(Tick()), IsEmpty());
    // Nothing has to be stopped: it gives back at once what it held.
    EXPECT_THAT(story.Tell(CancelCommand("c")),
                ElementsAre("fact c v4 Cancelled Cancelled", "release c/1 ended"));
    EXPECT_THAT(story.Tell(CancelCommand("c")), IsEmpty());
  }
}

TEST(ClaimTest, CancelledWhileItsCycleIsUnderWay) {
  Story story;
  story.Tell(Claimed("c"));
  EXPECT_THAT(story.Tell(CancelCommand("c")),
              ElementsAre("fact c v2 Cancelled Cancelled", "release c/1 ended"));
  // Its last release stands behind the request in the log and covers this.
  EXPECT_THAT(story.Tell(Answered(1, {{"c"}})), IsEmpty());
}

TEST(ClaimTest, IsSubmittedOnce) {
  Story story;
  story.Tell(Claimed("c"));
  EXPECT_THAT(story.Tell(Claimed("c", {.slots = 9})), IsEmpty());
  EXPECT_EQ(story.stale(), 1U);
  EXPECT_EQ(story.core().Find("c")->slots, 1U);
  story.Tell(CancelCommand("c"));
  EXPECT_THAT(story.Tell(Claimed("c")), IsEmpty());
}

TEST(ClaimTest, FailsWithANodeOfIts) {
  Story story;
  story.Tell(Claimed("c", {.slots = 2}));
  story.Tell(Answered(1, {{"c"}}));
  EXPECT_THAT(story.Tell(NodeGone("n7", "c", 1)),
              ElementsAre("fact c v4 Failed NodeLost", "release c/1 ended"));
  EXPECT_EQ(story.last().message(), "node n7 is gone");
}

TEST(ClaimTest, WaitsAndIsRefusedLikeAnyJob) {
  Story story;
  EXPECT_THAT(story.Tell(Claimed("c", {.queue = "later"})),
              ElementsAre("fact c v1 Submitted NoQueue"));
  EXPECT_THAT(story.Tell(QueueMade("later", 0, 0, "fcfs", /*reject_after_ms=*/5000)),
              ElementsAre("fact c v2 Pending Queued", "cycle 1: c/1"));
  EXPECT_THAT(story.Tell(Answered(1, {{"c", 1, kBusyKind, "cpu is short"}})),
              ElementsAre("fact c v3 Pending Busy"));
  EXPECT_THAT(story.Tell(HoldCommand("c", true)), ElementsAre("fact c v4 Pending Held"));
  EXPECT_THAT(story.Tell(HoldCommand("c", false)),
              ElementsAre("fact c v5 Pending Queued", "cycle 2: c/1"));
  EXPECT_THAT(story.Tell(Answered(2, {{"c", 1, kUnsatisfiableKind, "never"}})),
              ElementsAre("fact c v6 Pending Unsatisfiable"));
  story.Wait(5000);
  EXPECT_THAT(story.Tell(Tick()), ElementsAre("cycle 3: c/1"));
  EXPECT_THAT(story.Tell(Answered(3, {{"c", 1, kUnsatisfiableKind, "never"}})),
              ElementsAre("fact c v7 Rejected Unsatisfiable", "release c/1 ended"));
  story.Tell(Claimed("d"));
  EXPECT_THAT(story.Tell(Answered(4, {{"d", 1, kInvalidKind, "no resources"}})),
              ElementsAre("fact d v2 Rejected Invalid", "release d/1 ended"));
}

TEST(ClaimTest, NobodyInTheClusterSpeaksOfIt) {
  Story story;
  story.Tell(Claimed("c"));
  story.Tell(Answered(1, {{"c"}}));
  for (const events::v1::Envelope& message : {Bound("c"),
                                              BindFailed("c"),
                                              Stopped("c"),
                                              Started("c"),
                                              PodEnded("c", 0),
                                              Ended("c"),
                                              NodeLost("c"),
                                              Cancelled("c"),
                                              Resized("c", 2, 3),
                                              Withdrawn("c")}) {
    EXPECT_THAT(story.Tell(message), ElementsAre("poison"));
    EXPECT_THAT(story.error(), HasSubstr("job c is a claim"));
  }
}

TEST(ClaimTest, SeveralEndInTheOrderOfTheirTimes) {
  Story story;
  story.Tell(Claimed("late", {.duration_ms = 3000}));
  story.Tell(Answered(1, {{"late"}}));
  story.Tell(Claimed("early", {.duration_ms = 1000}));
  story.Tell(Answered(2, {{"early"}}));
  story.Wait(10'000);
  EXPECT_THAT(story.Tell(Tick()),
              ElementsAre("fact early v4 Succeeded Expired",
                          "fact late v4 Succeeded Expired",
                          "release early/1 ended",
                          "release late/1 ended"));
}

}  // namespace
}  // namespace fluxqueue::queue_core
