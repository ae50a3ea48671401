// A pod with places for those that it makes: a Spark driver and its executors.
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "services/binder/domain/bind_planner_fixture.h"

namespace fluxqueue::binder {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

class PlacesBindTest : public BindPlannerTest {
 protected:
  // The pod "a" with `places`, which have 2000 millicores each.
  void Driver(uint32_t places) {
    BarePod();
    h_.cluster.AddPod("a", "a");
    Allocate(1 + places);
    events::v1::Placement& placement = h_.tables.placements.at({"a", 1}).placement;
    auto* behind = placement.add_groups();
    *behind = placement.groups(0);
    placement.mutable_groups(0)->set_slots(1);
    behind->set_slots(places);
    behind->mutable_requests(0)->set_amount(2000);
  }
  PodFacts& Executor(const std::string& name, int64_t cpu = 2000) {
    PodFacts& pod = h_.cluster.AddPod("a", name);
    pod.requests["cpu"] = cpu;
    h_.cluster.Touch(pod);
    return pod;
  }
  std::string NodeOf(const std::string& name) { return h_.cluster.Pod(name)->node; }
  void Wait() {
    h_.now += h_.options.start_timeout;
    h_.Settle();
    h_.now += h_.options.start_timeout;
    h_.Settle();
  }
};

TEST_F(PlacesBindTest, ItIsBoundWithItsOwnPod) {
  Driver(3);
  h_.Settle();
  EXPECT_EQ(NodeOf("a"), "n0");
  EXPECT_THAT(h_.Said("job_bound"), ElementsAre("a/1"));
  Wait();
  EXPECT_THAT(h_.Said("bind_failed"), IsEmpty()) << "the others are not waited for";
}

TEST_F(PlacesBindTest, ThePodsThatItMakesTakeThePlacesAsTheyCome) {
  Driver(2);
  h_.Settle();
  Executor("e-1");
  h_.Settle();
  EXPECT_EQ(NodeOf("e-1"), "n1");
  Executor("e-2", 500);
  Executor("e-3");
  h_.Settle();
  EXPECT_EQ(NodeOf("e-2"), "n2");
  EXPECT_EQ(NodeOf("e-3"), "") << "there are two";
  Wait();
  EXPECT_THAT(h_.Said("bind_failed"), IsEmpty());
  EXPECT_THAT(h_.Said("job_bound"), ElementsAre("a/1"));
}

TEST_F(PlacesBindTest, APlaceIsTakenAgainHoweverItsPodHasEnded) {
  Driver(1);
  h_.Settle();
  std::string last;
  for (const auto phase : {PodFacts::Phase::kSucceeded, PodFacts::Phase::kFailed}) {
    last = phase == PodFacts::Phase::kFailed ? "e-2" : "e-1";
    Executor(last);
    h_.Settle();
    EXPECT_EQ(NodeOf(last), "n1");
    h_.cluster.End(last, phase);
    h_.Settle();
  }
  Executor("e-3");
  h_.Settle();
  h_.cluster.Remove("e-3");
  Executor("e-4");
  h_.Settle();
  EXPECT_EQ(NodeOf("e-4"), "n1");
}

TEST_F(PlacesBindTest, OneThatIsTooLargeWaitsAndFailsNothing) {
  Driver(2);
  h_.Settle();
  Executor("large", 2001);
  Executor("e-1");
  h_.Settle();
  EXPECT_EQ(NodeOf("large"), "");
  EXPECT_EQ(NodeOf("e-1"), "n1");
  Wait();
  EXPECT_THAT(h_.Said("bind_failed"), IsEmpty());
}

TEST_F(PlacesBindTest, ItsOwnSlotIsForItAlone) {
  Driver(1);
  h_.cluster.Pod("a")->requests["cpu"] = 1500;
  h_.cluster.Touch(*h_.cluster.Pod("a"));
  h_.Settle();
  EXPECT_THAT(h_.Said("bind_failed"), ElementsAre("a/1 PodTooLarge")) << "a place is none of its";
}

TEST_F(PlacesBindTest, NoneIsBoundBeforeItOrAfterIt) {
  Driver(2);
  h_.cluster.Remove("a");
  Executor("early");
  h_.Settle();
  EXPECT_EQ(NodeOf("early"), "");
  h_.cluster.AddPod("a", "a");
  h_.Settle();
  EXPECT_EQ(NodeOf("early"), "n1");
  h_.cluster.End("a", PodFacts::Phase::kFailed);
  h_.Settle();
  Executor("late");
  h_.Settle();
  EXPECT_EQ(NodeOf("late"), "");
  Wait();
  EXPECT_THAT(h_.Said("bind_failed"), IsEmpty());
}

TEST_F(PlacesBindTest, APlaceOnAClosedNodeIsPassedOver) {
  Driver(2);
  h_.Settle();
  h_.cluster.closed_nodes["n1"] = "is cordoned";
  Executor("e-1");
  h_.Settle();
  EXPECT_EQ(NodeOf("e-1"), "n2");
  Executor("e-2");
  h_.Settle();
  Wait();
  EXPECT_EQ(NodeOf("e-2"), "");
  EXPECT_THAT(h_.Said("bind_failed"), IsEmpty());
  h_.cluster.closed_nodes.clear();
  Wait();
  EXPECT_EQ(NodeOf("e-2"), "n1");
}

TEST_F(PlacesBindTest, AnotherBinderGoesOnWithIt) {
  Driver(2);
  h_.Settle();
  Executor("e-1");
  h_.Settle();
  h_.Restart();
  Executor("e-2");
  h_.Settle();
  EXPECT_EQ(NodeOf("e-2"), "n2");
  EXPECT_THAT(h_.Said("job_bound"), ElementsAre("a/1"));
}

// By its own doing: the queue has no part in it.
TEST_F(PlacesBindTest, OneThatIsBoundElsewhereLeavesItsPlace) {
  Driver(1);
  h_.Settle();
  PodFacts& pod = Executor("e-1");
  EXPECT_EQ(h_.Batch().size(), 1);  // it has its place, and the call is lost
  pod.node = "n7";
  h_.cluster.Touch(pod);
  h_.Settle();
  Executor("e-2");
  h_.Settle();
  EXPECT_EQ(NodeOf("e-2"), "n1");
  EXPECT_THAT(h_.Said("bind_failed"), IsEmpty());
}

// Its uid is the job's; that of another one's pod is written by anybody.
TEST_F(PlacesBindTest, APodWithoutPlacesHasOneSlotForItAlone) {
  BarePod();
  Allocate(1);
  Executor("a-0", 1000);
  h_.Settle();
  EXPECT_EQ(NodeOf("a-0"), "");
  h_.cluster.AddPod("a", "a");
  h_.Settle();
  EXPECT_EQ(NodeOf("a"), "n0");
  EXPECT_EQ(NodeOf("a-0"), "");
}

TEST_F(PlacesBindTest, AllOfThemAreStoppedWithIt) {
  Driver(2);
  h_.Settle();
  Executor("e-1");
  h_.Settle();
  Stop(3);
  h_.Settle();
  EXPECT_TRUE(h_.cluster.Pod("a")->deleting);
  EXPECT_TRUE(h_.cluster.Pod("e-1")->deleting);
  EXPECT_THAT(h_.Said("job_stopped"), IsEmpty());
  h_.cluster.Remove("a");
  h_.cluster.Remove("e-1");
  h_.Settle();
  EXPECT_THAT(h_.Said("job_stopped"), ElementsAre("a/1"));
}

}  // namespace
}  // namespace fluxqueue::binder
