// What is asked of the matcher, and when.
#include <algorithm>

#include <gtest/gtest.h>

#include "libs/model/rules.h"
#include "libs/queue_core/testing_story.h"

namespace fluxqueue::queue_core {
namespace {

using model::JobState;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

TEST(CycleTest, OneInFlightAndTheNextBeginsAtOnce) {
  Story story;
  EXPECT_THAT(story.Tell(Submitted("a")), ElementsAre("fact a v1 Pending Queued", "cycle 1: a/1"));
  EXPECT_THAT(story.Tell(Submitted("b")), ElementsAre("fact b v1 Pending Queued"));
  EXPECT_THAT(story.Tell(Submitted("c")), ElementsAre("fact c v1 Pending Queued"));
  EXPECT_THAT(story.Tell(Answered(1, {{"a"}})),
              ElementsAre("fact a v2 Allocated", "cycle 2: b/1 c/1"));
  EXPECT_THAT(story.Tell(Answered(1, {{"b"}})), IsEmpty());  // not the one in flight
  EXPECT_THAT(story.Tell(Answered(2, {{"b"}, {"c"}})),
              ElementsAre("fact b v2 Allocated", "fact c v2 Allocated"));
  EXPECT_EQ(story.core().cycle_in_flight(), 0U);
}

TEST(CycleTest, ABlockedHeadIsNotAskedForAgainUntilSomethingChanged) {
  Story story;
  story.Tell(Submitted("a"));
  EXPECT_THAT(story.Tell(Answered(1, {{"a", 1, kBusyKind, "cpu is short on 20 nodes"}})),
              ElementsAre("fact a v2 Pending Busy"));
  EXPECT_EQ(story.last().message(), "cpu is short on 20 nodes");
  // Who comes behind it changes nothing.
  EXPECT_THAT(story.Tell(Submitted("b")), ElementsAre("fact b v1 Pending Queued"));
  EXPECT_THAT(story.Tell(Tick()), IsEmpty());
  EXPECT_THAT(story.Tell(Released("x", 1, /*nothing_held=*/true)), IsEmpty());
  EXPECT_THAT(story.Tell(Released("x", 1)), ElementsAre("cycle 2: a/1 b/1"));
  // Read before the answer, so the answer knows.
  EXPECT_THAT(story.Tell(Released("y", 1)), IsEmpty());
  EXPECT_THAT(story.Tell(Answered(2, {{"a", 1, kBusyKind, "cpu is short on 19 nodes"}})),
              IsEmpty());
  EXPECT_THAT(story.Tell(Inventory(true, true)), ElementsAre("cycle 3: a/1 b/1"));
  story.Tell(Answered(3, {{"a", 1, kBusyKind, "cpu is short on 19 nodes"}}));
  // Who goes before it is asked for.
  EXPECT_THAT(story.Tell(Prioritised("b", 1)),
              ElementsAre("fact b v2 Pending Queued", "cycle 4: b/1 a/1"));
  EXPECT_THAT(story.Tell(Answered(4, {{"b"}, {"a", 1, kBusyKind, "cpu is short on 19 nodes"}})),
              ElementsAre("fact b v3 Allocated"));
}

TEST(CycleTest, AnotherReasonIsANewFact) {
  Story story;
  story.Tell(Submitted("a"));
  story.Tell(Answered(1, {{"a", 1, kBusyKind, "cpu is short"}}));
  // The same word in other words: only after a while.
  story.Tell(Inventory(true, true));
  EXPECT_THAT(story.Tell(Answered(2, {{"a", 1, kBusyKind, "memory is short"}})), IsEmpty());
  story.Wait(10'000);
  story.Tell(Inventory(true, true));
  EXPECT_THAT(story.Tell(Answered(3, {{"a", 1, kBusyKind, "memory is short"}})),
              ElementsAre("fact a v3 Pending Busy"));
  EXPECT_EQ(story.last().message(), "memory is short");
}

TEST(CycleTest, NoAnswerByTheDeadlineAsksTheSameAgain) {
  Story story;
  story.Tell(Submitted("a"));
  EXPECT_EQ(story.core().NextDeadline(), story.now() + Millis(2000));
  story.Tell(Submitted("b"));
  story.Wait(1999);
  EXPECT_THAT(story.Tell(Tick()), IsEmpty());
  story.Wait(1);
  EXPECT_THAT(story.Tell(Tick()), ElementsAre("cycle 1: a/1"));
  EXPECT_EQ(story.core().NextDeadline(), story.now() + Millis(2000));
  EXPECT_THAT(story.Tell(Answered(1, {{"a"}})), ElementsAre("fact a v2 Allocated", "cycle 2: b/1"));
  EXPECT_THAT(story.Tell(Answered(1, {{"a"}})), IsEmpty());
}

TEST(CycleTest, UnsatisfiableIsBusyUntilAllNodesAreKnown) {
  Story story(nullptr);
  story.Tell(PoolConfig());
  story.Tell(QueueMade("default", 0, 0, "fcfs", /*reject_after_ms=*/5000));
  story.Tell(Submitted("a"));
  EXPECT_THAT(story.Tell(Answered(1, {{"a", 1, kUnsatisfiableKind, "no node has a gpu"}})),
              ElementsAre("fact a v2 Pending Busy"));
  // Synced: now it can be believed, but not at once.
  EXPECT_THAT(story.Tell(Inventory(false, true)), ElementsAre("cycle 2: a/1"));
  EXPECT_THAT(story.Tell(Answered(2, {{"a", 1, kUnsatisfiableKind, "no node has a gpu"}})),
              ElementsAre("fact a v3 Pending Unsatisfiable"));
  EXPECT_EQ(story.last().message(), "no node has a gpu; rejected unless that changes within 5.0 s");
  // Meanwhile it holds up nobody.
  EXPECT_THAT(story.Tell(Submitted("b")), ElementsAre("fact b v1 Pending Queued", "cycle 3: b/1"));
  story.Tell(Answered(3, {{"b"}}));
  story.Wait(5000);
  EXPECT_THAT(story.Tell(Tick()), ElementsAre("cycle 4: a/1"));
  EXPECT_THAT(story.Tell(Answered(4, {{"a", 1, kUnsatisfiableKind, "no node has a gpu"}})),
              ElementsAre("fact a v4 Rejected Unsatisfiable", "release a/1 ended"));
  EXPECT_EQ(story.last().message(), "no node has a gpu");
}

TEST(CycleTest, UnsatisfiableUntilANodeComes) {
  Story story;
  story.Tell(Submitted("a"));
  story.Tell(Answered(1, {{"a", 1, kUnsatisfiableKind, "no node has a gpu"}}));
  story.Wait(1000);
  EXPECT_THAT(story.Tell(Inventory(true, true)), ElementsAre("cycle 2: a/1"));
  EXPECT_THAT(story.Tell(Answered(2, {{"a", 1, kUnsatisfiableKind, "no node has a gpu"}})),
              IsEmpty());
  story.Wait(1000);
  story.Tell(Inventory(true, true));
  EXPECT_THAT(story.Tell(Answered(3, {{"a", 1, kBusyKind, "gpus are in use"}})),
              ElementsAre("fact a v3 Pending Busy"));
  // The grace begins anew.
  story.Wait(10'000);
  story.Tell(Inventory(true, true));
  EXPECT_THAT(story.Tell(Answered(4, {{"a", 1, kUnsatisfiableKind, "no node has a gpu"}})),
              ElementsAre("fact a v4 Pending Unsatisfiable"));
}

// Taints, cordons and pools that scale to nothing pass.
TEST(CycleTest, WhatNothingCanRunNowWaits) {
  Story story;
  story.Tell(Submitted("a"));
  story.Tell(Submitted("b"));
  EXPECT_THAT(story.Tell(Answered(1, {{"a", 1, kUnsatisfiableKind, "3 of 3 nodes are tainted"}})),
              ElementsAre("fact a v2 Pending Unsatisfiable", "cycle 2: b/1"));
  EXPECT_EQ(story.last().message(), "3 of 3 nodes are tainted; it waits for nodes that can run it");
  story.Tell(Answered(2, {{"b", 1, kUnsatisfiableKind, "3 of 3 nodes are tainted"}}));
  // Days later, and looked at now and then all the same.
  for (int look = 0; look < 200; ++look) {
    story.Wait(600'000);
    ASSERT_LE(*story.core().NextDeadline(), story.now());
    const auto asked = story.Tell(Tick());
    ASSERT_THAT(asked, ElementsAre(testing::EndsWith(": a/1 b/1")));
    const uint64_t cycle = story.core().cycle_in_flight();
    EXPECT_THAT(story.Tell(Answered(cycle,
                                    {{"a", 1, kUnsatisfiableKind, "3 of 3 nodes are tainted"},
                                     {"b", 1, kUnsatisfiableKind, "3 of 3 nodes are tainted"}})),
                IsEmpty());
  }
  // The taint is taken off: both at once, at their places.
  const uint64_t next = 203;
  EXPECT_THAT(story.Tell(Inventory(true, true)), ElementsAre("cycle 203: a/1 b/1"));
  EXPECT_THAT(story.Tell(Answered(next, {{"a"}, {"b"}})),
              ElementsAre("fact a v3 Allocated", "fact b v3 Allocated"));
}

TEST(CycleTest, ARejectionNamesItsQueuesTime) {
  Story story;
  story.Tell(QueueMade("default", 0, 0, "fcfs", /*reject_after_ms=*/86'400'000));
  story.Tell(Submitted("a"));
  story.Tell(Answered(1, {{"a", 1, kUnsatisfiableKind, "no node has a gpu"}}));
  EXPECT_EQ(story.last().message(),
            "no node has a gpu; rejected unless that changes within 86400.0 s");
  EXPECT_EQ(story.core().NextDeadline(), story.now() + Millis(86'400'000));
  story.Wait(86'400'000);
  EXPECT_THAT(story.Tell(Tick()), ElementsAre("cycle 2: a/1"));
  EXPECT_THAT(story.Tell(Answered(2, {{"a", 1, kUnsatisfiableKind, "no node has a gpu"}})),
              ElementsAre("fact a v3 Rejected Unsatisfiable", "release a/1 ended"));
}

// Logs of before replay as they were decided.
TEST(CycleTest, Rules1RejectAfterTheGrace) {
  Story story;
  story.Tell(PoolConfig(0, /*rules=*/1));
  story.Tell(Submitted("a"));
  story.Tell(Answered(1, {{"a", 1, kUnsatisfiableKind, "no node has a gpu"}}));
  EXPECT_EQ(story.last().message(), "no node has a gpu; rejected unless that changes within 5.0 s");
  story.Wait(5000);
  EXPECT_THAT(story.Tell(Tick()), ElementsAre("cycle 2: a/1"));
  EXPECT_THAT(story.Tell(Answered(2, {{"a", 1, kUnsatisfiableKind, "no node has a gpu"}})),
              ElementsAre("fact a v3 Rejected Unsatisfiable", "release a/1 ended"));
}

TEST(CycleTest, OfWhatNothingCanRunThePromiseIsGone) {
  for (const uint32_t rules : {1U, 2U}) {
    Story story;
    story.Tell(PoolConfig(0, rules));
    story.Tell(QueueMade("default", 0, 0, "easy"));
    story.Tell(Submitted("a"));
    story.Tell(Answered(1, {{"a", 1, kReservedKind, "in use", 500}}));
    ASSERT_EQ(story.last().reason(), "Reserved");
    story.Tell(Inventory(true, true));
    story.Tell(Answered(story.core().cycle_in_flight(), {{"a", 1, kUnsatisfiableKind, "tainted"}}));
    ASSERT_EQ(story.last().reason(), "Unsatisfiable");
    // Logs of rules 1 have it.
    EXPECT_EQ(story.last().start_ms() != 0, rules == 1);
  }
}

TEST(CycleTest, RulesThatThisBuildDoesNotKnow) {
  Story story;
  EXPECT_THAT(story.Tell(PoolConfig(0, /*rules=*/99)), ElementsAre("poison"));
  EXPECT_THAT(story.error(),
              HasSubstr(fmt::format("rules 99 are unknown to this build, which knows up to {}",
                                    model::kLatestRules)));
}

TEST(CycleTest, ABadJobspecIsRejected) {
  Story story;
  story.Tell(Submitted("a"));
  EXPECT_THAT(story.Tell(Answered(1, {{"a", 1, kInvalidKind, "slot 0 asks for -1 cpu"}})),
              ElementsAre("fact a v2 Rejected Invalid", "release a/1 ended"));
}

TEST(CycleTest, AnAnswerThatSaysNothingIsNotAskedForWithoutEnd) {
  Story story;
  story.Tell(Submitted("a"));
  EXPECT_THAT(story.Tell(Answered(1, {})), IsEmpty());
  EXPECT_THAT(story.Tell(Released("x", 1)), ElementsAre("cycle 2: a/1"));
}

TEST(CycleTest, DepthAndOrderOfQueues) {
  Story story;
  story.Tell(QueueMade("default", /*depth=*/2));
  story.Tell(QueueMade("urgent", /*depth=*/1, /*priority=*/10));
  story.Tell(Submitted("first"));  // takes the cycle, so that the others line up
  for (const char* id : {"a", "b", "c"}) story.Tell(Submitted(id));
  story.Tell(Submitted("u", {.queue = "urgent"}));
  story.Tell(Submitted("low", {.priority = -1}));
  story.Tell(Submitted("high", {.priority = 1}));
  // Of each queue as many as its depth.
  EXPECT_THAT(story.Tell(Answered(1, {{"first"}})),
              ElementsAre("fact first v2 Allocated", "cycle 2: u/1 high/1 a/1"));
  EXPECT_THAT(story.Tell(Answered(2, {{"u"}, {"high"}, {"a"}})),
              ElementsAre("fact u v2 Allocated",
                          "fact high v2 Allocated",
                          "fact a v2 Allocated",
                          "cycle 3: b/1 c/1"));
}

TEST(CycleTest, ByRules1TheDepthOfTheFirstQueueLimitsTheCycle) {
  Story story;
  story.Tell(PoolConfig(0, /*rules=*/1));
  story.Tell(QueueMade("default", /*depth=*/2));
  story.Tell(QueueMade("urgent", /*depth=*/1, /*priority=*/10));
  story.Tell(Submitted("first"));
  for (const char* id : {"a", "b"}) story.Tell(Submitted(id));
  story.Tell(Submitted("u", {.queue = "urgent"}));
  EXPECT_THAT(story.Tell(Answered(1, {{"first"}})),
              ElementsAre("fact first v2 Allocated", "cycle 2: u/1"));
  EXPECT_THAT(story.Tell(Answered(2, {{"u"}})),
              ElementsAre("fact u v2 Allocated", "cycle 3: a/1 b/1"));
}

TEST(CycleTest, WhatACycleSays) {
  Story story;
  auto queue = QueueMade("timed");
  queue.mutable_queue_configured()->set_default_duration_ms(1500);
  story.Tell(queue);
  story.Wait(3500);
  Outputs outputs;
  const auto submitted = Submitted("a", {.queue = "timed"});
  ASSERT_TRUE(story.core().Handle(submitted, story.now(), &outputs).ok());
  ASSERT_EQ(outputs.pool.size(), 1U);
  EXPECT_EQ(outputs.pool[0].pool(), kPool);
  const auto& cycle = outputs.pool[0].cycle_requested();
  EXPECT_EQ(cycle.now_s(), 3);  // since the pool's first message
  EXPECT_TRUE(cycle.rules(0).stop_at_first_blocked());
  EXPECT_EQ(cycle.candidates(0).duration_s(), 2);  // 1.5 s, in whole seconds
  EXPECT_FALSE(cycle.candidates(0).may_reserve());
  EXPECT_EQ(outputs.jobs[0].job_fact().duration_ms(), 1500);
}

TEST(CycleTest, ManyWaitingJobsCostNoMoreThanTheDepth) {
  Story story;
  story.Tell(QueueMade("default", /*depth=*/100));
  Outputs outputs;
  for (int i = 0; i < 20'000; ++i) {
    ASSERT_TRUE(
        story.core().Handle(Submitted(fmt::format("job-{}", i)), story.now(), &outputs).ok());
  }
  story.core().Commit();
  ASSERT_EQ(outputs.pool.size(), 1U);  // one cycle in flight
  EXPECT_EQ(story.core().Position("job-19999"), 20'000U);
  // Refused and asked again: only the window is named, and only the head is spoken of.
  story.Tell(Answered(1, {{"job-0", 1, kBusyKind, "full"}}));
  const auto lines = story.Tell(Released("x", 1));
  ASSERT_EQ(lines.size(), 1U);
  EXPECT_EQ(std::count(lines[0].begin(), lines[0].end(), '/'), 16);
}

// ---- reservations: the story begins at 1,000 s of the clock, and is 0 s old then

std::string Sentence(const Story& story) {
  return fmt::format("{} at {} s", story.last().message(), story.last().start_ms() / 1000 - 1000);
}

class PromiseTest : public ::testing::Test {
 protected:
  void SetUp() override {
    story_.Tell(QueueMade("default", 0, 0, "easy"));
    story_.Tell(Submitted("a"));
    story_.Tell(Submitted("b"));
  }
  Story story_;
};

TEST_F(PromiseTest, IsSaidWithItsTime) {
  EXPECT_THAT(story_.Tell(Answered(1, {{"a", 1, kReservedKind, "no cpu", 500}})),
              ElementsAre("fact a v2 Pending Reserved", "cycle 2: a/1 b/1"));
  EXPECT_EQ(Sentence(story_), "no cpu at 500 s");
  EXPECT_THAT(story_.Tell(Answered(2, {{"a", 1, kReservedKind, "no cpu", 500}, {"b"}})),
              ElementsAre("fact b v2 Allocated Backfilled"));
}

TEST_F(PromiseTest, WhoeverComesIntoLineIsTriedAlthoughTheHeadIsBlocked) {
  story_.Tell(Answered(1, {{"a", 1, kReservedKind, "no cpu", 500}}));
  EXPECT_THAT(
      story_.Tell(Answered(2, {{"a", 1, kReservedKind, "no cpu", 500}, {"b", 1, kBusyKind}})),
      ElementsAre("fact b v2 Pending Busy"));
  EXPECT_THAT(story_.Tell(Submitted("c")),
              ElementsAre("fact c v1 Pending Queued", "cycle 3: a/1 b/1 c/1"));
}

TEST_F(PromiseTest, ALaterStartIsSaidWithItsReason) {
  story_.Tell(Answered(1, {{"a", 1, kReservedKind, "no cpu", 500}}));
  // A second or two are not worth a fact.
  EXPECT_THAT(story_.Tell(Answered(2, {{"a", 1, kReservedKind, "no cpu", 502}})), ElementsAre());
  story_.Tell(Submitted("urgent", {.priority = 5}));
  EXPECT_THAT(story_.Tell(Answered(3,
                                   {{"urgent", 1, kReservedKind, "no cpu", 500},
                                    {"a", 1, kReservedKind, "no cpu", 600}})),
              ElementsAre("fact urgent v2 Pending Reserved", "fact a v3 Pending Reserved"));
  EXPECT_EQ(Sentence(story_),
            "starts 100 s later than it was told: job team/name-of-urgent goes before it at 600 s");

  auto overran = Answered(4, {{"a", 1, kReservedKind, "no cpu", 700}});
  overran.mutable_cycle_answered()->set_overran(1);
  overran.mutable_cycle_answered()->set_overran_job("x");
  story_.Tell(CancelCommand("urgent"));
  EXPECT_THAT(story_.Tell(overran), ElementsAre("fact a v4 Pending Reserved"));
  EXPECT_EQ(Sentence(story_),
            "starts 100 s later than it was told: job x has not ended in its time at 700 s");
}

TEST_F(PromiseTest, ANameOfAnotherNamespaceIsNotTold) {
  story_.Tell(Answered(1, {{"a", 1, kReservedKind, "no cpu", 500}}));
  story_.Tell(Answered(2, {{"a", 1, kReservedKind, "no cpu", 500}}));
  story_.Tell(Submitted("urgent", {.priority = 5, .space = "others"}));
  story_.Tell(Answered(
      3, {{"urgent", 1, kReservedKind, "no cpu", 500}, {"a", 1, kReservedKind, "no cpu", 600}}));
  EXPECT_EQ(Sentence(story_),
            "starts 100 s later than it was told: a job of one slot goes before it at 600 s");
}

// Claims are of no namespace, and so would all be of one.
TEST_F(PromiseTest, AClaimIsToldTheNameOfItsUsersClaimsOnly) {
  const auto claim = [this](const std::string& id, const std::string& user, int32_t priority) {
    events::v1::Envelope message = Claimed(id);
    auto* submit = message.mutable_command_accepted()->mutable_submit_claim();
    submit->set_user(user);
    submit->set_priority(priority);
    story_.Tell(message);
  };
  claim("c", "ann", 1);
  story_.Tell(Answered(1, {{"a", 1, kBusyKind}}));
  story_.Tell(Answered(2, {{"c", 1, kReservedKind, "no cpu", 500}}));
  claim("urgent", "eve", 5);
  story_.Tell(Answered(
      3, {{"urgent", 1, kReservedKind, "no cpu", 500}, {"c", 1, kReservedKind, "no cpu", 600}}));
  EXPECT_EQ(Sentence(story_),
            "starts 100 s later than it was told: a job of one slot goes before it at 600 s");
  claim("own", "ann", 6);
  story_.Tell(Answered(
      4, {{"own", 1, kReservedKind, "no cpu", 500}, {"c", 1, kReservedKind, "no cpu", 700}}));
  EXPECT_EQ(Sentence(story_),
            "starts 100 s later than it was told: job /claim-own goes before it at 700 s");
}

TEST_F(PromiseTest, ALostNodeIsAReason) {
  story_.Tell(Answered(1, {{"a", 1, kReservedKind, "no cpu", 500}}));
  story_.Tell(Answered(2, {{"a", 1, kReservedKind, "no cpu", 500}}));
  auto up = Inventory(true, true);
  up.mutable_inventory_changed()->set_nodes_up(2);
  story_.Tell(up);
  auto gone = NodeGone("n1", "nobody", 1);
  gone.mutable_inventory_changed()->set_nodes_up(1);
  story_.Tell(gone);
  story_.Tell(Answered(3, {{"a", 1, kReservedKind, "no cpu", 900}}));
  EXPECT_EQ(Sentence(story_), "starts 400 s later than it was told: node n1 was lost at 900 s");
}

// Where users take turns somebody younger always stands ahead.
TEST_F(PromiseTest, WhoStoodAheadAlreadyIsNoReason) {
  auto fair = QueueMade("default", 0, 0, "easy");
  fair.mutable_queue_configured()->set_order("fair-share");
  story_.Tell(fair);
  story_.Tell(Submitted("bob", {.user = "bob"}));
  story_.Wait(1000);
  story_.Tell(Answered(1, {{"a", 1, kReservedKind, "no cpu", 500}}));
  auto later = Answered(2, {{"a", 1, kReservedKind, "no cpu", 700}});
  later.mutable_cycle_answered()->set_overran(1);
  later.mutable_cycle_answered()->set_overran_job("x");
  story_.Tell(later);
  EXPECT_EQ(Sentence(story_),
            "starts 200 s later than it was told: job x has not ended in its time at 700 s");
}

TEST_F(PromiseTest, IsWithdrawnWithItsReason) {
  story_.Tell(Answered(1, {{"a", 1, kReservedKind, "no cpu", 500}}));
  story_.Tell(Answered(2, {{"a", 1, kReservedKind, "no cpu", 500}}));
  story_.Tell(Submitted("urgent", {.priority = 5}));
  EXPECT_THAT(story_.Tell(Answered(
                  3, {{"urgent", 1, kReservedKind, "no cpu", 500}, {"a", 1, kBusyKind, "no cpu"}})),
              ElementsAre("fact urgent v2 Pending Reserved", "fact a v3 Pending Busy"));
  EXPECT_EQ(story_.last().message(),
            "its promised start is withdrawn: job team/name-of-urgent goes before it; no cpu");
  EXPECT_EQ(story_.last().start_ms(), 0);
}

TEST_F(PromiseTest, WhoIsNotTriedAnyMoreHasNone) {
  story_.Tell(Answered(1, {{"a", 1, kReservedKind, "no cpu", 500}}));
  story_.Tell(Answered(2, {{"a", 1, kReservedKind, "no cpu", 500}}));
  auto shallow = QueueMade("default", 0, 0, "easy");
  shallow.mutable_queue_configured()->set_queue_depth(1);
  EXPECT_THAT(story_.Tell(shallow), ElementsAre("cycle 3: a/1"));
  EXPECT_THAT(story_.Tell(Submitted("urgent", {.priority = 5})),
              ElementsAre("fact urgent v1 Pending Queued"));
  EXPECT_THAT(story_.Tell(Answered(3, {{"a", 1, kReservedKind, "no cpu", 500}})),
              ElementsAre("cycle 4: urgent/1"));
  EXPECT_THAT(story_.Tell(Answered(4, {{"urgent", 1, kReservedKind, "no cpu", 500}})),
              ElementsAre("fact urgent v2 Pending Reserved", "fact a v3 Pending Queued"));
  EXPECT_EQ(story_.last().message(),
            "its promised start is withdrawn: job team/name-of-urgent goes before it");
}

// The answer to a cycle knows what the matcher had read before it, and nothing else.
TEST_F(PromiseTest, WhatIsConfiguredDuringACycleIsAskedForAgain) {
  story_.Tell(Answered(1, {{"a", 1, kReservedKind, "no cpu", 500}}));
  EXPECT_EQ(story_.core().cycle_in_flight(), 2U);
  EXPECT_THAT(story_.Tell(PoolConfig(3)), ElementsAre());
  EXPECT_THAT(
      story_.Tell(Answered(2, {{"a", 1, kReservedKind, "no cpu", 500}, {"b", 1, kBusyKind}})),
      ElementsAre("fact b v2 Pending Busy", "cycle 3: a/1 b/1"));
}

TEST(LookAgainTest, WhereTheOrderChangesByTimeAlone) {
  for (const bool fair : {false, true}) {
    Story story;
    auto queue = QueueMade("default");
    if (fair) queue.mutable_queue_configured()->set_order("fair-share");
    story.Tell(queue);
    story.Tell(Submitted("a"));
    story.Tell(Answered(1, {{"a", 1, kBusyKind, "full"}}));
    // Else it is looked at when it has waited long as the first of its queue.
    const int64_t wait_ms = fair ? 60'000 : 900'000;
    EXPECT_EQ(story.core().NextDeadline(), story.now() + Millis(wait_ms));
    story.Wait(wait_ms);
    EXPECT_THAT(story.Tell(Tick()), ElementsAre(fair ? "cycle 2: a/1" : "cycle 2: a/1*"));
  }
}

TEST(LookAgainTest, AJobThatHadItsTurnAsksForNoCycleEachMinute) {
  for (const uint32_t rules : {4U, 5U}) {
    Story story;
    story.Tell(PoolConfig(0, rules));
    story.Tell(QueueMade("default"));
    story.Tell(Submitted("a"));
    story.Tell(Answered(1, {{"a", 1, kBusyKind, "full"}}));
    story.Wait(900'000);
    ASSERT_THAT(story.Tell(Tick()), ElementsAre("cycle 2: a/1*"));
    story.Tell(Answered(2, {{"a", 1, kBusyKind, "full"}}));
    EXPECT_EQ(story.core().NextDeadline(), story.now() + Millis(rules == 4 ? 60'000 : 900'000));
  }
}

TEST(LookAgainTest, WhoWaitsForLongIsTriedLessOften) {
  for (const uint32_t rules : {5U, 6U}) {
    Story story;
    story.Tell(PoolConfig(0, rules));
    story.Tell(QueueMade("default"));
    story.Tell(Submitted("a"));
    story.Tell(Answered(1, {{"a", 1, kBusyKind, "full"}}));
    uint64_t cycle = 2;
    const auto look_after = [&](int64_t wait_ms) {
      story.Wait(wait_ms);
      EXPECT_THAT(story.Tell(Tick()), ElementsAre(fmt::format("cycle {}: a/1*", cycle)));
      story.Tell(Answered(cycle++, {{"a", 1, kBusyKind, "full"}}));
      return (*story.core().NextDeadline() - story.now()).count();
    };
    const int64_t hour_ms = 3'600'000;
    EXPECT_EQ(look_after(2 * hour_ms), rules == 5 ? 900'000 : hour_ms / 2);
    EXPECT_EQ(look_after(100 * hour_ms), rules == 5 ? 900'000 : 4 * hour_ms);
    // Another that has just come to be first of its queue is looked at soon.
    story.Tell(QueueMade("other"));
    auto other = Submitted("b");
    other.mutable_job_submitted()->set_queue("other");
    story.Tell(Answered(cycle++, {{"a", 1, kBusyKind, "full"}}));
    story.Tell(other);
    story.Tell(Answered(cycle, {{"a", 1, kBusyKind, "full"}, {"b", 1, kBusyKind, "full"}}));
    EXPECT_EQ((*story.core().NextDeadline() - story.now()).count(), 900'000);
  }
}

TEST(LookAgainTest, WhereItIsAdaptiveWhoWaitsForLongMayPassLater) {
  Story story;
  story.Tell(PoolConfig(0, /*rules=*/6));
  auto queue = QueueMade("default");
  queue.mutable_queue_configured()->set_strategy("adaptive");
  story.Tell(queue);
  story.Tell(Submitted("a"));
  story.Tell(Answered(1, {{"a", 1, kBusyKind, "full"}}));
  story.Wait(7'200'000);
  story.Tell(Tick());
  story.Tell(Answered(2, {{"a", 1, kBusyKind, "full"}}));
  EXPECT_EQ((*story.core().NextDeadline() - story.now()).count(), 900'000);
}

TEST_F(PromiseTest, ComesDue) {
  story_.Tell(Answered(1, {{"a", 1, kReservedKind, "no cpu", 500}}));
  story_.Tell(Answered(2, {{"a", 1, kReservedKind, "no cpu", 500}}));
  EXPECT_EQ(story_.core().NextDeadline(), Millis(1'500'000));
  story_.Wait(500'000);
  EXPECT_THAT(story_.Tell(Tick()), ElementsAre("cycle 3: a/1 b/1"));
  // Put off by a second: looked at again, but not every second.
  story_.Tell(Answered(3, {{"a", 1, kReservedKind, "no cpu", 501}}));
  EXPECT_EQ(story_.core().NextDeadline(), Millis(1'501'000));
}

}  // namespace
}  // namespace fluxqueue::queue_core
