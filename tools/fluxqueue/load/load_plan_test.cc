#include "tools/fluxqueue/load/load_plan.h"

#include <gtest/gtest.h>

namespace fluxqueue::load {
namespace {

TEST(LoadPlanTest, TimesAreDividedByTheSpeedAndRunsHaveALeastLength) {
  trace::Trace trace;
  trace.jobs = {{"a", 0, 7, 1, {{"cpu", 1000}}, {}}, {"b", 30, 0.5, 2, {{"cpu", 1000}}, {}}};
  trace.without_run_time = 3;
  const Plan plan = MakePlan(trace, ProcessorNodes("p", 2), 20);
  ASSERT_EQ(plan.jobs.size(), 2);
  EXPECT_EQ(plan.jobs[0].run, Millis(350));
  EXPECT_EQ(plan.jobs[1].submit, Millis(1500));
  EXPECT_EQ(plan.jobs[1].run, kShortestRun);
  EXPECT_EQ(plan.without_run_time, 3);
}

TEST(LoadPlanTest, KnowsWhatCanNeverRun) {
  trace::Trace trace;
  trace.jobs = {{"fits", 0, 1, 2, {{"cpu", 1000}}, {}}, {"wide", 0, 1, 3, {{"cpu", 1000}}, {}}};
  const Plan plan = MakePlan(trace, ProcessorNodes("p", 2), 1);
  EXPECT_TRUE(plan.jobs[0].can_run);
  EXPECT_FALSE(plan.jobs[1].can_run);
  EXPECT_EQ(plan.nodes[1].name, "p-1");
}

}  // namespace
}  // namespace fluxqueue::load
