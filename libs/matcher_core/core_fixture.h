// A core that is fed messages one by one. For tests.
#pragma once

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

}  // namespace fluxqueue::matcher_core
