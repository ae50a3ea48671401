#include "services/graph/domain/allocation_watch.h"

#include <gtest/gtest.h>

#include "libs/base/status_macros.h"

namespace fluxqueue::graph_service {
namespace {

using Event = AllocationWatch::Event;
using Taken = AllocationWatch::Taken;

constexpr size_t kMost = 1000;

Event Sized(size_t bytes, int64_t job = 1) {
  Event event;
  event.set_job(job);
  event.mutable_allocation()->set_resources(std::string(bytes, 'x'));
  return event;
}

class AllocationWatchTest : public testing::Test {
 protected:
  Taken Take() {
    return watch_.Take(&event_, &end_, [this] { ++woken_; });
  }

  AllocationWatch watch_{v1::WatchAllocationsRequest(), kMost};
  Event event_;
  absl::Status end_;
  int woken_ = 0;
};

TEST_F(AllocationWatchTest, WhoWaitsIsWokenOnce) {
  EXPECT_EQ(Take(), Taken::kNothing);
  watch_.Push(Sized(1, 1));
  watch_.Push(Sized(1, 2));
  EXPECT_EQ(woken_, 1);
  EXPECT_EQ(Take(), Taken::kEvent);
  EXPECT_EQ(event_.job(), 1);
  watch_.End(absl::OkStatus());
  EXPECT_EQ(Take(), Taken::kEvent);
  EXPECT_EQ(event_.job(), 2);
  EXPECT_EQ(Take(), Taken::kEnd);
  EXPECT_TRUE(end_.ok());
}

TEST_F(AllocationWatchTest, SoManyBytesMayWait) {
  // One always may.
  watch_.Push(Sized(5 * kMost));
  EXPECT_EQ(Take(), Taken::kEvent);
  for (int i = 0; i < 4; ++i) watch_.Push(Sized(100));
  EXPECT_FALSE(watch_.ended());
  watch_.Push(Sized(500));
  EXPECT_TRUE(watch_.ended());
  EXPECT_EQ(Take(), Taken::kEnd);
  EXPECT_TRUE(absl::IsResourceExhausted(end_)) << end_;
}

TEST_F(AllocationWatchTest, WhatWaitsIsCounted) {
  size_t held = 0;
  watch_.CountBy([&](size_t bytes) {
    if (bytes > 600) return MakeStatus(absl::StatusCode::kResourceExhausted, "no room");
    held = bytes;
    return absl::OkStatus();
  });
  watch_.Push(Sized(100));
  const size_t one = held;
  EXPECT_GE(one, 100 + AllocationWatch::kEventBytes);
  watch_.Push(Sized(100));
  EXPECT_EQ(held, 2 * one);
  // What is being sent is still there.
  EXPECT_EQ(Take(), Taken::kEvent);
  EXPECT_EQ(held, 2 * one);
  EXPECT_EQ(Take(), Taken::kEvent);
  EXPECT_EQ(held, one);
  EXPECT_EQ(Take(), Taken::kNothing);
  EXPECT_EQ(held, 0U);
  watch_.Push(Sized(700));
  EXPECT_EQ(Take(), Taken::kEnd);
  EXPECT_EQ(Message(end_), "no room");
}

TEST_F(AllocationWatchTest, TheListComesInPieces) {
  int asked = 0;
  // Of 125 bytes; each of these has 107 and more.
  EXPECT_TRUE(watch_.PushHeld(Sized(1)));
  EXPECT_FALSE(watch_.PushHeld(Sized(1)));
  watch_.AskForMore([&] { ++asked; });
  for (int i = 0; i < 2; ++i) {
    EXPECT_EQ(Take(), Taken::kEvent);
    EXPECT_EQ(asked, 0);
  }
  EXPECT_EQ(Take(), Taken::kNothing);
  EXPECT_EQ(asked, 1);
  // He waits already.
  watch_.AskForMore([&] { ++asked; });
  EXPECT_EQ(asked, 2);
  EXPECT_TRUE(watch_.PushHeld(Sized(1)));
  EXPECT_EQ(woken_, 1);
  watch_.AskForMore([&] { ++asked; });
  watch_.End(absl::CancelledError());
  EXPECT_FALSE(watch_.PushHeld(Sized(1)));
  EXPECT_EQ(Take(), Taken::kEvent);
  EXPECT_EQ(Take(), Taken::kEnd);
  EXPECT_EQ(asked, 2);
}

}  // namespace
}  // namespace fluxqueue::graph_service
