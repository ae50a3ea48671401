#include "libs/simulation/simulator.h"

#include <algorithm>
#include <map>
#include <random>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "libs/base/status_macros.h"
#include "libs/simulation/generator.h"
#include "libs/simulation/report.h"
#include "libs/simulation/run.h"
#include "libs/simulation/testing_workload.h"

namespace fluxqueue::simulation {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

Result Played(const std::vector<trace::TraceJob>& jobs,
              const Machine& machine,
              const Setting& setting = {}) {
  const Workload workload = WorkloadOf(jobs, machine);
  absl::StatusOr<Result> run = RunSetting(workload, machine, setting, nullptr);
  EXPECT_TRUE(run.ok()) << run.status();
  return *std::move(run);
}

std::vector<double> Waits(const Result& run) {
  std::vector<double> waits;
  for (const Outcome& outcome : run.outcomes) waits.push_back(WaitOf(outcome));
  return waits;
}

// Four processors. By hand, first come first served:
//
//   a  0-10  2 processors        b  0-20  3, waits for a: 10-30
//   c  1- 6  1, waits for b: 10-15, beside it                d  40-41  4, at once
TEST(SimulatorTest, ASmallWorkloadByHand) {
  const Machine machine = MachineOfProcessors(4);
  const Result run = Played(
      {Job("a", 0, 10, 2), Job("b", 0, 20, 3), Job("c", 1, 5, 1), Job("d", 40, 1, 4)}, machine);
  EXPECT_THAT(Waits(run), ElementsAre(0, 10, 9, 0));
  const Summary& summary = run.summary;
  EXPECT_EQ(summary.all.jobs, 4);
  EXPECT_EQ(summary.all.backfilled, 0);
  EXPECT_DOUBLE_EQ(summary.span_s, 41);
  EXPECT_DOUBLE_EQ(summary.utilisation, (20 + 60 + 5 + 4) / (4 * 41.0));
  // a: 1, b: 30/20, c: 14/10, d: 1, as its 1 s counts as 10.
  EXPECT_DOUBLE_EQ(summary.all.bounded_slowdown.mean, (1 + 1.5 + 1.4 + 1) / 4);
  EXPECT_DOUBLE_EQ(summary.all.bounded_slowdown.max, 1.5);
  EXPECT_DOUBLE_EQ(summary.all.wait_s.p50, 0);
  EXPECT_DOUBLE_EQ(summary.all.wait_s.p95, 10);
}

TEST(SimulatorTest, WhatEndsInASecondIsFreeForWhatArrivesInIt) {
  const Machine machine = MachineOfProcessors(1);
  const Result run = Played({Job("a", 0, 10, 1), Job("b", 10, 5, 1), Job("c", 10, 5, 1)}, machine);
  EXPECT_THAT(Waits(run), ElementsAre(0, 0, 5));
}

// Told 100 s, `late` runs for 1000 s. `wide`, which is first in line, waits for it; `other` would
// take 200 s. From 200 on `late` is planned to end at 500, so there is time for it.
TEST(SimulatorTest, BesideWhoOverrunsOthersBackfill) {
  std::vector<trace::TraceJob> jobs = {
      Job("late", 0, 1000, 2), Job("wide", 1, 10, 4), Job("other", 150, 200, 2)};
  jobs[0].requested_s = 100;
  const Result run = Played(
      jobs, MachineOfProcessors(4), {.strategy = "easy", .estimates = Estimates::kRequested});
  EXPECT_THAT(Waits(run), ElementsAre(0, 999, 50));
}

TEST(SimulatorTest, ArrivalsAreScaledToWholeSeconds) {
  const Machine machine = MachineOfProcessors(1);
  const Result run =
      Played({Job("a", 0, 10, 1), Job("b", 11, 5, 1)}, machine, {.arrival_scale = 0.6});
  EXPECT_THAT(Waits(run), ElementsAre(0, 3));  // it came after 6.6 s
}

TEST(SimulatorTest, FractionsOfASecondHoldTheProcessorToItsEnd) {
  const Machine machine = MachineOfProcessors(1);
  const Result run = Played({Job("a", 0, 0.5, 1), Job("b", 0, 1.5, 1), Job("c", 0, 1, 1)}, machine);
  EXPECT_THAT(Waits(run), ElementsAre(0, 1, 3));
}

TEST(SimulatorTest, NodesAreNamedWithTheirDevices) {
  const Machine machine =
      MachineOfTrace({{"n0", {{"cpu", 4000}}, ""},
                      {"n1", {{"cpu", 8000}, {"fluxqueue.io/gpu-milli", 2000}}, "T4"}});
  trace::TraceJob gpu = Job("gpu", 0, 10, 1);
  gpu.requests["fluxqueue.io/gpu-milli"] = 500;
  gpu.gpu_models = {"T4"};
  trace::TraceJob wide = Job("wide", 0, 10, 3);
  wide.requests["cpu"] = 3000;
  const Result run = Played({gpu, wide}, machine, {.policy = "lonode"});
  EXPECT_THAT(run.outcomes[0].places, ElementsAre(Place{1, {0}}));
  EXPECT_THAT(run.outcomes[1].places, ElementsAre(Place{0, {}}, Place{1, {}}, Place{1, {}}));
  EXPECT_THAT(run.summary.classes, testing::SizeIs(2));
  EXPECT_DOUBLE_EQ(run.summary.gpu_utilisation, 0.25);
}

// Two users, one in each queue, submit more than the machine has.
TEST(SimulatorTest, SeveralQueuesShareByTheirWeights) {
  std::vector<trace::TraceJob> jobs;
  const char* users[] = {"u1", "u2"};
  ASSERT_NE(QueueOf(Job("", 0, 1, 1, users[0]), 2), QueueOf(Job("", 0, 1, 1, users[1]), 2));
  for (int i = 0; i < 400; ++i) {
    jobs.push_back(Job(fmt::format("j{}", i), i, 20, 1, users[i % 2]));
  }
  const Result run = Played(jobs, MachineOfProcessors(4), {.strategy = "easy", .queues = {3, 1}});
  ASSERT_EQ(run.summary.queues.size(), 2u);
  EXPECT_EQ(run.summary.queues[0].name, "queue-1");
  EXPECT_EQ(run.summary.queues[0].figures.jobs + run.summary.queues[1].figures.jobs, 400u);
  EXPECT_NEAR(run.summary.queues[0].share, 0.75, 0.02);
  EXPECT_NEAR(run.summary.queues[1].share, 0.25, 0.02);
  EXPECT_TRUE(Played(jobs, MachineOfProcessors(4)).summary.queues.empty());
}

TEST(SimulatorTest, SettingsThatDoNotExist) {
  const Machine machine = MachineOfProcessors(1);
  const Workload workload = WorkloadOf({Job("a", 0, 1, 1)}, machine);
  const auto message = [&](const Setting& setting) {
    return Message(RunSetting(workload, machine, setting, nullptr).status());
  };
  EXPECT_THAT(message({.strategy = "lifo"}),
              HasSubstr("strategy \"lifo\" does not exist; allowed: fcfs"));
  EXPECT_THAT(message({.policy = "best"}), HasSubstr("best"));
}

TEST(SimulatorTest, TellsHowFarItIs) {
  const Machine machine = MachineOfProcessors(2);
  std::vector<trace::TraceJob> jobs;
  for (int i = 0; i < 1000; ++i) jobs.push_back(Job(fmt::format("j{}", i), i, 3, 1));
  const Workload workload = WorkloadOf(jobs, machine);
  std::vector<size_t> told;
  ASSERT_TRUE(RunSetting(workload, machine, {}, [&](size_t over) { told.push_back(over); }).ok());
  ASSERT_FALSE(told.empty());
  EXPECT_TRUE(std::is_sorted(told.begin(), told.end()));
  EXPECT_LE(told.back(), jobs.size());
}

// ---------------------------------------------------------------------------------- properties

std::vector<trace::TraceJob> SomeJobs(int64_t processors) {
  const auto drawn = *rc::gen::container<std::vector<std::tuple<int, int, int>>>(
      rc::gen::tuple(rc::gen::inRange(0, 30),
                     rc::gen::inRange(1, 40),
                     rc::gen::inRange(1, static_cast<int>(processors) + 1)));
  std::vector<trace::TraceJob> jobs;
  double submit = 0;
  for (const auto& [gap, run, width] : drawn) {
    submit += gap % 10;
    jobs.push_back(Job(fmt::format("j{}", jobs.size()), submit, run, width));
  }
  if (jobs.empty()) jobs.push_back(Job("only", 0, 1, 1));
  return jobs;
}

// On every node, at every moment, no more is held than there is.
void CheckCapacity(const Workload& workload, const Machine& machine, const Result& run) {
  std::map<std::pair<uint32_t, Millis>, int64_t> changes;  // by node and time: cpus taken
  for (size_t i = 0; i < run.outcomes.size(); ++i) {
    const Outcome& outcome = run.outcomes[i];
    const int64_t cpu = workload.jobs[i].requests.at("cpu");
    std::vector<Place> places = outcome.places;
    if (machine.homogeneous()) places = {{0}};
    RC_ASSERT(places.size() == static_cast<size_t>(workload.jobs[i].slots));
    for (const Place& place : places) {
      changes[{place.node, outcome.started}] += cpu;
      changes[{place.node, outcome.ended}] -= cpu;
    }
  }
  std::map<uint32_t, int64_t> held;
  for (const auto& [at, change] : changes) {
    held[at.first] += change;
    RC_ASSERT(held[at.first] >= 0);
    RC_ASSERT(held[at.first] <= machine.offers[at.first].offers.at("cpu"));
  }
}

void CheckEachRunsOnce(const Workload& workload, const Result& run) {
  for (size_t i = 0; i < run.outcomes.size(); ++i) {
    const Outcome& outcome = run.outcomes[i];
    RC_ASSERT(outcome.end == Outcome::End::kEnded);
    RC_ASSERT(outcome.submitted == kFirstSubmit + SubmitTime(workload.jobs[i], 1));
    RC_ASSERT(outcome.started >= outcome.submitted);
    RC_ASSERT(outcome.ended == outcome.started + RunTime(workload.jobs[i]));
  }
}

std::vector<std::string> AllStrategies() {
  std::vector<std::string> all;
  for (const char* name : {"fcfs", "easy", "conservative", "hybrid", "adaptive"}) {
    if (CheckSetting({.strategy = name}).ok()) all.emplace_back(name);
  }
  return all;
}

Result MustRun(const Workload& workload, const Machine& machine, const Setting& setting) {
  absl::StatusOr<Result> run = RunSetting(workload, machine, setting, nullptr);
  CHECK(run.ok(), "{}", Message(run.status()));
  return *std::move(run);
}

// First come, first served.
void CheckInOrder(const Result& run) {
  for (size_t i = 1; i < run.outcomes.size(); ++i) {
    RC_ASSERT(run.outcomes[i - 1].started <= run.outcomes[i].started);
  }
  RC_ASSERT(run.summary.all.backfilled == 0U);
}

void CheckRuns(const Machine& machine, std::string strategy, uint32_t depth) {
  std::vector<trace::TraceJob> jobs = SomeJobs(8);
  Setting setting;
  if (*rc::gen::arbitrary<bool>()) {
    // Too short, too long, not at all.
    setting.estimates = Estimates::kPredicted;
    if (*rc::gen::arbitrary<bool>()) setting.default_duration = std::chrono::seconds(7);
    for (trace::TraceJob& job : jobs) {
      job.user = *rc::gen::element<std::string>("ann", "bob");
      job.requested_s = static_cast<double>(*rc::gen::inRange(-1, 100));
    }
  }
  const Workload workload = WorkloadOf(jobs, machine);
  setting.strategy = std::move(strategy);
  setting.queue_depth = depth;
  const Result run = MustRun(workload, machine, setting);
  CheckEachRunsOnce(workload, run);
  CheckCapacity(workload, machine, run);
  if (setting.strategy == "fcfs") CheckInOrder(run);
  const Result again = MustRun(workload, machine, setting);
  RC_ASSERT(again.outcomes == run.outcomes);
  RC_ASSERT(ToJson({run}, workload).dump() == ToJson({again}, workload).dump());
}

RC_GTEST_PROP(SimulatorProperty, EachRunsOnceWithinCapacity, ()) {
  const std::vector<std::string> strategies = AllStrategies();
  const std::string strategy = strategies[*rc::gen::inRange<size_t>(0, strategies.size())];
  const auto depth = static_cast<uint32_t>(*rc::gen::inRange(0, 5));
  CheckRuns(MachineOfProcessors(8), strategy, depth);
  CheckRuns(
      MachineOfTrace({{"a", {{"cpu", 3000}}, ""}, {"b", {{"cpu", 5000}}, ""}}), strategy, depth);
}

Workload Generated(Requests requests, const Machine& machine) {
  return WorkloadOf(
      Generate({.jobs = 2000, .processors = machine.processors, .requests = requests}).jobs,
      machine);
}

Summary Told(const Workload& workload, const Machine& machine, Estimates estimates) {
  return MustRun(workload,
                 machine,
                 {.strategy = "easy",
                  .estimates = estimates,
                  .default_duration = std::chrono::hours(1)})
      .summary;
}

TEST(PredictionTest, DoesNoHarmWhereRequestsAreExact) {
  const Machine machine = MachineOfProcessors(256);
  const Workload workload = Generated(Requests::kExact, machine);
  const Summary requested = Told(workload, machine, Estimates::kRequested);
  const Summary predicted = Told(workload, machine, Estimates::kPredicted);
  EXPECT_LE(predicted.all.bounded_slowdown.mean, 1.02 * requested.all.bounded_slowdown.mean);
}

// Every job runs for as long as it said: then nobody starts later than it was ever promised,
// however many pass it.
void CheckPromises(const Machine& machine, const Setting& setting) {
  const Workload workload = WorkloadOf(SomeJobs(8), machine);
  const Result run = MustRun(workload, machine, setting);
  size_t promised = 0;
  for (const Outcome& outcome : run.outcomes) {
    if (outcome.promised == Millis(0)) continue;
    ++promised;
    RC_ASSERT(outcome.started <= outcome.promised);
  }
  RC_TAG(setting.strategy + (promised > 0 ? ", promises" : ", none"));
}

RC_GTEST_PROP(SimulatorProperty, NobodyStartsLaterThanPromised, ()) {
  const char* strategies[] = {"easy", "hybrid", "conservative"};
  const std::string strategy = strategies[*rc::gen::inRange(0, 3)];
  CheckPromises(MachineOfProcessors(8), {.strategy = strategy});
  CheckPromises(MachineOfTrace({{"a", {{"cpu", 3000}}, ""}, {"b", {{"cpu", 5000}}, ""}}),
                {.strategy = strategy, .policy = "lonode"});
}

}  // namespace
}  // namespace fluxqueue::simulation
