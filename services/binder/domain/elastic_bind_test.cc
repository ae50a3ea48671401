// Elastic jobs: slots that come later, and slots that are given back for others.
#include <algorithm>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "services/binder/domain/bind_planner_fixture.h"

namespace fluxqueue::binder {
namespace {

using events::v1::JOB_STATE_ALLOCATED;
using events::v1::JOB_STATE_RUNNING;
using events::v1::JOB_STATE_SUCCEEDED;
using events::v1::JobFact;
using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::UnorderedElementsAre;

// Elastic: of `completions` pods all are there, and it begins with `slots`.
class ElasticBindTest : public BindPlannerTest {
 protected:
  void Begin(uint32_t slots, uint32_t completions) {
    Workload(completions).set_completions(completions);
    for (uint32_t i = 0; i < completions; ++i) {
      h_.cluster.AddPod("a", fmt::format("a-{}", i), static_cast<int>(i));
    }
    h_.cluster.suspended["a"] = false;
    Allocate(slots);
    h_.Settle();
  }
  // The matcher's row first, then the queue's fact.
  void Place(uint32_t slots) { h_.PlaceJob("a", 1, slots); }
  void SayGrown(uint32_t slots, events::v1::JobState state = JOB_STATE_RUNNING) {
    JobFact fact = Fact(state, slots);
    fact.set_placement_hash(slots);
    h_.log.push_back(fact);
  }
};

TEST_F(ElasticBindTest, SlotsThatCameLaterGoToThePodsThatWait) {
  Begin(2, 6);
  EXPECT_THAT(h_.Said("job_bound"), ElementsAre("a/1"));
  Place(4);
  EXPECT_THAT(h_.Batch(), IsEmpty()) << "nobody has said so";
  SayGrown(4);
  const std::vector<Call> calls = h_.Batch();
  EXPECT_THAT(Describe(calls), ElementsAre("bind a-2 n2", "bind a-3 n3"));
  EXPECT_EQ(calls[0].slots, 4U);
  h_.Execute(calls);
  h_.Settle();
  EXPECT_EQ(h_.tables.SlotsOf("a").size(), 4U);
  EXPECT_THAT(h_.Said("job_bound"), ElementsAre("a/1")) << "once";
  // The same fact again changes nothing.
  SayGrown(4);
  EXPECT_THAT(h_.Batch(), IsEmpty());
}

TEST_F(ElasticBindTest, ASlotServesOneCompletionAfterTheOther) {
  for (const bool indexed : {false, true}) {
    SCOPED_TRACE(indexed);
    h_.cluster = FakeCluster();
    h_.tables = FakeTables();
    h_.Restart();
    Workload(3).set_indexed(indexed);
    Begin(2, 3);
    h_.cluster.End("a-0", PodFacts::Phase::kSucceeded);
    h_.Execute(h_.Batch());
    EXPECT_THAT(Describe(h_.Batch()), ElementsAre("bind a-2 n0"));
    // With a slot for each completion it does the same: those that are over need none.
    Place(3);
    SayGrown(3);
    h_.Settle();
    h_.cluster.End("a-1", PodFacts::Phase::kSucceeded);
    h_.Settle();
    EXPECT_FALSE(h_.SlotOf("a", 1).succeeded);
    h_.log.push_back(Fact(JOB_STATE_SUCCEEDED, 3));
    h_.Settle();
  }
}

TEST_F(ElasticBindTest, AnIndexGetsItsOwnSlotOrAnyFreeOne) {
  Workload(6).set_indexed(true);
  Begin(2, 6);
  h_.cluster.End("a-1", PodFacts::Phase::kSucceeded);
  h_.Settle();  // index 2 in slot 1
  Place(4);
  SayGrown(4);
  EXPECT_THAT(Describe(h_.Batch()), UnorderedElementsAre("bind a-3 n3", "bind a-4 n2"));
}

TEST_F(ElasticBindTest, NobodyWaitsForPodsOfSlotsThatCameLater) {
  Begin(2, 2);
  Place(4);
  SayGrown(4);
  h_.Settle();
  h_.now += 2 * h_.options.start_timeout;
  h_.Settle();
  h_.Restart();
  h_.Settle();
  h_.now += 2 * h_.options.start_timeout;
  h_.Settle();
  EXPECT_THAT(h_.Said("bind_failed"), IsEmpty());
  EXPECT_THAT(h_.Said("job_bound"), ElementsAre("a/1"));
  h_.cluster.AddPod("a", "a-9");
  EXPECT_THAT(Describe(h_.Batch()), ElementsAre("bind a-9 n2"));
}

TEST_F(ElasticBindTest, GrowsBeforeAllOfItsFirstSlotsAreBound) {
  h_.cluster.AddPod("a", "a-0");
  Workload(4).set_completions(4);
  Allocate(2);
  h_.Settle();
  Place(3);
  SayGrown(3, JOB_STATE_ALLOCATED);
  h_.Settle();
  EXPECT_THAT(h_.Said("job_bound"), IsEmpty());
  h_.cluster.AddPod("a", "a-1");
  h_.Settle();
  EXPECT_THAT(h_.Said("job_bound"), ElementsAre("a/1"));
}

TEST_F(ElasticBindTest, WhatIsBoundWhenItGrowsIsSaidByThatBatch) {
  h_.cluster.AddPod("a", "a-0");
  Workload(2).set_completions(2);
  Allocate(1);
  h_.Execute(h_.Batch());
  Place(2);
  SayGrown(2, JOB_STATE_ALLOCATED);
  h_.Batch();
  EXPECT_THAT(h_.Said("job_bound"), ElementsAre("a/1"));
  // A new owner takes it for said.
  h_.Restart();
  h_.Settle();
  EXPECT_THAT(h_.Said("job_bound"), ElementsAre("a/1"));
}

TEST_F(ElasticBindTest, ARolledBackGrowthIsReadAgain) {
  Begin(1, 3);
  Place(3);
  SayGrown(3);
  h_.FailedBatch();
  EXPECT_EQ(h_.planner->Find("a")->slots.size(), 1U);
  EXPECT_THAT(Describe(h_.Batch()), ElementsAre("bind a-1 n1", "bind a-2 n2"));
}

// It gives slots back for another job, and goes on.
class VacateTest : public ElasticBindTest {
 protected:
  // `vacate`: those that hold pods, as far as the queue knows.
  void SayShrinking(uint32_t slots, const std::vector<uint32_t>& vacate) {
    JobFact fact = Fact(JOB_STATE_RUNNING, slots);
    fact.set_reason("Shrinking");
    fact.set_message("gives slots back for job lab/high");
    fact.set_grace_ms(20'000);
    for (const uint32_t slot : vacate) fact.add_vacate(slot);
    h_.log.push_back(fact);
  }
};

TEST_F(VacateTest, ItsPodsAreDeletedAsDisruptedAndTheSlotsUsedNoMore) {
  Begin(4, 8);
  SayShrinking(4, {1, 3});
  const std::vector<Call> calls = h_.Batch();
  ASSERT_THAT(Describe(calls), ElementsAre("delete a-1 n1", "delete a-3 n3"));
  EXPECT_EQ(calls[0].grace_s, 20);
  EXPECT_EQ(calls[0].disruption, "gives slots back for job lab/high");
  h_.Execute(calls);
  h_.Settle();
  EXPECT_THAT(h_.Said("slots_vacated"), IsEmpty()) << "they still run";
  h_.cluster.Remove("a-1");
  h_.Settle();
  EXPECT_THAT(h_.Said("slots_vacated"), ElementsAre("a/1: 1"));
  h_.cluster.Remove("a-3");
  h_.Settle();
  EXPECT_THAT(h_.Said("slots_vacated"), ElementsAre("a/1: 1", "a/1: 3"));
  EXPECT_EQ(h_.SlotOf("a", 0).state, SlotState::kBound);
  // Many pods wait, and none of them has these slots; those that came later are for them.
  Place(5);
  SayGrown(5);
  EXPECT_THAT(Describe(h_.Batch()), ElementsAre("bind a-4 n4"));
}

TEST_F(VacateTest, AnIndexWhoseSlotIsGoneHasAnother) {
  Workload(2).set_indexed(true);
  Begin(2, 2);
  SayShrinking(2, {1});
  h_.Settle();
  h_.cluster.Remove("a-1");
  h_.cluster.AddPod("a", "a-1b", 1);
  h_.Settle();
  EXPECT_THAT(h_.Said("slots_vacated"), ElementsAre("a/1: 1"));
  Place(3);
  SayGrown(2);
  h_.log.back().set_placement_hash(3);
  EXPECT_THAT(Describe(h_.Batch()), ElementsAre("bind a-1b n2"));
}

TEST_F(VacateTest, ASlotWhosePodHasSucceededIsUsedAgainFromThenOn) {
  Begin(3, 3);
  h_.cluster.End("a-0", PodFacts::Phase::kSucceeded);
  h_.Settle();
  SayShrinking(3, {2});
  h_.log.back().add_done_slots(0);
  h_.Settle();
  h_.cluster.Remove("a-2");
  h_.cluster.AddPod("a", "a-2b");
  h_.Settle();
  EXPECT_THAT(h_.Said("slots_vacated"), ElementsAre("a/1: 2"));
  // Slot 0 was given back before; slot 1 was not.
  h_.cluster.End("a-1", PodFacts::Phase::kSucceeded);
  h_.Execute(h_.Batch());
  EXPECT_THAT(Describe(h_.Batch()), ElementsAre("bind a-2b n1"));
}

// The queue had not heard of its pod's success when it chose, so it has not given the slot back.
TEST_F(VacateTest, ASlotWhosePodHasSucceededUnheardIsUsedAgain) {
  Begin(2, 2);
  h_.cluster.End("a-0", PodFacts::Phase::kSucceeded);
  h_.Settle();
  EXPECT_TRUE(h_.SlotOf("a", 0).succeeded);
  SayShrinking(2, {1});
  h_.Settle();
  h_.cluster.Remove("a-1");
  h_.cluster.AddPod("a", "a-1b");
  h_.Restart();
  h_.Settle();
  EXPECT_EQ(h_.cluster.Pod("a-1b")->node, "n0");
}

TEST_F(VacateTest, APodThatIsNotBoundYetIsFencedAndHasAnotherSlot) {
  h_.cluster.AddPod("a", "a-0");
  Workload(4).set_completions(4);
  Allocate(2);
  h_.Batch();  // its binding is lost
  SayShrinking(2, {0});
  h_.Batch();
  h_.Restart();
  const std::vector<Call> calls = h_.Batch();
  ASSERT_THAT(Describe(calls), ElementsAre("fence a-0 n0"));
  h_.Execute(calls);
  h_.Settle();
  EXPECT_THAT(h_.Said("slots_vacated"), ElementsAre("a/1: 0"));
  EXPECT_EQ(h_.cluster.Pod("a-0")->node, "n1");
}

TEST_F(VacateTest, ANewOwnerGoesOn) {
  Begin(3, 3);
  SayShrinking(3, {2});
  h_.Batch();  // its call is lost
  h_.Restart();
  const std::vector<Call> calls = h_.Batch();
  ASSERT_THAT(Describe(calls), ElementsAre("delete a-2 n2"));
  EXPECT_EQ(calls[0].grace_s, 20);
  h_.Execute(calls);
  h_.cluster.Remove("a-2");
  h_.Settle();
  EXPECT_THAT(h_.Said("slots_vacated"), ElementsAre("a/1: 2"));
  EXPECT_THAT(h_.Said("job_bound"), ElementsAre("a/1"));
  // What the queue asks for again, or a restart, makes it be said again, and no pod is in the slot.
  h_.Restart();
  h_.cluster.AddPod("a", "a-2b");
  h_.Settle();
  EXPECT_THAT(h_.Said("slots_vacated"), ElementsAre("a/1: 2", "a/1: 2"));
  EXPECT_EQ(h_.cluster.Pod("a-2b")->node, "");
}

TEST_F(VacateTest, AStopTakesAllOfIt) {
  Begin(3, 3);
  SayShrinking(3, {2});
  h_.Batch();
  Stop(3);
  h_.Settle();
  EXPECT_TRUE(h_.cluster.suspended["a"]);
  for (const char* pod : {"a-0", "a-1", "a-2"}) h_.cluster.Remove(pod);
  h_.Settle();
  EXPECT_THAT(h_.Said("job_stopped"), ElementsAre("a/1"));
  EXPECT_THAT(h_.Said("slots_vacated"), IsEmpty());
}

TEST_F(ElasticBindTest, ANewOwnerKnowsAllSlots) {
  Begin(1, 3);
  Place(2);
  SayGrown(2);
  h_.Batch();  // its call is lost
  h_.Restart();
  EXPECT_THAT(Describe(h_.Batch()), ElementsAre("bind a-1 n1"));
  EXPECT_EQ(h_.planner->Find("a")->slots.size(), 2U);
  h_.Settle();
  // What was said meanwhile is read once more, for nothing.
  SayGrown(2);
  EXPECT_THAT(h_.Batch(), IsEmpty());
  Stop(2);
  h_.Settle();
  EXPECT_TRUE(h_.cluster.suspended["a"]);
}

// Of another size since it was started: its queue says how large it is now.
class ResizeTest : public ElasticBindTest {
 protected:
  void SayResized(uint32_t holds, uint32_t most) {
    JobFact fact = Fact(JOB_STATE_RUNNING, holds);
    fact.set_reason("Resized");
    fact.set_placement_hash(h_.planner->Find("a")->placement_hash);
    fact.set_resized(true);
    fact.set_min_slots(std::min(holds, most));
    fact.set_max_slots(most);
    h_.log.push_back(fact);
  }
};

TEST_F(ResizeTest, SlotsThatHaveNoPodsAnyMoreAreGivenBack) {
  Begin(4, 4);
  SayResized(4, 2);
  EXPECT_THAT(h_.Batch(), IsEmpty()) << "the pods that are too many its controller deletes";
  EXPECT_THAT(h_.Said("slots_vacated"), IsEmpty());
  h_.cluster.Remove("a-3");
  h_.Settle();
  EXPECT_THAT(h_.Said("slots_vacated"), ElementsAre("a/1: 3"));
  h_.cluster.Remove("a-0");
  h_.Settle();
  EXPECT_THAT(h_.Said("slots_vacated"), ElementsAre("a/1: 3", "a/1: 0"));
  // One of the others is made again: it has its slot.
  h_.cluster.Remove("a-1");
  h_.cluster.AddPod("a", "a-1b");
  h_.Restart();
  h_.Settle();
  EXPECT_EQ(h_.cluster.Pod("a-1b")->node, "n1");
  EXPECT_EQ(h_.cluster.Pod("a-2")->node, "n2");
}

TEST_F(ResizeTest, WhatHasGrownTakesThePodsThatCome) {
  Workload(2).set_indexed(true);
  Begin(2, 2);
  h_.cluster.AddPod("a", "a-2", 2);
  h_.cluster.AddPod("a", "a-3", 3);
  SayResized(2, 4);
  h_.Settle();
  EXPECT_FALSE(h_.cluster.Pod("a-2")->Bound());
  Place(3);
  SayResized(3, 4);
  h_.log.back().set_placement_hash(3);
  h_.Settle();
  EXPECT_EQ(h_.cluster.Pod("a-2")->node, "n2");
  EXPECT_FALSE(h_.cluster.Pod("a-3")->Bound()) << "and waits, as long as it takes";
  h_.now += Millis(3'600'000);
  EXPECT_THAT(h_.Said("bind_failed"), IsEmpty());
  Place(4);
  SayResized(4, 4);
  h_.log.back().set_placement_hash(4);
  h_.Settle();
  EXPECT_EQ(h_.cluster.Pod("a-3")->node, "n3");
  EXPECT_THAT(h_.Said("job_bound"), ElementsAre("a/1")) << "once";
}

// Larger for a moment, and then as it was: what it does not need goes back.
TEST_F(ResizeTest, ASlotWhosePodHasSucceededServesTheNextOne) {
  Begin(3, 3);
  h_.cluster.End("a-0", PodFacts::Phase::kSucceeded);
  h_.Settle();
  SayResized(3, 2);
  h_.log.back().add_done_slots(0);
  h_.Settle();
  EXPECT_THAT(h_.Said("slots_vacated"), IsEmpty()) << "slot 0 was given back before";
  h_.cluster.End("a-1", PodFacts::Phase::kSucceeded);
  h_.cluster.AddPod("a", "a-4");
  h_.Settle();
  EXPECT_EQ(h_.cluster.Pod("a-4")->node, "n1");
}

}  // namespace
}  // namespace fluxqueue::binder
