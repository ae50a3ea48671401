#include "services/graph/rpc/strand.h"

#include <atomic>
#include <latch>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

namespace fluxqueue::graph_service {
namespace {

using Length = Strand::Length;

class StrandTest : public testing::Test {
 protected:
  rpc::WorkerPool pool_{2};
  std::shared_ptr<Strand> strand_ = std::make_shared<Strand>(pool_);
};

TEST_F(StrandTest, ShortTasksRunHereAndLongOnesDoNot) {
  std::thread::id ran;
  strand_->Post(Length::kShort, [&] { ran = std::this_thread::get_id(); });
  EXPECT_EQ(ran, std::this_thread::get_id());
  std::latch done(1);
  strand_->Post(Length::kLong, [&] {
    ran = std::this_thread::get_id();
    done.count_down();
  });
  done.wait();
  EXPECT_NE(ran, std::this_thread::get_id());
}

TEST_F(StrandTest, NobodyWaitsForALongTask) {
  std::latch go(1);
  std::latch done(2);
  std::vector<int> order;
  strand_->Post(Length::kLong, [&] {
    go.wait();
    order.push_back(1);
    done.count_down();
  });
  // Returns at once; else this would never end.
  strand_->Post(Length::kShort, [&] {
    order.push_back(2);
    done.count_down();
  });
  go.count_down();
  done.wait();
  EXPECT_EQ(order, (std::vector<int>{1, 2}));
}

TEST_F(StrandTest, WhatTurnsOutToBeSlowGoesToThePool) {
  strand_->Post(Length::kShort, [] { std::this_thread::sleep_for(Strand::kMostHere * 2); });
  std::latch done(1);
  std::thread::id ran;
  strand_->Post(Length::kShort, [&] {
    ran = std::this_thread::get_id();
    done.count_down();
  });
  done.wait();
  EXPECT_NE(ran, std::this_thread::get_id());
}

TEST_F(StrandTest, TasksOfManyThreadsRunOneAtATime) {
  constexpr int kThreads = 4;
  constexpr int kTasks = 5000;
  int count = 0;  // unguarded: the strand is the guard
  std::latch done(kThreads * kTasks);
  std::vector<std::jthread> threads;
  for (int t = 0; t < kThreads; ++t) {
    threads.emplace_back([&, t] {
      for (int i = 0; i < kTasks; ++i) {
        strand_->Post((i + t) % 7 == 0 ? Length::kLong : Length::kShort, [&] {
          ++count;
          done.count_down();
        });
      }
    });
  }
  done.wait();
  EXPECT_EQ(count, kThreads * kTasks);
}

}  // namespace
}  // namespace fluxqueue::graph_service
