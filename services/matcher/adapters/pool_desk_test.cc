#include "services/matcher/adapters/pool_desk.h"

#include <future>
#include <memory>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "libs/base/status_macros.h"

namespace fluxqueue::matcher {
namespace {

using namespace std::chrono_literals;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

class PoolDeskTest : public ::testing::Test {
 protected:
  std::future<absl::Status> Ask(std::chrono::milliseconds patience) {
    auto answer = std::make_shared<std::promise<absl::Status>>();
    desk_.Ask(
        "p",
        std::chrono::steady_clock::now() + patience,
        [answer](const absl::StatusOr<const PoolAtHand*>& at) { answer->set_value(at.status()); });
    return answer->get_future();
  }

  int woken_ = 0;
  PoolDesk desk_{[this] { ++woken_; }};
};

TEST_F(PoolDeskTest, TheLoopTakesWhatIsAsked) {
  desk_.Open();
  auto answer = Ask(10s);
  EXPECT_EQ(woken_, 1);
  EXPECT_FALSE(desk_.empty());
  const matcher_core::MatcherCore core("p");
  const PoolAtHand at{core, 7};
  for (const PoolDesk::Asked& asked : desk_.Take()) {
    EXPECT_EQ(asked.pool, "p");
    asked.question(&at);
  }
  EXPECT_TRUE(answer.get().ok());
  EXPECT_TRUE(desk_.empty());
}

TEST_F(PoolDeskTest, WhatNobodyTakesIsAnsweredInTime) {
  desk_.Open();
  auto answer = Ask(50ms);
  ASSERT_EQ(answer.wait_for(10s), std::future_status::ready);
  const absl::Status late = answer.get();
  EXPECT_TRUE(absl::IsDeadlineExceeded(late)) << late;
  EXPECT_THAT(Message(late), HasSubstr("/readyz"));
  EXPECT_TRUE(desk_.empty());
}

TEST_F(PoolDeskTest, WhileNothingIsHeldNobodyWaits) {
  EXPECT_TRUE(absl::IsUnavailable(Ask(10s).get()));
  desk_.Open();
  auto waits = Ask(10s);
  desk_.Shut();
  EXPECT_TRUE(absl::IsUnavailable(waits.get()));
  desk_.Open();
  waits = Ask(10s);
  desk_.Close();
  EXPECT_TRUE(absl::IsUnavailable(waits.get()));
  EXPECT_TRUE(absl::IsUnavailable(Ask(10s).get()));
}

TEST_F(PoolDeskTest, AFullDeskRefuses) {
  desk_.Open();
  for (size_t i = 0; i < PoolDesk::kMostQuestions; ++i) {
    desk_.Ask("p", std::chrono::steady_clock::now() + 10s, [](const auto&) {});
  }
  EXPECT_TRUE(absl::IsResourceExhausted(Ask(10s).get()));
}

TEST_F(PoolDeskTest, WatchersAreToldUntilTheyEnd) {
  const matcher_core::MatcherCore core("p");
  const PoolAtHand at{core, 0};
  bool ended = false;
  std::vector<std::string> told;
  const auto watcher = [&](const std::string& name, bool* over) {
    return PoolDesk::Watcher{
        [over] { return over != nullptr && *over; },
        [&told, name](const PoolAtHand* pool, const std::vector<graph::AllocationKey>& changed) {
          told.push_back(name + (pool == nullptr ? " gone" : " " + changed[0].job_id));
        }};
  };
  EXPECT_FALSE(desk_.watched("p"));
  desk_.Watch("p", watcher("first", &ended));
  desk_.Watch("p", watcher("second", nullptr));
  desk_.Tell("p", &at, {{"job", 1, 0}});
  ended = true;
  desk_.Tell("p", &at, {{"next", 1, 0}});
  desk_.Tell("q", &at, {{"elsewhere", 1, 0}});
  desk_.Tell("p", nullptr, {});
  EXPECT_THAT(told, ElementsAre("first job", "second job", "second next", "second gone"));
  EXPECT_FALSE(desk_.watched("p"));
}

}  // namespace
}  // namespace fluxqueue::matcher
