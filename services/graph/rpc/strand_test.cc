#include "services/graph/rpc/strand.h"

#include <latch>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

namespace fluxqueue::graph_service {
namespace {

class StrandTest : public testing::Test {
 protected:
  // One thread: what one strand does not give back, no other gets.
  rpc::WorkerPool pool_{1};
  std::shared_ptr<Strand> strand_ = std::make_shared<Strand>(pool_, "ann");
};

// Were it done by the thread that posts, this would never end.
TEST_F(StrandTest, WhoPostsDoesNotWait) {
  std::latch go(1);
  std::latch done(2);
  std::vector<int> order;
  strand_->Post([&] {
    go.wait();
    order.push_back(1);
    done.count_down();
  });
  strand_->Post([&] {
    order.push_back(2);
    done.count_down();
  });
  go.count_down();
  done.wait();
  EXPECT_EQ(order, (std::vector<int>{1, 2}));
}

TEST_F(StrandTest, LongTasksOfOneClientLetOthersInBetween) {
  const auto other = std::make_shared<Strand>(pool_, "bob");
  std::latch go(1);
  std::latch done(11);
  std::vector<char> order;
  for (int i = 0; i < 10; ++i) {
    strand_->Post([&] {
      go.wait();
      const auto end = std::chrono::steady_clock::now() + Strand::kMostAtOnce;
      while (std::chrono::steady_clock::now() < end) {
      }
      order.push_back('a');
      done.count_down();
    });
  }
  other->Post([&] {
    order.push_back('b');
    done.count_down();
  });
  go.count_down();
  done.wait();
  EXPECT_EQ(order[1], 'b') << std::string(order.begin(), order.end());
}

TEST_F(StrandTest, TasksOfManyThreadsRunOneAtATime) {
  constexpr int kThreads = 4;
  constexpr int kTasks = 5000;
  rpc::WorkerPool pool(3);
  const auto strand = std::make_shared<Strand>(pool, "ann");
  int count = 0;  // unguarded: the strand is the guard
  std::latch done(kThreads * kTasks);
  std::vector<std::jthread> threads;
  for (int t = 0; t < kThreads; ++t) {
    threads.emplace_back([&] {
      for (int i = 0; i < kTasks; ++i) {
        strand->Post([&] {
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
