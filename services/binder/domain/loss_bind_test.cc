// Slots that are lost while their job runs, and others in their place.
#include <initializer_list>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "services/binder/domain/bind_planner_fixture.h"

namespace fluxqueue::binder {
namespace {

using events::v1::JOB_STATE_RUNNING;
using events::v1::JobFact;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

// A Job whose queue looks for other slots; a-0 to a-2 in slots 0 to 2 on n0 to n2.
class LossTest : public BindPlannerTest {
 protected:
  void Run(uint32_t slots) {
    h_.cluster.suspended["a"] = false;
    for (uint32_t i = 0; i < slots; ++i) {
      h_.cluster.AddPod("a", "a-" + std::to_string(i), static_cast<int>(i));
    }
    Allocate(slots);
    h_.log.back().set_replaces_slots(true);
    h_.Settle();
  }
  void Close(const std::string& node) { h_.cluster.closed_nodes[node] = "is cordoned"; }
  // It is evicted, and the Job's controller makes another, of the same index.
  void Evict(const std::string& pod, const std::string& next) {
    const int index = h_.cluster.Pod(pod)->index;
    h_.cluster.Pod(pod)->put_out = "EvictionByEvictionAPI";
    h_.cluster.Touch(*h_.cluster.Pod(pod));
    h_.cluster.Remove(pod);
    h_.cluster.AddPod("a", next, index);
  }
  // The matcher's row, and then the queue's fact: so many slots, of which these were given back.
  void Replace(uint32_t slots, std::initializer_list<int> released) {
    h_.PlaceJob("a", 1, slots);
    auto& placement = h_.tables.placements.at({"a", 1}).placement;
    for (const int slot : released) placement.mutable_slots(slot)->set_released(true);
    JobFact fact = Fact(JOB_STATE_RUNNING, first_slots_);
    fact.set_placement_hash(slots);
    fact.set_replaces_slots(true);
    h_.log.push_back(fact);
  }

  uint32_t first_slots_ = 3;
};

// A drain: the node is cordoned, and its pod is evicted.
TEST_F(LossTest, ASlotOnAClosedNodeIsLostAndItsPodHasAnother) {
  Run(3);
  Close("n1");
  Evict("a-1", "new");
  h_.Settle();
  EXPECT_THAT(h_.Said("slots_lost"), ElementsAre("1 on n1, which is cordoned"));
  EXPECT_FALSE(h_.cluster.Pod("new")->Bound());
  Replace(4, {1});
  const std::vector<Call> calls = h_.Batch();
  ASSERT_THAT(Describe(calls), ElementsAre("bind new n3"));
  EXPECT_EQ(calls[0].slot, 3);
  h_.Execute(calls);
  h_.Settle();
  EXPECT_EQ(h_.cluster.Pod("new")->node, "n3");
  EXPECT_EQ(h_.cluster.Pod("a-0")->node, "n0");
  EXPECT_EQ(h_.cluster.Pod("a-2")->node, "n2");
  h_.now += 2 * h_.options.start_timeout;
  h_.Settle();
  EXPECT_THAT(h_.Said("bind_failed"), IsEmpty());
  EXPECT_THAT(h_.Said("job_bound"), ElementsAre("a/1"));
  EXPECT_THAT(h_.Said("slots_lost"), ElementsAre("1 on n1, which is cordoned")) << "once";
}

TEST_F(LossTest, ALostSlotIsUsedNoMoreAlsoWhenItsNodeIsOpenAgain) {
  Run(3);
  Close("n1");
  Evict("a-1", "new");
  h_.Settle();
  h_.cluster.closed_nodes.clear();
  h_.now += h_.options.node_check_interval;
  h_.Settle();
  h_.Restart();
  h_.Settle();
  EXPECT_FALSE(h_.cluster.Pod("new")->Bound()) << "the slot may be another job's by now";
  Replace(4, {1});
  h_.Settle();
  EXPECT_EQ(h_.cluster.Pod("new")->node, "n3");
  EXPECT_THAT(h_.Said("slots_lost"), ElementsAre("1 on n1, which is cordoned"));
}

// Before it was said that it is lost.
TEST_F(LossTest, ANodeThatOpensBeforeTheSlotIsLostIsUsedAgain) {
  Run(3);
  Close("n1");
  Evict("a-1", "new");
  h_.Execute(h_.Batch());  // the look
  const std::vector<Call> fence = h_.Batch();
  ASSERT_THAT(Describe(fence), ElementsAre("fence new n1"));
  h_.cluster.closed_nodes.clear();
  h_.Restart();
  h_.Settle();
  EXPECT_EQ(h_.cluster.Pod("new")->node, "n1");
  EXPECT_THAT(h_.Said("slots_lost"), IsEmpty());
}

TEST_F(LossTest, WithoutRoomElsewhereAllOfItIsPlacedAgain) {
  Run(3);
  Close("n1");
  Evict("a-1", "new");
  h_.Settle();
  h_.now += h_.options.start_timeout - Millis(10'000);
  h_.Settle();
  EXPECT_THAT(h_.Said("bind_failed"), IsEmpty());
  h_.Restart();
  h_.Settle();
  h_.now += h_.options.start_timeout;
  h_.Settle();
  EXPECT_THAT(h_.Said("bind_failed"), ElementsAre("a/1 NodeClosed"));
  EXPECT_THAT(h_.sayings.back().envelope.bind_failed().message(),
              HasSubstr("new has no slot: 1 of the job's 3 was lost, and no other node had room"));
}

TEST_F(LossTest, WhoIsNamedIsOneThatWaits) {
  Run(3);
  Close("n2");
  Evict("a-2", "new-2");
  h_.Settle();
  Replace(4, {2});
  h_.Settle();
  EXPECT_EQ(h_.cluster.Pod("new-2")->node, "n3");
  Close("n0");
  Evict("a-0", "new-0");
  h_.Settle();
  h_.now += h_.options.start_timeout;
  h_.Settle();
  ASSERT_THAT(h_.Said("bind_failed"), ElementsAre("a/1 NodeClosed"));
  EXPECT_THAT(h_.sayings.back().envelope.bind_failed().message(), HasSubstr("new-0 has no slot"));
}

// Others grow behind the line, where room may never come.
TEST_F(LossTest, WhatIsResizedIsPlacedAgainWhereItLacksSlotsOfTheLeast) {
  Run(3);
  JobFact resized = Fact(JOB_STATE_RUNNING, 3);
  resized.set_placement_hash(h_.planner->Find("a")->placement_hash);
  resized.set_resized(true);
  resized.set_min_slots(3);
  resized.set_max_slots(4);
  resized.set_replaces_slots(true);
  h_.log.push_back(resized);
  Close("n1");
  Evict("a-1", "new");
  h_.Settle();
  EXPECT_THAT(h_.Said("slots_lost"), ElementsAre("1 on n1, which is cordoned"));
  h_.now += h_.options.start_timeout / 2;
  h_.Settle();
  EXPECT_THAT(h_.Said("bind_failed"), IsEmpty());
  h_.now += h_.options.start_timeout / 2;
  h_.Settle();
  EXPECT_THAT(h_.Said("bind_failed"), ElementsAre("a/1 NodeClosed"));
}

// A pod with a volume: kube-scheduler binds it.
TEST_F(LossTest, AReleasedPodThatIsNotBoundIsGivenAnotherSlot) {
  Run(3);
  h_.cluster.Remove("a-1");
  h_.cluster.AddPod("a", "new", 1, /*pinned=*/true);
  h_.Settle();
  ASSERT_TRUE(h_.cluster.Pod("new")->Released());
  h_.now += h_.options.start_timeout - Millis(10'000);
  h_.Settle();
  ASSERT_NE(h_.cluster.Pod("new"), nullptr) << "it is not late yet";
  h_.now += Millis(10'000);
  const std::vector<Call> calls = h_.Batch();
  ASSERT_THAT(Describe(calls), ElementsAre("delete new n1"));
  EXPECT_TRUE(calls[0].disruption.has_value()) << "no failure of the Job's";
  h_.Execute(calls);
  h_.cluster.AddPod("a", "newer", 1, /*pinned=*/true);
  h_.Settle();
  EXPECT_THAT(h_.Said("slots_lost"),
              ElementsAre("1 on n1, which has not had its pod bound in time; open"));
  EXPECT_TRUE(h_.cluster.Pod("newer")->gated);
  Replace(4, {1});
  h_.Settle();
  EXPECT_FALSE(h_.cluster.Pod("newer")->gated);
  h_.cluster.Schedule("newer", "n3");
  h_.now += 2 * h_.options.start_timeout;
  h_.Settle();
  EXPECT_THAT(h_.Said("bind_failed"), IsEmpty());
}

// Also where the last of the others is bound, and the job said to be, while it waits.
TEST_F(LossTest, AReleasedPodOfAJobThatIsAllBoundIsLookedAt) {
  h_.cluster.suspended["a"] = false;
  h_.cluster.AddPod("a", "a-0", 0, /*pinned=*/true);
  h_.cluster.AddPod("a", "a-1", 1, /*pinned=*/true);
  Allocate(2);
  h_.log.back().set_replaces_slots(true);
  h_.Settle();
  h_.cluster.Schedule("a-0", "n0");
  h_.Settle();
  h_.cluster.Remove("a-0");
  h_.cluster.AddPod("a", "new", 0, /*pinned=*/true);
  h_.Settle();
  h_.cluster.Schedule("a-1", "n1");
  h_.Settle();
  ASSERT_TRUE(h_.planner->Find("a")->bound_said);
  EXPECT_TRUE(h_.planner->WakeAt().has_value());
  h_.now += h_.options.start_timeout;
  EXPECT_THAT(Describe(h_.Batch()), ElementsAre("delete new n0"));
}

TEST_F(LossTest, ItMayYetBeBoundBeforeItIsDeleted) {
  Run(3);
  h_.cluster.Remove("a-1");
  h_.cluster.AddPod("a", "new", 1, /*pinned=*/true);
  h_.Settle();
  h_.Restart();
  h_.Settle();
  h_.now += h_.options.start_timeout;
  h_.Batch();  // the deletion is lost
  h_.cluster.Schedule("new", "n1");
  h_.Restart();
  h_.Settle();
  EXPECT_TRUE(h_.cluster.Pod("new")->Bound());
  EXPECT_THAT(h_.Said("slots_lost"), IsEmpty());
}

TEST_F(LossTest, WhereNothingElseRunsAllOfItIsPlacedAgain) {
  first_slots_ = 1;
  Run(1);
  h_.cluster.Remove("a-0");
  h_.cluster.AddPod("a", "new", 0, /*pinned=*/true);
  h_.Settle();
  h_.now += h_.options.start_timeout;
  h_.Settle();
  EXPECT_THAT(h_.Said("bind_failed"), ElementsAre("a/1 StartTimeout"));
  EXPECT_THAT(h_.Said("slots_lost"), IsEmpty());
}

// Somebody else's doing: it had not come to the node.
TEST_F(LossTest, APodThatWasNotThereWasNotPutOut) {
  Run(3);
  h_.cluster.Remove("a-1");
  h_.cluster.AddPod("a", "new", 1, /*pinned=*/true);
  h_.Settle();
  Evict("new", "newer");
  h_.Settle();
  EXPECT_THAT(h_.Said("slots_lost"), IsEmpty());
}

TEST_F(LossTest, ManyAreSaidInSeveralMessages) {
  constexpr uint32_t kSlots = 450;
  first_slots_ = kSlots;
  Run(kSlots);
  for (uint32_t i = 1; i < kSlots; ++i) {
    h_.cluster.closed_nodes["n" + std::to_string(i)] = std::string(1000, 'x');
    Evict("a-" + std::to_string(i), "new-" + std::to_string(i));
  }
  h_.Settle();
  std::vector<int> sizes;
  for (const Saying& saying : h_.sayings) {
    if (!saying.envelope.has_slots_lost()) continue;
    sizes.push_back(saying.envelope.slots_lost().slots_size());
    EXPECT_LE(saying.envelope.slots_lost().slots(0).reason().size(), kMostReasonBytes);
  }
  EXPECT_THAT(sizes, ElementsAre(200, 200, 49));
}

TEST_F(LossTest, NobodyIsWaitedForWhoIsNotThere) {
  Run(3);
  Close("n1");
  Evict("a-1", "new");
  h_.Settle();
  h_.cluster.Remove("new");
  h_.now += 2 * h_.options.start_timeout;
  h_.Settle();
  EXPECT_THAT(h_.Said("bind_failed"), IsEmpty());
  h_.cluster.AddPod("a", "late");
  h_.Settle();
  EXPECT_THAT(h_.Said("bind_failed"), IsEmpty()) << "it has not waited yet";
  h_.now += h_.options.start_timeout;
  h_.Settle();
  EXPECT_THAT(h_.Said("bind_failed"), ElementsAre("a/1 NodeClosed"));
}

TEST_F(LossTest, ThatAPodWasPutOutIsNotForgottenWithTheNext) {
  Run(3);
  Evict("a-1", "new");
  h_.Batch();  // the look is lost
  h_.cluster.Remove("new");
  h_.cluster.AddPod("a", "newer", 1);
  h_.Settle();
  EXPECT_THAT(h_.Said("slots_lost"),
              ElementsAre("1 on n1, which has put its pod out: EvictionByEvictionAPI; open"));
}

TEST_F(LossTest, TwoAtOnceAndOnesThatComeOneAfterTheOther) {
  Run(3);
  Close("n0");
  Close("n1");
  Evict("a-0", "new-0");
  Evict("a-1", "new-1");
  h_.Settle();
  EXPECT_THAT(h_.Said("slots_lost"),
              ElementsAre("0 on n0, which is cordoned", "1 on n1, which is cordoned"));
  Replace(4, {0, 1});
  h_.Settle();
  EXPECT_EQ(h_.cluster.Pod("new-0")->node, "n3");
  EXPECT_FALSE(h_.cluster.Pod("new-1")->Bound());
  Replace(5, {0, 1});
  h_.Settle();
  EXPECT_EQ(h_.cluster.Pod("new-1")->node, "n4");
}

TEST_F(LossTest, AnIndexHasTheSlotThatCameInPlaceOfItsOwn) {
  Workload(3).set_indexed(true);
  Run(3);
  Close("n1");
  Evict("a-1", "new");
  h_.Settle();
  Replace(4, {1});
  h_.Settle();
  EXPECT_EQ(h_.cluster.Pod("new")->node, "n3");
  // Its pod fails there: the next of the index has the same slot, and that of another its own.
  h_.cluster.End("new", PodFacts::Phase::kFailed);
  h_.cluster.End("a-2", PodFacts::Phase::kFailed);
  h_.cluster.AddPod("a", "next-1", 1);
  h_.cluster.AddPod("a", "next-2", 2);
  h_.Settle();
  EXPECT_EQ(h_.cluster.Pod("next-1")->node, "n3");
  EXPECT_EQ(h_.cluster.Pod("next-2")->node, "n2");
}

// Its node is open, but the pod did not stay there.
TEST_F(LossTest, ANodeThatPutsItsPodOutIsLeft) {
  Run(3);
  Evict("a-1", "new");
  h_.Settle();
  EXPECT_THAT(h_.Said("slots_lost"),
              ElementsAre("1 on n1, which has put its pod out: EvictionByEvictionAPI; open"));
  Replace(4, {1});
  h_.Settle();
  EXPECT_EQ(h_.cluster.Pod("new")->node, "n3");
}

TEST_F(LossTest, APodThatItsNodeTurnedAwayHasFailedForTheNodesSake) {
  Run(3);
  h_.cluster.Pod("a-1")->put_out = "OutOfcpu";
  h_.cluster.End("a-1", PodFacts::Phase::kFailed);
  h_.cluster.AddPod("a", "new", 1);
  h_.Settle();
  EXPECT_THAT(h_.Said("slots_lost"),
              ElementsAre("1 on n1, which has put its pod out: OutOfcpu; open"));
}

TEST_F(LossTest, APodThatFailedByItselfIsFollowedInItsSlot) {
  Run(3);
  h_.cluster.End("a-1", PodFacts::Phase::kFailed);
  h_.cluster.AddPod("a", "new", 1);
  h_.Settle();
  EXPECT_EQ(h_.cluster.Pod("new")->node, "n1");
  EXPECT_THAT(h_.Said("slots_lost"), IsEmpty());
}

// What came in place of it is on the same node, of which the matcher had not heard.
TEST_F(LossTest, ANodeOnWhichASlotWasLostIsLookedAt) {
  Run(3);
  Close("n1");
  Evict("a-1", "new");
  h_.Settle();
  Replace(4, {1});
  h_.tables.placements.at({"a", 1}).placement.mutable_slots(3)->set_node("n1");
  h_.Settle();
  EXPECT_FALSE(h_.cluster.Pod("new")->Bound());
  EXPECT_THAT(h_.Said("slots_lost"),
              ElementsAre("1 on n1, which is cordoned", "3 on n1, which is cordoned"));
  Replace(5, {1, 3});
  h_.Settle();
  EXPECT_EQ(h_.cluster.Pod("new")->node, "n4");
}

TEST_F(LossTest, AJobOfWhichNothingElseRunsIsPlacedAgainAtOnce) {
  first_slots_ = 1;
  Run(1);
  Close("n0");
  Evict("a-0", "new");
  h_.Settle();
  EXPECT_THAT(h_.Said("bind_failed"), ElementsAre("a/1 NodeClosed"));
  EXPECT_THAT(h_.Said("slots_lost"), IsEmpty());
}

TEST_F(LossTest, AJobWithMoreCompletionsThanSlotsKeepsItsWidth) {
  first_slots_ = 2;
  Workload(2).set_completions(5);
  h_.cluster.completions_left["a"] = 5;
  Run(2);
  Close("n0");
  Evict("a-0", "a-5");
  h_.Settle();
  EXPECT_THAT(h_.Said("slots_lost"), ElementsAre("0 on n0, which is cordoned"));
  // Its pod has any slot that is free first.
  h_.cluster.End("a-1", PodFacts::Phase::kSucceeded);
  h_.cluster.AddPod("a", "a-6", 6);
  h_.Settle();
  EXPECT_EQ(h_.cluster.Pod("a-5")->node, "n1");
  Replace(3, {0});
  h_.Settle();
  EXPECT_EQ(h_.cluster.Pod("a-6")->node, "n2");
  h_.now += 2 * h_.options.start_timeout;
  h_.Settle();
  EXPECT_THAT(h_.Said("bind_failed"), IsEmpty());
}

// A former owner's call: it comes after the fence, or before and is seen.
TEST_F(LossTest, ALateBindingFailsOrIsSeen) {
  for (const bool late : {true, false}) {
    SCOPED_TRACE(late);
    h_.cluster = FakeCluster();
    h_.tables = FakeTables();
    h_.sayings.clear();
    h_.Restart();
    Run(3);
    h_.cluster.Remove("a-1");
    h_.cluster.AddPod("a", "new");
    h_.Execute(h_.Batch());
    const std::vector<Call> bind = h_.Batch();
    ASSERT_THAT(Describe(bind), ElementsAre("bind new n1"));
    h_.Restart();
    Close("n1");
    h_.Execute(h_.Batch());
    const std::vector<Call> fence = h_.Batch();
    ASSERT_THAT(Describe(fence), ElementsAre("fence new n1"));
    if (!late) h_.cluster.Execute(bind[0]);
    h_.Execute(fence);
    if (late) {
      EXPECT_EQ(h_.cluster.Execute(bind[0]).outcome, CallResult::Outcome::kConflict);
    }
    h_.Settle();
    EXPECT_EQ(h_.Said("slots_lost").size(), late ? 1U : 0U);
    EXPECT_EQ(h_.cluster.Pod("new")->Bound(), !late) << "what runs on a cordoned node runs on";
    h_.log.push_back(Fact(events::v1::JOB_STATE_SUCCEEDED, 3));
    h_.Settle();
  }
}

TEST_F(LossTest, AFailedBatchSaysItAgain) {
  Run(3);
  Close("n1");
  Evict("a-1", "new");
  h_.Execute(h_.Batch());
  h_.Execute(h_.Batch());
  h_.FailedBatch();
  EXPECT_THAT(h_.Said("slots_lost"), IsEmpty());
  EXPECT_EQ(h_.planner->Find("a")->fact->lost_slots_size(), 0);
  h_.Settle();
  EXPECT_THAT(h_.Said("slots_lost"), ElementsAre("1 on n1, which is cordoned"));
}

TEST_F(LossTest, AStopTakesTheRest) {
  Run(3);
  Close("n1");
  Evict("a-1", "new");
  h_.Execute(h_.Batch());
  h_.Batch();  // its fence is lost
  Stop(3);
  h_.Settle();
  EXPECT_THAT(h_.Said("slots_lost"), IsEmpty());
  for (const char* pod : {"a-0", "a-2", "new"}) h_.cluster.Remove(pod);
  h_.Settle();
  EXPECT_THAT(h_.Said("job_stopped"), ElementsAre("a/1"));
}

TEST_F(LossTest, AnOlderQueueIsToldNothing) {
  Run(3);
  h_.Restart();
  h_.tables = FakeTables();
  h_.Restart();
  h_.cluster = FakeCluster();
  first_slots_ = 2;
  h_.cluster.AddPod("a", "b-0");
  h_.cluster.AddPod("a", "b-1");
  Allocate(2, /*attempt=*/2);
  h_.Settle();
  Evict("b-0", "new");
  h_.Settle();
  EXPECT_EQ(h_.cluster.Pod("new")->node, "n0") << "as ever";
  EXPECT_THAT(h_.Said("slots_lost"), IsEmpty());
}

TEST(PodPutOutTest, WhatKubernetesSays) {
  const auto why = [](const char* phase, const char* reason, bool disrupted) {
    kubernetes::Pod pod;
    pod.meta.uid = "u";
    pod.meta.resource_version = "1";
    pod.status.phase = phase;
    pod.status.reason = reason;
    pod.status.disruption_target = disrupted;
    return ToFacts(pod)->put_out;
  };
  EXPECT_EQ(why("Running", "", false), "");
  EXPECT_EQ(why("Running", "", true), "DisruptionTarget");
  EXPECT_EQ(why("Failed", "Evicted", true), "Evicted");
  EXPECT_EQ(why("Failed", "OutOfcpu", false), "OutOfcpu");
  EXPECT_EQ(why("Failed", "NodeAffinity", false), "NodeAffinity");
  EXPECT_EQ(why("Failed", "UnexpectedAdmissionError", false), "UnexpectedAdmissionError");
  EXPECT_EQ(why("Failed", "DeadlineExceeded", false), "");
  EXPECT_EQ(why("Failed", "", false), "");
  const std::string long_reason(1'500'000, 'x');
  EXPECT_LE(why("Failed", long_reason.c_str(), true).size(), kMostReasonBytes)
      << "whoever may write the status of pods";
}

}  // namespace
}  // namespace fluxqueue::binder
