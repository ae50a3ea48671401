#include "libs/graph/planned_end.h"

#include <vector>

#include <gtest/gtest.h>
#include <rapidcheck.h>
#include <rapidcheck/gtest.h>

namespace fluxqueue::graph {
namespace {

constexpr int64_t kHour = 3600;

Placement Held(int64_t start_s, int64_t duration_s, int64_t bound_s = 0) {
  return {.slots = {},
          .groups = {},
          .start_s = start_s,
          .duration_s = duration_s,
          .corrected = true,
          .bound_s = bound_s};
}

TEST(PlannedEndTest, GrowsByTheSteps) {
  const Placement held = Held(1000, 100);
  EXPECT_EQ(PlannedEnd(held, 1000), 1100);
  EXPECT_EQ(PlannedEnd(held, 1099), 1100);
  int64_t end = 1100;
  std::vector<int64_t> steps = {10, 30};
  for (const int64_t minutes : {1, 5, 15, 30, 60, 120, 300, 600, 1200, 3000, 6000, 6000, 6000}) {
    steps.push_back(minutes * 60);
  }
  for (const int64_t step : steps) {
    EXPECT_EQ(PlannedEnd(held, end), end + step);
    EXPECT_EQ(PlannedEnd(held, end + step - 1), end + step);
    end += step;
  }
}

TEST(PlannedEndTest, NeverBeyondTheBoundUntilThatIsOverToo) {
  const Placement held = Held(0, 100, /*bound_s=*/500);
  EXPECT_EQ(PlannedEnd(held, 100), 110);
  EXPECT_EQ(PlannedEnd(held, 110), 140);
  EXPECT_EQ(PlannedEnd(held, 200), 500);
  EXPECT_EQ(PlannedEnd(held, 499), 500);
  EXPECT_EQ(PlannedEnd(held, 500), 510);
  EXPECT_EQ(PlannedEnd(held, 510), 540);
}

TEST(PlannedEndTest, WithoutADurationThereIsNone) {
  EXPECT_EQ(PlannedEnd(Held(10, 0), 20), 0);
  EXPECT_EQ(PlannedEnd(Held(10, 0, 5 * kHour), 20), 0);
}

TEST(PlannedEndTest, AsTheFirstRulesHadIt) {
  Placement held = Held(0, 100, /*bound_s=*/500);
  held.corrected = false;
  EXPECT_EQ(PlannedEnd(held, 99), 100);
  EXPECT_EQ(PlannedEnd(held, 100), 101);
  EXPECT_EQ(PlannedEnd(held, 7000), 7001);
}

// A look at any time finds what a look at each second would have.
RC_GTEST_PROP(PlannedEndTest, FollowsFromTheTimeAlone, ()) {
  const Placement held = Held(*rc::gen::inRange<int64_t>(0, 100),
                              *rc::gen::inRange<int64_t>(1, 5000),
                              *rc::gen::inRange<int64_t>(0, 9000));
  const int64_t first_s = *rc::gen::inRange<int64_t>(0, 200 * kHour);
  const int64_t then_s = first_s + *rc::gen::inRange<int64_t>(0, 200 * kHour);
  const int64_t end_s = PlannedEnd(held, first_s);
  RC_ASSERT(end_s > first_s);
  RC_ASSERT(PlannedEnd(held, end_s - 1) == end_s);
  RC_ASSERT(end_s <= then_s || PlannedEnd(held, then_s) == end_s);
  const int64_t bound_s = held.start_s + held.bound_s;
  const bool bounds = held.bound_s > held.duration_s && bound_s > first_s;
  RC_ASSERT(!bounds || end_s <= bound_s);
}

}  // namespace
}  // namespace fluxqueue::graph
