// A node that has come back under its name is another: no pod is bound to it by a slot that is on
// the one before.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "services/binder/domain/bind_planner_fixture.h"

namespace fluxqueue::binder {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

class ReplacedNodeTest : public BindPlannerTest {
 protected:
  ReplacedNodeTest() { SetNode("n0", "old"); }

  // As the cluster has it, and the matcher.
  void SetNode(const std::string& name, const std::string& uid) {
    h_.cluster.node_uids[name] = h_.tables.node_uids[name] = uid;
  }
  // The pod comes when the job is not fresh any more.
  void AllocateLongAgo() {
    Allocate(1);
    h_.Settle();
    h_.now += 2 * kSureFor;
    h_.cluster.AddPod("a", "a-0");
  }
  const PodFacts& Pod() { return *h_.cluster.Pod("a-0"); }
};

TEST_F(ReplacedNodeTest, AFreshJobAsksNothingOfItsNode) {
  h_.cluster.AddPod("a", "a-0");
  Allocate(1);
  const std::vector<Call> calls = h_.Batch();
  EXPECT_THAT(Describe(calls), ElementsAre("bind a-0 n0"));
  EXPECT_EQ(calls[0].node_uid, "");
  EXPECT_EQ(calls[0].sure_until, h_.now + kSureFor);
  h_.Execute(calls);
  h_.Settle();
  EXPECT_EQ(Pod().node, "n0");
}

TEST_F(ReplacedNodeTest, APodThatComesLaterIsBoundToTheNodeOfThePlacement) {
  AllocateLongAgo();
  const std::vector<Call> calls = h_.Batch();
  EXPECT_THAT(Describe(calls), ElementsAre("bind a-0 n0"));
  EXPECT_EQ(calls[0].node_uid, "old");
  EXPECT_LT(calls[0].sure_until, h_.now);
  h_.Execute(calls);
  h_.Settle();
  EXPECT_EQ(Pod().node, "n0");
}

TEST_F(ReplacedNodeTest, ACallThatIsMadeTooLateIsPlannedAgain) {
  h_.cluster.AddPod("a", "a-0");
  Allocate(1);
  const std::vector<Call> calls = h_.Batch();
  h_.now += 2 * kSureFor;
  h_.Execute(calls);
  EXPECT_FALSE(Pod().Bound());
  h_.Settle();
  EXPECT_EQ(Pod().node, "n0");
}

TEST_F(ReplacedNodeTest, APodIsNotBoundToAnotherOfThatNameUntilTheJobIsStopped) {
  AllocateLongAgo();
  h_.cluster.node_uids["n0"] = "new";  // the matcher has not heard
  h_.Settle();
  h_.now += h_.options.start_timeout;
  h_.Settle();
  EXPECT_FALSE(Pod().Bound());
  EXPECT_THAT(h_.Said("bind_failed"), IsEmpty());
  Stop(1);
  h_.Settle();
  EXPECT_THAT(h_.Said("job_stopped"), ElementsAre("a/1"));
}

TEST_F(ReplacedNodeTest, NorOnceTheMatcherKnows) {
  AllocateLongAgo();
  SetNode("n0", "new");
  h_.tables.placements.at({"a", 1}).placement.mutable_slots(0)->set_released(true);
  h_.Settle();
  EXPECT_FALSE(Pod().Bound());
  Stop(1);
  h_.Settle();
  EXPECT_THAT(h_.Said("job_stopped"), ElementsAre("a/1"));
}

TEST_F(ReplacedNodeTest, ANodeThatTheBinderMayNotReadKeepsNoPodWaiting) {
  h_.tables.node_uids.clear();
  AllocateLongAgo();
  h_.Settle();
  EXPECT_EQ(Pod().node, "n0");
}

TEST_F(ReplacedNodeTest, NoJobIsFreshAfterARestart) {
  h_.cluster.AddPod("a", "a-0");
  Allocate(1);
  h_.Batch();
  h_.cluster.node_uids["n0"] = "new";
  h_.Restart();
  h_.Settle();
  EXPECT_FALSE(Pod().Bound());
}

TEST_F(ReplacedNodeTest, AReplacementIsNotBoundThere) {
  Workload(1).set_completions(2);
  h_.cluster.AddPod("a", "a-0");
  Allocate(1);
  h_.Settle();
  h_.now += 2 * kSureFor;
  h_.cluster.End("a-0", PodFacts::Phase::kFailed);
  h_.cluster.node_uids["n0"] = "new";
  h_.cluster.AddPod("a", "a-1");
  h_.Settle();
  EXPECT_FALSE(h_.cluster.Pod("a-1")->Bound());
  EXPECT_THAT(h_.Said("bind_failed"), ElementsAre("a/1 NodeClosed"));
}

}  // namespace
}  // namespace fluxqueue::binder
