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
  void Learn(const JobFact& fact, Millis now) { waiting_.Learn(3, fact, now); }
  // This replica holds the partition 3 and the first one; `starts`: uids of pods.
  std::vector<PodCondition> Compare(const std::vector<JobFact>& lacking,
                                    const std::set<std::string>& starts = {},
                                    size_t most = 100) {
    std::vector<LackingJob> rows;
    for (const JobFact& fact : lacking) rows.push_back({3, fact});
    return waiting_.Compare(
        board_,
        rows,
        {.ours = true, .starts = [&](const PodFacts& pod) { return starts.contains(pod.uid); }},
        most);
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
  Learn(Waits("a", "Limit"), Millis(0));
  Learn(Waits("a", "Busy"), Millis(4000));
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
  Learn(Waits("a", "Busy"), Millis(6000));
  EXPECT_THAT(Due(60'000), IsEmpty());
}

TEST_F(WaitingPodsTest, WhatStartsSoonIsToldNothing) {
  board_.See(Pod("a"));
  Learn(Waits("a", "Busy"), Millis(0));
  Learn(Fact("a", events::v1::JOB_STATE_ALLOCATED, "Backfilled"), Millis(100));
  EXPECT_FALSE(waiting_.NextDue().has_value());
  Learn(Waits("a", "Busy"), Millis(0));
  Bind("a");
  EXPECT_THAT(Due(5000), IsEmpty());
}

TEST_F(WaitingPodsTest, WhatIsHeldBySuspendHasNoPods) {
  JobFact fact = Waits("a", "Busy");
  EXPECT_FALSE(HasNoPods(fact));
  fact.mutable_workload()->set_kind("Job");
  EXPECT_FALSE(HasNoPods(fact)) << "a small Job is held by its pods";
  fact.set_attempt(2);
  EXPECT_TRUE(HasNoPods(fact)) << "it was stopped by its suspend";
  fact.mutable_workload()->set_controlled(true);
  EXPECT_FALSE(HasNoPods(fact)) << "another controller would undo that";
  fact.mutable_workload()->set_controlled(false);
  fact.set_attempt(1);
  fact.mutable_workload()->set_suspended(true);
  EXPECT_TRUE(HasNoPods(fact));
  Learn(fact, Millis(0));
  EXPECT_FALSE(waiting_.NextDue().has_value());
}

TEST_F(WaitingPodsTest, WhatWasNotTriedYetIsToldInAnEventAlone) {
  board_.See(Pod("a"));
  Learn(Waits("a", "Queued"), Millis(0));
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
  Learn(fact, Millis(0));
  EXPECT_THAT(Due(5000), ElementsAre(Says("x", "Limit"), Says("y", "Limit")));
}

TEST_F(WaitingPodsTest, WhatHasEndedIsToldToo) {
  board_.See(Pod("a"));
  Learn(Waits("a", "Held"), Millis(0));
  Learn(Fact("a", events::v1::JOB_STATE_REJECTED, "Unsatisfiable"), Millis(10));
  EXPECT_THAT(Due(5000), ElementsAre(Says("a", "Unsatisfiable")));
}

TEST_F(WaitingPodsTest, SoManyJobsWaitToBeTold) {
  for (size_t i = 0; i <= WaitingPods::kMostJobs; ++i) {
    const std::string id = "j" + std::to_string(i);
    board_.See(Pod(id));
    Learn(Waits(id, "Busy"), Millis(0));
  }
  EXPECT_THAT(Due(5000, 2 * WaitingPods::kMostJobs), SizeIs(WaitingPods::kMostJobs));
}

TEST_F(WaitingPodsTest, EndsComeInAlsoWhileManyAreToBeTold) {
  for (size_t i = 0; i < WaitingPods::kMostJobs; ++i) {
    Learn(Waits("j" + std::to_string(i), "Busy"), Millis(0));
  }
  board_.See(Pod("a"));
  Learn(Fact("a", events::v1::JOB_STATE_CANCELLED, "Cancelled"), Millis(0));
  EXPECT_THAT(Due(5000), ElementsAre(Says("a", "Cancelled")));
}

// The API server refuses, or the watch lags: it is not asked again and again.
TEST_F(WaitingPodsTest, EachPodIsToldOnce) {
  JobFact fact = Waits("group", "Limit");
  for (const char* uid : {"x", "y"}) {
    fact.mutable_workload()->add_pods(uid);
    board_.See(Pod(uid));
  }
  Learn(fact, Millis(0));
  EXPECT_THAT(Due(5000, 1), ElementsAre(Says("x", "Limit")));
  EXPECT_THAT(Due(5000, 1), ElementsAre(Says("y", "Limit")));
  EXPECT_THAT(Due(5000, 1), IsEmpty());
  EXPECT_FALSE(waiting_.NextDue().has_value());
}

TEST_F(WaitingPodsTest, WhoseItIsNowTellsIt) {
  board_.See(Pod("a"));
  board_.See(Pod("b", "Unschedulable"));
  Learn(Waits("a", "Busy"), Millis(0));
  EXPECT_THAT(Compare({Waits("b", "Busy")}), IsEmpty());
  waiting_.Drop(3);
  EXPECT_FALSE(waiting_.NextDue().has_value());
  EXPECT_THAT(Due(5000), IsEmpty());
  // Of a job of another replica this one says nothing.
  EXPECT_THAT(
      waiting_.Compare(board_,
                       {{std::nullopt, Waits("a", "Busy")}, {std::nullopt, Waits("b", "Busy")}},
                       {.ours = true, .starts = [](const PodFacts&) { return false; }},
                       100),
      IsEmpty());
}

TEST_F(WaitingPodsTest, WhoLacksNodesSaysSoUntilItDoesNot) {
  for (const char* uid : {"a", "b"}) board_.See(Pod(uid));
  const std::vector<JobFact> lacking = {Waits("a", "Busy")};
  EXPECT_THAT(Compare(lacking), ElementsAre(Says("a", "Unschedulable")));
  // A write that failed is made again; one that is seen is not.
  EXPECT_THAT(Compare(lacking), SizeIs(1));
  board_.See(Pod("a", "Unschedulable"));
  EXPECT_THAT(Compare(lacking), IsEmpty());
  // What a fact says does not take its place, while it lacks nodes.
  Learn(Waits("a", "Reserved"), Millis(0));
  EXPECT_THAT(Due(5000), IsEmpty());
  // Another is the first now.
  Learn(Waits("a", "Held"), Millis(6000));
  EXPECT_THAT(Compare({Waits("b", "Busy")}),
              ElementsAre(Says("a", "Held"), Says("b", "Unschedulable")));
  EXPECT_THAT(Compare({Waits("b", "Busy")}), SizeIs(2)) << "it was not written";
  board_.See(Pod("a", "Held"));
  board_.See(Pod("b", "Unschedulable"));
  EXPECT_THAT(Compare({Waits("b", "Busy")}), IsEmpty());
  // However it ends.
  Learn(Fact("b", events::v1::JOB_STATE_CANCELLED, "Cancelled"), Millis(7000));
  EXPECT_THAT(Compare({}), ElementsAre(Says("b", "Cancelled")));
}

TEST_F(WaitingPodsTest, WhatIsAboutToStartIsLeftAlone) {
  board_.See(Pod("a", "Unschedulable"));
  EXPECT_THAT(Compare({Waits("a", "Busy")}), IsEmpty());
  Learn(Fact("a", events::v1::JOB_STATE_ALLOCATED, ""), Millis(0));
  for (int i = 0; i < 3; ++i) EXPECT_THAT(Compare({}, {"a"}), IsEmpty());
  Bind("a");
  EXPECT_THAT(Compare({}), IsEmpty());
}

TEST_F(WaitingPodsTest, OfAGangAllSayItAndTakeItBack) {
  JobFact gang = Waits("hash", "Busy");
  for (const char* uid : {"x", "y"}) {
    gang.mutable_workload()->add_pods(uid);
    board_.See(Pod(uid));
  }
  EXPECT_THAT(Compare({gang}), ElementsAre(Says("x", "Unschedulable"), Says("y", "Unschedulable")));
  for (const char* uid : {"x", "y"}) board_.See(Pod(uid, "Unschedulable"));
  gang.set_version(2);
  gang.set_reason("Limit");
  Learn(gang, Millis(0));
  EXPECT_THAT(Compare({}), ElementsAre(Says("x", "Limit"), Says("y", "Limit")));
}

// After a restart, or where another replica had the pool.
TEST_F(WaitingPodsTest, WhoseJobIsNotKnownTakesItBackInTheEnd) {
  board_.See(Pod("a", "Unschedulable"));
  EXPECT_THAT(Compare({}), IsEmpty()) << "another replica may know it";
  EXPECT_THAT(Compare({}), ElementsAre(Says("a", "Waiting")));
  EXPECT_THAT(waiting_.Compare(board_, {}, {.ours = false, .starts = nullptr}, 100), IsEmpty());
}

// What is taken back comes first, and a large gang leaves room for others.
TEST_F(WaitingPodsTest, AllHaveAPartOfWhatIsWritten) {
  JobFact large = Waits("a", "Busy");
  for (int i = 0; i < 20; ++i) {
    const std::string uid = "l" + std::to_string(i);
    large.mutable_workload()->add_pods(uid);
    board_.See(Pod(uid));
  }
  board_.See(Pod("b"));
  board_.See(Pod("c", "Unschedulable"));
  EXPECT_THAT(Compare({Waits("c", "Busy")}), IsEmpty());
  Learn(Waits("c", "Held"), Millis(0));
  const auto some = Compare({large, Waits("b", "Busy")}, {}, 6);
  ASSERT_THAT(some, SizeIs(6));
  EXPECT_THAT(some[0], Says("c", "Held"));
  EXPECT_THAT(some[2], Says("b", "Unschedulable"));
}

TEST_F(WaitingPodsTest, WhatIsGoneIsForgotten) {
  board_.See(Pod("a", "Unschedulable"));
  board_.See(Pod("b", "Unschedulable"));
  ASSERT_THAT(board_.unschedulable(), SizeIs(2));
  board_.Gone("a", "a", false);
  board_.Take("b");
  EXPECT_THAT(board_.unschedulable(), IsEmpty());
}

}  // namespace
}  // namespace fluxqueue::binder
