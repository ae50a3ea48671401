// How long jobs are planned to run, and who is expected to be short.
#include <optional>
#include <string>
#include <utility>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "libs/model/rules.h"
#include "libs/queue_core/testing_story.h"

namespace fluxqueue::queue_core {
namespace {

TEST(PredictionTest, ByOlderRulesPlansWithTheLastTwoAndNeverMoreThanTheDefault) {
  Story story;
  story.Tell(PoolConfig(0, /*rules=*/2));
  story.Tell(QueueWith([](auto* queue) {
    queue->set_predict_durations(true);
    queue->set_default_duration_ms(60'000);
  }));
  const auto run = [&](const std::string& id, int64_t ms) {
    story.Tell(Submitted(id));
    story.Tell(Answered(story.core().cycle_in_flight(), {{id}}));
    story.Tell(Bound(id));
    auto started = Started(id);
    started.mutable_job_started()->set_started_ms(story.now().count());
    story.Tell(started);
    story.Wait(ms);
    story.Tell(Ended(id));
    story.Tell(Released(id, 1, false));
  };
  const auto planned_s = [&](const std::string& id) {
    story.Tell(Submitted(id));
    events::v1::CycleRequested cycle;
    EXPECT_TRUE(cycle.ParseFromString(story.changes().cycles_requested.at(0).requested));
    const int64_t planned = cycle.candidates(0).duration_s();
    story.Tell(Answered(cycle.cycle_id(), {{id}}));
    story.Tell(Ended(id, kJobFailed));
    story.Tell(Released(id, 1, false));
    return planned;
  };
  run("a", 10'000);
  EXPECT_EQ(planned_s("one"), 60);
  run("b", 20'000);
  EXPECT_EQ(planned_s("two"), 15);
  run("c", 300'000);
  EXPECT_EQ(planned_s("three"), 60);
}

// Whether the adaptive queue `default` goes by hindsight, as its row says.
bool HasHindsight(const Changes& changes) {
  for (const UsageChange& change : changes.usage) {
    queue::v1::UsageRow row;
    EXPECT_TRUE(row.ParseFromString(change.row));
    if (row.has_adaptive()) return row.adaptive().hindsight();
  }
  ADD_FAILURE() << "its row has not changed";
  return false;
}

// A node with gpus comes, and is drained.
TEST(AdaptivePlanTest, ByRules6HindsightWhereThePoolHasNoGpus) {
  for (const uint32_t rules : {5U, 6U}) {
    Story story;
    story.Tell(PoolConfig(0, rules));
    story.Tell(QueueWith([](auto* queue) { queue->set_strategy("adaptive"); }));
    EXPECT_EQ(HasHindsight(story.changes()), rules == 6);
    for (const int64_t gpus : {8, 0}) {
      auto nodes = Inventory(true, true);
      auto* cpu = nodes.mutable_inventory_changed()->add_capacity();
      cpu->set_resource("cpu");
      cpu->set_amount(64'000);
      auto* gpu = nodes.mutable_inventory_changed()->add_capacity();
      gpu->set_resource("nvidia.com/gpu");
      gpu->set_amount(gpus);
      story.Tell(nodes);
      EXPECT_EQ(HasHindsight(story.changes()), rules == 6 && gpus == 0) << gpus;
    }
  }
}

class CorrectedPlanTest : public testing::Test {
 protected:
  void SetUp() override {
    story_.Tell(PoolConfig(0, model::kCorrectedPlans));
    Configure("easy", "priority");
  }

  void Configure(const std::string& strategy, uint32_t rules) {
    story_.Tell(PoolConfig(0, rules));
    rules_ = rules;
    Configure(strategy, "priority");
  }

  void Configure(const std::string& strategy, const std::string& order) {
    story_.Tell(QueueWith([&](auto* queue) {
      queue->set_strategy(strategy);
      queue->set_order(order);
      queue->set_predict_durations(true);
      queue->set_default_duration_ms(60'000);
    }));
  }
  void RunJob(const std::string& id, int64_t ms, std::optional<int64_t> declared_ms = {}) {
    story_.Tell(Submitted(id, {.duration_ms = declared_ms}));
    story_.Tell(Answered(story_.core().cycle_in_flight(), {{id}}));
    story_.Tell(Bound(id));
    auto started = Started(id);
    started.mutable_job_started()->set_started_ms(story_.now().count());
    story_.Tell(started);
    story_.Wait(ms);
    story_.Tell(Ended(id));
    story_.Tell(Released(id, 1, false));
  }
  events::v1::CycleRequested LastCycle() {
    events::v1::CycleRequested cycle;
    EXPECT_TRUE(cycle.ParseFromString(story_.changes().cycles_requested.at(0).requested));
    return cycle;
  }
  // Its duration and its bound.
  std::pair<int64_t, int64_t> PlanOf(const std::string& id,
                                     std::optional<int64_t> declared_ms = {}) {
    story_.Tell(Submitted(id, {.duration_ms = declared_ms}));
    const events::v1::CycleRequested cycle = LastCycle();
    EXPECT_EQ(cycle.version(), rules_);
    const events::v1::Candidate candidate = cycle.candidates(0);
    story_.Tell(Answered(cycle.cycle_id(), {{id}}));
    story_.Tell(Ended(id, kJobFailed));
    story_.Tell(Released(id, 1, false));
    return {candidate.duration_s(), candidate.bound_s()};
  }

  Story story_;
  uint32_t rules_ = model::kCorrectedPlans;
};

TEST_F(CorrectedPlanTest, AnAdaptiveQueuePredictsNothing) {
  Configure("adaptive", model::kAdaptivePredictsNothing);
  RunJob("a", 10'000);
  RunJob("b", 20'000);
  EXPECT_EQ(PlanOf("c"), std::pair(60L, 0L));
}

// Promises rest on it.
TEST_F(CorrectedPlanTest, WhatAJobDeclaresIsPlanned) {
  RunJob("a", 10'000, 600'000);
  RunJob("b", 20'000, 600'000);
  EXPECT_EQ(PlanOf("c", 600'000), std::pair(600L, 0L));
  EXPECT_EQ(PlanOf("d"), std::pair(15L, 0L));
}

TEST_F(CorrectedPlanTest, TheQueuesDefaultIsNoBound) {
  RunJob("a", 290'000);
  RunJob("b", 310'000);
  EXPECT_EQ(PlanOf("more"), std::pair(300L, 0L));
}

TEST_F(CorrectedPlanTest, APredictionThatWasWorseIsNotUsed) {
  for (const int64_t ms : {10'000, 90'000, 10'000, 90'000}) {
    RunJob("job-" + std::to_string(story_.now().count()), ms, ms);
  }
  EXPECT_EQ(PlanOf("next"), std::pair(60L, 0L));
}

TEST_F(CorrectedPlanTest, WhoIsExpectedToBeShortHasTheFirstTurn) {
  for (const char* id : {"a", "b"}) RunJob(id, 10'000, 600'000);
  story_.Tell(Submitted("running"));
  story_.Tell(Submitted("other", {.slots = 2, .duration_ms = 300'000}));
  story_.Tell(Submitted("short", {.duration_ms = 600'000}));
  story_.Tell(Answered(story_.core().cycle_in_flight(), {{"running"}}));
  const events::v1::CycleRequested cycle = LastCycle();
  ASSERT_EQ(cycle.candidates_size(), 2);
  EXPECT_EQ(cycle.candidates(1).job_id(), "short");
  EXPECT_EQ(cycle.candidates(1).duration_s(), 600);
  EXPECT_EQ(cycle.candidates(1).backfill_turn(), 1U);
  EXPECT_EQ(cycle.candidates(0).backfill_turn(), 2U);
}

TEST_F(CorrectedPlanTest, TheShortHaveTheFirstTurnsAmongThoseOfTheirPriority) {
  const auto turns = [&] {
    for (const char* id : {"a", "b"}) RunJob(id, 10'000, 600'000);
    story_.Tell(Submitted("running"));
    story_.Tell(Submitted("long", {.slots = 2, .duration_ms = 900'000}));
    story_.Tell(Submitted("endless", {.slots = 2, .duration_ms = 0}));
    story_.Tell(Submitted("short", {.duration_ms = 5'000}));
    story_.Tell(Submitted("first", {.priority = 1, .duration_ms = 990'000}));
    story_.Tell(Answered(story_.core().cycle_in_flight(), {{"running"}}));
    std::string text;
    const events::v1::CycleRequested cycle = LastCycle();
    for (const events::v1::Candidate& candidate : cycle.candidates()) {
      text += fmt::format("{}:{} ", candidate.job_id(), candidate.backfill_turn());
    }
    return text;
  };
  EXPECT_EQ(turns(), "first:1 long:3 endless:4 short:2 ");
}

TEST_F(CorrectedPlanTest, WhereUsersTakeTurnsNoJobHasABackfillTurn) {
  Configure("easy", "fair-share");
  story_.Tell(Submitted("a"));
  EXPECT_EQ(LastCycle().candidates(0).backfill_turn(), 0U);
}

TEST_F(CorrectedPlanTest, WhereNoJobPassesNoneHasABackfillTurn) {
  Configure("fcfs", "priority");
  story_.Tell(Submitted("a"));
  EXPECT_EQ(LastCycle().candidates(0).backfill_turn(), 0U);
}

}  // namespace
}  // namespace fluxqueue::queue_core
