// A slot that has had a pod is given to the next one where its node is open to it.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "services/binder/domain/bind_planner_fixture.h"

namespace fluxqueue::binder {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

class ClosedNodeTest : public BindPlannerTest {};

// A drain: the node is cordoned, and its pod is evicted.
TEST_F(ClosedNodeTest, AReplacementWaitsForItsNodeToBeOpenWhileOthersRun) {
  h_.cluster.AddPod("a", "a-0");
  h_.cluster.AddPod("a", "a-1");
  Allocate(2);
  h_.Settle();
  h_.cluster.closed_nodes["n0"] = "is cordoned";
  h_.cluster.Remove("a-0");
  h_.cluster.AddPod("a", "new");
  h_.Settle();
  EXPECT_FALSE(h_.cluster.Pod("new")->Bound());
  EXPECT_EQ(h_.planner->WakeAt(), h_.now + h_.options.node_check_interval);
  h_.cluster.closed_nodes.clear();
  h_.now += h_.options.node_check_interval;
  h_.Settle();
  EXPECT_EQ(h_.cluster.Pod("new")->node, "n0");
  EXPECT_THAT(h_.Said("bind_failed"), IsEmpty());
}

TEST_F(ClosedNodeTest, AGangWhoseNodeStaysClosedIsPlacedAnew) {
  h_.cluster.AddPod("a", "a-0");
  h_.cluster.AddPod("a", "a-1");
  Allocate(2);
  h_.Settle();
  h_.cluster.closed_nodes["n0"] = "is cordoned";
  h_.cluster.Remove("a-0");
  h_.cluster.AddPod("a", "new");
  h_.Settle();
  h_.now += h_.options.start_timeout;
  h_.Settle();
  EXPECT_THAT(h_.Said("bind_failed"), ElementsAre("a/1 NodeClosed"));
  EXPECT_THAT(h_.sayings.back().envelope.bind_failed().message(),
              HasSubstr("new was to run on node n0, which is cordoned"));
}

TEST_F(ClosedNodeTest, AJobOfOnePodWhoseNodeIsClosedIsPlacedAnewAtOnce) {
  h_.cluster.AddPod("a", "a-0");
  Allocate(1);
  h_.Settle();
  h_.cluster.closed_nodes["n0"] = "has the taint spot=going:NoExecute";
  h_.cluster.Remove("a-0");
  h_.cluster.AddPod("a", "new");
  h_.Settle();
  EXPECT_THAT(h_.Said("bind_failed"), ElementsAre("a/1 NodeClosed"));
  EXPECT_FALSE(h_.cluster.Pod("new")->Bound());
}

TEST_F(ClosedNodeTest, TheSlotsOnOtherNodesAreUsedOn) {
  Workload(2).set_completions(5);
  h_.cluster.suspended["a"] = false;
  h_.cluster.completions_left["a"] = 5;
  h_.cluster.AddPod("a", "a-0");
  h_.cluster.AddPod("a", "a-1");
  Allocate(2);
  h_.Settle();
  h_.cluster.closed_nodes["n0"] = "is cordoned";
  h_.cluster.Remove("a-0");
  h_.cluster.AddPod("a", "a-2");
  h_.Settle();
  h_.now += 2 * h_.options.start_timeout;
  h_.Settle();
  EXPECT_THAT(h_.Said("bind_failed"), IsEmpty()) << "n1 goes on";
  h_.cluster.End("a-1", PodFacts::Phase::kSucceeded);
  h_.Settle();
  EXPECT_EQ(h_.cluster.Pod("a-2")->node, "n1");
  h_.cluster.AddPod("a", "a-3");
  h_.Settle();
  EXPECT_FALSE(h_.cluster.Pod("a-3")->Bound());
  h_.cluster.closed_nodes.clear();
  h_.now += Millis(60'000);
  h_.Settle();
  EXPECT_EQ(h_.cluster.Pod("a-3")->node, "n0");
}

// A former owner's call: nobody knows whether it is still under way.
TEST_F(ClosedNodeTest, APodIsFencedBeforeItTakesAnotherSlot) {
  Workload(2).set_completions(5);
  h_.cluster.AddPod("a", "a-0");
  h_.cluster.AddPod("a", "a-1");
  Allocate(2);
  h_.Settle();
  h_.cluster.Remove("a-0");
  h_.cluster.AddPod("a", "a-2");
  h_.Execute(h_.Batch());
  const std::vector<Call> late = h_.Batch();
  ASSERT_THAT(Describe(late), ElementsAre("bind a-2 n0"));
  h_.Restart();
  h_.cluster.closed_nodes["n0"] = "is cordoned";
  h_.cluster.End("a-1", PodFacts::Phase::kSucceeded);
  h_.Execute(h_.Batch());
  const std::vector<Call> fence = h_.Batch();
  ASSERT_THAT(Describe(fence), ElementsAre("fence a-2 n0"));
  h_.Execute(fence);
  EXPECT_EQ(h_.cluster.Execute(late[0]).outcome, CallResult::Outcome::kConflict);
  h_.Settle();
  EXPECT_EQ(h_.cluster.Pod("a-2")->node, "n1");
  EXPECT_THAT(h_.Said("bind_failed"), IsEmpty());
}

// Shrunk while it waited: what was submitted says more completions than it has.
TEST_F(ClosedNodeTest, AJobThatLacksNoMoreThanItHasPodsIsPlacedAnewToo) {
  Workload(2).set_completions(4);
  h_.cluster.suspended["a"] = false;
  h_.cluster.completions_left["a"] = 2;
  h_.cluster.AddPod("a", "a-0");
  h_.cluster.AddPod("a", "a-1");
  Allocate(2);
  h_.Settle();
  h_.cluster.closed_nodes["n0"] = "is cordoned";
  h_.cluster.Remove("a-0");
  h_.cluster.AddPod("a", "a-2");
  h_.Settle();
  h_.now += h_.options.start_timeout;
  h_.Settle();
  EXPECT_THAT(h_.Said("bind_failed"), ElementsAre("a/1 NodeClosed"));
}

TEST_F(ClosedNodeTest, ANodeThatCannotBeLookedAtKeepsNoPodWaiting) {
  h_.cluster.AddPod("a", "a-0");
  Allocate(1);
  h_.Settle();
  h_.cluster.Remove("a-0");
  h_.cluster.AddPod("a", "new");
  std::vector<Call> calls = h_.Batch();
  int looks = 0;
  while (looks < 20 && calls.at(0).kind == Call::Kind::kLookAtNode) {
    ++looks;
    h_.planner->Answer({.call = calls[0],
                        .outcome = CallResult::Outcome::kRetry,
                        .pod = {},
                        .message = "forbidden"});
    calls = h_.Batch();
    if (!calls.empty()) break;
    h_.now += h_.options.retry_max;
    calls = h_.Batch();
  }
  EXPECT_THAT(Describe(calls), ElementsAre("bind new n0"));
  EXPECT_EQ(looks, Retry::kMostRefusals);
}

TEST_F(ClosedNodeTest, OneCompletionAfterAnotherNeedsNoLook) {
  Workload(1).set_completions(3);
  h_.cluster.AddPod("a", "a-0");
  Allocate(1);
  h_.Settle();
  h_.cluster.End("a-0", PodFacts::Phase::kSucceeded);
  h_.cluster.AddPod("a", "a-1");
  h_.Settle();
  h_.cluster.End("a-1", PodFacts::Phase::kSucceeded);
  h_.cluster.AddPod("a", "a-2");
  EXPECT_THAT(Describe(h_.Batch()), ElementsAre("bind a-2 n0"));
}

}  // namespace
}  // namespace fluxqueue::binder
