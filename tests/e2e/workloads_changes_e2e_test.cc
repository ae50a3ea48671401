// Jobs whose size changes, and nodes that are drained or go, on a whole system.
#include <algorithm>
#include <map>
#include <string>
#include <vector>

#include <absl/strings/str_split.h>
#include <gmock/gmock.h>

#include "tests/e2e/workloads_fixture.h"

namespace fluxqueue::e2e {
namespace {

using ::testing::HasSubstr;

TEST_F(WorkloadsTest, AJobThatShrinksWhileItWaitsGetsWhatItAsksFor) {
  Apply(JobYaml("ahead", {.parallelism = 4, .completions = 4, .cpu = "8", .run_seconds = "600"}));
  ExpectState("ahead", "Running");
  Apply(JobYaml(
      "shrinks",
      {.parallelism = 4, .completions = 4, .indexed = true, .cpu = "8", .run_seconds = "600"}));
  ExpectState("shrinks", "Pending");
  const auto shrunk =
      system_->Kubectl({"patch",
                        "job",
                        "shrinks",
                        "-n",
                        "e2e",
                        R"(--patch={"spec": {"parallelism": 2, "completions": 2}})"});
  ASSERT_TRUE(shrunk.ok()) << Message(shrunk.status());
  std::string slots;
  const absl::Status followed = system_->WaitFor(
      [&] {
        slots =
            system_->QueryOne("SELECT slots FROM queue.jobs WHERE name = 'shrinks'").value_or("");
        return slots == "2";
      },
      std::chrono::seconds(30),
      [&] { return "a job of 2 slots, not " + slots; });
  EXPECT_TRUE(followed.ok()) << Message(followed);
  ASSERT_TRUE(system_->Kubectl({"delete", "job", "ahead", "-n", "e2e"}).ok());
  ExpectState("shrinks", "Running", std::chrono::seconds(60));
  const auto nodes = system_->QueryOne(
      "SELECT count(*) FROM binder.slots s JOIN queue.jobs j USING (job_id) "
      "WHERE j.name = 'shrinks' AND s.node <> ''");
  EXPECT_EQ(nodes.value_or(""), "2");
  ASSERT_TRUE(system_->Kubectl({"delete", "job", "shrinks", "-n", "e2e"}).ok());
  ExpectState("shrinks", "Cancelled", std::chrono::seconds(60));
}

TEST_F(WorkloadsTest, AJobThatRunsGrowsAndShrinks) {
  Apply(JobYaml(
      "sized",
      {.parallelism = 2, .completions = 2, .indexed = true, .cpu = "5", .run_seconds = "600"}));
  ExpectState("sized", "Running");
  const auto resize = [](int pods) {
    return system_->Kubectl({"patch",
                             "job",
                             "sized",
                             "-n",
                             "e2e",
                             fmt::format(R"(--patch={{"spec": {{"parallelism": {0},)"
                                         R"( "completions": {0}}}}})",
                                         pods)});
  };
  const std::vector<std::string> running = {
      "get", "job", "sized", "-n", "e2e", "-o", "jsonpath={.status.active} {.status.ready}"};
  ExpectShown(running, "2 2");
  const auto larger = resize(4);
  ASSERT_TRUE(larger.ok()) << Message(larger.status());
  ExpectShown(running, "4 4");
  const auto smaller = resize(2);
  ASSERT_TRUE(smaller.ok()) << Message(smaller.status());
  ExpectShown(running, "2 2");
  // What it gave back is there for others.
  Apply(JobYaml("beside", {.parallelism = 2, .completions = 2, .cpu = "5"}));
  ExpectState("beside", "Succeeded", std::chrono::seconds(60));
  EXPECT_EQ(system_->QueryOne("SELECT attempt FROM queue.jobs WHERE name = 'sized'").value_or(""),
            "1");
  ExpectShown({"get", "fluxjob", "job-sized", "-n", "e2e", "-o", "jsonpath={.status.reason}"},
              "Shrunk");
  ASSERT_TRUE(system_->Kubectl({"delete", "job", "sized", "-n", "e2e"}).ok());
  ExpectState("sized", "Cancelled", std::chrono::seconds(60));
}

// `kubectl drain`, a spot node, an autoscaler: the replacement of what is evicted goes elsewhere.
TEST_F(WorkloadsTest, AJobWhoseNodeIsDrainedRunsOnAnotherOne) {
  Apply(R"(apiVersion: batch/v1
kind: Job
metadata: {name: drained, namespace: e2e}
spec:
  backoffLimit: 3
  template:
    metadata: {annotations: {fluxqueue.io/run-seconds: "8"}}
    spec: {restartPolicy: Never, containers: [{name: main, image: busybox}]}
)");
  ExpectState("drained", "Running");
  const std::string where =
      "SELECT s.node FROM binder.slots s JOIN queue.jobs j USING (job_id) WHERE j.name = 'drained'";
  const auto node = system_->QueryOne(where);
  ASSERT_TRUE(node.ok()) << Message(node.status());
  const auto drained = system_->Kubectl({"drain", *node, "--ignore-daemonsets", "--force"});
  ASSERT_TRUE(drained.ok()) << Message(drained.status());
  std::string attempt;
  const absl::Status moved = system_->WaitFor(
      [&] {
        attempt =
            system_->QueryOne("SELECT attempt FROM queue.jobs WHERE name = 'drained'").value_or("");
        return attempt == "2";
      },
      std::chrono::seconds(60),
      [&] { return "the second attempt, not " + attempt; });
  EXPECT_TRUE(moved.ok()) << Message(moved);
  ExpectState("drained", "Running", std::chrono::seconds(60));
  const auto now = system_->QueryOne(where);
  ASSERT_TRUE(now.ok()) << Message(now.status());
  EXPECT_NE(*now, *node);
  EXPECT_THAT(EventsOf("drained"), HasSubstr("Requeued: NodeClosed: pod e2e/drained-"));
  EXPECT_THAT(EventsOf("drained"), HasSubstr("which is cordoned"));
  EXPECT_TRUE(system_->Kubectl({"uncordon", *node}).ok());
  ExpectState("drained", "Succeeded", std::chrono::seconds(60));
}

// One of three nodes is drained: only what ran there goes elsewhere.
TEST_F(WorkloadsTest, AGangWhoseNodeIsDrainedGoesOnWithAnotherSlot) {
  Apply(R"(apiVersion: batch/v1
kind: Job
metadata: {name: spread, namespace: e2e}
spec:
  parallelism: 3
  completions: 3
  completionMode: Indexed
  backoffLimit: 3
  template:
    metadata: {annotations: {fluxqueue.io/run-seconds: "30"}}
    spec:
      restartPolicy: Never
      containers: [{name: main, image: busybox, resources: {requests: {cpu: "5"}}}]
)");
  ExpectState("spread", "Running", std::chrono::seconds(60));
  // By index: node, uid and phase of the pod that is not going.
  const auto pods = [] {
    std::map<std::string, std::vector<std::string>> by_index;
    const auto lines = system_->Kubectl(
        {"get",
         "pods",
         "-n",
         "e2e",
         "-l",
         "batch.kubernetes.io/job-name=spread",
         "-o",
         "jsonpath={range .items[?(@.status.phase!=\"Failed\")]}{.metadata.annotations."
         "batch\\.kubernetes\\.io/job-completion-index} {.spec.nodeName} {.metadata.uid} "
         "{.status.phase} {.metadata.deletionTimestamp}{\"\\n\"}{end}"});
    for (const auto& line : absl::StrSplit(lines.value_or(""), '\n', absl::SkipEmpty())) {
      const std::vector<std::string> words = absl::StrSplit(line, ' ');
      if (words.size() == 5 && words[4].empty()) {
        by_index[words[0]] = {words[1], words[2], words[3]};
      }
    }
    return by_index;
  };
  std::map<std::string, std::vector<std::string>> before;
  const absl::Status ran = system_->WaitFor(
      [&] {
        before = pods();
        return before.size() == 3 && std::all_of(before.begin(), before.end(), [](const auto& pod) {
                 return pod.second[2] == "Running";
               });
      },
      std::chrono::seconds(30),
      [] { return "three pods that run"; });
  ASSERT_TRUE(ran.ok()) << Message(ran);
  const std::string node = before["1"][0];
  const auto drained = system_->Kubectl(
      {"drain", node, "--ignore-daemonsets", "--force", "--pod-selector=job-name=spread"});
  ASSERT_TRUE(drained.ok()) << Message(drained.status());
  std::map<std::string, std::vector<std::string>> after;
  const absl::Status moved = system_->WaitFor(
      [&] {
        after = pods();
        return after.size() == 3 && after["1"][1] != before["1"][1] && after["1"][2] == "Running";
      },
      std::chrono::seconds(60),
      [&] { return "the pod of index 1 on another node than " + node; });
  EXPECT_TRUE(moved.ok()) << Message(moved);
  EXPECT_NE(after["1"][0], node);
  for (const char* other : {"0", "2"}) {
    EXPECT_EQ(after[other][0], before[other][0]);
    EXPECT_EQ(after[other][1], before[other][1]) << "it runs on";
  }
  EXPECT_EQ(system_->QueryOne("SELECT attempt FROM queue.jobs WHERE name = 'spread'").value_or(""),
            "1");
  EXPECT_THAT(EventsOf("spread"), HasSubstr("SlotLost: node " + node + " is cordoned"));
  std::string shown;
  const absl::Status told = system_->WaitFor(
      [&] {
        shown = system_
                    ->Kubectl({"get",
                               "fluxjob",
                               "job-spread",
                               "-n",
                               "e2e",
                               "-o",
                               "jsonpath={.status.allocation[*].node} {.status.reason}"})
                    .value_or("");
        return shown.find(after["1"][0]) != std::string::npos &&
               shown.find(node) == std::string::npos;
      },
      std::chrono::seconds(30),
      [&] { return "the new node in its FluxJob, not " + shown; });
  EXPECT_TRUE(told.ok()) << Message(told);
  EXPECT_TRUE(system_->Kubectl({"uncordon", node}).ok());
  ExpectState("spread", "Succeeded", std::chrono::seconds(90));
}

// From here on there is a node less.
TEST_F(WorkloadsTest, AJobOnANodeThatGoesRunsAgainElsewhere) {
  Apply(JobYaml("moves", {.run_seconds = "5"}));
  ExpectState("moves", "Running");
  const auto node = system_->QueryOne(
      "SELECT s.node FROM binder.slots s JOIN queue.jobs j USING (job_id) WHERE j.name = 'moves'");
  ASSERT_TRUE(node.ok()) << Message(node.status());
  ASSERT_TRUE(system_->Kubectl({"delete", "node", *node}).ok());
  ExpectState("moves", "Succeeded", std::chrono::seconds(90));
  const auto attempt = system_->QueryOne("SELECT attempt FROM queue.jobs WHERE name = 'moves'");
  ASSERT_TRUE(attempt.ok());
  EXPECT_EQ(*attempt, "2");
}

}  // namespace
}  // namespace fluxqueue::e2e
