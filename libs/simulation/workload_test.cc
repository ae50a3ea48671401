#include "libs/simulation/workload.h"

#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "libs/base/status_macros.h"
#include "libs/simulation/testing_workload.h"

namespace fluxqueue::simulation {
namespace {

using ::testing::HasSubstr;

trace::Trace TraceOf(std::vector<trace::TraceJob> jobs) {
  trace::Trace trace;
  trace.jobs = std::move(jobs);
  return trace;
}

TEST(WorkloadTest, OneSlotOnAMachineOfProcessors) {
  const Workload workload = WorkloadOf({Job("a", 0, 1, 3)}, MachineOfProcessors(3));
  EXPECT_EQ(workload.jobs[0].slots, 1);
  EXPECT_EQ(workload.jobs[0].requests.at("cpu"), 3000);
  EXPECT_EQ(ProcessorsOf(workload.jobs[0]), 3);
}

TEST(WorkloadTest, SlotsOnNodes) {
  const Machine machine = MachineOfTrace({{"n", {{"cpu", 3000}}, ""}});
  const Workload workload = WorkloadOf({Job("a", 0, 1, 3)}, machine);
  EXPECT_EQ(workload.jobs[0].slots, 3);
  EXPECT_EQ(ProcessorsOf(workload.jobs[0]), 3);
}

TEST(WorkloadTest, WhatDoesNotRunIsLeftOutAndTimeBeginsWithTheFirstThatDoes) {
  const auto workload = MakeWorkload(TraceOf({Job("a", 0, 0, 1), Job("b", 7, 1, 1)}),
                                     MachineOfProcessors(1),
                                     TooWide::kRefuse,
                                     "t.swf");
  ASSERT_TRUE(workload.ok());
  EXPECT_EQ(workload->without_run_time, 1);
  ASSERT_EQ(workload->jobs.size(), 1);
  EXPECT_EQ(workload->jobs[0].submit_s, 0);
}

TEST(WorkloadTest, TooWide) {
  std::vector<trace::TraceJob> jobs = {Job("a", 0, 1, 2), Job("wide", 1, 1, 5)};
  jobs[1].line = 12;
  const auto refused =
      MakeWorkload(TraceOf(jobs), MachineOfProcessors(4), TooWide::kRefuse, "t.swf");
  EXPECT_THAT(Message(refused.status()),
              HasSubstr("t.swf:12: job wide asks for 5 processors, and the machine has 4"));
  EXPECT_THAT(Message(refused.status()), HasSubstr("--skip-too-wide"));
  const auto on_nodes = MakeWorkload(
      TraceOf(jobs), MachineOfTrace({{"n", {{"cpu", 4000}}, ""}}), TooWide::kRefuse, "t.swf");
  EXPECT_THAT(
      Message(on_nodes.status()),
      HasSubstr("t.swf:12: job wide does not fit on the 1 nodes, even when they are empty"));
  const auto left =
      MakeWorkload(TraceOf(jobs), MachineOfProcessors(4), TooWide::kLeaveOut, "t.swf");
  ASSERT_TRUE(left.ok());
  EXPECT_EQ(left->too_wide, 1);
  EXPECT_EQ(left->jobs.size(), 1);
  const auto none =
      MakeWorkload(TraceOf({jobs[1]}), MachineOfProcessors(4), TooWide::kLeaveOut, "t.swf");
  EXPECT_THAT(Message(none.status()), HasSubstr("t.swf: there is no job in it that can run"));
}

TEST(WorkloadTest, Estimates) {
  trace::TraceJob job = Job("a", 0, 1.2, 1);
  size_t unknown = 0;
  EXPECT_EQ(Estimate(job, {.estimates = Estimates::kExact}, &unknown), Millis(2000));
  EXPECT_EQ(Estimate(job, {.estimates = Estimates::kDouble}, &unknown), Millis(4000));
  EXPECT_EQ(unknown, 0);
  EXPECT_EQ(Estimate(job, {.estimates = Estimates::kRequested}, &unknown), Millis(2000));
  EXPECT_EQ(unknown, 1);
  job.requested_s = 60;
  EXPECT_EQ(Estimate(job, {.estimates = Estimates::kRequested}, &unknown), Millis(60'000));
  EXPECT_EQ(unknown, 1);
  EXPECT_EQ(Estimate(job, {.estimates = Estimates::kModal}, &unknown), Millis(300'000));
}

TEST(WorkloadTest, WhereNothingWasAskedForTheQueueHasADefault) {
  trace::TraceJob job = Job("a", 0, 1.2, 1);
  size_t unknown = 0;
  Setting setting{.estimates = Estimates::kPredicted, .default_duration = Millis(5000)};
  EXPECT_EQ(Estimate(job, setting, &unknown), std::nullopt);
  EXPECT_EQ(unknown, 1);
  job.requested_s = 60;
  EXPECT_EQ(Estimate(job, setting, &unknown), Millis(60'000));
  setting.estimates = Estimates::kExact;
  EXPECT_EQ(Estimate(job, setting, &unknown), Millis(2000));
  EXPECT_EQ(unknown, 1);
}

TEST(SettingTest, NamesOfEstimates) {
  for (const Estimates each : {Estimates::kExact,
                               Estimates::kRequested,
                               Estimates::kDouble,
                               Estimates::kModal,
                               Estimates::kPredicted}) {
    EXPECT_EQ(*ParseEstimates(Name(each)), each);
  }
  EXPECT_THAT(Message(ParseEstimates("guess").status()),
              HasSubstr("allowed: exact, requested, x2, modal, predicted"));
}

TEST(MachineTest, AsKubectlPrintsNodes) {
  const std::string json =
      R"({"kind":"List","items":[{"metadata":{"name":"n1","uid":"u1","labels":{)"
      R"("fluxqueue.io/gpu-model":"T4"}},"status":{"allocatable":{"cpu":"3500m","memory":"1Gi",)"
      R"("pods":"110"},"conditions":[{"type":"Ready","status":"True"}]}}]})";
  const std::string yaml =
      "kind: List\nitems:\n- metadata:\n    name: n1\n    uid: u1\n    labels:\n"
      "      fluxqueue.io/gpu-model: T4\n  status:\n    allocatable:\n      cpu: 3500m\n"
      "      memory: 1Gi\n      pods: \"110\"\n    conditions:\n"
      "    - type: Ready\n      status: \"True\"\n";
  for (const std::string& text : {json, yaml}) {
    const auto machine = MachineOfKubernetes(text, "nodes");
    ASSERT_TRUE(machine.ok()) << machine.status();
    ASSERT_EQ(machine->nodes.size(), 1);
    EXPECT_TRUE(machine->nodes[0].ready());
    EXPECT_EQ(machine->offers[0].gpu_model, "T4");
    EXPECT_EQ(machine->Total("cpu"), 3500);
    EXPECT_EQ(machine->Total("pods"), 110);
  }
}

TEST(MachineTest, BadLists) {
  struct Case {
    const char* text;
    const char* message;
  };
  for (const Case& c : {Case{"{}", "nodes.json: it has no list \"items\""},
                        Case{"{\"items\":[]}", "nodes.json: it names no node"},
                        Case{"a: [", "nodes.json: "},
                        Case{R"({"items":[{"metadata":{"name":"n"}},{"metadata":{"name":"n"}}]})",
                             "node n is here for the second time"}}) {
    const auto machine = MachineOfKubernetes(c.text, "nodes.json");
    ASSERT_FALSE(machine.ok()) << c.text;
    EXPECT_THAT(Message(machine.status()), HasSubstr(c.message));
  }
}

}  // namespace
}  // namespace fluxqueue::simulation
