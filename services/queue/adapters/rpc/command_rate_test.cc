#include "services/queue/adapters/rpc/command_rate.h"

#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "libs/base/status_macros.h"

namespace fluxqueue::queue {
namespace {

using std::chrono::seconds;

class CommandRateTest : public ::testing::Test {
 protected:
  // How many of so many are taken.
  int Taken(int commands, const std::string& user, const std::string& job) {
    int taken = 0;
    for (int i = 0; i < commands; ++i) taken += rate_.Take(user, job, now_).ok() ? 1 : 0;
    return taken;
  }

  CommandRate rate_;
  CommandRate::TimePoint now_{std::chrono::hours(5)};
};

TEST_F(CommandRateTest, AJobIsCommandedSoOften) {
  EXPECT_EQ(Taken(200, "ann", "j1"), 50);
  EXPECT_EQ(Message(rate_.Take("ann", "j1", now_)),
            "job j1 has had 50 commands, and more than one in 10 s since: call again later");
  EXPECT_EQ(Taken(1, "bob", "j1"), 0) << "whoever commands it";
  EXPECT_EQ(Taken(200, "ann", "j2"), 50) << "another has its own";
  now_ += seconds(100);
  EXPECT_EQ(Taken(200, "ann", "j1"), 10);
}

TEST_F(CommandRateTest, AUserCommandsSoOften) {
  int taken = 0;
  for (int i = 0; i < 12'000; ++i) taken += Taken(1, "ann", "j" + std::to_string(i));
  EXPECT_EQ(taken, 10'000);
  EXPECT_THAT(Message(rate_.Take("ann", "", now_)), testing::HasSubstr("user 'ann' has had 10000"));
  EXPECT_EQ(Taken(1, "bob", "j1"), 1);
  now_ += seconds(3);
  EXPECT_EQ(Taken(100, "ann", ""), 60);
}

TEST_F(CommandRateTest, WhereNobodyIsKnownNothingIsCounted) {
  EXPECT_EQ(Taken(100, "", "j1"), 100);
  EXPECT_EQ(rate_.size(), 0);
}

TEST_F(CommandRateTest, WhatIsLongAgoIsForgotten) {
  for (int i = 0; i < 1000; ++i) Taken(1, "ann", "j" + std::to_string(i));
  EXPECT_EQ(rate_.size(), 1001);
  now_ += seconds(70);
  EXPECT_EQ(Taken(1, "bob", "other"), 1);
  EXPECT_EQ(rate_.size(), 2);
}

}  // namespace
}  // namespace fluxqueue::queue
