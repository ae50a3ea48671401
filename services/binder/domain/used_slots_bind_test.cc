// A pod that waits though all slots of its Job have served: its success was forgotten by a cluster
// that was restored from a backup.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "services/binder/domain/bind_planner_fixture.h"

namespace fluxqueue::binder {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

// a-0 and a-1 in slots 0 and 1.
class UsedSlotsTest : public BindPlannerTest {
 protected:
  UsedSlotsTest() {
    Workload(2).set_suspended(true);
    Suspend(/*by_us=*/true);
    h_.cluster.AddPod("a", "a-0", 0);
    h_.cluster.AddPod("a", "a-1", 1);
    Allocate(2);
    h_.Settle();
  }
  void Suspend(bool by_us) {
    h_.cluster.suspended["a"] = true;
    h_.cluster.suspended_by_us["a"] = by_us;
  }
  // a-0 has succeeded, and its slot was given back.
  void Succeed() {
    h_.cluster.End("a-0", PodFacts::Phase::kSucceeded);
    h_.Settle();
    h_.tables.placements.at({"a", 1}).placement.mutable_slots(0)->set_released(true);
  }
  void ComeAgain() {
    h_.cluster.Remove("a-0");
    h_.cluster.AddPod("a", "a-0", 0, /*pinned=*/false, "again");
    h_.Settle();
  }
  void WaitLong() {
    h_.now += h_.options.start_timeout;
    h_.Settle();
  }
};

TEST_F(UsedSlotsTest, TheJobIsPlacedAgain) {
  Succeed();
  ComeAgain();
  h_.cluster.completions_left["a"] = 2;
  EXPECT_THAT(h_.Said("bind_failed"), IsEmpty());
  WaitLong();
  EXPECT_FALSE(h_.cluster.Pod("a-0")->Bound());
  EXPECT_THAT(h_.Said("bind_failed"), ElementsAre("a/1 StartTimeout"));
  EXPECT_THAT(h_.sayings.back().envelope.bind_failed().message(), HasSubstr("from a backup?"));
}

// The queue has heard that it had, and the binder has not.
TEST_F(UsedSlotsTest, AlsoWhereThePodWasNotSeenToHaveSucceeded) {
  h_.tables.placements.at({"a", 1}).placement.mutable_slots(0)->set_released(true);
  h_.now += 2 * kSureFor;
  ComeAgain();
  h_.cluster.completions_left["a"] = 2;
  EXPECT_FALSE(h_.cluster.Pod("a-0")->Bound());
  WaitLong();
  EXPECT_THAT(h_.Said("bind_failed"), ElementsAre("a/1 StartTimeout"));
}

TEST_F(UsedSlotsTest, AlsoAfterARestart) {
  Succeed();
  ComeAgain();
  h_.cluster.completions_left["a"] = 2;
  h_.Restart();
  h_.Settle();
  WaitLong();
  EXPECT_THAT(h_.Said("bind_failed"), ElementsAre("a/1 StartTimeout"));
}

// The backup has it as it was before it was started.
TEST_F(UsedSlotsTest, AJobThatIsSuspendedOnceMoreIsResumed) {
  h_.cluster.Remove("a-0");
  h_.cluster.Remove("a-1");
  Suspend(/*by_us=*/true);
  h_.Settle();
  EXPECT_TRUE(h_.cluster.suspended["a"]);
  WaitLong();
  EXPECT_FALSE(h_.cluster.suspended["a"]);
}

TEST_F(UsedSlotsTest, AlsoOneOfWhichAllHadSucceeded) {
  Succeed();
  h_.cluster.End("a-1", PodFacts::Phase::kSucceeded);
  h_.Settle();
  Suspend(/*by_us=*/true);
  WaitLong();
  EXPECT_FALSE(h_.cluster.suspended["a"]);
}

TEST_F(UsedSlotsTest, NotOneThatItsUserHasSuspended) {
  h_.cluster.Remove("a-0");
  h_.cluster.Remove("a-1");
  Suspend(/*by_us=*/false);
  h_.Settle();
  WaitLong();
  WaitLong();
  EXPECT_TRUE(h_.cluster.suspended["a"]);
}

TEST_F(UsedSlotsTest, NotForAPodThatTheJobNeedsNotAnyMore) {
  Succeed();
  ComeAgain();
  h_.cluster.completions_left["a"] = 1;
  WaitLong();
  WaitLong();
  EXPECT_THAT(h_.Said("bind_failed"), IsEmpty());
}

TEST_F(UsedSlotsTest, NorForOneThatWaitsForThePodBeforeItToGo) {
  h_.cluster.completions_left["a"] = 2;
  h_.cluster.Delete("a-0");
  h_.cluster.AddPod("a", "next", 0);
  h_.Settle();
  WaitLong();
  EXPECT_THAT(h_.Said("bind_failed"), IsEmpty());
  h_.cluster.Remove("a-0");
  h_.Settle();
  EXPECT_EQ(h_.cluster.Pod("next")->node, "n0");
}

// The store went back before the watch had shown that the pod was bound.
TEST_F(BindPlannerTest, APodThatIsNotSeenToBeBoundIsBoundAgain) {
  h_.cluster.AddPod("a", "a-0");
  Allocate(1);
  const PodFacts before = *h_.cluster.Pod("a-0");
  h_.Execute(h_.Batch());
  h_.cluster.events.clear();
  *h_.cluster.Pod("a-0") = before;
  h_.Settle();
  EXPECT_FALSE(h_.cluster.Pod("a-0")->Bound());
  h_.now += Millis(60'000);
  h_.Settle();
  EXPECT_EQ(h_.cluster.Pod("a-0")->node, "n0");
}

}  // namespace
}  // namespace fluxqueue::binder
