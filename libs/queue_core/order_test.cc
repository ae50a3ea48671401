// Begins, dependencies, users and what is kept of them.
#include <optional>
#include <string>
#include <utility>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "libs/model/rules.h"
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

// Somebody may have seen the id of another tenant's job.
TEST(DependencyTest, OfAJobOfAnotherNamespaceNothingIsTold) {
  for (const uint32_t rules : {8U, 9U}) {
    Story story;
    story.Tell(PoolConfig(0, rules));
    story.Bring("a", JobState::kRunning);
    story.Tell(Submitted("near", {.depends_on = {"afterok:a"}}));
    EXPECT_EQ(story.last().message(), "waits for afterok:name-of-a (a), which is Running");
    story.Tell(Submitted("far", {.space = "other", .depends_on = {"afterok:a"}}));
    EXPECT_EQ(
        story.last().message(),
        rules == 8 ? "waits for afterok:name-of-a (a), which is Running" : "waits for afterok:a");
  }
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

TEST(MoveTest, ToAnotherQueueWhileItWaits) {
  Story story;
  story.Tell(QueueMade("other"));
  story.Bring("a", JobState::kPending);
  EXPECT_THAT(story.Tell(MoveCommand("a", "other")), testing::SizeIs(testing::Ge(1)));
  EXPECT_EQ(story.last().queue(), "other");
  EXPECT_EQ(story.core().Counts().at({"other", JobState::kPending}), 1U);
  EXPECT_THAT(story.Tell(MoveCommand("a", "other")), IsEmpty());
}

// Else limits could be passed by it: start in one, move to another, start in the first again.
TEST(MoveTest, WhatHasStartedStaysInItsQueue) {
  for (JobState state : {JobState::kAllocated, JobState::kRunning, JobState::kStopping}) {
    Story story;
    story.Tell(QueueMade("other"));
    story.Bring("a", state);
    EXPECT_THAT(story.Tell(MoveCommand("a", "other")), IsEmpty());
    EXPECT_THAT(story.Tell(Moved("a", "other")), IsEmpty());
    EXPECT_EQ(story.core().Find("a")->queue, "default");
  }
}

TEST(MoveTest, TheCycleInFlightAskedForTheOldQueue) {
  Story story;
  story.Tell(
      QueueWith([](auto* queue) { queue->mutable_limits()->set_running_jobs(0); }, "closed"));
  EXPECT_THAT(story.Tell(Submitted("a")), testing::Contains("cycle 1: a/1"));
  story.Tell(MoveCommand("a", "closed"));
  story.Tell(Answered(1, {{"a"}}));
  EXPECT_EQ(story.core().Find("a")->state, JobState::kPending);
}

TEST(LimitTest, WhoeverComesBehindOthersIsToldToo) {
  Story story;
  story.Tell(QueueWith([](auto* queue) { queue->mutable_limits()->set_running_jobs(0); }));
  EXPECT_THAT(story.Tell(Submitted("a")),
              ElementsAre("fact a v1 Pending Queued", "fact a v2 Pending Limit"));
  EXPECT_THAT(story.Tell(Submitted("b", {.user = "bob"})),
              ElementsAre("fact b v1 Pending Queued", "fact b v2 Pending Limit"));
}

TEST(LimitTest, HoldsAUserUntilOneEnds) {
  Story story;
  story.Tell(QueueWith([](auto* queue) { queue->mutable_user_limits()->set_running_jobs(1); }));
  story.Tell(Submitted("a1"));
  story.Tell(Submitted("a2"));
  story.Tell(Submitted("b1", {.user = "bob"}));
  // One of ann's is named, the other might be one too many.
  EXPECT_THAT(story.Tell(Answered(1, {{"a1"}})),
              ElementsAre("fact a1 v2 Allocated", "fact a2 v2 Pending Limit", "cycle 2: b1/1"));
  story.Tell(Answered(2, {{"b1"}}));
  EXPECT_EQ(story.core().Find("a2")->message, "user ann runs 1 of at most 1 jobs in queue default");
  EXPECT_THAT(story.Tell(Tick()), IsEmpty());
  // Behind the one that is held nobody is told so.
  EXPECT_THAT(story.Tell(Submitted("a3")), ElementsAre("fact a3 v1 Pending Queued"));
  EXPECT_THAT(story.Tell(Ended("a1")), ElementsAre("fact a1 v3 Succeeded", "release a1/1 ended"));
  EXPECT_THAT(story.Tell(Released("a1", 1, false)), ElementsAre("cycle 3: a2/1"));
}

TEST(LimitTest, AnswersThatRefuseLetOthersOfTheUserBeTried) {
  Story story;
  story.Tell(QueueWith([](auto* queue) {
    queue->set_strategy("easy");
    queue->mutable_namespace_limits()->set_running_jobs(2);
  }));
  story.Tell(Submitted("a"));
  story.Tell(Submitted("b"));
  story.Tell(Submitted("c"));
  EXPECT_THAT(story.Tell(Answered(1, {{"a", 1, kBusyKind, "no cpu"}})),
              ElementsAre("fact a v2 Pending Busy", "cycle 2: a/1 b/1"));
}

TEST(LimitTest, MoreThanALimitEverAllows) {
  Story story;
  story.Tell(QueueWith([](auto* queue) {
    auto* amount = queue->mutable_limits()->add_amounts();
    amount->set_resource("nvidia.com/gpu");
    amount->set_amount(2);
  }));
  EXPECT_THAT(story.Tell(Submitted("large", {.gpus = 3})),
              ElementsAre("fact large v1 Pending Queued", "fact large v2 Pending Limit"));
  EXPECT_EQ(
      story.last().message(),
      "it asks for gpu 3, and queue default may hold at most 2: make it smaller, or raise the "
      "limit");
  // It holds up nobody.
  EXPECT_THAT(story.Tell(Submitted("small", {.gpus = 2})),
              ElementsAre("fact small v1 Pending Queued", "cycle 1: small/1"));
  story.Tell(Answered(1, {{"small"}}));
  // A live change lets it go.
  EXPECT_THAT(story.Tell(QueueMade("default")), ElementsAre("cycle 2: large/1"));
}

TEST(LimitTest, GpuHoursLetGoByTimeAlone) {
  Story story;
  story.Tell(QueueWith([](auto* queue) {
    queue->set_half_life_ms(3'600'000);
    queue->mutable_user_limits()->set_gpu_seconds(3600);
  }));
  story.Bring("a", JobState::kRunning, {.gpus = 4});
  story.Wait(1'800'000);
  story.Tell(Ended("a"));
  EXPECT_THAT(story.Tell(Released("a", 1, false)), IsEmpty());
  EXPECT_THAT(story.Tell(Submitted("b", {.gpus = 1})),
              ElementsAre("fact b v1 Pending Queued", "fact b v2 Pending Limit"));
  EXPECT_THAT(story.last().message(), HasSubstr("user ann has used 1.6"));
  const auto due = story.core().NextDeadline();
  ASSERT_TRUE(due.has_value());
  story.Wait((*due - story.now()).count());
  EXPECT_THAT(story.Tell(Tick()), ElementsAre("cycle 2: b/1"));
}

TEST(LimitTest, ABudgetLetsGoWithTheNextPeriod) {
  constexpr int64_t kDayMs = 86'400'000;
  Story story;
  story.Tell(QueueWith([](auto* queue) {
    events::v1::Budget* budget = queue->add_budgets();
    budget->set_resource("gpu");
    budget->set_hours(2);
    budget->set_period(events::v1::Budget::PERIOD_DAY);
    budget->set_holds(true);
  }));
  story.Bring("a", JobState::kRunning, {.gpus = 4});
  story.Wait(1'800'000);
  story.Tell(Ended("a"));
  story.Tell(Released("a", 1, false));
  EXPECT_THAT(story.Tell(Submitted("b", {.gpus = 1})),
              ElementsAre("fact b v1 Pending Queued", "fact b v2 Pending Limit"));
  EXPECT_EQ(story.last().message(),
            "queue default has used up its budget of 2 gpu-hours for this day (UTC); jobs that ask "
            "for gpu go on with the next");
  EXPECT_THAT(story.Tell(Submitted("c", {.user = "bob"})),
              ElementsAre("fact c v1 Pending Queued", "cycle 2: c/1"));
  story.Tell(Answered(2, {{"c"}}));
  EXPECT_EQ(story.core().NextDeadline(), Millis(kDayMs));
  story.Wait(kDayMs - story.now().count());
  EXPECT_THAT(story.Tell(Tick()), ElementsAre("cycle 3: b/1"));
}

TEST(LimitTest, OfOneJob) {
  Story story;
  story.Tell(QueueWith([](auto* queue) {
    for (auto* amount : {queue->add_most_per_job(), queue->add_least_per_job()}) {
      amount->set_resource("gpu");
      amount->set_amount(2);
    }
  }));
  for (const auto& [id, gpus] : {std::pair("large", 3), std::pair("small", 1)}) {
    EXPECT_THAT(story.Tell(Submitted(id, {.gpus = gpus})),
                ElementsAre(fmt::format("fact {} v1 Pending Queued", id),
                            fmt::format("fact {} v2 Pending Limit", id)));
  }
  EXPECT_THAT(story.Tell(Submitted("fits", {.gpus = 2})),
              ElementsAre("fact fits v1 Pending Queued", "cycle 1: fits/1"));
}

TEST(AccountsTest, BadOnesAreRefused) {
  const auto problem_of = [](auto change) {
    Story story;
    Outputs out;
    return std::string(story.core().Handle(QueueWith(change), Millis(story.now()), &out).message());
  };
  EXPECT_THAT(problem_of([](auto* queue) { queue->add_user_weights()->set_weight(-1); }),
              HasSubstr("user_weights of  is -1; it must not be below 0"));
  EXPECT_THAT(problem_of([](auto* queue) {
                queue->add_budgets()->set_resource("gpu");
                queue->mutable_budgets(0)->set_hours(-3);
              }),
              HasSubstr("budgets of gpu is -3; it must not be below 0"));
  EXPECT_THAT(problem_of([](auto* queue) { queue->add_budgets()->set_resource("gpu"); }),
              HasSubstr("budgets of gpu: period 0; a resource and one of the periods 1 to 5"));
  EXPECT_THAT(problem_of([](auto* queue) { queue->add_least_per_job()->set_amount(-1); }),
              HasSubstr("least_per_job of  is -1"));
}

TEST(FairShareTest, UsersTakeTurns) {
  Story story;
  story.Tell(QueueWith([](auto* queue) {
    queue->set_order("fair-share");
    queue->set_half_life_ms(3'600'000);
  }));
  story.Bring("a0", JobState::kRunning);
  story.Tell(Held("a0", false));
  for (const char* id : {"a1", "a2", "a3"}) story.Tell(Submitted(id, {.hold = true}));
  for (const char* id : {"b1", "b2"}) story.Tell(Submitted(id, {.hold = true, .user = "bob"}));
  for (const char* id : {"a1", "a2", "a3", "b1"}) story.Tell(HoldCommand(id, false));
  EXPECT_THAT(story.Tell(Answered(2, {{"a1", 1, kBusyKind, "full"}})),
              ElementsAre("fact a1 v3 Pending Busy", "cycle 3: b1/1 a1/1 a2/1 a3/1"));
  EXPECT_EQ(story.core().Position("a2"), 2U);
  EXPECT_EQ(story.core().Position("b1"), 1U);
}

TEST(AgingTest, WaitingRaisesAPriority) {
  Story story;
  story.Tell(QueueWith([](auto* queue) { queue->set_aging_ms(1000); }));
  story.Tell(Submitted("old"));
  story.Wait(5000);
  story.Tell(Submitted("urgent", {.priority = 4}));
  EXPECT_EQ(story.core().Position("old"), 1U);
  story.Tell(Submitted("more", {.priority = 6}));
  EXPECT_EQ(story.core().Position("more"), 1U);
  // Without ageing, live: priorities alone.
  story.Tell(QueueMade("default"));
  EXPECT_EQ(story.core().Position("old"), 3U);
}

TEST(TreeTest, QueuesBelowQueues) {
  Story story;
  story.Tell(QueueMade("dept"));
  story.Tell(QueueWith([](auto* queue) { queue->set_parent("dept"); }, "left"));
  story.Tell(QueueWith([](auto* queue) { queue->set_parent("dept"); }, "right"));
  // Queues that are each other's parents are roots, and nothing hangs.
  story.Tell(QueueWith([](auto* queue) { queue->set_parent("right"); }, "dept"));
  story.Tell(Submitted("l", {.queue = "left"}));
  EXPECT_THAT(story.Tell(Answered(1, {{"l"}})), ElementsAre("fact l v2 Allocated"));
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
  EXPECT_EQ(message_of([](auto* queue) { queue->set_reject_after_ms(-1); }),
            "queue q: reject_after_ms is -1; it must not be below 0");
  EXPECT_EQ(message_of([](auto* queue) { queue->set_reserve_after_ms(-1); }),
            "queue q: reserve_after_ms is -1; it must not be below 0");
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
