#include <set>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rapidcheck.h>
#include <rapidcheck/gtest.h>

#include "libs/scheduling/candidate_window.h"
#include "libs/scheduling/queue_order.h"
#include "libs/scheduling/strategy.h"
#include "libs/scheduling/waiting_list.h"

namespace fluxqueue::scheduling {
namespace {

struct FakeJob {
  OrderKey key;
};

TEST(WaitingListTest, PriorityThenSubmission) {
  FakeJob early{{0, 1}};
  FakeJob late{{0, 2}};
  FakeJob urgent{{10, 3}};
  FakeJob nice{{-5, 0}};
  WaitingList<FakeJob> list;
  for (FakeJob* job : {&late, &nice, &urgent, &early}) list.Insert(job->key, job);

  std::vector<FakeJob*> order;
  for (const auto& [key, job] : list) order.push_back(job);
  EXPECT_THAT(order, testing::ElementsAre(&urgent, &early, &late, &nice));
  EXPECT_EQ(list.Position(early.key), 2U);

  list.Erase(urgent.key);
  EXPECT_EQ(list.Position(early.key), 1U);
  EXPECT_EQ(list.size(), 3U);
}

RC_GTEST_PROP(WaitingListTest, PositionsAreThoseOfASortedSet, ()) {
  WaitingList<FakeJob> list;
  std::set<OrderKey> model;
  FakeJob job;
  for (int i = 0; i < 50; ++i) {
    const OrderKey key{*rc::gen::inRange<int64_t>(-2, 3), *rc::gen::inRange<uint64_t>(0, 20)};
    if (model.insert(key).second) {
      list.Insert(key, &job);
    } else {
      model.erase(key);
      list.Erase(key);
    }
    RC_ASSERT(list.size() == model.size());
    size_t position = 0;
    for (const OrderKey& at : model) RC_ASSERT(list.Position(at) == ++position);
  }
}

TEST(QueueOrderTest, PriorityThenWeightThenName) {
  const std::set<QueueOrder> order = {{0, 1, "b"}, {0, 1, "a"}, {0, 5, "heavy"}, {1, 0, "urgent"}};
  std::vector<std::string> names;
  for (const QueueOrder& queue : order) names.push_back(queue.name);
  EXPECT_THAT(names, testing::ElementsAre("urgent", "heavy", "a", "b"));
}

TEST(StrategyTest, WhatEachOneDoes) {
  struct Case {
    std::string_view name;
    bool stops;
    uint32_t without_depth;
    uint32_t with_depth_100;
  };
  constexpr uint32_t kAll = UINT32_MAX;
  for (const Case& c : {Case{"fcfs", true, 0, 0},
                        Case{"easy", false, 1, 1},
                        Case{"conservative", false, kAll, 100},
                        Case{"hybrid", false, kDefaultReservationDepth, 100},
                        Case{"adaptive", false, 64, 64}}) {
    const Strategy* strategy = FindStrategy(c.name);
    ASSERT_NE(strategy, nullptr) << c.name;
    EXPECT_EQ(strategy->stops_at_first_blocked, c.stops) << c.name;
    EXPECT_EQ(strategy->Reservations(0), c.without_depth) << c.name;
    EXPECT_EQ(strategy->Reservations(100), c.with_depth_100) << c.name;
  }
  EXPECT_EQ(FindStrategy(""), FindStrategy("fcfs"));
  EXPECT_EQ(FindStrategy("lifo"), nullptr);
  EXPECT_EQ(StrategyNames(), "fcfs, easy, conservative, hybrid, adaptive");
}

TEST(CandidateWindowTest, OpensWhileAllFitsAndClosesWhenBlocked) {
  constexpr uint32_t kDepth = 500;
  EXPECT_EQ(CandidateLimit(0, kDepth), kDepth);
  // Blocked at once: the least that is worth a round trip.
  uint32_t window = NextWindow(0, kDepth, {.named = 500, .allocated = 0, .blocked = true});
  EXPECT_EQ(window, kLeastWindow);
  // Room again: fourfold up to the depth.
  window = NextWindow(window, kDepth, {.named = 16, .allocated = 16, .blocked = false});
  EXPECT_EQ(window, 64U);
  window = NextWindow(window, kDepth, {.named = 64, .allocated = 64, .blocked = false});
  EXPECT_EQ(window, 256U);
  // A cycle that did not fill it says nothing.
  EXPECT_EQ(NextWindow(window, kDepth, {.named = 3, .allocated = 3, .blocked = false}), 256U);
  window = NextWindow(window, kDepth, {.named = 256, .allocated = 256, .blocked = false});
  EXPECT_EQ(window, kDepth);
  EXPECT_EQ(NextWindow(window, kDepth, {.named = 500, .allocated = 100, .blocked = true}), 200U);
  // A depth below the least window wins.
  EXPECT_EQ(NextWindow(0, 4, {.named = 4, .allocated = 0, .blocked = true}), 4U);
}

}  // namespace
}  // namespace fluxqueue::scheduling
