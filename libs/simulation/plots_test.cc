#include "libs/simulation/plots.h"

#include <algorithm>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "libs/base/status_macros.h"
#include "libs/simulation/chart.h"
#include "libs/simulation/gantt.h"
#include "libs/simulation/testing_workload.h"
#include "libs/simulation/timeline.h"
#include "libs/simulation/what_if_plot.h"

namespace fluxqueue::simulation {
namespace {

using ::testing::DoubleNear;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Pointwise;

Outcome Ran(int64_t submitted_s,
            int64_t started_s,
            int64_t ended_s,
            std::vector<Place> places = {}) {
  return {Outcome::End::kEnded,
          false,
          std::chrono::seconds(submitted_s),
          std::chrono::seconds(started_s),
          std::chrono::seconds(ended_s),
          std::move(places)};
}

TEST(TimelineTest, MeansOfIntervals) {
  const Machine machine = MachineOfProcessors(2);
  const Workload workload = WorkloadOf({Job("a", 0, 10, 2), Job("b", 0, 5, 1)}, machine);
  // b waits until 10 and ends after 15.
  const Timeline timeline =
      TimelineOf(workload, machine, {Ran(100, 100, 110), Ran(100, 110, 115)}, 20, 5);
  EXPECT_EQ(timeline.interval_s, 4);
  EXPECT_THAT(timeline.utilisation,
              Pointwise(DoubleNear(1e-9), std::vector<double>{1, 1, 0.75, 0.375, 0}));
  EXPECT_THAT(timeline.queue_length,
              Pointwise(DoubleNear(1e-9), std::vector<double>{1, 1, 0.5, 0, 0}));
  EXPECT_TRUE(timeline.gpu_utilisation.empty());
  EXPECT_TRUE(timeline.fragmented_gpus.empty());
}

TEST(TimelineTest, GpusThatATypicalPodCannotUse) {
  const Machine machine = MachineOfTrace(
      {{"n", {{"cpu", 8000}, {"memory", 100}, {"fluxqueue.io/gpu-milli", 2000}}, "T4"}});
  trace::TraceJob part = Job("part", 0, 10, 1);
  part.requests["fluxqueue.io/gpu-milli"] = 600;
  trace::TraceJob whole = Job("whole", 0, 10, 1);
  whole.requests["fluxqueue.io/gpu-milli"] = 1000;
  const Workload workload = WorkloadOf({part, whole}, machine);
  // Until 10 a part of one GPU is taken: of the 1.4 that are free, one like `part` can have 0.6,
  // and one like `whole` 1. Then all is free: 1.2 and 2.
  const Timeline timeline =
      TimelineOf(workload, machine, {Ran(0, 0, 10, {{0, {0}}}), Ran(0, 18, 20, {{0, {0}}})}, 20, 2);
  EXPECT_THAT(timeline.fragmented_gpus,
              Pointwise(DoubleNear(1e-9), std::vector<double>{(0.8 + 0.4) / 2, (0.8 + 0) / 2}));
}

TEST(GanttTest, ASmallRunIsDrawnAsItWas) {
  const Machine machine = MachineOfProcessors(4);
  const Workload workload =
      WorkloadOf({Job("a", 0, 10, 3), Job("b", 0, 20, 1), Job("c", 0, 10, 3)}, machine);
  std::vector<Outcome> outcomes = {Ran(0, 0, 10), Ran(0, 0, 20), Ran(0, 10, 20)};
  outcomes[1].backfilled = true;
  const Gantt gantt = GanttOf(workload, machine, outcomes, 20);
  EXPECT_FALSE(gantt.of_nodes);
  EXPECT_EQ(gantt.rows, 4);
  EXPECT_THAT(gantt.bars,
              ElementsAre(Gantt::Bar{0, 3, 0, 200, 0},
                          Gantt::Bar{3, 1, 0, 400, Gantt::kBackfilled + 1},
                          Gantt::Bar{0, 3, 200, 400, 0}));
}

TEST(GanttTest, NodesByHowMuchOfThemIsInUse) {
  const Machine machine = MachineOfTrace({{"a", {{"cpu", 4000}}, ""}, {"b", {{"cpu", 1000}}, ""}});
  const Workload workload = WorkloadOf({Job("a", 0, 10, 2)}, machine);
  const Gantt gantt = GanttOf(workload, machine, {Ran(0, 0, 10, {{0, {}}, {1, {}}})}, 20);
  EXPECT_TRUE(gantt.of_nodes);
  EXPECT_THAT(gantt.bars,
              ElementsAre(Gantt::Bar{0, 1, 0, 200, 2}, Gantt::Bar{1, 1, 0, 200, Gantt::kLevels}));
}

TEST(PlotsTest, OnePageWithAllSettingsThatNeedsNothingElse) {
  const Machine machine = MachineOfProcessors(64);
  std::vector<trace::TraceJob> jobs;
  for (int i = 0; i < 5000; ++i) {
    jobs.push_back(Job(fmt::format("j{}", i), i, 1 + (i * 7919) % 300, 1 + (i * 31) % 64));
  }
  const Workload workload = WorkloadOf(jobs, machine);
  std::vector<Result> runs;
  for (const Estimates estimates : {Estimates::kExact, Estimates::kDouble}) {
    absl::StatusOr<Result> run = RunSetting(workload, machine, {.estimates = estimates}, nullptr);
    ASSERT_TRUE(run.ok()) << run.status();
    runs.push_back(*std::move(run));
  }
  const std::string page = PlotHtml(runs, workload, machine, "a & b");
  EXPECT_EQ(page, PlotHtml(runs, workload, machine, "a & b"));
  EXPECT_LT(page.size(), 2'000'000U);
  for (const char* there : {"<title>a &amp; b</title>",
                            "Utilisation over time",
                            "Queue length over time",
                            "Bounded slowdown by size",
                            "fcfs, first, exact",
                            "fcfs, first, x2",
                            "processors (0 to 63)",
                            "time since the first submission, days"}) {
    EXPECT_THAT(page, HasSubstr(there));
  }
  for (const char* elsewhere : {"<script", "<link", "src=", "href="}) {
    EXPECT_THAT(page, testing::Not(HasSubstr(elsewhere)));
  }
  EXPECT_THAT(page, testing::Not(HasSubstr("nan")));
}

TEST(WhatIfPlotTest, ALogAsItWasAndMightHaveBeen) {
  const Machine machine = MachineOfTrace({{"a", {{"cpu", 1000}}, ""}});
  const Workload workload =
      WorkloadOf({Job("a", 0, 10, 1), Job("b", 0, 10, 1), Job("c", 0, 10, 1)}, machine);
  // With a second node, which the machine has not; c has never started.
  Outcome waits = Ran(0, 0, 0);
  waits.end = Outcome::End::kWaits;
  std::vector<Result> runs = {
      {.name = "as recorded", .outcomes = {Ran(0, 0, 10), Ran(0, 10, 20), waits}},
      {.name = "1 more node",
       .outcomes = {Ran(0, 0, 10, {{0, {}}}), Ran(0, 0, 10, {{1, {}}}), waits}}};
  for (Result& run : runs) run.summary = Summarise(workload, machine, run.outcomes);
  const std::string svg = PlotWhatIf(runs, workload, machine);
  for (const char* there : {"as recorded",
                            "1 more node",
                            "Wait of each job",
                            "Jobs that have started",
                            "Jobs that wait",
                            "Cpus in use",
                            "% of those that there were"}) {
    EXPECT_THAT(svg, HasSubstr(there));
  }
  // Waits of 0, 10 and 20 s, and of 0, 0 and 20 s, between the top at 30 and the bottom at 218.
  EXPECT_THAT(svg, HasSubstr("224.0,218.0 512.0,124.0 800.0,30.0 "));
  EXPECT_THAT(svg, HasSubstr("224.0,218.0 512.0,218.0 800.0,30.0 "));
  EXPECT_THAT(svg, testing::Not(HasSubstr("nan")));
}

TEST(ChartTest, TextIsEscaped) {
  EXPECT_EQ(Escaped("<a href=\"x\">&"), "&lt;a href=&quot;x&quot;&gt;&amp;");
}

TEST(ChartTest, NothingButZeroes) {
  const std::string svg = Draw(LineChart{.title = "t", .lines = {{"a", {0, 0}}}});
  EXPECT_THAT(svg, testing::Not(HasSubstr("nan")));
  EXPECT_THAT(Draw(BarChart{.title = "t", .groups = {{"g", {0}, {0}}}}),
              testing::Not(HasSubstr("nan")));
}

}  // namespace
}  // namespace fluxqueue::simulation
