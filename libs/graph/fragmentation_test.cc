#include "libs/graph/fragmentation.h"

#include <vector>

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

namespace fluxqueue::graph {
namespace {

TEST(FragmentationTest, UsableIsWhatSlotsOfTheShapeCanTakeTogether) {
  struct Case {
    NodeRoom room;
    SlotShape shape;
    int64_t usable;
  };
  const std::vector<Case> cases = {
      // By the gpus.
      {{{1000, 1000}, {}}, {1000, {}}, 2000},
      {{{1000, 700}, {}}, {500, {}}, 1500},
      {{{1000, 400}, {}}, {600, {}}, 600},
      {{{}, {}}, {600, {}}, 0},
      // Only whole ones make several.
      {{{1000, 1000, 999}, {}}, {2000, {}}, 2000},
      {{{1000, 999, 999}, {}}, {2000, {}}, 0},
      {{{1000, 1000, 1000}, {}}, {1500, {}}, 1500},
      // By the other amounts, slots in parts, if there is enough for one.
      {{{1000, 1000}, {12}}, {1000, {8}}, 1500},
      {{{1000, 1000}, {16}}, {1000, {8}}, 2000},
      {{{1000, 1000}, {7}}, {1000, {8}}, 0},
      {{{1000, 1000}, {16, 9}}, {1000, {8, 6}}, 1500},
      {{{1000, 1000}, {0}}, {1000, {0}}, 2000},
      {{{1000, 1000}, {int64_t{3} << 40}}, {1000, {int64_t{2} << 40}}, 1500},
      {{{1000, 1000}, {INT64_MAX}}, {1000, {INT64_MAX}}, 1000},
  };
  for (size_t i = 0; i < cases.size(); ++i) {
    EXPECT_EQ(UsableGpus(cases[i].room, cases[i].shape), cases[i].usable) << i;
  }
}

TEST(FragmentationTest, WorthIsTheSumOverShapes) {
  const NodeRoom room = {{1000, 400}, {10}};
  const std::vector<WeighedShape> shapes = {{{400, {1}}, 5}, {{1000, {2}}, 7}, {{1000, {20}}, 9}};
  EXPECT_EQ(WorthOf(room, shapes), 5 * 1200 + 7 * 1000);
  EXPECT_EQ(WorthOf(room, {}), 0);
}

// Whatever is taken, nothing that is left becomes worth more.
RC_GTEST_PROP(FragmentationProperty, TakingNeverAddsWorth, ()) {
  const auto amount = [](int64_t most) { return *rc::gen::inRange<int64_t>(0, most + 1); };
  NodeRoom room = {*rc::gen::container<std::vector<int64_t>>(rc::gen::inRange<int64_t>(0, 1001)),
                   {amount(100), amount(100)}};
  std::vector<WeighedShape> shapes;
  for (int i = 0; i < 4; ++i) {
    shapes.push_back({{1 + amount(3000), {amount(30), amount(30)}}, amount(100)});
  }
  const int64_t before = WorthOf(room, shapes);
  for (int64_t& gpu : room.gpus) gpu -= amount(gpu);
  for (int64_t& other : room.amounts) other -= amount(other);
  RC_ASSERT(WorthOf(room, shapes) <= before);
  RC_ASSERT(WorthOf(room, shapes) >= 0);
}

TEST(FragmentationTest, WeightsAreSharesOfTheGreatestSum) {
  const Gravity by = Gravity::kBySize;
  const int64_t all = int64_t{1} << kWeightBits;
  EXPECT_EQ(WeightsOf({}, 1000, by), std::vector<int64_t>());
  EXPECT_EQ(WeightsOf(std::vector<Demand>{{3, 1, 1000}}, 1000, by), std::vector<int64_t>{all});
  const std::vector<Demand> by_count = {{1, 1, 1000}, {3, 1, 1000}};
  EXPECT_EQ(WeightsOf(by_count, 1000, by), (std::vector<int64_t>{all / 4, all / 4 * 3}));
  // Half of the gpus are of use: four times. A quarter of them: 16 times. Four at once: four times.
  const std::vector<Demand> by_form = {{1, 1, 1000}, {1, 1, 500}, {1, 1, 250}, {1, 4000, 1000}};
  EXPECT_EQ(WeightsOf(by_form, 1000, by),
            (std::vector<int64_t>{all / 25, all * 4 / 25, all * 16 / 25, all * 4 / 25}));
  // Where nodes are set aside for them, twice.
  EXPECT_EQ(
      WeightsOf(
          std::vector<Demand>{{1, 1, 1000}, {1, 4000, 1000}}, 1000, Gravity::kTwiceForSeveral),
      (std::vector<int64_t>{all / 3, all * 2 / 3}));
  // Where a part of the cluster is kept for the unexpected, once.
  EXPECT_EQ(WeightsOf(std::vector<Demand>{{1, 1, 1000}, {1, 4000, 1000}}, 1000, Gravity::kAlike),
            (std::vector<int64_t>{all / 2, all / 2}));
  // What can go nowhere counts for nothing.
  EXPECT_EQ(WeightsOf(std::vector<Demand>{{9, 1, 0}, {1, 1, 8}}, 8, by),
            (std::vector<int64_t>{0, all}));
  EXPECT_EQ(WeightsOf(std::vector<Demand>{{9, 1, 0}}, 8, by), std::vector<int64_t>{0});
  const std::vector<Demand> extreme(2, {UINT64_MAX, 8000, 1});
  EXPECT_EQ(WeightsOf(extreme, int64_t{1} << 40, by), (std::vector<int64_t>{all / 2, all / 2}));
}

TEST(FragmentationTest, CountsBecomeTheNearestPowerOfTwo) {
  const std::vector<std::pair<uint64_t, uint64_t>> cases = {
      {0, 0}, {1, 1}, {2, 2}, {3, 4}, {4, 4}, {5, 4}, {6, 8}, {11, 8}, {12, 16}, {1000, 1024}};
  for (const auto& [count, quantised] : cases) EXPECT_EQ(QuantisedCount(count), quantised) << count;
}

}  // namespace
}  // namespace fluxqueue::graph
