#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "libs/queue_core/queue_core.h"
#include "libs/queue_core/testing_story.h"

namespace fluxqueue::queue_core {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

events::v1::Envelope Refused(uint64_t cycle, const std::string& job, uint32_t slots_now) {
  auto answer = Answered(cycle, {{job, 1, kBusyKind, "cpu: 4 of 8 nodes are short"}});
  answer.mutable_cycle_answered()->mutable_outcomes(0)->set_slots_now(slots_now);
  return answer;
}

TEST(ExplainTest, NobodyKnowsTheJob) {
  Story story;
  EXPECT_FALSE(story.core().Explain("x").has_value());
}

TEST(ExplainTest, PlaceWhoIsAheadAndTheStrategyThatLetsNobodyPass) {
  Story story;
  for (int i = 0; i < 9; ++i) story.Tell(Submitted(fmt::format("j{}", i)));
  const auto explanation = story.core().Explain("j7");
  ASSERT_TRUE(explanation.has_value());
  EXPECT_EQ(explanation->position, 8U);
  EXPECT_EQ(explanation->in_line, 9U);
  ASSERT_EQ(explanation->ahead.size(), kMostAhead);
  EXPECT_EQ(explanation->ahead[0].job_id(), "j0");
  EXPECT_THAT(explanation->why,
              ElementsAre("it is number 8 of 9 in line of queue default, which goes by fcfs",
                          "it has not been tried since it came into line"));
  EXPECT_THAT(explanation->sooner, ElementsAre(HasSubstr("nobody passes the first of this queue")));
}

TEST(ExplainTest, WhereUsersTakeTurnsThoseAheadAreOnesOwn) {
  Story story;
  auto fair = QueueMade("default", 0, 0, "easy");
  fair.mutable_queue_configured()->set_order("fair-share");
  story.Tell(fair);
  for (int i = 0; i < 9; ++i) story.Tell(Submitted(fmt::format("ann{}", i)));
  story.Tell(Submitted("bob0", {.user = "bob"}));
  story.Tell(Submitted("bob1", {.user = "bob"}));
  const auto explanation = story.core().Explain("bob1");
  ASSERT_TRUE(explanation.has_value());
  EXPECT_EQ(explanation->position, 2U);
  ASSERT_EQ(explanation->ahead.size(), 1U);
  EXPECT_EQ(explanation->ahead[0].job_id(), "bob0");
  EXPECT_EQ(explanation->why[0],
            "it is number 2 of 2 of user bob in line of queue default, whose users take turns, and "
            "which goes by easy");
}

std::vector<std::string> FactorsOf(Story& story, const std::string& job) {
  std::vector<std::string> lines;
  const auto explanation = story.core().Explain(job);
  if (!explanation.has_value()) return lines;
  for (const PlaceFactor& factor : explanation->factors) {
    lines.push_back(fmt::format("{} {}: {}", factor.factor, factor.of, factor.value));
  }
  return lines;
}

TEST(ExplainTest, WhatDecidesThePlace) {
  Story story;
  auto queue = QueueMade("default", 0, 3, "easy");
  queue.mutable_queue_configured()->set_aging_ms(3'600'000);
  story.Tell(queue);
  story.Tell(Submitted("a", {.priority = 7}));
  story.Wait(5'400'000);
  EXPECT_THAT(FactorsOf(story, "a"), Contains(HasSubstr("waited team/name-of-a: +0.00")))
      << "the log's time stands still";
  story.Tell(Tick());
  EXPECT_THAT(FactorsOf(story, "a"),
              ElementsAre("queue priority default: 3",
                          "queue share default: 0.0000: 0.0000 of the pool, weight 1",
                          "job priority team/name-of-a: 7",
                          "waited team/name-of-a: +1.50: has waited 1.5 h, and gains 1 in 1.0 h",
                          "submission team/name-of-a: number 1 of the pool"));
  story.Tell(Held("a", true));
  EXPECT_THAT(FactorsOf(story, "a"), IsEmpty()) << "it is not in line";
}

TEST(ExplainTest, QueuesAboveItsOwnAndTheUsersShareDecideToo) {
  Story story;
  auto below = QueueMade("team-a", 0, 0, "easy");
  below.mutable_queue_configured()->set_parent("default");
  below.mutable_queue_configured()->set_order("fair-share");
  below.mutable_queue_configured()->set_weight(4);
  events::v1::Amount* guarantee = below.mutable_queue_configured()->add_guarantee();
  guarantee->set_resource("cpu");
  guarantee->set_amount(2'000);
  story.Tell(below);
  story.Tell(Submitted("a", {.queue = "team-a"}));
  EXPECT_THAT(FactorsOf(story, "a"),
              ElementsAre("queue priority default: 0",
                          "queue share default: 0.0000: 0.0000 of the pool, weight 1",
                          "queue priority team-a: 0",
                          "queue guarantee team-a: holds less: goes before those that have theirs",
                          "queue share team-a: 0.0000: 0.0000 of the pool, weight 4",
                          "user share ann: 0.0000: 0.0000 of the pool, weight 1",
                          "job priority team/name-of-a: 0",
                          "submission team/name-of-a: number 1 of the pool"));
}

TEST(ExplainTest, TheEnginesWordsAndFewerSlots) {
  Story story;
  story.Tell(Submitted("a", {.slots = 8}));
  story.Tell(Refused(1, "a", 4));
  const auto explanation = story.core().Explain("a");
  ASSERT_TRUE(explanation.has_value());
  EXPECT_EQ(explanation->why[0], "Busy: cpu: 4 of 8 nodes are short");
  EXPECT_THAT(explanation->sooner, ElementsAre("with 4 pods instead of 8 pods it would start now"));
  EXPECT_EQ(explanation->expected_start_ms, 0);
}

TEST(ExplainTest, APromiseWithItsAssumption) {
  Story story;
  story.Tell(QueueMade("default", 0, 0, "easy"));
  story.Tell(Submitted("a"));
  story.Tell(Answered(1, {{"a", 1, kReservedKind, "no cpu", 500}}));
  const auto explanation = story.core().Explain("a");
  ASSERT_TRUE(explanation.has_value());
  EXPECT_EQ(explanation->expected_start_ms, 1'500'000);
  EXPECT_THAT(explanation->assumption, HasSubstr("takes as long as it said"));
}

TEST(ExplainTest, AShorterJobWouldPass) {
  Story story;
  story.Tell(QueueMade("default", 0, 0, "easy"));
  story.Tell(Submitted("a"));
  story.Tell(Submitted("b"));
  story.Tell(Answered(1, {{"a", 1, kReservedKind, "no cpu", 500}}));
  auto answer =
      Answered(2, {{"a", 1, kReservedKind, "", 500}, {"b", 1, kBusyKind, "it would delay"}});
  answer.mutable_cycle_answered()->mutable_outcomes(1)->set_slots_now(1);
  story.Tell(answer);
  EXPECT_THAT(
      story.core().Explain("b")->sooner,
      Contains("if it took at most 8 min, it could start now and be through before the next "
               "promised start"));
  EXPECT_THAT(story.core().Explain("b")->sooner, Contains(HasSubstr("fluxqueue.io/duration")));
}

TEST(ExplainTest, HeldAndRunningJobsHaveNoPlace) {
  Story story;
  story.Tell(Submitted("h", {.hold = true}));
  const auto held = story.core().Explain("h");
  EXPECT_EQ(held->position, 0U);
  EXPECT_THAT(held->why, ElementsAre(HasSubstr("Held: held by its user")));
  story.Bring("r", model::JobState::kRunning);
  EXPECT_THAT(story.core().Explain("r")->why, ElementsAre("it is Running"));
  EXPECT_THAT(story.core().Explain("r")->sooner, IsEmpty());
}

}  // namespace
}  // namespace fluxqueue::queue_core
