// A member of a group on a real broker: what is answered twice, or in vain.
#include <chrono>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "libs/base/status_macros.h"
#include "libs/kafka/admin.h"
#include "libs/kafka/consumer.h"
#include "libs/testing/mini_kafka.h"

namespace fluxqueue::kafka {
namespace {

using std::chrono::seconds;
using std::chrono::steady_clock;

class ConsumerTest : public ::testing::Test {
 protected:
  void SetUp() override {
    const auto admin = Admin::Create(broker_.bootstrap());
    ASSERT_TRUE(admin.ok()) << fluxqueue::Message(admin.status());
    const auto made = (*admin)->EnsureTopics({TopicSpecs({.pool = "topic"})[0]});
    ASSERT_TRUE(made.ok()) << fluxqueue::Message(made.status());
    auto consumer = Consumer::Create({.brokers = broker_.bootstrap(),
                                      .topic = "topic",
                                      .group = "group",
                                      .instance = "only",
                                      .session_timeout = Millis(6000)});
    ASSERT_TRUE(consumer.ok()) << fluxqueue::Message(consumer.status());
    consumer_ = *std::move(consumer);
  }

  // What the group gives, at the beginning of each partition.
  std::vector<Position> Gained() {
    const auto deadline = steady_clock::now() + seconds(30);
    while (steady_clock::now() < deadline) {
      std::vector<Message> messages;
      (void)consumer_->Poll(Millis(100), 10, &messages);
      const std::optional<Assignment> change = consumer_->TakeAssignment();
      if (!change.has_value()) continue;
      std::vector<Position> positions;
      for (const int partition : change->gained) positions.push_back({partition, 0});
      return positions;
    }
    return {};
  }

  const testing::MiniKafka broker_;
  std::unique_ptr<Consumer> consumer_;
};

TEST_F(ConsumerTest, WhatRunsBeginsAgainAndWhatDoesNotIsLeftAlone) {
  const std::vector<Position> gained = Gained();
  ASSERT_GT(gained.size(), 1);
  ASSERT_EQ(consumer_->Start(gained), absl::OkStatus());
  EXPECT_EQ(consumer_->Start(gained), absl::OkStatus());
  const std::vector<int> first = {gained[0].partition};
  EXPECT_EQ(consumer_->Stop(first), absl::OkStatus());
  EXPECT_EQ(consumer_->Stop(first), absl::OkStatus());
  EXPECT_EQ(consumer_->Start({gained[0]}), absl::OkStatus());
}

// Or the process would stand still.
TEST_F(ConsumerTest, IsClosedAlsoWhereAnAnswerWasRefused) {
  std::vector<Position> gained = Gained();
  ASSERT_FALSE(gained.empty());
  gained.push_back(gained[0]);
  EXPECT_FALSE(consumer_->Start(gained).ok()) << "one partition twice";
  const auto begun = steady_clock::now();
  consumer_.reset();
  EXPECT_LT(steady_clock::now() - begun, seconds(10));
}

}  // namespace
}  // namespace fluxqueue::kafka
