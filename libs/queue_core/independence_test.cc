// Queues are independent: what cannot start stops its own queue's line at most, and nobody is
// passed for ever.
#include <gtest/gtest.h>

#include "libs/queue_core/testing_story.h"

namespace fluxqueue::queue_core {
namespace {

using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

constexpr int64_t kReserveAfterMs = 900'000;

events::v1::Envelope In(const std::string& queue, const std::string& id) {
  return Submitted(id, {.queue = queue});
}

// Two queues of one job after the other.
class TwoQueues : public ::testing::Test {
 protected:
  TwoQueues() {
    story_.Tell(QueueMade("a"));
    story_.Tell(QueueMade("b"));
  }
  Story story_;
};

TEST_F(TwoQueues, WhoeverComesToAnotherQueueIsTried) {
  story_.Tell(In("a", "a1"));
  EXPECT_THAT(story_.Tell(Answered(1, {{"a1", 1, kBusyKind, "node-0 is in use"}})),
              ElementsAre("fact a1 v2 Pending Busy"));
  EXPECT_THAT(story_.Tell(In("b", "b1")),
              ElementsAre("fact b1 v1 Pending Queued", "cycle 2: a1/1 b1/1"));
  EXPECT_THAT(story_.Tell(Answered(2, {{"a1", 1, kBusyKind, "node-0 is in use"}, {"b1"}})),
              ElementsAre("fact b1 v2 Allocated"));
}

TEST_F(TwoQueues, WhatTheMatcherLeftOutWasNotTried) {
  story_.Tell(In("a", "a1"));
  story_.Tell(In("a", "a2"));
  story_.Tell(In("b", "b1"));
  EXPECT_THAT(story_.Tell(Answered(1, {{"a1", 1, kBusyKind, "node-0 is in use"}})),
              ElementsAre("fact a1 v2 Pending Busy", "cycle 2: a1/1 b1/1 a2/1"));
  // a2 stands behind a1.
  EXPECT_THAT(story_.Tell(Answered(2, {{"a1", 1, kBusyKind, "node-0 is in use"}, {"b1"}})),
              ElementsAre("fact b1 v2 Allocated"));
  EXPECT_EQ(story_.core().Find("a2")->reason, "Queued");
}

// The window closes to what the pool has use for, in each queue by itself; who is served is asked
// for the rest of its line at once.
TEST_F(TwoQueues, ALongLineOfAnotherQueueGoesOn) {
  story_.Tell(QueueMade("a", 0, /*priority=*/1));
  story_.Tell(In("a", "a1"));
  for (int i = 2; i < 40; ++i) story_.Tell(In("a", fmt::format("a{}", i)));
  for (int i = 0; i < 40; ++i) story_.Tell(In("b", fmt::format("b{}", i)));
  int started = 0;
  for (int cycle = 0; cycle < 20 && story_.core().cycle_in_flight() != 0; ++cycle) {
    std::vector<Said> outcomes = {{"a1", 1, kBusyKind, "node-0 is in use"}};
    for (; started < 40; ++started) {
      const std::string id = fmt::format("b{}", started);
      const Job* job = story_.core().Find(id);
      if (job == nullptr || !job->in_cycle) break;
      outcomes.push_back({id});
    }
    story_.Tell(Answered(story_.core().cycle_in_flight(), outcomes));
  }
  EXPECT_EQ(started, 40);
  EXPECT_EQ(story_.core().cycle_in_flight(), 0U);
}

TEST_F(TwoQueues, WhoeverFollowsOneThatLeftAnotherQueueIsTried) {
  story_.Tell(In("a", "a1"));
  story_.Tell(In("b", "b1"));
  story_.Tell(In("b", "b2"));
  story_.Tell(Answered(1, {{"a1", 1, kBusyKind, "x"}}));
  story_.Tell(Answered(2, {{"a1", 1, kBusyKind, "x"}, {"b1", 1, kBusyKind, "y"}}));
  EXPECT_EQ(story_.core().cycle_in_flight(), 0U);
  EXPECT_THAT(story_.Tell(Cancelled("b1")), Contains("cycle 3: a1/1 b2/1"));
}

TEST_F(TwoQueues, ByRules1OneLineStopsAll) {
  story_.Tell(PoolConfig(0, /*rules=*/1));
  story_.Tell(In("a", "a1"));
  story_.Tell(Answered(1, {{"a1", 1, kBusyKind, "node-0 is in use"}}));
  EXPECT_THAT(story_.Tell(In("b", "b1")), ElementsAre("fact b1 v1 Pending Queued"));
}

// ------------------------------------------------------------------------------- nobody for ever

TEST_F(TwoQueues, TheFirstOfAQueueMayReserveAfterATime) {
  story_.Tell(In("a", "a1"));
  story_.Tell(In("a", "a2"));
  story_.Tell(Answered(1, {{"a1", 1, kBusyKind, "x"}}));
  EXPECT_EQ(story_.core().NextDeadline(), story_.now() + Millis(kReserveAfterMs));
  // Others start beside it all the time, and do not put it off.
  story_.Wait(kReserveAfterMs / 2);
  story_.Tell(In("b", "b1"));
  story_.Tell(Answered(2, {{"b1"}, {"a1", 1, kBusyKind, "x"}}));
  EXPECT_EQ(story_.core().NextDeadline(), story_.now() + Millis(kReserveAfterMs / 2));
  story_.Wait(kReserveAfterMs / 2);
  EXPECT_THAT(story_.Tell(Tick()), ElementsAre("cycle 3: a1/1* a2/1"));
  EXPECT_THAT(story_.Tell(Answered(3, {{"a1", 1, kReservedKind, "x", 2000}})),
              ElementsAre("fact a1 v3 Pending Reserved"));
  // It goes before all that no priority puts ahead of it.
  story_.Tell(In("b", "b2"));
  EXPECT_THAT(story_.Tell(Inventory(true, true)), IsEmpty());
  EXPECT_THAT(story_.Tell(Answered(4, {{"a1", 1, kReservedKind, "x", 2000}, {"b2"}})),
              ElementsAre("fact b2 v2 Allocated"));
}

TEST_F(TwoQueues, APriorityGoesBeforeOneThatIsOverdue) {
  story_.Tell(QueueMade("b", 0, /*priority=*/1));
  story_.Tell(In("a", "a1"));
  story_.Tell(Answered(1, {{"a1", 1, kBusyKind, "x"}}));
  story_.Wait(kReserveAfterMs);
  EXPECT_THAT(story_.Tell(In("b", "b1")), Contains("cycle 2: b1/1 a1/1*"));
}

TEST_F(TwoQueues, OfAQueueTheOneThatWasFirstLongest) {
  story_.Tell(In("a", "a1"));
  story_.Tell(Answered(1, {{"a1", 1, kBusyKind, "x"}}));
  // A job of a higher priority comes before it: that one has not waited.
  story_.Tell(Submitted("a0", {.queue = "a", .priority = 1}));
  story_.Tell(Answered(2, {{"a0", 1, kBusyKind, "x"}}));
  story_.Wait(kReserveAfterMs - 1);
  EXPECT_THAT(story_.Tell(Inventory(true, true)), ElementsAre("cycle 3: a0/1 a1/1"));
  story_.Tell(Answered(3, {{"a0", 1, kBusyKind, "x"}}));
  story_.Wait(1);
  EXPECT_THAT(story_.Tell(Tick()), ElementsAre("cycle 4: a0/1* a1/1"));
}

TEST_F(TwoQueues, ZeroIsNever) {
  events::v1::Envelope queue = QueueMade("a");
  queue.mutable_queue_configured()->set_reserve_after_ms(0);
  story_.Tell(queue);
  story_.Tell(In("a", "a1"));
  story_.Tell(Answered(1, {{"a1", 1, kBusyKind, "x"}}));
  // It is looked at again all the same, should nothing have said that there is room.
  for (const char* again : {"cycle 2: a1/1", "cycle 3: a1/1"}) {
    EXPECT_EQ(story_.core().NextDeadline(), story_.now() + Millis(kReserveAfterMs));
    story_.Wait(kReserveAfterMs);
    EXPECT_THAT(story_.Tell(Tick()), ElementsAre(again));
    story_.Tell(Answered(story_.core().cycle_in_flight(), {{"a1", 1, kBusyKind, "x"}}));
  }
}

TEST_F(TwoQueues, HeldItHasNotWaited) {
  story_.Tell(In("a", "a1"));
  story_.Tell(Answered(1, {{"a1", 1, kBusyKind, "x"}}));
  story_.Wait(kReserveAfterMs);
  story_.Tell(Held("a1", true));
  EXPECT_THAT(story_.Tell(Held("a1", false)), Contains(HasSubstr(": a1/1")));
  EXPECT_EQ(story_.core().Find("a1")->first_ms, 0);
}

// Who was named and not tried keeps what it was promised: its time comes with a cycle.
TEST_F(TwoQueues, NoPromisesTimePassesWithoutACycle) {
  story_.Tell(QueueMade("b", 0, 0, "easy"));
  story_.Tell(In("b", "b1"));
  story_.Tell(Answered(1, {{"b1", 1, kReservedKind, "x", 500}}));
  const std::optional<Millis> promised = story_.core().NextDeadline();
  ASSERT_TRUE(promised.has_value());
  story_.Tell(In("a", "a1"));
  story_.Tell(Answered(2, {{"a1", 1, kBusyKind, "x"}}));
  EXPECT_LE(*story_.core().NextDeadline(), *promised);
}

}  // namespace
}  // namespace fluxqueue::queue_core
