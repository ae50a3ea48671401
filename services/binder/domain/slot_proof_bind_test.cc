// Rows are lost, and pods prove their slots by what they were given with them.
#include <functional>
#include <string>

#include <gmock/gmock.h>

#include "services/binder/domain/bind_planner_fixture.h"

namespace fluxqueue::binder {
namespace {

using events::v1::JOB_STATE_ALLOCATED;
using ::testing::ElementsAre;
using ::testing::IsEmpty;

class SlotProofTest : public BindPlannerTest {
 protected:
  // Pods a-0, a-1 … in their slots; then nobody knows.
  void BindAndLoseRows(uint32_t slots) {
    for (uint32_t i = 0; i < slots; ++i) h_.cluster.AddPod("a", "a-" + std::to_string(i));
    Allocate(slots);
    h_.Settle();
    h_.LoseRows();
    h_.sayings.clear();
  }

  std::string StateOf(uint32_t slot, uint32_t attempt = 1) {
    const auto row = h_.tables.slots.find({"a", attempt, static_cast<int>(slot)});
    return row == h_.tables.slots.end() ? "" : std::string(Name(row->second.value.state));
  }
};

TEST_F(SlotProofTest, ProvenPodsHaveTheirRowsAgainAndTheJobIsBound) {
  BindAndLoseRows(2);
  h_.Restart();
  h_.log.push_back(Fact(JOB_STATE_ALLOCATED, 2));
  EXPECT_THAT(h_.Batch(), IsEmpty());
  EXPECT_THAT(h_.Batch(), IsEmpty());
  EXPECT_EQ(StateOf(0), "bound");
  EXPECT_EQ(StateOf(1), "bound");
  EXPECT_EQ(h_.SlotOf("a", 0).pod_uid, "a-0");
  EXPECT_EQ(h_.SlotOf("a", 1).pod_uid, "a-1");
  EXPECT_THAT(h_.Said("job_bound"), ElementsAre("a/1"));
}

TEST_F(SlotProofTest, TheJobMayBeKnownBeforeItsPods) {
  BindAndLoseRows(1);
  h_.Restart();
  PodFacts bound = *h_.cluster.Pod("a-0");
  h_.planner->PodGone("a-0");  // the watch has not told it yet
  h_.log.push_back(Fact(JOB_STATE_ALLOCATED, 1));
  h_.Settle();
  EXPECT_EQ(StateOf(0), "");
  h_.cluster.Touch(bound);
  h_.Settle();
  EXPECT_EQ(StateOf(0), "bound");
  EXPECT_THAT(h_.Said("job_bound"), ElementsAre("a/1"));
}

TEST_F(SlotProofTest, OthersHaveTheSlotsThatAreLeft) {
  BindAndLoseRows(2);
  h_.cluster.Remove("a-0");
  h_.Restart();
  h_.cluster.AddPod("a", "a-2");
  h_.log.push_back(Fact(JOB_STATE_ALLOCATED, 2));
  h_.Settle();
  EXPECT_EQ(h_.SlotOf("a", 0).pod_uid, "a-2");
  EXPECT_EQ(h_.SlotOf("a", 1).pod_uid, "a-1");
  EXPECT_THAT(h_.Said("job_bound"), ElementsAre("a/1"));
}

TEST_F(SlotProofTest, APinnedPodThatWasReleasedIsProvenOnItsNode) {
  h_.cluster.AddPod("a", "a-0", -1, /*pinned=*/true);
  Allocate(1);
  h_.Settle();
  h_.cluster.Schedule("a-0", "n0");
  h_.Settle();
  h_.LoseRows();
  h_.Restart();
  h_.log.push_back(Fact(JOB_STATE_ALLOCATED, 1));
  h_.Settle();
  EXPECT_EQ(StateOf(0), "bound");
}

// What is not proven is in nobody's way: the slot is for the pods that wait.
TEST_F(SlotProofTest, WhatDoesNotHoldProvesNothing) {
  struct Row {
    const char* what;
    std::function<void(PodFacts&)> change;
  };
  for (const Row& row : {
           Row{"none", [](PodFacts& pod) { pod.proof.clear(); }},
           Row{"of nobody", [](PodFacts& pod) { pod.proof = "bad"; }},
           Row{"of another pod", [](PodFacts& pod) { pod.uid = "copy"; }},
           Row{"of another slot", [](PodFacts& pod) { pod.slot->slot = 1; }},
           Row{"of another node", [](PodFacts& pod) { pod.node = "n1"; }},
       }) {
    SCOPED_TRACE(row.what);
    h_ = PlannerHarness();
    SetUp();
    BindAndLoseRows(1);
    PodFacts changed = *h_.cluster.Pod("a-0");
    h_.cluster.Remove("a-0");
    row.change(changed);
    h_.cluster.pods["a-0"] = changed;
    h_.Restart();
    h_.cluster.AddPod("a", "b-0");
    h_.cluster.AddPod("a", "b-1");
    Allocate(2);
    h_.Settle();
    EXPECT_EQ(h_.SlotOf("a", 0).pod_uid, "b-0");
    EXPECT_EQ(h_.SlotOf("a", 1).pod_uid, "b-1");
    EXPECT_TRUE(h_.cluster.Pod("a-0") != nullptr && !h_.cluster.Pod("a-0")->deleting);
    EXPECT_THAT(h_.Said("bind_failed"), IsEmpty());
  }
}

TEST_F(SlotProofTest, AProofOfAnotherAttemptIsNoneOfThis) {
  BindAndLoseRows(1);
  h_.Restart();
  Allocate(1, 2);
  h_.Settle();
  EXPECT_EQ(StateOf(0, 2), "");
  // It may say so: the signature is of the first.
  PodFacts& pod = *h_.cluster.Pod("a-0");
  pod.slot->attempt = 2;
  h_.cluster.Touch(pod);
  h_.Settle();
  EXPECT_EQ(StateOf(0, 2), "");
  EXPECT_THAT(h_.Said("job_bound"), IsEmpty());
}

TEST_F(SlotProofTest, AJobWhosePodsProveNothingFailsItsAttempt) {
  BindAndLoseRows(2);
  for (const char* pod : {"a-0", "a-1"}) h_.cluster.Pod(pod)->proof.clear();
  h_.cluster.suspended["a"] = false;
  h_.cluster.completions_left["a"] = 2;
  h_.Restart();
  h_.log.push_back(Fact(JOB_STATE_ALLOCATED, 2));
  h_.Settle();
  EXPECT_THAT(h_.Said("bind_failed"), IsEmpty());
  h_.now += h_.options.start_timeout;
  h_.Settle();
  EXPECT_THAT(h_.Said("bind_failed"), ElementsAre("a/1 StartTimeout"));
}

// It is of the job, and the job is to run no more.
TEST_F(SlotProofTest, AStoppedJobStopsWhatIsNotProvenToo) {
  Workload(1).set_controlled(true);
  BindAndLoseRows(1);
  h_.cluster.Pod("a-0")->proof.clear();
  h_.Restart();
  Stop(1);
  h_.Settle();
  EXPECT_TRUE(h_.cluster.Pod("a-0")->deleting);
}

TEST_F(SlotProofTest, AProofIsCheckedOnceForEachStateOfAPod) {
  int checks = 0;
  PodBoard board([&checks](const PodFacts&) {
    ++checks;
    return true;
  });
  PodFacts pod;
  pod.uid = "u";
  pod.resource_version = 1;
  board.See(pod);
  EXPECT_TRUE(board.Proves(*board.Find("u"), "a"));
  EXPECT_TRUE(board.Proves(*board.Find("u"), "a"));
  EXPECT_EQ(checks, 1);
  pod.resource_version = 2;
  board.See(pod);
  EXPECT_TRUE(board.Proves(*board.Find("u"), "a"));
  EXPECT_EQ(checks, 2);
}

}  // namespace
}  // namespace fluxqueue::binder
