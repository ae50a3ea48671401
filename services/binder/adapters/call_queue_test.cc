#include "services/binder/adapters/call_queue.h"

#include <string>

#include <gtest/gtest.h>

namespace fluxqueue::binder {
namespace {

CallQueue::Waiting Named(const std::string& name, bool again = false) {
  CallQueue::Waiting waiting;
  waiting.call.name = name;
  waiting.call.job_id = name;
  waiting.call.again = again;
  return waiting;
}

TEST(CallQueueTest, FirstComeFirstServed) {
  CallQueue queue(4);
  EXPECT_FALSE(queue.HasNext());
  queue.Push(Named("a"));
  queue.Push(Named("b"));
  EXPECT_EQ(queue.Pop().call.name, "a");
  EXPECT_EQ(queue.Pop().call.name, "b");
  EXPECT_EQ(queue.size(), 0);
}

// Sixteen Jobs of one user, each of whose calls takes as long as the API server lets it.
TEST(CallQueueTest, WhatFailsAgainAndAgainLeavesThreadsToOthers) {
  CallQueue queue(16);
  for (int i = 0; i < 16; ++i) queue.Push(Named("slow-" + std::to_string(i), true));
  CallQueue::Waiting slow;
  for (int i = 0; i < 4; ++i) {
    ASSERT_TRUE(queue.HasNext());
    slow = queue.Pop();
  }
  EXPECT_FALSE(queue.HasNext());
  queue.Push(Named("honest"));
  ASSERT_TRUE(queue.HasNext());
  const CallQueue::Waiting honest = queue.Pop();
  EXPECT_EQ(honest.call.name, "honest");
  queue.Done(honest.call);
  EXPECT_FALSE(queue.HasNext());
  queue.Done(slow.call);
  EXPECT_EQ(queue.Pop().call.name, "slow-4");
}

// Partitions go and come again while the API server is away: each time all calls are made anew.
TEST(CallQueueTest, OfASlotOneCallWaits) {
  CallQueue queue(4);
  for (uint64_t id = 1; id <= 1000; ++id) {
    for (const bool again : {false, true}) {
      CallQueue::Waiting waiting = Named("a", again);
      waiting.call.id = id;
      queue.Push(waiting);
      waiting.call.slot = 1;
      queue.Push(std::move(waiting));
    }
  }
  EXPECT_EQ(queue.size(), 2);
  EXPECT_EQ(queue.Pop().call.id, 1000);
}

TEST(CallQueueTest, OneThreadMakesThemAll) {
  CallQueue queue(1);
  queue.Push(Named("first"));
  queue.Push(Named("again", true));
  const CallQueue::Waiting again = queue.Pop();
  EXPECT_EQ(again.call.name, "again");
  queue.Push(Named("again", true));
  EXPECT_EQ(queue.Pop().call.name, "first");
  queue.Done(again.call);
  EXPECT_EQ(queue.Pop().call.name, "again");
}

}  // namespace
}  // namespace fluxqueue::binder
