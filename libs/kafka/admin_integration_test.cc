// Topics on a real broker: made, and checked where they exist.
#include <chrono>
#include <memory>
#include <string>
#include <thread>
#include <utility>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "libs/base/status_macros.h"
#include "libs/kafka/admin.h"
#include "libs/testing/mini_kafka.h"

namespace fluxqueue::kafka {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using std::chrono::steady_clock;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

class AdminTest : public ::testing::Test {
 protected:
  void SetUp() override {
    auto admin = Admin::Create(broker_.bootstrap());
    ASSERT_TRUE(admin.ok()) << fluxqueue::Message(admin.status());
    admin_ = *std::move(admin);
  }

  // As services make the pool topic, with one setting of its own.
  static TopicSpec Spec(const std::string& name,
                        const std::string& key = {},
                        const std::string& value = {}) {
    TopicSpec spec = TopicSpecs({.pool = name})[0];
    if (!key.empty()) spec.config[key] = value;
    return spec;
  }

  // The broker lists a topic some time after it has made it.
  void Make(const TopicSpec& spec) {
    const auto made = admin_->EnsureTopics({spec});
    ASSERT_TRUE(made.ok()) << fluxqueue::Message(made.status());
    EXPECT_THAT(made->made, ElementsAre(spec.name));
    const auto deadline = steady_clock::now() + seconds(10);
    while (admin_->PartitionCount(spec.name).value_or(0) == 0) {
      ASSERT_LT(steady_clock::now(), deadline) << spec.name << " is not listed";
      std::this_thread::sleep_for(milliseconds(10));
    }
  }

  const testing::MiniKafka broker_;
  std::unique_ptr<Admin> admin_;
};

TEST_F(AdminTest, WhatItMakesIsWell) {
  ASSERT_NO_FATAL_FAILURE(Make(Spec("well")));
  const auto again = admin_->EnsureTopics({Spec("well")});
  ASSERT_TRUE(again.ok()) << fluxqueue::Message(again.status());
  EXPECT_THAT(again->made, IsEmpty());
  EXPECT_THAT(again->warnings, IsEmpty());
}

TEST_F(AdminTest, WhatATopicMayLoseIsWarnedOf) {
  ASSERT_NO_FATAL_FAILURE(Make(Spec("brief", "retention.ms", "86400000")));
  const auto checked = admin_->EnsureTopics({Spec("brief")});
  ASSERT_TRUE(checked.ok()) << fluxqueue::Message(checked.status());
  EXPECT_THAT(checked->warnings, ElementsAre(HasSubstr("retention.ms=86400000")));
}

TEST_F(AdminTest, ATopicThatCannotServeIsRefused) {
  ASSERT_NO_FATAL_FAILURE(Make(Spec("narrow", "max.message.bytes", "1000")));
  EXPECT_THAT(fluxqueue::Message(admin_->EnsureTopics({Spec("narrow")}).status()),
              HasSubstr("max.message.bytes=1000, it must be at least"));
}

}  // namespace
}  // namespace fluxqueue::kafka
