#include "services/binder/domain/waiting_pods.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace fluxqueue::binder {
namespace {

using events::v1::JobFact;
using ::testing::ElementsAre;
using ::testing::Field;
using ::testing::IsEmpty;
using ::testing::SizeIs;

JobFact Fact(const std::string& job, events::v1::JobState state, const std::string& reason) {
  JobFact fact;
  fact.set_job_id(job);
  fact.mutable_workload()->set_namespace_("lab");
  fact.mutable_workload()->set_kind("Pod");
  fact.set_state(state);
  fact.set_reason(reason);
  fact.set_message(reason + ", in a sentence");
  fact.set_created_ms(7000);
  return fact;
}

JobFact Waits(const std::string& job, const std::string& reason) {
  return Fact(job, events::v1::JOB_STATE_PENDING, reason);
}

auto Says(const std::string& uid, const std::string& reason) {
  return AllOf(Field("uid", &PodCondition::uid, uid),
               Field("reason", &PodCondition::reason, reason));
}

class WaitingPodsTest : public ::testing::Test {
 protected:
  // Its uid is its job's id, as of a pod that is a job of its own.
  PodFacts Pod(const std::string& uid, const std::string& says = "SchedulingGated") {
    PodFacts pod;
    pod.uid = pod.job_id = uid;
    pod.space = "lab";
    pod.name = "pod-" + uid;
    pod.gated = true;
    pod.waits_because = says;
    pod.resource_version = ++version_;
    return pod;
  }
  void Bind(const std::string& uid) {
    PodFacts pod = Pod(uid, "");
    pod.gated = false;
    pod.node = "n1";
    board_.See(pod);
  }
  std::vector<PodCondition> Due(int64_t now_ms, size_t most = 100) {
    return waiting_.TakeDue(board_, most, Millis(now_ms));
  }

  uint64_t version_ = 0;
  PodBoard board_{[](const PodFacts&) { return true; }};
  WaitingPods waiting_;
};

TEST_F(WaitingPodsTest, ItIsToldOnceItHasWaited) {
  board_.See(Pod("a"));
  waiting_.Learn(Waits("a", "Queued"), Millis(0));
  waiting_.Learn(Waits("a", "Busy"), Millis(4000));
  EXPECT_EQ(waiting_.NextDue(), Millis(5000));
  EXPECT_THAT(Due(4999), IsEmpty());
  const auto told = Due(5000);
  ASSERT_THAT(told, ElementsAre(Says("a", "Busy")));
  EXPECT_EQ(told[0].space, "lab");
  EXPECT_EQ(told[0].name, "pod-a");
  EXPECT_EQ(told[0].message, "Busy, in a sentence");
  EXPECT_EQ(told[0].since_ms, 7000);
  EXPECT_FALSE(waiting_.NextDue().has_value());
  // It says so.
  board_.See(Pod("a", "Busy"));
  waiting_.Learn(Waits("a", "Busy"), Millis(6000));
  EXPECT_THAT(Due(60'000), IsEmpty());
}

TEST_F(WaitingPodsTest, WhatStartsSoonIsToldNothing) {
  board_.See(Pod("a"));
  waiting_.Learn(Waits("a", "Busy"), Millis(0));
  waiting_.Learn(Fact("a", events::v1::JOB_STATE_ALLOCATED, "Backfilled"), Millis(100));
  EXPECT_FALSE(waiting_.NextDue().has_value());
  waiting_.Learn(Waits("a", "Busy"), Millis(0));
  Bind("a");
  EXPECT_THAT(Due(5000), IsEmpty());
}

TEST_F(WaitingPodsTest, JobsHaveNoPodsWhileTheyWait) {
  JobFact fact = Waits("a", "Busy");
  fact.mutable_workload()->set_kind("Job");
  waiting_.Learn(fact, Millis(0));
  EXPECT_FALSE(waiting_.NextDue().has_value());
}

TEST_F(WaitingPodsTest, OfAGroupAllPodsAreToldAndNoneOfAnotherNamespace) {
  JobFact fact = Waits("group", "Limit");
  for (const char* uid : {"x", "y", "z"}) fact.mutable_workload()->add_pods(uid);
  board_.See(Pod("x"));
  board_.See(Pod("y"));
  PodFacts stranger = Pod("z");
  stranger.space = "other";
  board_.See(stranger);
  waiting_.Learn(fact, Millis(0));
  // What does not go at once follows, once the first say so.
  EXPECT_THAT(Due(5000, 1), ElementsAre(Says("x", "Limit")));
  board_.See(Pod("x", "Limit"));
  EXPECT_THAT(Due(5000, 1), ElementsAre(Says("y", "Limit")));
  EXPECT_THAT(Due(5000, 1), IsEmpty());
}

TEST_F(WaitingPodsTest, WhatHasEndedIsToldToo) {
  board_.See(Pod("a"));
  waiting_.Learn(Waits("a", "Held"), Millis(0));
  waiting_.Learn(Fact("a", events::v1::JOB_STATE_REJECTED, "Unsatisfiable"), Millis(10));
  EXPECT_THAT(Due(5000), ElementsAre(Says("a", "Unsatisfiable")));
}

TEST_F(WaitingPodsTest, SoManyJobsWaitToBeTold) {
  for (size_t i = 0; i <= WaitingPods::kMostJobs; ++i) {
    const std::string id = "j" + std::to_string(i);
    board_.See(Pod(id));
    waiting_.Learn(Waits(id, "Busy"), Millis(0));
  }
  EXPECT_THAT(Due(5000, 2 * WaitingPods::kMostJobs), SizeIs(WaitingPods::kMostJobs));
}

TEST_F(WaitingPodsTest, WhoLacksNodesSaysSoUntilItDoesNot) {
  for (const char* uid : {"a", "b"}) board_.See(Pod(uid));
  const std::vector<JobFact> lacking = {Waits("a", "Busy")};
  EXPECT_THAT(SayUnschedulable(board_, lacking), ElementsAre(Says("a", "Unschedulable")));
  // A write that failed is made again; one that is seen is not.
  EXPECT_THAT(SayUnschedulable(board_, lacking), SizeIs(1));
  board_.See(Pod("a", "Unschedulable"));
  EXPECT_THAT(SayUnschedulable(board_, lacking), IsEmpty());
  EXPECT_THAT(WronglyUnschedulable(board_, lacking), IsEmpty());
  // What a fact says does not take its place.
  waiting_.Learn(Waits("a", "Reserved"), Millis(0));
  EXPECT_THAT(Due(5000), IsEmpty());
  // Another is the first now.
  const auto wrongly = WronglyUnschedulable(board_, {Waits("b", "Busy")});
  ASSERT_THAT(wrongly, ElementsAre(Field("uid", &PodFacts::uid, "a")));
  const JobFact held = Waits("a", "Held");
  EXPECT_THAT(*TakeBack(*wrongly[0], &held), Says("a", "Held"));
  const JobFact ended = Fact("a", events::v1::JOB_STATE_CANCELLED, "Cancelled");
  EXPECT_THAT(*TakeBack(*wrongly[0], &ended), Says("a", "Cancelled"));
  EXPECT_THAT(*TakeBack(*wrongly[0], nullptr), Says("a", "Queued"));
  const JobFact starts = Fact("a", events::v1::JOB_STATE_ALLOCATED, "");
  EXPECT_FALSE(TakeBack(*wrongly[0], &starts).has_value());
  Bind("a");
  EXPECT_THAT(WronglyUnschedulable(board_, {}), IsEmpty()) << "bound";
}

TEST_F(WaitingPodsTest, WhatIsGoneIsForgotten) {
  board_.See(Pod("a", "Unschedulable"));
  board_.See(Pod("b", "Unschedulable"));
  ASSERT_THAT(WronglyUnschedulable(board_, {}), SizeIs(2));
  board_.Gone("a", "a", false);
  board_.Take("b");
  EXPECT_THAT(WronglyUnschedulable(board_, {}), IsEmpty());
}

}  // namespace
}  // namespace fluxqueue::binder
