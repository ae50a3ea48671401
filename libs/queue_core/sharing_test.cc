// An adaptive queue steps back while others use the pool, or where its users have turns.
#include <optional>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "libs/queue_core/testing_story.h"

namespace fluxqueue::queue_core {
namespace {

using testing::ElementsAre;

constexpr int64_t kHourMs = 3'600'000;
// After which a job of a second may pass where nothing has run yet.
constexpr int64_t kPassesAfterMs = 250'000;

class SharingTest : public ::testing::Test {
 protected:
  void Begin(uint32_t rules, const std::string& order = "priority") {
    story_.emplace();
    story_->Tell(PoolConfig(0, rules));
    for (const char* queue : {"default", "other"}) {
      story_->Tell(QueueWith(
          [&](auto* configured) {
            configured->set_strategy("adaptive");
            configured->set_order(order);
          },
          queue));
    }
  }
  void Submit(const std::string& id, const std::string& queue, int64_t duration_ms) {
    story_->Tell(Submitted(id, {.queue = queue, .duration_ms = duration_ms}));
  }
  // The cycle that is asked when there may be room, that time later. None had any before.
  events::v1::CycleRequested AskedAfter(int64_t ms) {
    for (int i = 0; i < 10 && story_->core().cycle_in_flight() != 0; ++i) {
      std::vector<Said> refused;
      for (const char* id : {"a1", "short", "b1"}) {
        const Job* job = story_->core().Find(id);
        if (job != nullptr && job->in_cycle) refused.push_back({id, 1, kBusyKind, "full"});
      }
      story_->Tell(Answered(story_->core().cycle_in_flight(), refused));
    }
    story_->Wait(ms);
    story_->Tell(Inventory(true, true));
    events::v1::CycleRequested cycle;
    EXPECT_EQ(story_->changes().cycles_requested.size(), 1U);
    EXPECT_TRUE(cycle.ParseFromString(story_->changes().cycles_requested.at(0).requested));
    return cycle;
  }
  static std::vector<std::string> Names(const events::v1::CycleRequested& cycle) {
    std::vector<std::string> names;
    for (const auto& candidate : cycle.candidates()) names.push_back(candidate.job_id());
    return names;
  }

  std::optional<Story> story_;
};

void ExpectEasy(const events::v1::CycleRequested& cycle, bool is_easy) {
  ASSERT_GT(cycle.rules_size(), 0);
  for (const auto& rule : cycle.rules()) {
    EXPECT_EQ(rule.most_reservations() == 1, is_easy);
    EXPECT_EQ(rule.plans_anew(), !is_easy);
  }
}

TEST_F(SharingTest, AloneTheShortPass) {
  Begin(7);
  Submit("a1", "default", kHourMs);
  Submit("short", "default", 1000);
  const auto cycle = AskedAfter(kPassesAfterMs);
  EXPECT_THAT(Names(cycle), ElementsAre("short", "a1"));
  ExpectEasy(cycle, false);
}

TEST_F(SharingTest, WhileOthersWaitItIsTriedAsEasy) {
  for (const uint32_t rules : {6U, 7U}) {
    Begin(rules);
    Submit("a1", "default", kHourMs);
    Submit("short", "default", 1000);
    Submit("b1", "other", kHourMs);
    const auto cycle = AskedAfter(kPassesAfterMs);
    EXPECT_EQ(Names(cycle).front(), rules == 7 ? "a1" : "short");
    ExpectEasy(cycle, rules == 7);
  }
}

TEST_F(SharingTest, WhileOthersHoldSomethingItIsTriedAsEasy) {
  Begin(7);
  Submit("b1", "other", kHourMs);
  story_->Tell(Answered(story_->core().cycle_in_flight(), {{"b1"}}));
  Submit("a1", "default", kHourMs);
  Submit("short", "default", 1000);
  auto cycle = AskedAfter(kPassesAfterMs);
  EXPECT_THAT(Names(cycle), ElementsAre("a1", "short"));
  ExpectEasy(cycle, true);
  // They leave: it goes by its virtual machine again.
  story_->Tell(Ended("b1"));
  story_->Tell(Released("b1", 1, false));
  cycle = AskedAfter(1000);
  EXPECT_THAT(Names(cycle), ElementsAre("short", "a1"));
  ExpectEasy(cycle, false);
}

TEST_F(SharingTest, WhereUsersHaveTurnsItIsTriedAsEasy) {
  for (const uint32_t rules : {6U, 7U}) {
    Begin(rules, "fair-share");
    Submit("a1", "default", kHourMs);
    Submit("short", "default", 1000);
    const auto cycle = AskedAfter(kPassesAfterMs);
    EXPECT_EQ(Names(cycle).front(), rules == 7 ? "a1" : "short");
    ExpectEasy(cycle, rules == 7);
  }
}

// The others may leave before it starts.
TEST_F(SharingTest, ItsPromisesAreForecastsAlsoThen) {
  for (const char* strategy : {"easy", "adaptive"}) {
    Begin(7);
    for (const char* queue : {"default", "other"}) {
      story_->Tell(QueueWith(
          [&](auto* configured) {
            configured->set_strategy(strategy);
            configured->set_enforce_duration(events::v1::QueueConfigured::ENFORCEMENT_END);
          },
          queue));
    }
    Submit("a1", "default", kHourMs);
    Submit("b1", "other", kHourMs);
    EXPECT_FALSE(AskedAfter(1000).candidates().empty());
    auto answer = Answered(story_->core().cycle_in_flight(), {{"a1", 1, kReservedKind, "", 5000}});
    answer.mutable_cycle_answered()->mutable_outcomes(0)->set_firm(true);
    story_->Tell(answer);
    EXPECT_EQ(story_->core().Find("a1")->reason, "Reserved");
    EXPECT_EQ(story_->core().Find("a1")->firm, strategy == std::string("easy"));
  }
}

TEST_F(SharingTest, AQueueBelowUsesThePool) {
  Begin(7);
  story_->Tell(QueueWith([](auto* queue) { queue->set_parent("default"); }, "other"));
  Submit("b1", "other", kHourMs);
  story_->Tell(Answered(story_->core().cycle_in_flight(), {{"b1"}}));
  Submit("a1", "default", kHourMs);
  ExpectEasy(AskedAfter(1000), true);
}

}  // namespace
}  // namespace fluxqueue::queue_core
