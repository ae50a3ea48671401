// A gang of pods: each has the slot of its place among them.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "services/binder/domain/bind_planner_fixture.h"

namespace fluxqueue::binder {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

class GroupBindTest : public BindPlannerTest {
 protected:
  // Pods "p0", "p1" … are the gang "a".
  void Gang(uint32_t size) {
    events::v1::Workload& workload = Workload(size);
    workload.set_kind("PodGroup");
    workload.set_recreatable(false);
    for (uint32_t i = 0; i < size; ++i) workload.add_pods("p" + std::to_string(i));
  }
  // Each is a job of its own, as far as it says.
  void AddPods(uint32_t size) {
    for (uint32_t i = 0; i < size; ++i) Add("p" + std::to_string(i));
  }
  void Add(const std::string& name) { h_.cluster.AddPod(name, name); }
  PodFacts& Pod(const std::string& name) { return *h_.cluster.Pod(name); }
};

TEST_F(GroupBindTest, EachPodHasTheSlotOfItsPlace) {
  Gang(3);
  AddPods(3);
  Allocate(3);
  h_.Settle();
  for (int i = 0; i < 3; ++i) {
    EXPECT_EQ(h_.cluster.Pod("p" + std::to_string(i))->node, "n" + std::to_string(i));
  }
  EXPECT_THAT(h_.Said("job_bound"), ElementsAre("a/1"));
}

TEST_F(GroupBindTest, NoneIsBoundBeforeAllAreSeen) {
  Gang(3);
  AddPods(2);
  Allocate(3);
  h_.Settle();
  EXPECT_FALSE(h_.cluster.Pod("p0")->Bound());
  EXPECT_FALSE(h_.cluster.Pod("p1")->Bound());
  Add("p2");
  h_.Settle();
  EXPECT_THAT(h_.Said("job_bound"), ElementsAre("a/1"));
}

TEST_F(GroupBindTest, NoOtherPodHasASlotOfIt) {
  Gang(2);
  AddPods(2);
  Allocate(2);
  h_.Settle();
  h_.cluster.Remove("p0");
  h_.cluster.AddPod("a", "forged");
  Add("late");
  h_.Settle();
  EXPECT_FALSE(h_.cluster.Pod("late")->Bound());
  EXPECT_FALSE(h_.cluster.Pod("forged")->Bound()) << "whatever it says that it is of";
  EXPECT_THAT(h_.Said("bind_failed"), IsEmpty());
}

TEST_F(GroupBindTest, APodOfAnotherNamespaceIsNotOfIt) {
  Gang(2);
  AddPods(2);
  Pod("p1").space = "elsewhere";
  h_.cluster.Touch(Pod("p1"));
  Allocate(2);
  h_.Settle();
  EXPECT_FALSE(h_.cluster.Pod("p0")->Bound());
  h_.now += h_.options.start_timeout;
  h_.Settle();
  EXPECT_THAT(h_.Said("bind_failed"), ElementsAre("a/1 StartTimeout"));
}

TEST_F(GroupBindTest, AnotherBinderGoesOnWithIt) {
  Gang(3);
  AddPods(3);
  Allocate(3);
  h_.Execute(h_.Batch());
  h_.Restart();
  h_.Settle();
  EXPECT_THAT(h_.Said("job_bound"), ElementsAre("a/1"));
  EXPECT_EQ(h_.cluster.Pod("p2")->node, "n2");
}

TEST_F(GroupBindTest, ItsPodsAreAdoptedWhereRowsWereLost) {
  Gang(2);
  AddPods(2);
  Allocate(2);
  h_.Settle();
  h_.LoseRows();
  h_.sayings.clear();
  h_.Restart();
  h_.log.push_back(Fact(events::v1::JOB_STATE_ALLOCATED, 2));
  h_.Settle();
  EXPECT_THAT(h_.tables.SlotsOf("a"), SizeIs(2));
  EXPECT_THAT(h_.Said("job_bound"), ElementsAre("a/1"));
}

TEST_F(GroupBindTest, AFailedBatchLeavesNothing) {
  Gang(2);
  AddPods(2);
  Allocate(2);
  h_.FailedBatch();
  h_.Settle();
  EXPECT_THAT(h_.Said("job_bound"), ElementsAre("a/1"));
}

TEST_F(GroupBindTest, AGangGoesOnWithoutAPodThatWentBeforeItWasBound) {
  Gang(2);
  AddPods(2);
  Allocate(2);
  const std::vector<Call> calls = h_.Batch();
  ASSERT_THAT(calls, SizeIs(2));
  h_.cluster.Remove("p1");
  h_.Execute(calls);
  h_.Settle();
  EXPECT_EQ(h_.cluster.Pod("p0")->node, "n0");
  EXPECT_THAT(h_.Said("job_bound"), ElementsAre("a/1"));
  EXPECT_THAT(h_.Said("bind_failed"), IsEmpty());
}

TEST_F(GroupBindTest, AGangGoesOnWithoutAPodThatIsGoingBeforeItIsBound) {
  Gang(2);
  AddPods(2);
  Allocate(2);
  const std::vector<Call> calls = h_.Batch();
  Pod("p1").deleting = true;
  h_.cluster.Touch(Pod("p1"));
  h_.Execute(calls);
  h_.Settle();
  h_.now += h_.options.start_timeout;
  h_.Settle();
  EXPECT_THAT(h_.Said("job_bound"), ElementsAre("a/1"));
  EXPECT_THAT(h_.Said("bind_failed"), IsEmpty());
}

TEST_F(GroupBindTest, StoppingItDeletesWhatIsBoundAndFencesTheRest) {
  Gang(2);
  AddPods(2);
  Allocate(2);
  h_.Settle();
  Stop(2);
  h_.Settle();
  EXPECT_TRUE(h_.cluster.Pod("p0")->deleting);
  EXPECT_TRUE(h_.cluster.Pod("p1")->deleting);
  h_.cluster.Remove("p0");
  h_.cluster.Remove("p1");
  h_.Settle();
  EXPECT_THAT(h_.Said("job_stopped"), ElementsAre("a/1"));
}

// Two of three are bound, and the gang is stopped; the third is of the next gang meanwhile.
TEST_F(GroupBindTest, WhatTheNextGangHasStartedIsNotStoppedWithThisOne) {
  Gang(2);
  AddPods(2);
  Allocate(2);
  const std::vector<Call> calls = h_.Batch();
  ASSERT_THAT(calls, SizeIs(2));
  h_.Execute({calls[0]});  // the other Binding hangs
  Stop(2);
  h_.Batch();
  PodFacts& other = Pod("p1");
  other.node = "n7";
  other.slot = kubernetes::SlotName{1, 0, 0, 2};
  other.proof = "of another job";
  h_.cluster.Touch(other);
  h_.cluster.Remove("p0");
  h_.Settle();
  EXPECT_FALSE(other.deleting);
  EXPECT_THAT(h_.Said("job_stopped"), ElementsAre("a/1"));
}

TEST_F(GroupBindTest, APodThatOutgrewItsSlotIsNotBound) {
  Gang(2);
  AddPods(2);
  Pod("p1").requests["cpu"] = 2000;
  h_.cluster.Touch(Pod("p1"));
  Allocate(2);
  h_.Settle();
  EXPECT_THAT(h_.Said("bind_failed"), ElementsAre("a/1 PodTooLarge"));
  EXPECT_THAT(h_.sayings.back().envelope.bind_failed().message(), HasSubstr("p1"));
}

TEST_F(GroupBindTest, PinnedPodsThatDoNotStartAreWaitedFor) {
  Gang(2);
  for (const char* pod : {"p0", "p1"}) h_.cluster.AddPod(pod, pod, -1, /*pinned=*/true);
  Allocate(2);
  h_.Settle();
  h_.now += h_.options.start_timeout;
  h_.Settle();
  EXPECT_THAT(h_.Said("bind_failed"), IsEmpty());
  h_.cluster.Schedule("p0", "n0");
  h_.cluster.Schedule("p1", "n1");
  h_.Settle();
  EXPECT_THAT(h_.Said("job_bound"), ElementsAre("a/1"));
}

}  // namespace
}  // namespace fluxqueue::binder
