// Durations that bind: who is ended, of whom it is said that it overran, and what is planned.
#include <functional>

#include <gtest/gtest.h>

#include "libs/model/rules.h"
#include "libs/queue_core/queue_spec.h"
#include "libs/queue_core/testing_story.h"

namespace fluxqueue::queue_core {
namespace {

using events::v1::QueueConfigured;
using model::JobState;
using testing::Contains;
using testing::ElementsAre;
using testing::IsEmpty;

constexpr int64_t kMinute = 60'000;

QueueConfigured QueueOf(QueueConfigured::Enforcement enforcement,
                        int64_t max_ms = 0,
                        bool bound_undeclared = false) {
  QueueConfigured queue = QueueMade("default", 0, 0, "easy").queue_configured();
  queue.set_enforce_duration(enforcement);
  queue.set_enforce_grace_ms(kMinute);
  queue.set_max_duration_ms(max_ms);
  queue.set_bound_undeclared(bound_undeclared);
  return queue;
}

TEST(BoundOfTest, IsWhatIsDeclaredWithTheGrace) {
  const QueueConfigured warns = QueueOf(QueueConfigured::ENFORCEMENT_WARN, 10 * kMinute);
  EXPECT_EQ(BoundOf(warns, 2 * kMinute), 3 * kMinute);
  EXPECT_EQ(BoundOf(warns, 0), 0) << "it has no end";
  EXPECT_EQ(BoundOf(warns, std::nullopt), 0);
  EXPECT_EQ(BoundOf(QueueOf(QueueConfigured::ENFORCEMENT_END, 10 * kMinute, true), std::nullopt),
            11 * kMinute);
  EXPECT_EQ(BoundOf(QueueOf(QueueConfigured::ENFORCEMENT_NEVER), 2 * kMinute), 0);
  EXPECT_EQ(BoundOf(warns, INT64_MAX), INT64_MAX);
}

TEST(BindsTest, NothingMayStayForLongerThanIsPlanned) {
  QueueConfigured queue = QueueOf(QueueConfigured::ENFORCEMENT_END, 10 * kMinute, true);
  EXPECT_TRUE(Binds(queue));
  EXPECT_FALSE(Binds(QueueOf(QueueConfigured::ENFORCEMENT_WARN, 10 * kMinute, true)));
  // Those who declare nothing are thought to take less than they may.
  queue.set_default_duration_ms(kMinute);
  EXPECT_FALSE(Binds(queue));
  queue.set_default_duration_ms(10 * kMinute);
  EXPECT_TRUE(Binds(queue));
  queue.set_bound_undeclared(false);
  EXPECT_FALSE(Binds(queue));
  queue.set_default_duration_ms(0);
  EXPECT_TRUE(Binds(queue)) << "such jobs are planned without an end";
  queue.mutable_user_limits()->set_running_jobs(1);
  EXPECT_FALSE(Binds(queue));
  queue.clear_user_limits();
  EXPECT_TRUE(Binds(queue));
  queue.set_predict_durations(true);
  EXPECT_FALSE(Binds(queue));
}

class BoundTest : public testing::Test {
 protected:
  void Configure(const QueueConfigured& queue) {
    events::v1::Envelope message = ForPool();
    *message.mutable_queue_configured() = queue;
    story_.Tell(message);
  }
  void Start(const std::string& id, std::optional<int64_t> duration_ms) {
    story_.Bring(id, JobState::kBound, {.duration_ms = duration_ms});
    events::v1::Envelope started = Started(id);
    started.mutable_job_started()->set_started_ms(story_.now().count());
    story_.Tell(started);
  }
  events::v1::Candidate PlanOf(const std::string& id, std::optional<int64_t> duration_ms) {
    story_.Tell(Submitted(id, {.duration_ms = duration_ms}));
    events::v1::CycleRequested cycle;
    EXPECT_TRUE(cycle.ParseFromString(story_.changes().cycles_requested.at(0).requested));
    return cycle.candidates(0);
  }

  Story story_;
};

TEST_F(BoundTest, WhereTheQueueSaysSoItIsSaidOnce) {
  Configure(QueueOf(QueueConfigured::ENFORCEMENT_WARN));
  Start("a", 2 * kMinute);
  EXPECT_EQ(story_.last().ends_after_ms(), 0);
  EXPECT_EQ(story_.core().NextDeadline(), story_.now() + Millis(3 * kMinute));
  story_.Wait(3 * kMinute - 1);
  EXPECT_THAT(story_.Tell(Tick()), IsEmpty());
  story_.Wait(1);
  EXPECT_THAT(story_.Tell(Tick()), ElementsAre("fact a v5 Running Overran"));
  story_.Wait(9 * kMinute);
  EXPECT_THAT(story_.Tell(Tick()), IsEmpty());
  EXPECT_THAT(story_.Tell(Ended("a")), Contains("fact a v6 Succeeded"));
}

// Its user has raised its activeDeadlineSeconds.
TEST_F(BoundTest, WhatKubernetesDidNotEndIsStopped) {
  Configure(QueueOf(QueueConfigured::ENFORCEMENT_END, 10 * kMinute, true));
  Start("a", 2 * kMinute);
  story_.Wait(3 * kMinute);
  EXPECT_THAT(story_.Tell(Tick()), ElementsAre("fact a v5 Running Overran"));
  EXPECT_EQ(story_.core().NextDeadline(), story_.now() + Millis(35'000));
  story_.Wait(35'000);
  EXPECT_THAT(story_.Tell(Tick()), ElementsAre("fact a v6 Stopping Overran after=fail"));
  EXPECT_EQ(story_.last().message(),
            "it ran for 215 s, may for 180, and was not ended: was its activeDeadlineSeconds "
            "raised?");
  EXPECT_THAT(story_.Tell(Stopped("a")), Contains("fact a v7 Failed Overran"));
}

// By rules 3 it is only said.
TEST_F(BoundTest, WhatKubernetesDidNotEndRanOn) {
  story_.Tell(PoolConfig(0, model::kFirmPromises));
  Configure(QueueOf(QueueConfigured::ENFORCEMENT_END, 10 * kMinute, true));
  Start("a", 2 * kMinute);
  story_.Wait(3 * kMinute);
  EXPECT_THAT(story_.Tell(Tick()), ElementsAre("fact a v5 Running Overran"));
  story_.Wait(30 * kMinute);
  EXPECT_THAT(story_.Tell(Tick()), IsEmpty());
}

TEST_F(BoundTest, NothingIsSaidWhereNobodyIsBound) {
  Configure(QueueOf(QueueConfigured::ENFORCEMENT_NEVER));
  Start("a", 2 * kMinute);
  Configure(QueueOf(QueueConfigured::ENFORCEMENT_WARN));
  Start("endless", 0);
  Start("silent", std::nullopt);
  Configure(QueueOf(QueueConfigured::ENFORCEMENT_NEVER));
  story_.Wait(60 * kMinute);
  EXPECT_THAT(story_.Tell(Tick()), IsEmpty());
}

TEST_F(BoundTest, AnotherConfigurationCountsForThoseThatRun) {
  Configure(QueueOf(QueueConfigured::ENFORCEMENT_NEVER));
  Start("a", 2 * kMinute);
  story_.Wait(10 * kMinute);
  EXPECT_THAT(story_.Tell(Tick()), IsEmpty());
  Configure(QueueOf(QueueConfigured::ENFORCEMENT_WARN));
  EXPECT_THAT(story_.Tell(Tick()), ElementsAre("fact a v5 Running Overran"));
}

TEST_F(BoundTest, WhoIsEndedIsToldSoWithItsNodes) {
  Configure(QueueOf(QueueConfigured::ENFORCEMENT_END, 10 * kMinute, true));
  const events::v1::Candidate plan = PlanOf("a", 2 * kMinute);
  EXPECT_EQ(plan.duration_s(), 180 + 35) << "until its pods are gone";
  EXPECT_EQ(plan.bound_s(), 0);
  EXPECT_TRUE(plan.enforced());
  story_.Tell(Answered(story_.core().cycle_in_flight(), {{"a"}}));
  EXPECT_EQ(story_.last().ends_after_ms(), 3 * kMinute);
  // It stays, whatever is said later: promises rest on it.
  Configure(QueueOf(QueueConfigured::ENFORCEMENT_END, 60 * kMinute, true));
  story_.Tell(Bound("a"));
  EXPECT_EQ(story_.last().ends_after_ms(), 3 * kMinute);
  const events::v1::Candidate undeclared = PlanOf("b", std::nullopt);
  EXPECT_EQ(undeclared.duration_s(), 61 * 60 + 35);
  EXPECT_TRUE(undeclared.enforced());
}

TEST_F(BoundTest, WhatIsExpectedIsNotWhatBinds) {
  QueueConfigured queue = QueueOf(QueueConfigured::ENFORCEMENT_END, 10 * kMinute, true);
  queue.set_default_duration_ms(kMinute);
  Configure(queue);
  const events::v1::Candidate plan = PlanOf("a", std::nullopt);
  EXPECT_EQ(plan.duration_s(), 60);
  EXPECT_EQ(plan.bound_s(), 660 + 35);
  EXPECT_TRUE(plan.enforced());
}

TEST_F(BoundTest, AnEndThatNothingEnforcesIsNone) {
  QueueConfigured queue = QueueOf(QueueConfigured::ENFORCEMENT_END, 10 * kMinute);
  queue.set_default_duration_ms(kMinute);
  Configure(queue);
  EXPECT_FALSE(PlanOf("a", std::nullopt).enforced());
}

TEST_F(BoundTest, BadGraceIsRefused) {
  events::v1::Envelope message = ForPool();
  *message.mutable_queue_configured() = QueueOf(QueueConfigured::ENFORCEMENT_WARN);
  message.mutable_queue_configured()->set_enforce_grace_ms(-1);
  EXPECT_THAT(story_.Tell(message), ElementsAre("poison"));
  EXPECT_EQ(story_.error(), "queue default: enforce_grace_ms is -1; it must not be below 0");
}

}  // namespace
}  // namespace fluxqueue::queue_core
