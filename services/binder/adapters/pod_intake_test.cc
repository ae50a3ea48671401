#include "services/binder/adapters/pod_intake.h"

#include <memory>
#include <set>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "libs/base/status_macros.h"
#include "services/binder/domain/planner_harness.h"

namespace fluxqueue::binder {
namespace {

using events::v1::JOB_STATE_ALLOCATED;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

// A planner that throws when it looks at the proof of certain pods.
class PodIntakeTest : public ::testing::Test {
 protected:
  PodIntakeTest() {
    h_.planner = std::make_unique<BindPlanner>(h_.options, [this](const PodFacts& pod) {
      if (throws_.contains(pod.uid)) throw std::out_of_range("no such element");
      return TestProofs()(pod);
    });
    intake_ = std::make_unique<PodIntake>(*h_.planner, inbox_, quarantine_, clock_);
    h_.planner->SetPodsInView(true, h_.now);
  }

  // Bound pods of a job of which no row is there any more.
  void AddBoundPods(const std::string& job, uint32_t pods) {
    for (uint32_t i = 0; i < pods; ++i) {
      PodFacts& pod = h_.cluster.AddPod(job, job + "-" + std::to_string(i));
      pod.node = "n" + std::to_string(i);
      pod.slot = kubernetes::SlotName{.attempt = 1, .part = 0, .slot = i, .slots = pods};
      pod.proof = ProofTextOf(pod);
      h_.cluster.Touch(pod);
    }
    h_.PlaceJob(job, 1, pods);
    h_.log.push_back(h_.Fact(job, JOB_STATE_ALLOCATED, pods));
  }

  // What JobsHandler and the loop do.
  absl::Status Batch() {
    for (FakeCluster::Event& event : std::exchange(h_.cluster.events, {})) {
      if (event.pod.has_value()) {
        inbox_.Post(kubernetes::Seen<PodFacts>{*event.pod});
      } else {
        inbox_.Post(kubernetes::Gone{"pods", "default", event.uid, event.uid});
      }
    }
    const absl::Status status = Make();
    if (!status.ok()) {
      h_.planner->Rollback();
      return status;
    }
    h_.tables.Apply(h_.planner->Changes());
    h_.log.clear();
    for (const Call& call : h_.planner->Commit()) inbox_.Post(h_.cluster.Execute(call));
    return status;
  }
  absl::Status Make() {
    RETURN_IF_ERROR(intake_->Take());
    for (const auto& fact : h_.log) RETURN_IF_ERROR(h_.planner->Fold(0, fact, h_.now));
    RETURN_IF_ERROR(intake_->Plan([&] { h_.planner->Plan(h_.now, &h_.sayings); }));
    return intake_->Plan([&] {
      for (const PlacementKey& key : h_.planner->WantedPlacements(h_.now)) {
        h_.planner->Placed(key, &h_.tables.placements.at({key.job_id, key.attempt}), h_.now);
      }
      h_.planner->PlanPlaced(h_.now);
    });
  }
  // Until nothing happens any more. How many batches had to be made again.
  int Settle() {
    int failed = 0;
    for (int i = 0; i < 100; ++i) {
      const absl::Status status = Batch();
      if (!status.ok()) {
        EXPECT_EQ(status.code(), absl::StatusCode::kUnavailable) << status;
        ++failed;
      }
      if (status.ok() && !intake_->HasWork() && !h_.planner->HasWork()) return failed;
    }
    ADD_FAILURE() << "it does not come to rest";
    return failed;
  }
  std::string StateOf(const std::string& job, int slot) {
    const auto row = h_.tables.slots.find({job, 1, slot});
    return row == h_.tables.slots.end() ? "" : std::string(Name(row->second.value.state));
  }
  std::vector<std::string> Held() {
    std::vector<std::string> held;
    for (const auto& row : quarantine_.Untold()) held.push_back(row.object.uid + ": " + row.reason);
    return held;
  }

  std::set<std::string> throws_;
  FakeClock clock_;
  delivery::Quarantine quarantine_{clock_, {"Pod"}};
  Inbox inbox_;
  PlannerHarness h_;
  std::unique_ptr<PodIntake> intake_;
};

TEST_F(PodIntakeTest, APodWithWhichPlanningThrowsIsLeftOutAndTheOthersGoOn) {
  throws_ = {"a-1"};
  AddBoundPods("a", 3);
  AddBoundPods("b", 1);
  EXPECT_LE(Settle(), 3);
  EXPECT_THAT(Held(), ElementsAre("a-1: it threw: no such element"));
  EXPECT_EQ(StateOf("a", 0), "bound");
  EXPECT_EQ(StateOf("a", 1), "");
  EXPECT_EQ(StateOf("a", 2), "bound");
  EXPECT_EQ(StateOf("b", 0), "bound");
  EXPECT_EQ(quarantine_.Totals().at("Pod"), 1);
  EXPECT_FALSE(quarantine_.careful());
}

TEST_F(PodIntakeTest, ItIsHandledOnceItHasChanged) {
  throws_ = {"a-0"};
  AddBoundPods("a", 2);
  Settle();
  quarantine_.Saved();
  EXPECT_EQ(StateOf("a", 0), "");
  // Nothing has changed: it is not looked at again.
  clock_.Advance(PodIntake::kLookAgain);
  EXPECT_EQ(Settle(), 0);
  EXPECT_THAT(Held(), IsEmpty());
  throws_.clear();
  h_.cluster.Touch(*h_.cluster.Pod("a-0"));
  EXPECT_EQ(Settle(), 0);
  EXPECT_EQ(StateOf("a", 0), "bound");
  EXPECT_TRUE(quarantine_.empty());
}

TEST_F(PodIntakeTest, OneThatFailsInEachVersionIsLookedAtLessAndLessOften) {
  throws_ = {"a-0"};
  AddBoundPods("a", 1);
  Settle();
  int failed = 0;
  for (int i = 0; i < 20; ++i) {
    h_.cluster.Touch(*h_.cluster.Pod("a-0"));
    failed += Settle();
  }
  EXPECT_EQ(failed, 1) << "at once a second time, and no third";
  // The version that it has by now is not missed.
  throws_.clear();
  clock_.Advance(PodIntake::kLookAgain);
  EXPECT_EQ(intake_->WakeAt(), clock_.Monotonic());
  Settle();
  EXPECT_EQ(StateOf("a", 0), "bound");
}

TEST_F(PodIntakeTest, ABatchTakesAFewAndTheRestStaysInTheInbox) {
  constexpr size_t kMore = 10;
  PodFacts pod;
  pod.resource_version = 1;
  for (size_t i = 0; i < PodIntake::kMostTaken + kMore; ++i) {
    pod.uid = pod.job_id = fmt::format("p{}", i);
    inbox_.Post(kubernetes::Seen<PodFacts>{pod});
  }
  ASSERT_TRUE(intake_->Take().ok());
  EXPECT_EQ(h_.planner->pods().size(), PodIntake::kMostTaken);
  EXPECT_EQ(inbox_.size(), kMore);
  EXPECT_TRUE(intake_->HasWork());
  ASSERT_TRUE(intake_->Take().ok());
  EXPECT_EQ(h_.planner->pods().size(), PodIntake::kMostTaken + kMore);
  EXPECT_FALSE(intake_->HasWork());
}

TEST_F(PodIntakeTest, NothingIsKeptOfOneThatHasGone) {
  throws_ = {"a-0"};
  AddBoundPods("a", 1);
  Settle();
  h_.cluster.Remove("a-0");
  Settle();
  EXPECT_TRUE(quarantine_.empty());
  EXPECT_EQ(intake_->WakeAt(), std::nullopt);
}

TEST_F(PodIntakeTest, WhatALaterHistoryShowsIsTakenHoweverOldItIs) {
  AddBoundPods("a", 1);
  Settle();
  PodFacts before = *h_.cluster.Pod("a-0");
  before.resource_version = 1;
  inbox_.Post(kubernetes::Seen<PodFacts>{before, 1});
  Settle();
  EXPECT_NE(h_.planner->pods().Find("a-0")->resource_version, 1);
  inbox_.Post(kubernetes::Seen<PodFacts>{before, 2});
  Settle();
  EXPECT_EQ(h_.planner->pods().Find("a-0")->resource_version, 1);
}

// It has gone, its job goes on, and the restored store has it again.
TEST_F(PodIntakeTest, APodThatHadGoneMayBeThereInALaterHistory) {
  AddBoundPods("a", 1);
  Settle();
  const PodFacts before = *h_.cluster.Pod("a-0");
  h_.cluster.Remove("a-0");
  Settle();
  EXPECT_TRUE(h_.planner->pods().KnownGone("a-0", "a"));
  inbox_.Post(kubernetes::Seen<PodFacts>{before, 2});
  Settle();
  EXPECT_NE(h_.planner->pods().Find("a-0"), nullptr);
}

TEST_F(PodIntakeTest, APodThatCannotBeReadStaysAsItWas) {
  AddBoundPods("a", 1);
  Settle();
  inbox_.Post(kubernetes::Unread{"pods", "default", "a-0", "a-0", "9999", "spec: not an object"});
  EXPECT_EQ(Settle(), 0);
  EXPECT_THAT(Held(), ElementsAre("a-0: spec: not an object"));
  EXPECT_NE(h_.planner->pods().Find("a-0"), nullptr);
}

TEST_F(PodIntakeTest, AnAnswerTellsNothingOfAPodThatIsLeftOut) {
  throws_ = {"a-0"};
  AddBoundPods("a", 1);
  Settle();
  CallResult answer;
  answer.call.kind = Call::Kind::kReadPod;
  answer.call.job_id = "a";
  answer.call.slot = 0;
  answer.pod = *h_.cluster.Pod("a-0");
  inbox_.Post(answer);
  EXPECT_EQ(Settle(), 0);
  EXPECT_EQ(h_.planner->pods().Find("a-0"), nullptr);
}

TEST_F(PodIntakeTest, WithoutAPodToBlameTheProcessEnds) {
  const absl::Status status = intake_->Plan([] { throw std::logic_error("broken"); });
  EXPECT_EQ(status.code(), absl::StatusCode::kInternal);
  EXPECT_THAT(Message(status), HasSubstr("broken"));
}

// Answers that wait are about the pod as it was: it is not seen by them, either.
TEST_F(PodIntakeTest, WhatIsSetAsideIsInNoAnswer) {
  AddBoundPods("a", 2);
  Settle();
  CallResult answer;
  answer.call.kind = Call::Kind::kFence;
  answer.call.job_id = "a";
  answer.call.slot = 1;
  answer.pod = *h_.cluster.Pod("a-1");
  h_.planner->Answer(answer);
  EXPECT_THAT(h_.planner->SetAside("a"), SizeIs(3));
  h_.planner->Plan(h_.now, &h_.sayings);
  EXPECT_EQ(h_.planner->pods().size(), 0);
}

}  // namespace
}  // namespace fluxqueue::binder
