#include "libs/scheduling/usage.h"

#include <cmath>

#include <gtest/gtest.h>
#include <rapidcheck.h>
#include <rapidcheck/gtest.h>

#include "libs/scheduling/aging.h"

namespace fluxqueue::scheduling {
namespace {

constexpr int64_t kHour = 3'600'000;

Resources Cpu(int64_t milli) {
  Resources amounts;
  amounts.Add("cpu", milli);
  return amounts;
}

TEST(HalfPowerTest, IsThatOfLibm) {
  for (const double x : {0.0, 1e-9, 0.1, 0.5, 0.999999, 1.0, 3.7, 52.25, 400.0}) {
    EXPECT_NEAR(HalfPower(x) / std::exp2(-x), 1, 1e-15) << x;
  }
  EXPECT_EQ(HalfPower(-1), 1);
  EXPECT_EQ(HalfPower(1e9), 0);
  for (const double x : {1.0, 1.5, 2.0, 1000.0, 123456.789}) {
    EXPECT_NEAR(Log2(x), std::log2(x), 1e-6) << x;
  }
}

TEST(UsageTest, HalfOfItIsForgottenEachHalfLife) {
  const Past past{.used = {1000, 0, 0}, .at_ms = 5};
  EXPECT_DOUBLE_EQ(BroughtForward(past, {}, 5 + kHour, {.half_life_ms = kHour}).used[kCpu], 500);
  EXPECT_DOUBLE_EQ(BroughtForward(past, {}, 5 + 3 * kHour, {.half_life_ms = kHour}).used[kCpu],
                   125);
  // Nothing is forgotten, nor is time turned back.
  EXPECT_EQ(BroughtForward(past, {}, 5 + kHour, {.half_life_ms = 0}).used[kCpu], 1000);
  EXPECT_EQ(BroughtForward(past, {}, 4, {.half_life_ms = kHour}), past);
}

TEST(UsageTest, WhatIsHeldCountsWhileItIsHeld) {
  const Past none{.used = {}, .at_ms = 1};
  EXPECT_DOUBLE_EQ(BroughtForward(none, Cpu(2000), 1 + 10'000, {.half_life_ms = 0}).used[kCpu],
                   20'000);
  // For ever held, it is its own average.
  const Past long_held = BroughtForward(none, Cpu(2000), 1 + 100 * kHour, {.half_life_ms = kHour});
  EXPECT_NEAR(AverageOf(long_held.used[kCpu], kHour, 0), 2000, 1e-6);
  EXPECT_NEAR(AverageOf(20'000, 0, 10'000), 2000, 1e-9);
  EXPECT_EQ(AverageOf(5, 0, 0), 5);  // a second at least
}

// Brought forward in one step or in many: the same.
RC_GTEST_PROP(UsageTest, StepsDoNotMatter, ()) {
  const int64_t half_life = *rc::gen::inRange<int64_t>(0, 3 * kHour);
  const Resources held = Cpu(*rc::gen::inRange<int64_t>(0, 1'000'000));
  Past stepped{.used = {static_cast<double>(*rc::gen::inRange(0, 1'000'000)), 0, 0}, .at_ms = 1};
  const Past start = stepped;
  int64_t now = 1;
  for (const int64_t step :
       *rc::gen::container<std::vector<int64_t>>(20, rc::gen::inRange<int64_t>(0, kHour))) {
    now += step;
    stepped = BroughtForward(stepped, held, now, {.half_life_ms = half_life});
  }
  const Past at_once = BroughtForward(start, held, now, {.half_life_ms = half_life});
  RC_ASSERT(std::abs(at_once.used[kCpu] - stepped.used[kCpu]) <=
            1e-9 * (1 + std::abs(at_once.used[kCpu])));
}

TEST(ResourcesTest, GpusOfEveryMakerAreOne) {
  Resources amounts;
  amounts.Add("nvidia.com/gpu", 2);
  amounts.Add("fluxqueue.io/gpu-milli", 500);
  amounts.Add("gpu", 1);
  amounts.Add("pods", 3);
  amounts.Add("cpu", -5);
  EXPECT_EQ(amounts[kGpu], 3500);
  EXPECT_EQ(amounts.Of("amd.com/gpu"), 3500);
  EXPECT_EQ(amounts.Of("pods"), 3);
  EXPECT_EQ(amounts[kCpu], 0);
  Resources twice = amounts;
  twice.Add(amounts);
  twice.Remove(amounts);
  EXPECT_EQ(twice, amounts);
  twice.Remove(amounts);
  EXPECT_TRUE(twice.empty());
}

TEST(ResourcesTest, ForPeople) {
  EXPECT_EQ(FormatAmount("cpu", 2000), "2");
  EXPECT_EQ(FormatAmount("cpu", 2500), "2500m");
  EXPECT_EQ(FormatAmount("memory", int64_t{3} << 30), "3Gi");
  EXPECT_EQ(FormatAmount("memory", 1000), "1000");
  EXPECT_EQ(FormatAmount("nvidia.com/gpu", 1500), "1.5");
  EXPECT_EQ(FormatAmount("pods", 7), "7");
}

TEST(AgingTest, Rank) {
  EXPECT_EQ(RankOf(7, 123, 0), 7);
  // One of priority takes an hour to make up.
  EXPECT_GT(RankOf(1, kHour - 1, kHour), RankOf(0, 0, kHour));
  EXPECT_LT(RankOf(1, kHour + 1, kHour), RankOf(0, 0, kHour));
  EXPECT_LT(RankOf(INT32_MIN, INT64_MAX, INT64_MAX), RankOf(INT32_MAX, 0, INT64_MAX));
}

// The order of ranks is that of the aged priorities, at any time.
RC_GTEST_PROP(AgingTest, IsThePriorityAtAnyTime, ()) {
  const int64_t aging = *rc::gen::inRange<int64_t>(1, 1'000'000);
  const auto p = *rc::gen::container<std::vector<int>>(2, rc::gen::inRange(-50, 50));
  const auto s =
      *rc::gen::container<std::vector<int64_t>>(2, rc::gen::inRange<int64_t>(0, 1 << 30));
  const int64_t now = (1 << 30) + *rc::gen::inRange<int64_t>(0, 1 << 30);
  // Times the aging, so that all are whole numbers.
  const int64_t a = p[0] * aging + (now - s[0]);
  const int64_t b = p[1] * aging + (now - s[1]);
  RC_ASSERT((a > b) == (RankOf(p[0], s[0], aging) > RankOf(p[1], s[1], aging)));
}

}  // namespace
}  // namespace fluxqueue::scheduling
