// Preemption on a whole system: off unless a queue says so; by priority; of borrowed share; of
// those whose room is of use.
#include <chrono>
#include <thread>

#include <gmock/gmock.h>

#include "tests/e2e/system_test_base.h"

namespace fluxqueue::e2e {
namespace {

class PreemptionTest : public SystemTest {
 protected:
  static void SetUpTestSuite() { StartSystem({.nodes = 2}); }

  static std::string In(const std::string& queue, int priority = 0) {
    return fmt::format(
        "{{fluxqueue.io/queue: {}, fluxqueue.io/priority: \"{}\"}}", queue, priority);
  }

  void Cancel(const std::string& name) {
    const auto done = system_->Fluxqueue({"cancel", "e2e/" + name});
    ASSERT_TRUE(done.ok()) << Message(done.status());
    EXPECT_EQ(done->exit_code, 0) << done->output;
    ExpectState(name, "Cancelled");
  }
};

// More than half of a node, which has 8: two of them do not fit.
constexpr char kMost[] = "5";
constexpr char kFirst[] = "      nodeSelector: {kubernetes.io/hostname: node-0}\n";
constexpr char kSecond[] = "      nodeSelector: {kubernetes.io/hostname: node-1}\n";

TEST_F(PreemptionTest, OffUnlessTheQueueSaysSo) {
  MakeQueue("calm", "{}");
  Apply(
      JobYaml("calm-low",
              {.cpu = kMost, .run_seconds = "60", .annotations = In("calm"), .pod_spec = kFirst}));
  ExpectState("calm-low", "Running");
  Apply(JobYaml("calm-high", {.cpu = kMost, .annotations = In("calm", 9), .pod_spec = kFirst}));
  const auto refused = [this] {
    return Count("queue.jobs WHERE name = 'calm-high' AND reason = 'Reserved'") == 1;
  };
  const absl::Status waits = system_->WaitFor(
      refused, std::chrono::seconds(30), [] { return "calm-high to have a reservation"; });
  EXPECT_TRUE(waits.ok()) << Message(waits);
  EXPECT_EQ(StateOf("calm-low"), "Running");
  EXPECT_EQ(StopsOf("calm-low"), 0);
  Cancel("calm-low");
  ExpectState("calm-high", "Succeeded");
}

TEST_F(PreemptionTest, ByPriorityTheVictimRunsAgainAfterwards) {
  MakeQueue("urgent", "{preemption: {byPriority: true, grace: 5s}}");
  Apply(JobYaml(
      "low", {.cpu = kMost, .run_seconds = "8", .annotations = In("urgent"), .pod_spec = kFirst}));
  ExpectState("low", "Running");
  Apply(JobYaml(
      "high",
      {.cpu = kMost, .run_seconds = "1", .annotations = In("urgent", 9), .pod_spec = kFirst}));
  ExpectState("high", "Succeeded");
  EXPECT_EQ(StopsOf("low"), 1);
  ExpectState("low", "Succeeded");
  // Not for a failure, and only once.
  EXPECT_EQ(StopsOf("low"), 1);
  EXPECT_EQ(StopsOf("high"), 0);
}

TEST_F(PreemptionTest, AGuaranteeIsReclaimed) {
  MakeQueue("lender",
            fmt::format("{{guarantee: {{cpu: \"{}\"}}, preemption: {{reclaim: true}}}}", kMost));
  MakeQueue("borrower", "{}");
  Apply(JobYaml(
      "lent",
      {.cpu = kMost, .run_seconds = "8", .annotations = In("borrower", 9), .pod_spec = kFirst}));
  ExpectState("lent", "Running");
  Apply(JobYaml(
      "mine", {.cpu = kMost, .run_seconds = "1", .annotations = In("lender"), .pod_spec = kFirst}));
  ExpectState("mine", "Succeeded");
  EXPECT_EQ(StopsOf("lent"), 1);
  ExpectState("lent", "Succeeded");
}

// A Job of another controller cannot be suspended: its pods are deleted, and a backoffLimit of 0
// allows for none that fails.
TEST_F(PreemptionTest, PodsThatAreStoppedAreNotChargedToAJobThatAsks) {
  MakeQueue("owned", "{preemption: {byPriority: true, grace: 5s}}");
  const auto owner = system_->Kubectl({"create",
                                       "configmap",
                                       "owner",
                                       "--namespace",
                                       "e2e",
                                       "--output",
                                       "jsonpath={.metadata.uid}"});
  ASSERT_TRUE(owner.ok()) << Message(owner.status());
  const auto of_job = [](const std::string& name, const std::string& field) {
    const auto value = system_->Kubectl(
        {"get", "job", name, "--namespace", "e2e", "--output", "jsonpath=" + field});
    return value.ok() ? *value : Message(value.status());
  };
  const auto stop_one = [&](const std::string& name, const std::string& keys) {
    Apply(
        JobYaml(name,
                {.cpu = kMost,
                 .run_seconds = "8",
                 .annotations = fmt::format("{{fluxqueue.io/queue: owned{}}}", keys),
                 .owners = fmt::format("[{{apiVersion: v1, kind: ConfigMap, name: owner, uid: {}, "
                                       "controller: true}}]",
                                       *owner),
                 .pod_spec = kFirst}));
    ExpectState(name, "Running");
    Apply(JobYaml(
        "for-" + name,
        {.cpu = kMost, .run_seconds = "1", .annotations = In("owned", 9), .pod_spec = kFirst}));
    ExpectState("for-" + name, "Succeeded");
    EXPECT_EQ(StopsOf(name), 1);
  };
  stop_one("charged", "");
  ExpectState("charged", "Failed");
  EXPECT_EQ(of_job("charged", "{.status.failed} {.status.conditions[?(@.type=='Failed')].reason}"),
            "1 BackoffLimitExceeded");
  stop_one("spared", ", fluxqueue.io/ignore-disruptions: \"true\"");
  ExpectState("spared", "Succeeded");
  EXPECT_EQ(
      of_job("spared", "{.spec.podFailurePolicy.rules[*].action} {.spec.podReplacementPolicy}"),
      "Ignore Failed");
  EXPECT_EQ(of_job("spared", "{.status.failed}/{.status.succeeded}"), "/1");
}

// Seventy jobs that would lose less run where the one that waits may not go.
TEST_F(PreemptionTest, OnlyThoseWhoseRoomIsOfUse) {
  MakeQueue("pinned", "{preemption: {byPriority: true, grace: 5s}}");
  const auto low = [](const std::string& name, const std::string& cpu, const char* node) {
    return JobYaml(
        name, {.cpu = cpu, .run_seconds = "600", .annotations = In("pinned"), .pod_spec = node});
  };
  Apply(low("old", kMost, kFirst));
  ExpectState("old", "Running");
  std::string many;
  for (int i = 0; i < 70; ++i) many += low(fmt::format("tiny-{}", i), "100m", kSecond);
  Apply(many);
  const absl::Status run = system_->WaitFor(
      [this] { return Count("queue.jobs WHERE name LIKE 'tiny-%' AND state = 'Running'") == 70; },
      std::chrono::seconds(60),
      [] { return "seventy jobs to run"; });
  ASSERT_TRUE(run.ok()) << Message(run);
  Apply(JobYaml(
      "here",
      {.cpu = kMost, .run_seconds = "1", .annotations = In("pinned", 9), .pod_spec = kFirst}));
  ExpectState("here", "Succeeded");
  EXPECT_EQ(StopsOf("old"), 1);
  EXPECT_EQ(
      Count("queue.job_events WHERE reason = 'Preempted' AND state = 'Stopping' AND job_id IN "
            "(SELECT job_id FROM queue.jobs WHERE name LIKE 'tiny-%')"),
      0);
  const auto deleted =
      system_->Kubectl({"delete", "jobs", "--all", "--namespace", "e2e", "--wait=false"});
  ASSERT_TRUE(deleted.ok()) << Message(deleted.status());
  ExpectState("old", "Cancelled");
}

// It holds all the cpus that it is guaranteed, and more gpus.
TEST_F(PreemptionTest, WhatExceedsAGuaranteeInOneResourceIsTakenBack) {
  const auto set_gpus = [this](const std::string& gpus) {
    const auto set =
        system_->Kubectl({"patch",
                          "node",
                          "node-0",
                          "--subresource=status",
                          "-p",
                          fmt::format(R"({{"status": {{"capacity": {{"nvidia.com/gpu": "{0}"}},
                                    "allocatable": {{"nvidia.com/gpu": "{0}"}}}}}})",
                                      gpus)});
    ASSERT_TRUE(set.ok()) << Message(set.status());
  };
  set_gpus("2");
  MakeQueue("both", "{guarantee: {cpu: 2, nvidia.com/gpu: 1}}");
  MakeQueue("gpus", "{guarantee: {nvidia.com/gpu: 1}, preemption: {reclaim: true}}");
  for (const char* name : {"both-1", "both-2"}) {
    Apply(JobYaml(name,
                  {.cpu = "1",
                   .run_seconds = "60",
                   .annotations = In("both"),
                   .limits = "{nvidia.com/gpu: 1}"}));
    ExpectState(name, "Running");
  }
  Apply(JobYaml("gpus-1",
                {.cpu = "1",
                 .run_seconds = "3",
                 .annotations = In("gpus"),
                 .limits = "{nvidia.com/gpu: 1}"}));
  ExpectState("gpus-1", "Succeeded");
  EXPECT_EQ(StopsOf("both-1") + StopsOf("both-2"), 1);
  EXPECT_EQ(StopsOf("gpus-1"), 0);
  Cancel("both-1");
  Cancel("both-2");
  set_gpus("0");
}

}  // namespace
}  // namespace fluxqueue::e2e
