// A core that is fed messages one by one. For tests.
#pragma once

#include <algorithm>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "libs/base/status_macros.h"
#include "libs/matcher_core/matcher_core.h"
#include "libs/matcher_core/test_messages.h"

namespace fluxqueue::matcher_core {

class MatcherCoreTest : public ::testing::Test {
 protected:
  absl::Status Handle(const Envelope& message) {
    said_.clear();
    return core_.Handle(message, now_, &said_);
  }

  // For messages to which nothing need be said.
  void Feed(const Envelope& message) {
    const absl::Status status = Handle(message);
    ASSERT_TRUE(status.ok()) << status;
  }

  events::v1::CycleAnswered Ask(const Envelope& cycle) {
    Feed(cycle);
    EXPECT_EQ(said_.size(), 1u);
    return said_.empty() ? events::v1::CycleAnswered() : said_[0].cycle_answered();
  }

  events::v1::Released Give(const Envelope& release) {
    Feed(release);
    EXPECT_EQ(said_.size(), 1u);
    return said_.empty() ? events::v1::Released() : said_[0].released();
  }

  // What was said of the inventory; null when nothing was.
  const events::v1::InventoryChanged* Inventory(const Envelope& message) {
    Feed(message);
    return said_.empty() ? nullptr : &said_[0].inventory_changed();
  }

  MatcherCore core_{"default"};
  std::vector<Envelope> said_;
  Millis now_{5000};
};

inline std::vector<std::string> Victims(const events::v1::Outcome& outcome) {
  std::vector<std::string> names;
  for (const auto& key : outcome.victims()) names.push_back(key.job_id());
  return names;
}

// Each message is a batch of its own, each cycle the next one.
class CycleByCycleTest : public ::testing::Test {
 protected:
  void Feed(const Envelope& message) {
    said_.clear();
    const absl::Status status = core_.Handle(message, Millis(5000), &said_);
    ASSERT_TRUE(status.ok()) << status;
    tables_.Apply(core_.TakeChanges());
    core_.Commit();
  }

  // Where nothing starts, nothing has changed.
  events::v1::CycleAnswered Ask(Envelope cycle) {
    cycle.mutable_cycle_requested()->set_cycle_id(++cycle_);
    cycle.mutable_cycle_requested()->set_now_s(static_cast<int64_t>(100 + cycle_));
    const uint64_t before = core_.engine().Fingerprint();
    Feed(cycle);
    if (said_.empty()) return {};
    const events::v1::CycleAnswered& answer = said_[0].cycle_answered();
    const auto& outcomes = answer.outcomes();
    const bool starts = std::any_of(outcomes.begin(), outcomes.end(), [](const auto& outcome) {
      return outcome.kind() == events::v1::Outcome::KIND_ALLOCATED;
    });
    EXPECT_TRUE(starts || core_.engine().Fingerprint() == before);
    return answer;
  }

  void Holds(const std::string& job,
             uint32_t slots,
             int64_t cpu,
             const std::string& property = "") {
    Feed(Submitted(job, slots, JobspecText(slots, cpu, property)));
    ASSERT_EQ(Ask(Cycle(1, {job})).outcomes(0).kind(), events::v1::Outcome::KIND_ALLOCATED) << job;
  }

  MatcherCore core_{"default"};
  Tables tables_;
  std::vector<Envelope> said_;
  uint64_t cycle_ = 0;
};

}  // namespace fluxqueue::matcher_core
