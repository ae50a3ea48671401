// Which nodes are set aside, for whom, and how many.
#include "libs/graph/set_aside.h"

#include <algorithm>
#include <cstdint>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

namespace fluxqueue::graph {
namespace {

using ::testing::Each;
using ::testing::ElementsAre;

constexpr LastUse kNone = LastUse::kNone;
constexpr LastUse kRest = LastUse::kForTheUnexpected;
constexpr LastUse kSome = LastUse::kForSomeNodes;
constexpr LastUse kSeveral = LastUse::kForSeveralGpus;

NodeKind Kind(size_t gpus, int64_t cpu, std::vector<bool> meets = {true, true}) {
  return {std::move(meets), {std::vector<int64_t>(gpus, 1000), {cpu}}};
}

ExpectedSlots Slots(uint64_t count, int64_t gpu, int64_t cpu = 0, size_t constraint = 0) {
  return {{gpu, {cpu}}, constraint, count};
}

TEST(SetAsideTest, TwiceWhatIsExpectedOfTheFirstNodes) {
  const std::vector<NodeKind> kinds = {Kind(4, 8)};
  const std::vector<uint32_t> nodes(8, 0);
  // A quarter of all that is asked for: a half of the nodes.
  EXPECT_THAT(SetAside(std::vector{Slots(12, 1000), Slots(1, 4000)}, kinds, nodes, 0),
              ElementsAre(kSeveral, kSeveral, kSeveral, kSeveral, kNone, kNone, kNone, kNone));
  // An eighth, and a bit: nodes are not cut.
  EXPECT_THAT(SetAside(std::vector{Slots(26, 1000), Slots(1, 4000)}, kinds, nodes, 0),
              ElementsAre(kSeveral, kSeveral, kSeveral, kNone, kNone, kNone, kNone, kNone));
  EXPECT_THAT(SetAside(std::vector{Slots(9, 4000)}, kinds, nodes, 0), Each(kSeveral));
}

TEST(SetAsideTest, NothingForWhatGoesAnywhere) {
  const std::vector<NodeKind> kinds = {Kind(4, 8), {{false, false}, {{}, {64}}}};
  const std::vector<uint32_t> nodes = {0, 1, 0};
  EXPECT_THAT(SetAside(std::vector{Slots(5, 500), Slots(5, 1000)}, kinds, nodes, 0), Each(kNone));
  EXPECT_THAT(SetAside({}, kinds, nodes, 0), Each(kNone));
  EXPECT_THAT(SetAside(std::vector{Slots(0, 4000)}, kinds, nodes, 0), Each(kNone));
}

TEST(SetAsideTest, OnlyNodesThatHaveRoomWhenTheyAreEmpty) {
  const std::vector<NodeKind> kinds = {Kind(2, 64), Kind(4, 8), Kind(4, 64)};
  const std::vector<uint32_t> nodes = {0, 1, 2, 0, 1, 2};
  EXPECT_THAT(SetAside(std::vector{Slots(1, 4000, 32)}, kinds, nodes, 0),
              ElementsAre(kNone, kNone, kSeveral, kNone, kNone, kSeveral));
}

TEST(SetAsideTest, WhatNoNodeCanHoldIsLeftOut) {
  const std::vector<NodeKind> kinds = {Kind(8, 64, {true, false}), Kind(2, 64, {true, true})};
  const std::vector<ExpectedSlots> holdable = Holdable(
      std::vector{Slots(1, 8000), Slots(9, 16'000), Slots(2, 500), Slots(3, 4000, 0, 1)}, kinds);
  ASSERT_EQ(holdable.size(), 2u);
  EXPECT_EQ(holdable[0].count, 1u);
  EXPECT_EQ(holdable[1].count, 2u);
}

TEST(SetAsideTest, ForThoseThatNameNodesToo) {
  const std::vector<NodeKind> kinds = {Kind(2, 8), Kind(2, 8, {true, false})};
  const std::vector<uint32_t> nodes = {1, 0, 0, 1, 0, 1, 1, 1};
  // An eighth of all gpus, on nodes of the first kind.
  EXPECT_THAT(SetAside(std::vector{Slots(7, 1000), Slots(2, 500, 1, 1)}, kinds, nodes, 0),
              ElementsAre(kNone, kSome, kSome, kNone, kNone, kNone, kNone, kNone));
}

TEST(SetAsideTest, MoreGpusAtOnceChooseFirst) {
  const std::vector<NodeKind> kinds = {Kind(2, 8), Kind(4, 8)};
  const std::vector<uint32_t> nodes = {1, 0, 1, 0};
  // Pairs could go to all nodes; the four at once take one of theirs before.
  EXPECT_THAT(
      SetAside(std::vector{Slots(20, 1000), Slots(1, 2000), Slots(1, 4000)}, kinds, nodes, 0),
      ElementsAre(kSeveral, kSeveral, kNone, kNone));
}

TEST(SetAsideTest, APartAtLeastWhateverIsExpected) {
  const std::vector<NodeKind> kinds = {Kind(2, 8), Kind(4, 8), Kind(1, 8), Kind(0, 8)};
  const std::vector<uint32_t> nodes = {3, 2, 0, 1, 0, 1};
  // 5 of 13: a node of four, for those with more gpus come first, and none beside it.
  EXPECT_THAT(SetAside({}, kinds, nodes, 40),
              ElementsAre(kNone, kNone, kNone, kRest, kNone, kNone));
  // 6 of 13: then one of two.
  EXPECT_THAT(SetAside({}, kinds, nodes, 47),
              ElementsAre(kNone, kNone, kRest, kRest, kNone, kNone));
  // One gpu alone is not kept for those that want several.
  EXPECT_THAT(SetAside({}, kinds, nodes, 100),
              ElementsAre(kNone, kNone, kRest, kRest, kRest, kRest));
  // What is expected counts.
  const std::vector<ExpectedSlots> expected = {Slots(1, 4000), Slots(9, 1000)};
  EXPECT_EQ(SetAside(expected, kinds, nodes, 30), SetAside(expected, kinds, nodes, 0));
}

RC_GTEST_PROP(SetAsideProperty, APartAtLeastAsFarAsNodesAreWhole, ()) {
  const auto any = [](int64_t most) { return *rc::gen::inRange<int64_t>(0, most + 1); };
  std::vector<NodeKind> kinds;
  for (int i = 0; i < 3; ++i) kinds.push_back(Kind(static_cast<size_t>(any(8)), any(64)));
  std::vector<uint32_t> nodes;
  for (int i = 0; i < 12; ++i) nodes.push_back(static_cast<uint32_t>(any(2)));
  const std::vector<ExpectedSlots> expected = {
      Slots(static_cast<uint64_t>(any(9)), 2000 + 1000 * any(6), any(32)),
      Slots(static_cast<uint64_t>(any(99)), 1 + any(999), any(8))};
  const std::vector<LastUse> least = SetAside(expected, kinds, nodes, 0);
  const std::vector<LastUse> uses = SetAside(expected, kinds, nodes, kPercentSetAside);
  size_t all = 0;
  size_t kept = 0;
  size_t smallest = SIZE_MAX;
  for (size_t i = 0; i < nodes.size(); ++i) {
    const size_t gpus = kinds[nodes[i]].room.gpus.size();
    RC_ASSERT(least[i] == kNone || uses[i] == least[i]);
    all += gpus;
    kept += uses[i] != kNone ? gpus : 0;
    if (uses[i] == kNone && gpus > 1) smallest = std::min(smallest, gpus);
  }
  RC_ASSERT(smallest == SIZE_MAX || (kept + smallest) * 100 > all * kPercentSetAside);
}

RC_GTEST_PROP(SetAsideProperty, EnoughIsKeptOrAllThatThereIs, ()) {
  const auto any = [](int64_t most) { return *rc::gen::inRange<int64_t>(0, most + 1); };
  std::vector<NodeKind> kinds;
  for (int i = 0; i < 3; ++i) kinds.push_back(Kind(static_cast<size_t>(any(8)), any(64)));
  std::vector<uint32_t> nodes;
  for (int i = 0; i < 12; ++i) nodes.push_back(static_cast<uint32_t>(any(2)));
  const ExpectedSlots large =
      Slots(1 + static_cast<uint64_t>(any(9)), 2000 + 1000 * any(6), any(32));
  const ExpectedSlots small = Slots(1 + static_cast<uint64_t>(any(99)), 1 + any(999), any(8));
  const std::vector<LastUse> uses = SetAside(std::vector{large, small}, kinds, nodes, 0);
  int64_t gpus = 0;
  int64_t kept = 0;
  int64_t left_over = 0;
  for (size_t i = 0; i < nodes.size(); ++i) {
    const NodeRoom& room = kinds[nodes[i]].room;
    const int64_t usable = UsableGpus(room, large.shape);
    gpus += static_cast<int64_t>(room.gpus.size()) * 1000;
    (uses[i] == kNone ? left_over : kept) += usable;
    RC_ASSERT(uses[i] == kNone || (uses[i] == kSeveral && usable > 0));
  }
  const auto asked = [](const ExpectedSlots& slots) {
    return static_cast<int64_t>(slots.count) * slots.shape.gpu;
  };
  RC_ASSERT(left_over == 0 ||
            (kept + 1) * (asked(large) + asked(small)) >= 2 * gpus * asked(large));
}

}  // namespace
}  // namespace fluxqueue::graph
