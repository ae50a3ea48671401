#include "tools/fluxqueue/cycle_stats.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace fluxqueue::cli {
namespace {

using events::v1::Envelope;
using events::v1::Outcome;
using testing::HasSubstr;

verify::EventLine At(int64_t ms, Envelope message) {
  verify::EventLine line;
  line.time = Millis(1'000'000 + ms);
  line.message = std::move(message);
  return line;
}

Envelope Asked(uint64_t id, const std::vector<std::pair<std::string, uint32_t>>& candidates) {
  Envelope message;
  auto* cycle = message.mutable_cycle_requested();
  cycle->set_cycle_id(id);
  cycle->add_rules()->set_queue("a");
  cycle->add_rules()->set_queue("b");
  for (const auto& [job, rule] : candidates) {
    auto* candidate = cycle->add_candidates();
    candidate->set_job_id(job);
    candidate->set_rule(rule);
    candidate->set_grow(job == "grows");
  }
  return message;
}

Envelope Answered(uint64_t id, const std::vector<std::pair<std::string, Outcome::Kind>>& outcomes) {
  Envelope message;
  message.mutable_cycle_answered()->set_cycle_id(id);
  for (const auto& [job, kind] : outcomes) {
    auto* outcome = message.mutable_cycle_answered()->add_outcomes();
    outcome->set_job_id(job);
    outcome->set_kind(kind);
    if (kind == Outcome::KIND_BUSY) outcome->add_victims();
  }
  return message;
}

TEST(CycleStatsTest, CountsWhatWasTriedAndStarted) {
  CycleStats stats;
  EXPECT_TRUE(stats.empty());
  Envelope submitted;
  submitted.mutable_job_submitted();
  stats.Take(At(0, submitted));
  const Envelope first = Asked(1, {{"a1", 0}, {"b1", 1}, {"a2", 0}, {"a3", 0}, {"grows", 0}});
  stats.Take(At(0, first));
  stats.Take(At(10, first));
  stats.Take(At(30,
                Answered(1,
                         {{"a1", Outcome::KIND_RESERVED},
                          {"b1", Outcome::KIND_ALLOCATED},
                          {"a2", Outcome::KIND_ALLOCATED},
                          {"grows", Outcome::KIND_ALLOCATED}})));
  // An answer to what was not asked is not counted.
  stats.Take(At(40, Answered(1, {{"a1", Outcome::KIND_BUSY}})));
  stats.Take(At(50, Asked(2, {{"a1", 0}})));
  stats.Take(At(60'000, Answered(2, {{"a1", Outcome::KIND_BUSY}})));
  const nlohmann::json json = stats.Json();
  EXPECT_EQ(json["cycles"], 2);
  EXPECT_EQ(json["askedAgain"], 1);
  EXPECT_EQ(json["submitted"], 1);
  EXPECT_EQ(json["tookMs"]["most"], 59'950);
  EXPECT_EQ(json["depth"]["mean"], 3.0);
  const nlohmann::json& a = json["queues"]["a"];
  EXPECT_EQ(a["candidates"], 4);
  EXPECT_EQ(a["tried"], 3);
  EXPECT_EQ(a["started"], 1);
  EXPECT_EQ(a["backfilled"], 1);
  EXPECT_EQ(a["reserved"], 1);
  EXPECT_EQ(a["busy"], 1);
  EXPECT_EQ(a["stops"], 1);
  EXPECT_EQ(json["queues"]["b"]["backfilled"], 0);
  const std::string text = stats.Text("default", false);
  EXPECT_THAT(text, HasSubstr("cycles  2 (2.0 a minute), asked again: 1"));
  EXPECT_THAT(text, HasSubstr("depth   mean 3.0 candidates"));
  EXPECT_THAT(text, HasSubstr("all    5"));
}

}  // namespace
}  // namespace fluxqueue::cli
