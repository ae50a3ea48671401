#include "services/binder/domain/bind_planner.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "services/binder/domain/bind_planner_fixture.h"

namespace fluxqueue::binder {
namespace {

using events::v1::JOB_STATE_ALLOCATED;
using events::v1::JOB_STATE_BOUND;
using events::v1::JOB_STATE_PENDING;
using events::v1::JOB_STATE_RUNNING;
using events::v1::JOB_STATE_STOPPING;
using events::v1::JOB_STATE_SUCCEEDED;
using events::v1::JobFact;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::UnorderedElementsAre;

TEST_F(BindPlannerTest, APodThatIsThereIsBoundByTheBatchOfTheFact) {
  h_.cluster.AddPod("a", "a-0");
  Allocate(1);
  const std::vector<Call> calls = h_.Batch();
  ASSERT_THAT(Describe(calls), ElementsAre("bind a-0 n0"));
  EXPECT_EQ(calls[0].resource_version, h_.cluster.Pod("a-0")->resource_version);
  EXPECT_EQ(h_.tables.SlotsOf("a").at(0).value.state, SlotState::kTaken);
  h_.Execute(calls);
  EXPECT_THAT(h_.Batch(), IsEmpty());
  EXPECT_EQ(h_.tables.SlotsOf("a").at(0).value.state, SlotState::kBound);
  EXPECT_THAT(h_.Said("job_bound"), ElementsAre("a/1"));
}

TEST_F(BindPlannerTest, OfAFactOnlyWhatIsOfUseIsKept) {
  h_.PlaceJob("a", 1, 1);
  JobFact fact = Fact(JOB_STATE_ALLOCATED, 1);
  fact.set_ends_after_ms(7'000);
  const std::string kept = [fact]() mutable {
    fact.mutable_workload()->clear_api_version();
    return fact.SerializeAsString();
  }();
  fact.set_queue("lab");
  fact.set_user("mara");
  fact.set_reason("Started");
  fact.mutable_slip()->set_by("n1");
  h_.log.push_back(fact);
  h_.Batch();
  EXPECT_EQ(h_.planner->Find("a")->fact->SerializeAsString(), kept);
  EXPECT_EQ(h_.tables.jobs.at("a").fact, kept);
  h_.tables.jobs.at("a").fact = fact.SerializeAsString();  // of an older version
  h_.Restart();
  EXPECT_EQ(h_.planner->Find("a")->fact->SerializeAsString(), kept);
}

TEST_F(BindPlannerTest, AJobThatIsAllBoundIsNotWokenAgain) {
  h_.cluster.AddPod("a", "a-0");
  Allocate(1);
  h_.Execute(h_.Batch());
  h_.Batch();
  EXPECT_THAT(h_.Said("job_bound"), ElementsAre("a/1"));
  EXPECT_EQ(h_.planner->WakeAt(), std::nullopt);
}

TEST_F(BindPlannerTest, APodThatComesLaterIsBoundWhenItComes) {
  Allocate(1);
  EXPECT_THAT(h_.Batch(), IsEmpty());
  h_.cluster.AddPod("a", "a-0");
  EXPECT_THAT(Describe(h_.Batch()), ElementsAre("bind a-0 n0"));
}

TEST_F(BindPlannerTest, WhenEachPodWasBoundIsSaid) {
  const auto said = [this] {
    std::vector<std::string> pods;
    for (const auto& pod : h_.sayings.at(0).envelope.job_bound().pods()) {
      pods.push_back(fmt::format("{}: {} {}", pod.slot(), pod.taken_ago(), pod.bound_ago()));
    }
    return pods;
  };
  h_.cluster.AddPod("a", "a-0");
  Allocate(3);
  const std::vector<Call> first = h_.Batch();
  h_.now += Millis(20);
  h_.Execute(first);
  h_.cluster.AddPod("a", "a-1");
  const std::vector<Call> second = h_.Batch();
  h_.now += Millis(30);
  // The watch is sooner than the answer.
  h_.cluster.Execute(second.at(0));
  h_.cluster.AddPod("a", "a-2");
  const std::vector<Call> third = h_.Batch();
  h_.now += Millis(40);
  h_.Execute(second);
  h_.Execute(third);
  h_.Batch();
  EXPECT_THAT(said(), ElementsAre("0: 90 70", "1: 70 40", "2: 40 0"));
}

TEST_F(BindPlannerTest, NothingIsBoundBeforeTheJobIsAllocated) {
  h_.cluster.AddPod("a", "a-0");
  h_.log.push_back(Fact(JOB_STATE_PENDING, 1));
  EXPECT_THAT(h_.Batch(), IsEmpty());
  EXPECT_THAT(h_.tables.jobs, IsEmpty());
}

TEST_F(BindPlannerTest, ARolledBackBatchLetsNoCallOutAndIsPlannedAgain) {
  h_.cluster.AddPod("a", "a-0");
  Allocate(1);
  h_.FailedBatch();
  EXPECT_EQ(h_.planner->Find("a"), nullptr);
  const std::vector<Call> calls = h_.Batch();
  ASSERT_THAT(Describe(calls), ElementsAre("bind a-0 n0"));
  h_.Execute(calls);
  h_.FailedBatch();  // the answer is not lost with the batch
  h_.Batch();
  EXPECT_THAT(h_.Said("job_bound"), ElementsAre("a/1"));
}

TEST_F(BindPlannerTest, AnIndexGetsItsSlot) {
  Workload(3).set_indexed(true);
  h_.cluster.AddPod("a", "a-z", 0);
  h_.cluster.AddPod("a", "a-y", 2);
  h_.cluster.AddPod("a", "a-x", 1);
  Allocate(3);
  EXPECT_THAT(Describe(h_.Batch()),
              UnorderedElementsAre("bind a-z n0", "bind a-x n1", "bind a-y n2"));
}

TEST_F(BindPlannerTest, IndexesBeyondTheSlotsTakeWhatIsFree) {
  Workload(4).set_indexed(true);
  Workload(4).set_completions(4);
  h_.cluster.AddPod("a", "a-0", 0);
  h_.cluster.AddPod("a", "a-1", 1);
  Allocate(2);
  h_.Settle();
  EXPECT_THAT(h_.Said("job_bound"), ElementsAre("a/1"));
  h_.cluster.End("a-1", PodFacts::Phase::kSucceeded);
  h_.cluster.AddPod("a", "a-2", 2);
  const std::vector<Call> look = h_.Batch();
  EXPECT_THAT(Describe(look), ElementsAre("look_at_node a-2 n1"));
  h_.Execute(look);
  EXPECT_THAT(Describe(h_.Batch()), ElementsAre("bind a-2 n1"));
}

TEST_F(BindPlannerTest, AReplacementWaitsUntilItsPredecessorHasGone) {
  for (const bool indexed : {false, true}) {
    SCOPED_TRACE(indexed);
    h_.cluster = FakeCluster();
    h_.tables = FakeTables();
    h_.Restart();
    Workload(1).set_indexed(indexed);
    h_.cluster.AddPod("a", "old", 0);
    Allocate(1, indexed ? 2 : 1);
    h_.Settle();
    h_.cluster.Delete("old");
    h_.cluster.AddPod("a", "new", 0);
    EXPECT_THAT(h_.Batch(), IsEmpty());  // side by side
    h_.cluster.Remove("old");
    h_.Execute(h_.Batch());
    EXPECT_THAT(Describe(h_.Batch()), ElementsAre("bind new n0"));
  }
}

TEST_F(BindPlannerTest, ASlotIsNotUsedAgainAfterItsOnlyCompletion) {
  h_.cluster.AddPod("a", "a-0");
  h_.cluster.AddPod("a", "a-1");
  Allocate(2);
  h_.Settle();
  h_.cluster.End("a-0", PodFacts::Phase::kSucceeded);
  h_.cluster.End("a-1", PodFacts::Phase::kFailed);
  h_.cluster.AddPod("a", "a-2");
  h_.cluster.AddPod("a", "a-3");
  h_.Execute(h_.Batch());
  EXPECT_THAT(Describe(h_.Batch()), ElementsAre("bind a-2 n1"));
  h_.cluster.Remove("a-0");
  h_.Settle();
  h_.Restart();  // known from the rows too
  h_.Settle();
  EXPECT_FALSE(h_.cluster.Pod("a-3")->Bound());
  EXPECT_THAT(h_.Said("job_bound"), ElementsAre("a/1"));
}

TEST_F(BindPlannerTest, ASlotThatWasGivenBackIsNotUsed) {
  Allocate(2);
  h_.tables.placements[{"a", 1}].placement.mutable_slots(0)->set_released(true);
  h_.cluster.AddPod("a", "a-0");
  EXPECT_THAT(Describe(h_.Batch()), ElementsAre("bind a-0 n1"));
}

TEST_F(BindPlannerTest, APodThatAsksForMoreThanItsSlotFailsTheAttempt) {
  Allocate(2);
  h_.cluster.AddPod("a", "a-0");
  h_.cluster.AddPod("a", "a-1").requests["cpu"] = 1001;
  h_.cluster.Touch(*h_.cluster.Pod("a-1"));
  h_.Settle();
  EXPECT_THAT(h_.Said("bind_failed"), ElementsAre("a/1 PodTooLarge"));
  EXPECT_THAT(h_.sayings.at(0).envelope.bind_failed().message(), HasSubstr("a-1"));
  EXPECT_FALSE(h_.cluster.Pod("a-0")->Bound());
  h_.Restart();
  h_.Settle();
  EXPECT_THAT(h_.Said("bind_failed"), ElementsAre("a/1 PodTooLarge"));
}

TEST_F(BindPlannerTest, APinnedPodIsReleasedAndCountsWhenItIsScheduled) {
  h_.cluster.AddPod("a", "a-0", -1, /*pinned=*/true);
  Allocate(1);
  h_.Settle();
  EXPECT_FALSE(h_.cluster.Pod("a-0")->gated);
  EXPECT_THAT(h_.Said("job_bound"), IsEmpty());
  h_.cluster.Schedule("a-0", "n0");
  h_.Settle();
  EXPECT_THAT(h_.Said("job_bound"), ElementsAre("a/1"));
}

TEST_F(BindPlannerTest, ABindingThatWasMadeUnseenIsSuccess) {
  h_.cluster.AddPod("a", "a-0");
  Allocate(1);
  h_.cluster.Execute(h_.Batch().at(0));  // its answer never comes
  h_.Restart();
  h_.Settle();
  EXPECT_THAT(h_.Said("job_bound"), ElementsAre("a/1"));
}

TEST_F(BindPlannerTest, NothingIsBoundAgainBeforeTheWatchShowsIt) {
  h_.cluster.AddPod("a", "a-0");
  Allocate(1);
  const std::vector<Call> calls = h_.Batch();
  ASSERT_THAT(Describe(calls), ElementsAre("bind a-0 n0"));
  const CallResult bound = h_.cluster.Execute(calls[0]);
  h_.cluster.events.clear();
  h_.planner->Answer(bound);
  EXPECT_THAT(Describe(h_.Batch()), IsEmpty());
  EXPECT_THAT(Describe(h_.Batch()), IsEmpty());
  EXPECT_THAT(h_.Said("job_bound"), ElementsAre("a/1"));
}

TEST_F(BindPlannerTest, WhatABackupOfTheClusterHasUnboundIsBoundAgain) {
  Allocate(1);
  h_.cluster.AddPod("a", "a-0");
  h_.Settle();
  ASSERT_EQ(h_.SlotOf("a", 0).state, SlotState::kBound);
  PodFacts& pod = *h_.cluster.Pod("a-0");
  pod.node.clear();
  pod.slot.reset();
  pod.history = 2;
  pod.resource_version = 1;
  h_.cluster.events.push_back({pod, pod.uid});
  h_.Settle();
  EXPECT_EQ(h_.cluster.Pod("a-0")->node, "n0");
  EXPECT_EQ(h_.SlotOf("a", 0).state, SlotState::kBound);
  EXPECT_THAT(h_.Said("job_bound"), ElementsAre("a/1"));
}

TEST_F(BindPlannerTest, ANewOwnerRepeatsTheCallForTheSameSlot) {
  h_.cluster.AddPod("a", "a-0");
  Allocate(1);
  h_.Batch();
  h_.Restart();
  const std::vector<Call> calls = h_.Batch();
  EXPECT_THAT(Describe(calls), ElementsAre("bind a-0 n0"));
  h_.Execute(calls);
  h_.Batch();
  EXPECT_EQ(h_.sayings.at(0).envelope.job_bound().pods_size(), 0) << "since when it does not know";
}

TEST_F(BindPlannerTest, AnswersOfPartitionsThatMovedAreDropped) {
  h_.cluster.AddPod("a", "a-0");
  Allocate(1);
  const std::vector<Call> calls = h_.Batch();
  h_.planner->Drop(0);
  h_.Execute(calls);
  h_.Batch();
  EXPECT_EQ(h_.planner->dropped_answers(), 1);
  EXPECT_THAT(h_.Said("job_bound"), IsEmpty());
}

TEST_F(BindPlannerTest, AnUnknownPodIsReadBeforeItsSlotIsGivenAway) {
  h_.cluster.AddPod("a", "a-0");
  Allocate(1);
  h_.Batch();
  h_.cluster.AddPod("a", "a-1");
  BindPlanner fresh(h_.options, TestProofs());
  ASSERT_TRUE(fresh.Restore(h_.tables.jobs.at("a"), h_.tables.SlotsOf("a"), h_.now).ok());
  fresh.SetPodsInView(true, h_.now);
  fresh.PodSeen(*h_.cluster.Pod("a-1"));  // its watch has not come to a-0
  fresh.Placed(fresh.WantedPlacements(h_.now).at(0), &h_.tables.placements.at({"a", 1}), h_.now);
  fresh.PlanPlaced(h_.now);
  EXPECT_THAT(fresh.Commit(), IsEmpty());
  std::vector<Saying> said;
  fresh.Plan(h_.now, &said);
  const std::vector<Call> calls = fresh.Commit();
  ASSERT_THAT(Describe(calls), ElementsAre("read_pod a-0 n0"));
  fresh.Answer(h_.cluster.Execute(calls[0]));
  fresh.Plan(h_.now, &said);
  EXPECT_THAT(Describe(fresh.Commit()), ElementsAre("bind a-0 n0"));
}

TEST_F(BindPlannerTest, TransientErrorsBackOffAndDoNotHinderOthers) {
  h_.cluster.AddPod("a", "a-0");
  h_.cluster.AddPod("a", "a-1");
  Allocate(2);
  const std::vector<Call> calls = h_.Batch();
  ASSERT_EQ(calls.size(), 2);
  h_.planner->Answer({.call = calls[0],
                      .outcome = CallResult::Outcome::kRetry,
                      .pod = {},
                      .retry_after = Millis(700),
                      .message = "throttled"});
  h_.planner->Answer(h_.cluster.Execute(calls[1]));
  EXPECT_THAT(h_.Batch(), IsEmpty());
  EXPECT_TRUE(h_.SlotOf("a", 1).bound_once);
  EXPECT_EQ(h_.planner->WakeAt(), h_.now + Millis(700));
  h_.now += Millis(700);
  EXPECT_THAT(Describe(h_.Batch()), ElementsAre("bind a-0 n0"));
}

TEST_F(BindPlannerTest, PodsThatDoNotComeFailTheAttempt) {
  Allocate(2);
  h_.cluster.AddPod("a", "a-0");
  h_.Settle();
  h_.now += h_.options.start_timeout - Millis(1);
  h_.Batch();
  EXPECT_THAT(h_.Said("bind_failed"), IsEmpty());
  h_.now += Millis(1);
  h_.Settle();
  EXPECT_THAT(h_.Said("bind_failed"), ElementsAre("a/1 StartTimeout"));
  EXPECT_THAT(h_.sayings.at(0).envelope.bind_failed().message(), HasSubstr("1 of 2 pods"));
}

// Kube-scheduler has it: a claim of its user's may not be there yet.
TEST_F(BindPlannerTest, APodThatNobodyMakesAgainIsWaitedFor) {
  BarePod();
  h_.cluster.AddPod("a", "a-0", -1, /*pinned=*/true, "a");
  Allocate(1);
  h_.Settle();
  for (int i = 0; i < 3; ++i) {
    h_.now += h_.options.start_timeout;
    h_.Settle();
  }
  EXPECT_THAT(h_.Said("bind_failed"), IsEmpty());
  EXPECT_NE(h_.cluster.Pod("a-0"), nullptr);
  EXPECT_GT(h_.planner->WakeAt(), h_.now);
}

TEST_F(BindPlannerTest, APodThatItsControllerMakesAgainIsNotWaitedFor) {
  BarePod();
  Workload(1).set_controlled(true);
  h_.cluster.AddPod("a", "a-0", -1, /*pinned=*/true, "a");
  Allocate(1);
  h_.Settle();
  h_.now += h_.options.start_timeout;
  h_.Settle();
  EXPECT_THAT(h_.Said("bind_failed"), ElementsAre("a/1 StartTimeout"));
}

TEST_F(BindPlannerTest, AJobThatLacksFewerCompletionsThanItHasSlotsIsNotTimedOut) {
  h_.cluster.suspended["a"] = false;
  h_.cluster.completions_left["a"] = 1;
  Allocate(2, 2);
  h_.cluster.AddPod("a", "a-0");
  h_.Settle();
  h_.now += h_.options.start_timeout;
  h_.Settle();
  EXPECT_THAT(h_.Said("bind_failed"), IsEmpty());
  EXPECT_THAT(h_.Said("job_bound"), ElementsAre("a/2"));
}

TEST_F(BindPlannerTest, AFailureThatWasNotHeardIsSaidAgainWhereItHoldsStill) {
  Allocate(1);
  h_.Settle();
  EXPECT_FALSE(h_.planner->SayEndAgain("a"));
  h_.now += h_.options.start_timeout;
  h_.Settle();
  ASSERT_THAT(h_.Said("bind_failed"), ElementsAre("a/1 StartTimeout"));
  EXPECT_TRUE(h_.planner->SayEndAgain("a"));
  h_.Settle();
  EXPECT_THAT(h_.Said("bind_failed"), ElementsAre("a/1 StartTimeout", "a/1 StartTimeout"));
  h_.cluster.AddPod("a", "a-0");
  h_.Settle();
  EXPECT_THAT(h_.Said("job_bound"), IsEmpty());
  EXPECT_TRUE(h_.planner->SayEndAgain("a"));
  h_.Settle();
  EXPECT_THAT(h_.Said("job_bound"), ElementsAre("a/1"));
}

TEST_F(BindPlannerTest, NoTimeoutWhileThePodsAreNotInView) {
  Allocate(1);
  h_.Settle();
  h_.planner->SetPodsInView(false, h_.now);
  h_.now += 2 * h_.options.start_timeout;
  h_.Batch();
  h_.planner->SetPodsInView(true, h_.now);
  h_.Batch();
  EXPECT_THAT(h_.Said("bind_failed"), IsEmpty());
}

TEST_F(BindPlannerTest, AMissingPlacementIsLookedForAgain) {
  h_.cluster.AddPod("a", "a-0");
  h_.log.push_back(Fact(JOB_STATE_ALLOCATED, 1));
  EXPECT_THAT(h_.Batch(), IsEmpty());
  h_.PlaceJob("a", 1, 1);
  EXPECT_THAT(h_.Batch(), IsEmpty());
  h_.now += h_.options.placement_retry;
  EXPECT_THAT(Describe(h_.Batch()), ElementsAre("bind a-0 n0"));
}

TEST_F(BindPlannerTest, ASuspendedJobIsResumedOnceAndSuspendedToStop) {
  Workload(1).set_suspended(true);
  h_.cluster.suspended["a"] = true;
  Allocate(1);
  h_.Settle();
  EXPECT_FALSE(h_.cluster.suspended["a"]);
  h_.cluster.suspended["a"] = true;  // by the user: his affair
  h_.Restart();
  h_.Settle();
  EXPECT_TRUE(h_.cluster.suspended["a"]);
  h_.cluster.suspended["a"] = false;

  h_.cluster.AddPod("a", "a-0");
  h_.Settle();
  Stop(1);
  EXPECT_THAT(Describe(h_.Batch()), ElementsAre("suspend a "));
  h_.cluster.Execute({.kind = Call::Kind::kSuspend,
                      .job_id = "a",
                      .space = "",
                      .name = "a",
                      .uid = "a",
                      .node = ""});
  h_.Restart();
  h_.Settle();
  EXPECT_THAT(h_.Said("job_stopped"), IsEmpty());  // its pod runs
  h_.cluster.Delete("a-0");
  h_.Settle();
  EXPECT_THAT(h_.Said("job_stopped"), IsEmpty());  // and is going
  h_.cluster.Remove("a-0");
  h_.Settle();
  EXPECT_THAT(h_.Said("job_stopped"), ElementsAre("a/1"));

  h_.log.push_back(Fact(JOB_STATE_PENDING, 1, 2));
  Allocate(1, 2);
  h_.Settle();
  EXPECT_FALSE(h_.cluster.suspended["a"]);
  EXPECT_EQ(h_.tables.jobs.at("a").attempt, 2);
}

TEST_F(BindPlannerTest, AJobThatIsEndedInTimeIsToldItsDeadlineWithItsStart) {
  Workload(1).set_suspended(true);
  h_.cluster.suspended["a"] = true;
  h_.PlaceJob("a", 1, 1);
  JobFact fact = Fact(JOB_STATE_ALLOCATED, 1);
  fact.set_ends_after_ms(89'500);
  h_.log.push_back(fact);
  EXPECT_THAT(Describe(h_.Batch()), ElementsAre("resume a "));
  h_.Restart();
  h_.Settle();
  EXPECT_FALSE(h_.cluster.suspended["a"]);
  EXPECT_EQ(h_.cluster.deadlines["a"], 90);
}

TEST_F(BindPlannerTest, AJobThatIsNotSuspendedIsToldItsDeadlineOnce) {
  h_.cluster.suspended["a"] = false;
  h_.cluster.AddPod("a", "a-0");
  h_.PlaceJob("a", 1, 1);
  JobFact fact = Fact(JOB_STATE_ALLOCATED, 1);
  fact.set_ends_after_ms(90'000);
  h_.log.push_back(fact);
  const std::vector<Call> calls = h_.Batch();
  EXPECT_THAT(Describe(calls), UnorderedElementsAre("limit a ", "bind a-0 n0"));
  h_.Execute(calls);
  h_.Settle();
  EXPECT_EQ(h_.cluster.deadlines["a"], 90);
  h_.cluster.deadlines.clear();
  h_.Restart();
  h_.Settle();
  EXPECT_THAT(h_.cluster.deadlines, IsEmpty());
}

TEST_F(BindPlannerTest, APodOfItsOwnIsToldItsDeadlineByItsBinding) {
  BarePod();
  h_.cluster.AddPod("a", "a");
  h_.PlaceJob("a", 1, 1);
  JobFact fact = Fact(JOB_STATE_ALLOCATED, 1);
  fact.set_ends_after_ms(90'000);
  h_.log.push_back(fact);
  const std::vector<Call> calls = h_.Batch();
  ASSERT_EQ(calls.size(), 1U);
  EXPECT_EQ(calls[0].kind, Call::Kind::kBind);
  EXPECT_EQ(calls[0].ends_after_s, 90);
}

TEST_F(BindPlannerTest, ALaterAttemptDoesNotTakeAwayTheUsersOwnSuspend) {
  h_.cluster.suspended["a"] = true;
  Allocate(1, 2);
  h_.Settle();
  EXPECT_TRUE(h_.cluster.suspended["a"]);
}

TEST_F(BindPlannerTest, AControlledJobIsStoppedByDeletingItsBoundPods) {
  Workload(2).set_controlled(true);
  h_.cluster.suspended["a"] = false;
  h_.cluster.AddPod("a", "a-0");
  Allocate(2);
  h_.Settle();
  h_.cluster.AddPod("a", "a-1");
  h_.cluster.AddPod("a", "a-2");  // no slot: nothing is done about it
  ASSERT_THAT(Describe(h_.Batch()), ElementsAre("bind a-1 n1"));
  Stop(2);
  h_.Restart();  // the Binding of a-1 was never sent
  const std::vector<Call> calls = h_.Batch();
  EXPECT_THAT(Describe(calls), UnorderedElementsAre("delete a-0 n0", "fence a-1 n1"));
  h_.Execute(calls);
  h_.Settle();
  EXPECT_FALSE(h_.cluster.suspended["a"]);
  EXPECT_THAT(h_.Said("job_stopped"), IsEmpty());
  h_.cluster.Remove("a-0");
  h_.Settle();
  EXPECT_THAT(h_.Said("job_stopped"), ElementsAre("a/1"));
  EXPECT_EQ(h_.SlotOf("a", 1).state, SlotState::kFenced);
  h_.Restart();
  h_.Settle();
  EXPECT_THAT(h_.Said("job_stopped"), ElementsAre("a/1"));
}

TEST_F(BindPlannerTest, WhatIsStoppedForAnotherJobIsGivenTimeForACheckpoint) {
  for (const int64_t grace_ms : {0, 1500}) {
    SCOPED_TRACE(grace_ms);
    h_.Restart();
    Workload(1).set_controlled(true);
    const uint32_t attempt = grace_ms == 0 ? 1 : 2;
    h_.cluster.AddPod("a", fmt::format("a-{}", grace_ms));
    Allocate(1, attempt);
    h_.Settle();
    events::v1::JobFact fact = Fact(JOB_STATE_STOPPING, 1, attempt);
    fact.set_grace_ms(grace_ms);
    h_.log.push_back(fact);
    const std::vector<Call> calls = h_.Batch();
    ASSERT_THAT(Describe(calls), ElementsAre(fmt::format("delete a-{} n0", grace_ms)));
    EXPECT_EQ(calls[0].grace_s, grace_ms == 0 ? std::nullopt : std::optional<int64_t>(2));
    h_.Execute(calls);
    h_.cluster.Remove(fmt::format("a-{}", grace_ms));
    h_.Settle();
  }
}

TEST_F(BindPlannerTest, WhatItsJobMakesAgainIsDeletedAsDisrupted) {
  struct Row {
    bool controlled;  // a Job; else a bare pod
    JobFact::AfterStop after;
    std::optional<std::string> disruption;
  };
  const std::vector<Row> rows = {
      {true, JobFact::AFTER_STOP_REQUEUE, "stopped for job default/b"},
      {true, JobFact::AFTER_STOP_CANCEL, std::nullopt},
      {true, JobFact::AFTER_STOP_FAIL, std::nullopt},
      {false, JobFact::AFTER_STOP_REQUEUE, std::nullopt},
  };
  uint32_t attempt = 0;
  for (const Row& row : rows) {
    SCOPED_TRACE(++attempt);
    h_.Restart();
    Workload(1).set_controlled(row.controlled);
    if (!row.controlled) BarePod();
    const std::string pod = fmt::format("a-{}", attempt);
    h_.cluster.AddPod("a", pod, -1, /*pinned=*/false, row.controlled ? "" : "a");
    Allocate(1, attempt);
    h_.Settle();
    JobFact fact = Fact(JOB_STATE_STOPPING, 1, attempt);
    fact.set_after_stop(row.after);
    fact.set_message("stopped for job default/b");
    h_.log.push_back(fact);
    const std::vector<Call> calls = h_.Batch();
    ASSERT_THAT(Describe(calls), ElementsAre(fmt::format("delete {} n0", pod)));
    EXPECT_EQ(calls[0].disruption, row.disruption);
    h_.Execute(calls);
    h_.cluster.Remove(pod);
    h_.Settle();
  }
}

TEST_F(BindPlannerTest, AFenceThatComesTooLateLeadsToADeletion) {
  BarePod();
  h_.cluster.AddPod("a", "a-0", -1, /*pinned=*/false, "a");
  Allocate(1);
  const std::vector<Call> bind = h_.Batch();
  h_.cluster.Execute(bind.at(0));  // a former owner's, unknown to the new one
  h_.cluster.events.clear();
  Stop(1);
  h_.Batch();
  h_.planner->Answer(
      {.call = bind[0], .outcome = CallResult::Outcome::kRetry, .pod = {}, .message = "timeout"});
  h_.Batch();
  h_.now += h_.options.retry_max;
  const std::vector<Call> fence = h_.Batch();
  ASSERT_THAT(Describe(fence), ElementsAre("fence a-0 n0"));
  h_.Execute(fence);
  EXPECT_THAT(Describe(h_.Batch()), ElementsAre("delete a-0 n0"));
}

TEST_F(BindPlannerTest, ABarePodThatIsNotBoundIsLeftHeld) {
  BarePod();
  Allocate(1);
  h_.Batch();
  Stop(1);
  h_.Settle();
  EXPECT_THAT(h_.Said("job_stopped"), ElementsAre("a/1"));
}

TEST_F(BindPlannerTest, AReleasedPinnedPodIsDeletedNotFenced) {
  BarePod();
  h_.cluster.AddPod("a", "a-0", -1, /*pinned=*/true, "a");
  Allocate(1);
  h_.Settle();
  Stop(1);
  h_.Settle();
  EXPECT_EQ(h_.cluster.Pod("a-0"), nullptr);
  EXPECT_THAT(h_.Said("job_stopped"), ElementsAre("a/1"));
}

TEST_F(BindPlannerTest, OnALostNodeADeletionThatWasAcceptedCounts) {
  BarePod();
  h_.cluster.AddPod("a", "a-0", -1, /*pinned=*/false, "a");
  Allocate(1);
  h_.Settle();
  Stop(1);
  h_.Settle();
  EXPECT_TRUE(h_.cluster.Pod("a-0")->deleting);
  EXPECT_THAT(h_.Said("job_stopped"), IsEmpty());
  h_.cluster.lost_nodes.insert("n0");
  h_.now += 2 * h_.options.node_check_interval;
  h_.Execute(h_.Batch());
  h_.Batch();
  EXPECT_THAT(h_.Said("job_stopped"), ElementsAre("a/1"));
}

TEST_F(BindPlannerTest, PodsOfAnEarlierAttemptAreNotInTheWay) {
  h_.cluster.AddPod("a", "old");
  Allocate(1);
  h_.Settle();
  h_.cluster.Delete("old");  // hangs on a lost node
  h_.log.push_back(Fact(JOB_STATE_PENDING, 1, 2));
  Allocate(1, 2);
  h_.cluster.AddPod("a", "new");
  h_.Settle();
  EXPECT_EQ(h_.cluster.Pod("new")->slot->attempt, 2);
  EXPECT_THAT(h_.Said("job_bound"), ElementsAre("a/1", "a/2"));
}

TEST_F(BindPlannerTest, BoundPodsOfLostRowsAreAdopted) {
  h_.cluster.AddPod("a", "a-0");
  Allocate(1);
  h_.Settle();
  h_.tables.jobs.clear();
  h_.tables.slots.clear();
  h_.Restart();
  h_.cluster.AddPod("a", "a-1");
  h_.log.push_back(Fact(JOB_STATE_RUNNING, 1));
  h_.Settle();
  EXPECT_EQ(h_.SlotOf("a", 0).pod_uid, "a-0");
  EXPECT_FALSE(h_.cluster.Pod("a-1")->Bound());
}

// Anybody may write the uid of another's Job into the owner references of a pod of his own.
TEST_F(BindPlannerTest, APodOfAnotherNamespaceIsNotOfTheJob) {
  PodFacts& forged = h_.cluster.AddPod("a", "a-0");
  forged.space = "thief";
  forged.requests["cpu"] = 1'000'000;
  h_.cluster.Touch(forged);
  h_.cluster.AddPod("a", "a-1");
  Allocate(1);
  h_.Settle();
  EXPECT_EQ(h_.SlotOf("a", 0).pod_uid, "a-1");
  EXPECT_THAT(h_.Said("bind_failed"), IsEmpty());
  EXPECT_THAT(h_.Said("job_bound"), ElementsAre("a/1"));
  h_.cluster.Remove("a-0");
  h_.Settle();
  EXPECT_FALSE(h_.planner->pods().KnownGone("a-0", "a"));
}

TEST_F(BindPlannerTest, ABoundPodOfAnotherNamespaceIsNotAdopted) {
  PodFacts& forged = h_.cluster.AddPod("a", "a-0");
  forged.space = "thief";
  forged.node = "n9";
  forged.slot = kubernetes::SlotName{1, 0, 0, 1};
  h_.cluster.Touch(forged);
  Allocate(1);
  h_.Settle();
  EXPECT_EQ(h_.SlotOf("a", 0).pod_uid, "");
  h_.cluster.AddPod("a", "a-1");
  h_.Settle();
  EXPECT_EQ(h_.SlotOf("a", 0).pod_uid, "a-1");
  EXPECT_THAT(h_.Said("bind_failed"), IsEmpty());
}

// Owner references can be changed.
TEST_F(BindPlannerTest, APodStaysWithTheJobThatItWasSeenWith) {
  PodFacts& pod = h_.cluster.AddPod("a", "a-0");
  h_.TellEvents();
  pod.job_id = "b";
  h_.cluster.Touch(pod);
  h_.TellEvents();
  h_.cluster.Remove("a-0");
  Allocate(1);
  h_.Settle();
  EXPECT_THAT(h_.planner->pods().OfJob("a", kTestSpace), IsEmpty());
  EXPECT_EQ(h_.planner->pods().size(), 0);
}

TEST_F(BindPlannerTest, RemembersOnlySoManyPodsThatHaveGone) {
  h_.cluster.AddPod("a", "a-0");
  Allocate(1);
  h_.Settle();
  const auto name = [](size_t i) { return "x-" + std::to_string(i); };
  for (size_t i = 0; i <= PodBoard::kMostGone; ++i) {
    h_.cluster.AddPod("a", name(i));
    h_.cluster.Remove(name(i));
  }
  h_.Settle();
  EXPECT_TRUE(h_.planner->pods().KnownGone(name(0), "a"));
  EXPECT_FALSE(h_.planner->pods().KnownGone(name(PodBoard::kMostGone), "a"));
  // The pod of its slot is forgotten too, and asked for.
  h_.cluster.Remove("a-0");
  h_.cluster.AddPod("a", "a-1");
  h_.Settle();
  EXPECT_EQ(h_.SlotOf("a", 0).pod_uid, "a-1");
}

TEST_F(BindPlannerTest, AnEndedJobLeavesNothing) {
  h_.cluster.AddPod("a", "a-0");
  Allocate(1);
  h_.Settle();
  h_.log.push_back(Fact(JOB_STATE_BOUND, 1));
  h_.log.push_back(Fact(JOB_STATE_SUCCEEDED, 1));
  h_.Settle();
  EXPECT_EQ(h_.planner->jobs(), 0);
  EXPECT_THAT(h_.tables.jobs, IsEmpty());
  EXPECT_THAT(h_.tables.slots, IsEmpty());
  EXPECT_EQ(h_.planner->WakeAt(), std::nullopt);
}

TEST_F(BindPlannerTest, FactsThatCanNeverBeHandledAreRefusedAndChangeNothing) {
  JobFact fact = Fact(JOB_STATE_ALLOCATED, 1);
  fact.clear_job_id();
  EXPECT_EQ(h_.planner->Fold(0, fact, h_.now).code(), absl::StatusCode::kInvalidArgument);
  fact = Fact(JOB_STATE_ALLOCATED, 1);
  fact.set_attempt(0);
  EXPECT_EQ(h_.planner->Fold(0, fact, h_.now).code(), absl::StatusCode::kInvalidArgument);
  fact = Fact(static_cast<events::v1::JobState>(99), 1);
  EXPECT_EQ(h_.planner->Fold(0, fact, h_.now).code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(h_.planner->Changes().size(), 0);
}

TEST_F(BindPlannerTest, AClaimHasNoPods) {
  Workload(2).set_kind("Claim");
  for (const auto state : {JOB_STATE_PENDING, JOB_STATE_ALLOCATED, JOB_STATE_RUNNING}) {
    EXPECT_TRUE(h_.planner->Fold(0, Fact(state, 2), h_.now).ok());
    EXPECT_EQ(h_.planner->Find("a"), nullptr);
  }
  EXPECT_FALSE(h_.planner->HasRows(h_.now));
  EXPECT_TRUE(h_.planner->WantedPlacements(h_.now).empty());
}

TEST_F(BindPlannerTest, AnOldFactIsStale) {
  Allocate(1);
  const JobFact old = h_.log.front();
  h_.Batch();
  h_.log.push_back(Fact(JOB_STATE_STOPPING, 1));
  h_.Batch();
  h_.log.push_back(old);
  h_.Batch();
  EXPECT_TRUE(h_.planner->Find("a")->stopping);
}

}  // namespace
}  // namespace fluxqueue::binder
