#include "tools/fluxqueue/simulate_tables.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "libs/simulation/testing_workload.h"

namespace fluxqueue::cli {
namespace {

using simulation::Job;
using ::testing::HasSubstr;

TEST(SimulateTablesTest, SettingsClassesAndWhatWasLeftOut) {
  const simulation::Machine machine = simulation::MachineOfProcessors(4);
  simulation::Workload workload =
      simulation::WorkloadOf({Job("a", 0, 1000, 4), Job("b", 0, 10, 1)}, machine);
  workload.without_run_time = 3;
  const auto run = simulation::RunSetting(
      workload, machine, {.estimates = simulation::Estimates::kRequested}, nullptr);
  ASSERT_TRUE(run.ok()) << run.status();
  EXPECT_EQ(
      FormatRuns({*run}, workload, false),
      "SETTING                 JOBS  BACKFILLED  WAIT s: MEAN  P50   P95    P99    SLOWDOWN: MEAN  "
      "P50   P95  P99  UTILISATION\n"
      "fcfs, first, requested  2     0           500           0.00  1,000  1,000  51.00           "
      "1.00  101  101  99.3 %\n"
      "\n"
      "SETTING                 SIZE         JOBS  BACKFILLED  WAIT s: MEAN  P50    P95    P99    "
      "SLOWDOWN: MEAN  P50   P95   P99\n"
      "fcfs, first, requested  1 processor  1     0           1,000         1,000  1,000  1,000  "
      "101             101   101   101\n"
      "fcfs, first, requested  2-4          1     0           0.00          0.00   0.00   0.00   "
      "1.00            1.00  1.00  1.00\n"
      "\n"
      "3 jobs without a run time were left out\n"
      "2 jobs of \"fcfs, first, requested\" have no requested time: the exact one was taken\n");
}

TEST(SimulateTablesTest, WhereNothingWasAskedForTheDefaultIsNamed) {
  const simulation::Machine machine = simulation::MachineOfProcessors(4);
  const simulation::Workload workload = simulation::WorkloadOf({Job("a", 0, 10, 1)}, machine);
  const auto run = simulation::RunSetting(
      workload,
      machine,
      {.estimates = simulation::Estimates::kRequested, .default_duration = std::chrono::hours(1)},
      nullptr);
  ASSERT_TRUE(run.ok()) << run.status();
  EXPECT_THAT(
      FormatRuns({*run}, workload, false),
      HasSubstr("1 jobs of \"fcfs, first, requested\" have no requested time: the queue's default "
                "was taken\n"));
}

TEST(SimulateTablesTest, Fills) {
  simulation::FillResult fill{.policy = "packed", .left = {4, 6}};
  fill.drawn[1] = 10;
  fill.dropped[1] = 1;
  const std::string table = FormatFills({fill}, false);
  EXPECT_THAT(table, HasSubstr("packed  5          4 to 6"));
  EXPECT_THAT(table, HasSubstr("10.0 %"));
}

}  // namespace
}  // namespace fluxqueue::cli
