// What users do, on a whole system: every kind of workload, waiting, refusal, hold, cancel, delete.
#include <string>
#include <vector>

#include <absl/strings/str_split.h>
#include <gmock/gmock.h>

#include "tests/e2e/workloads_fixture.h"

namespace fluxqueue::e2e {
namespace {

using ::testing::AnyOf;
using ::testing::Eq;
using ::testing::HasSubstr;

TEST_F(WorkloadsTest, AJobOfOnePodRunsToItsEnd) {
  Apply(JobYaml("one"));
  ExpectState("one", "Succeeded");
  const auto history = system_->Query(
      "SELECT e.version, e.state FROM queue.job_events e JOIN queue.jobs j USING (job_id) "
      "WHERE j.name = 'one' ORDER BY e.version");
  ASSERT_TRUE(history.ok());
  ASSERT_GE(history->size(), 4);
  EXPECT_EQ(history->front(), (testing::MiniSystem::Row{"1", "Pending"}));
  EXPECT_EQ(history->back()[1], "Succeeded");
}

TEST_F(WorkloadsTest, IndexedPodsGetTheSlotOfTheirIndex) {
  Apply(JobYaml("indexed", {.parallelism = 6, .completions = 6, .indexed = true, .cpu = "2"}));
  ExpectState("indexed", "Succeeded");
  const auto pods = system_->Kubectl(
      {"get",
       "pods",
       "-n",
       "e2e",
       "-l",
       "batch.kubernetes.io/job-name=indexed",
       "-o",
       "jsonpath={range .items[*]}{.metadata.annotations.batch\\.kubernetes\\.io/"
       "job-completion-index}={.metadata.annotations.fluxqueue\\.io/allocation}{\"\\n\"}{end}"});
  ASSERT_TRUE(pods.ok()) << Message(pods.status());
  for (int i = 0; i < 6; ++i) EXPECT_THAT(*pods, HasSubstr(fmt::format("{}=1.0.{}/6\n", i, i)));
}

TEST_F(WorkloadsTest, AJobOfManyPodsIsSuspendedUntilItHasItsNodes) {
  Apply(JobYaml("gang", {.parallelism = 20, .completions = 20, .cpu = "1"}));
  ExpectState("gang", "Succeeded");
  const auto annotation = system_->Kubectl(
      {"get", "job", "gang", "-n", "e2e", "-o", "jsonpath={.spec.suspend} {.status.succeeded}"});
  ASSERT_TRUE(annotation.ok());
  EXPECT_EQ(*annotation, "false 20");
}

TEST_F(WorkloadsTest, MoreCompletionsThanSlots) {
  Apply(JobYaml("rounds", {.parallelism = 2, .completions = 6}));
  ExpectState("rounds", "Succeeded");
}

TEST_F(WorkloadsTest, BarePodsAlsoWithGenerateName) {
  Apply(R"(apiVersion: v1
kind: Pod
metadata: {name: alone, namespace: e2e, annotations: {fluxqueue.io/run-seconds: "0.2"}}
spec: {restartPolicy: Never, containers: [{name: main, image: busybox}]}
---
apiVersion: v1
kind: Pod
metadata: {generateName: made-, namespace: e2e, annotations: {fluxqueue.io/run-seconds: "0.2"}}
spec: {restartPolicy: Never, containers: [{name: main, image: busybox}]}
)");
  ExpectState("alone", "Succeeded");
  const absl::Status both = system_->WaitFor(
      [&] { return Count("queue.jobs WHERE kind = 'Pod' AND state = 'Succeeded'") == 2; },
      std::chrono::seconds(60),
      [] { return "two pods that succeeded"; });
  EXPECT_TRUE(both.ok()) << Message(both);
}

TEST_F(WorkloadsTest, APodWithAClaimIsPinned) {
  Apply(kClaimYaml + std::string(R"(apiVersion: v1
kind: Pod
metadata: {name: pinned, namespace: e2e, annotations: {fluxqueue.io/run-seconds: "0.2"}}
spec:
  restartPolicy: Never
  containers: [{name: main, image: busybox}]
  volumes: [{name: data, persistentVolumeClaim: {claimName: claim}}]
)"));
  ExpectState("pinned", "Succeeded");
  const auto scheduler = system_->Kubectl(
      {"get", "pod", "pinned", "-n", "e2e", "-o", "jsonpath={.spec.schedulerName}"});
  ASSERT_TRUE(scheduler.ok());
  EXPECT_EQ(*scheduler, "default-scheduler");
}

// Of the nodes with room those that it prefers, and not those with a soft taint, until they are
// full.
TEST_F(WorkloadsTest, AJobRunsOnNodesThatItPrefersWhileThereIsRoom) {
  const auto names = system_->Kubectl({"get", "nodes", "-o", "jsonpath={.items[*].metadata.name}"});
  ASSERT_TRUE(names.ok()) << Message(names.status());
  const std::vector<std::string> nodes = absl::StrSplit(*names, ' ');
  ASSERT_EQ(nodes.size(), 4u);
  ASSERT_TRUE(system_->Kubectl({"label", "node", nodes[1], "disk=ssd"}).ok());
  ASSERT_TRUE(
      system_->Kubectl({"taint", "node", nodes[2], nodes[3], "spot=yes:PreferNoSchedule"}).ok());
  const std::string prefers = R"(      affinity:
        nodeAffinity:
          preferredDuringSchedulingIgnoredDuringExecution:
            - {weight: 50, preference: {matchExpressions: [{key: disk, operator: Exists}]}}
)";
  const auto nodes_of = [](const std::string& job) {
    return system_
        ->QueryOne(fmt::format("SELECT string_agg(s.node, ' ' ORDER BY s.slot) FROM binder.slots s "
                               "JOIN queue.jobs j USING (job_id) WHERE j.name = '{}'",
                               job))
        .value_or("");
  };
  Apply(JobYaml("prefers", {.cpu = "5", .run_seconds = "600", .pod_spec = prefers}));
  ExpectState("prefers", "Running");
  EXPECT_EQ(nodes_of("prefers"), nodes[1]);
  // Nothing fits beside it, so the others go where they would be without.
  Apply(JobYaml("plain", {.cpu = "5", .run_seconds = "600"}));
  ExpectState("plain", "Running");
  EXPECT_EQ(nodes_of("plain"), nodes[0]);
  Apply(JobYaml(
      "last",
      {.parallelism = 2, .completions = 2, .cpu = "5", .run_seconds = "600", .pod_spec = prefers}));
  ExpectState("last", "Running");
  EXPECT_THAT(nodes_of("last"), AnyOf(nodes[2] + " " + nodes[3], nodes[3] + " " + nodes[2]));
  ASSERT_TRUE(system_->Kubectl({"delete", "job", "prefers", "plain", "last", "-n", "e2e"}).ok());
  for (const char* job : {"prefers", "plain", "last"}) {
    ExpectState(job, "Cancelled", std::chrono::seconds(60));
  }
  ASSERT_TRUE(system_->Kubectl({"label", "node", nodes[1], "disk-"}).ok());
  ASSERT_TRUE(system_->Kubectl({"taint", "node", nodes[2], nodes[3], "spot-"}).ok());
}

TEST_F(WorkloadsTest, AGangStaysInOneZoneOrSaysWhyNot) {
  const auto nodes = system_->Kubectl({"get", "nodes", "-o", "jsonpath={.items[*].metadata.name}"});
  ASSERT_TRUE(nodes.ok()) << Message(nodes.status());
  const std::vector<std::string> names = absl::StrSplit(*nodes, ' ');
  ASSERT_EQ(names.size(), 4u);
  for (size_t i = 0; i < names.size(); ++i) {
    const std::string zone = i < 2 ? "a" : "b";
    ASSERT_TRUE(
        system_->Kubectl({"label", "node", names[i], "topology.kubernetes.io/zone=" + zone}).ok());
  }
  const auto annotated = [](const std::string& topology) {
    return "{fluxqueue.io/topology: \"" + topology + "\"}";
  };
  // Four pods of which one node has room for one: two zones would do, one does not.
  Apply(JobYaml("wide",
                {.parallelism = 4,
                 .completions = 4,
                 .cpu = "5",
                 .annotations = annotated("required: zone")}));
  ExpectReason("wide", "Unsatisfiable");
  EXPECT_EQ(MessageOf("wide"),
            "zone: at most 2 of 4 slots would fit in one zone if all nodes were up and empty; it "
            "waits for nodes that can run it");
  Apply(JobYaml("wished",
                {.parallelism = 4,
                 .completions = 4,
                 .cpu = "5",
                 .annotations = annotated("preferred: zone")}));
  ExpectState("wished", "Succeeded");
  Apply(JobYaml("close",
                {.parallelism = 2,
                 .completions = 2,
                 .cpu = "5",
                 .annotations = annotated("required: zone")}));
  ExpectState("close", "Succeeded");
  const auto placed = system_->Kubectl({"get",
                                        "pods",
                                        "-n",
                                        "e2e",
                                        "-l",
                                        "batch.kubernetes.io/job-name=close",
                                        "-o",
                                        "jsonpath={.items[*].spec.nodeName}"});
  ASSERT_TRUE(placed.ok()) << Message(placed.status());
  EXPECT_THAT(*placed,
              AnyOf(Eq(names[0] + " " + names[1]),
                    Eq(names[1] + " " + names[0]),
                    Eq(names[2] + " " + names[3]),
                    Eq(names[3] + " " + names[2])));
}

TEST_F(WorkloadsTest, PodsShareGpusAndAreToldWhich) {
  const auto names = system_->Kubectl({"get", "nodes", "-o", "jsonpath={.items[0].metadata.name}"});
  ASSERT_TRUE(names.ok()) << Message(names.status());
  const std::string gpus = R"({"fluxqueue.io/gpu-milli": "2000"})";
  ASSERT_TRUE(
      system_
          ->Kubectl(
              {"patch",
               "node",
               *names,
               "--subresource=status",
               "-p",
               fmt::format(R"({{"status": {{"capacity": {}, "allocatable": {}}}}})", gpus, gpus)})
          .ok());
  Apply(JobYaml("share",
                {.parallelism = 2, .completions = 2, .limits = "{fluxqueue.io/gpu-milli: 600}"}));
  ExpectState("share", "Succeeded");
  const auto devices =
      system_->Kubectl({"get",
                        "pods",
                        "-n",
                        "e2e",
                        "-l",
                        "batch.kubernetes.io/job-name=share",
                        "-o",
                        R"(jsonpath={.items[*].metadata.annotations.fluxqueue\.io/gpu-devices})"});
  ASSERT_TRUE(devices.ok()) << Message(devices.status());
  EXPECT_THAT(*devices, AnyOf(Eq("0 1"), Eq("1 0")));
  Apply(JobYaml("too-much", {.limits = "{fluxqueue.io/gpu-milli: 2500}"}));
  ExpectReason("too-much", "Unsatisfiable");
  EXPECT_EQ(MessageOf("too-much"),
            "fluxqueue.io/gpu-milli: a slot needs 2500, the largest node has 2000; it waits for "
            "nodes that can run it");
}

TEST_F(WorkloadsTest, AJobLargerThanTheClusterWaitsOrIsRejectedWithTheResource) {
  MakeQueue("impatient", "{rejectAfter: 1s}");
  Apply(JobYaml("huge", {.cpu = "64", .annotations = "{fluxqueue.io/queue: impatient}"}));
  ExpectState("huge", "Rejected");
  EXPECT_THAT(MessageOf("huge"), HasSubstr("cpu"));
}

TEST_F(WorkloadsTest, AJobWaitsForRoomAndThenStarts) {
  Apply(JobYaml("fills", {.parallelism = 4, .completions = 4, .cpu = "8", .run_seconds = "4"}));
  ExpectState("fills", "Running");
  Apply(JobYaml("waits", {.cpu = "8"}));
  ExpectState("waits", "Pending");
  const absl::Status explained =
      system_->WaitFor([&] { return MessageOf("waits").find("cpu") != std::string::npos; },
                       std::chrono::seconds(20),
                       [&] { return "a reason that names cpu: " + MessageOf("waits"); });
  EXPECT_TRUE(explained.ok()) << Message(explained);
  ExpectState("waits", "Succeeded");
  EXPECT_THAT(EventsOf("waits"), HasSubstr("Queued: place 1 in queue default: "));
  // It may have ended before it is told that it was bound.
  EXPECT_THAT(EventsOf("waits"), HasSubstr(": on node-"));
  EXPECT_EQ(EventsOf("fills"), "") << "it started at once";
  const auto overlap = system_->QueryOne(
      "SELECT min(w.time_ms) >= min(f.time_ms) FROM queue.job_events w, queue.job_events f, "
      "queue.jobs jw, queue.jobs jf WHERE jw.name = 'waits' AND w.job_id = jw.job_id AND "
      "w.state = 'Allocated' AND jf.name = 'fills' AND f.job_id = jf.job_id AND "
      "f.state IN ('Running', 'Succeeded')");
  ASSERT_TRUE(overlap.ok());
  EXPECT_EQ(*overlap, "t");
}

// As kube-scheduler says it, so that autoscalers add nodes for the first in line and no other.
TEST_F(WorkloadsTest, APodThatWaitsSaysInItsStatusWhy) {
  const auto apply = [this](const std::string& name) {
    Apply(fmt::format(R"(apiVersion: v1
kind: Pod
metadata: {{name: {}, namespace: e2e, annotations: {{fluxqueue.io/run-seconds: "1"}}}}
spec:
  restartPolicy: Never
  containers: [{{name: main, image: busybox, resources: {{requests: {{cpu: "5"}}}}}}]
)",
                      name));
  };
  const auto shown = [](const std::string& name, const std::string& field) {
    return std::vector<std::string>{
        "get",
        "pod",
        name,
        "-n",
        "e2e",
        "-o",
        R"(jsonpath={.status.conditions[?(@.type=="PodScheduled")].)" + field + "}"};
  };
  Apply(JobYaml("full", {.parallelism = 4, .completions = 4, .cpu = "5", .run_seconds = "600"}));
  ExpectState("full", "Running");
  apply("first");
  ExpectShown(shown("first", "reason"), "Unschedulable");
  ExpectShown(shown("first", "status"), "False");
  EXPECT_THAT(system_->Kubectl(shown("first", "message")).value_or(""), HasSubstr("cpu"));
  apply("second");
  ExpectShown(shown("second", "reason"), "Busy");
  // The first does not want to start now, so it is for the second that nodes are missing.
  ASSERT_TRUE(
      system_->Kubectl({"annotate", "pod", "first", "-n", "e2e", "fluxqueue.io/hold=true"}).ok());
  ExpectShown(shown("first", "reason"), "Held");
  ExpectShown(shown("second", "reason"), "Unschedulable");
  ASSERT_TRUE(system_->Kubectl({"delete", "job", "full", "-n", "e2e"}).ok());
  ExpectState("second", "Succeeded", std::chrono::seconds(60));
  ExpectShown(shown("second", "status"), "True");
  ASSERT_TRUE(system_->Kubectl({"delete", "pod", "first", "-n", "e2e"}).ok());
  ExpectState("first", "Cancelled");
}

// A Job that is held by its suspend has no pods, so the cluster autoscaler is asked for the nodes
// of all of them.
TEST_F(WorkloadsTest, AJobThatLacksNodesAsksTheAutoscalerForThem) {
  DefineKind("ProvisioningRequest", "provisioningrequests", "autoscaling.x-k8s.io", "v1");
  Apply(JobYaml("full", {.parallelism = 4, .completions = 4, .cpu = "5", .run_seconds = "600"}));
  ExpectState("full", "Running");
  Apply(JobYaml("lacks", {.parallelism = 20, .completions = 20, .cpu = "1"}));
  // Of so few pods it is not suspended: they say themselves, when it is their turn, what they lack.
  Apply(JobYaml("behind", {.cpu = "5"}));
  const std::vector<std::string> requests = {
      "get",
      "provisioningrequest",
      "-n",
      "e2e",
      "-o",
      "jsonpath={range .items[*]}{.metadata.ownerReferences[0].name} {.spec.podSets[0].count} "
      "{.spec.provisioningClassName}{end}"};
  ExpectShown(requests, "lacks 20 atomic.example.com");
  const std::vector<std::string> templates = {
      "get",
      "podtemplate",
      "-n",
      "e2e",
      "-o",
      "jsonpath={range .items[*]}{.template.spec.containers[0].resources.requests.cpu}{end}"};
  ExpectShown(templates, "1");
  ASSERT_TRUE(system_->Kubectl({"delete", "job", "full", "-n", "e2e"}).ok());
  ExpectState("lacks", "Succeeded", std::chrono::seconds(60));
  ExpectState("behind", "Succeeded", std::chrono::seconds(60));
  ExpectShown(requests, "", std::chrono::seconds(60));
  ExpectShown(templates, "");
}

TEST_F(WorkloadsTest, AHoldIsTakenOff) {
  Apply(JobYaml("held", {.annotations = "{fluxqueue.io/hold: \"true\"}"}));
  ExpectState("held", "Pending");
  Apply(JobYaml("passes"));
  ExpectState("passes", "Succeeded");
  EXPECT_EQ(StateOf("held"), "Pending");
  ASSERT_TRUE(
      system_->Kubectl({"annotate", "job", "held", "-n", "e2e", "fluxqueue.io/hold-"}).ok());
  ExpectState("held", "Succeeded");
}

// Nobody makes its pods here, so nodes would wait for them.
TEST_F(WorkloadsTest, AJobThatAnotherControllerManagesIsLeftAlone) {
  Apply(R"(apiVersion: batch/v1
kind: Job
metadata: {name: others, namespace: e2e}
spec:
  managedBy: example.com/x
  template:
    spec: {restartPolicy: Never, containers: [{name: main, image: busybox}]}
)");
  Apply(JobYaml("beside-others"));
  ExpectState("beside-others", "Succeeded");
  EXPECT_EQ(Count("queue.jobs WHERE name = 'others'"), 0);
  const auto job = system_->Kubectl({"get", "job", "others", "-n", "e2e", "-o", "json"});
  ASSERT_TRUE(job.ok()) << Message(job.status());
  EXPECT_THAT(*job, ::testing::Not(::testing::HasSubstr("fluxqueue")));
  EXPECT_TRUE(system_->Kubectl({"delete", "job", "others", "-n", "e2e"}).ok());
}

TEST_F(WorkloadsTest, ARunningJobIsCancelled) {
  Apply(JobYaml("cancelled", {.parallelism = 3, .completions = 3, .run_seconds = "600"}));
  ExpectState("cancelled", "Running");
  ASSERT_TRUE(
      system_->Kubectl({"annotate", "job", "cancelled", "-n", "e2e", "fluxqueue.io/cancel=true"})
          .ok());
  ExpectState("cancelled", "Cancelled");
  const auto suspended =
      system_->Kubectl({"get", "job", "cancelled", "-n", "e2e", "-o", "jsonpath={.spec.suspend}"});
  ASSERT_TRUE(suspended.ok());
  EXPECT_EQ(*suspended, "true");
}

TEST_F(WorkloadsTest, ADeletedJobGivesItsNodesBack) {
  Apply(JobYaml("deleted", {.parallelism = 4, .completions = 4, .cpu = "8", .run_seconds = "600"}));
  ExpectState("deleted", "Running");
  ASSERT_TRUE(system_->Kubectl({"delete", "job", "deleted", "-n", "e2e"}).ok());
  ExpectState("deleted", "Cancelled");
  Apply(JobYaml("after", {.parallelism = 4, .completions = 4, .cpu = "8"}));
  ExpectState("after", "Succeeded");
}

// The garbage collector takes the owner off what the Job owned.
TEST_F(WorkloadsTest, AJobThatIsDeletedAsAnOrphanLeavesNoFluxJob) {
  Apply(JobYaml("orphan"));
  ExpectState("orphan", "Succeeded");
  // It is written a second after the job was heard of.
  ExpectShown({"get", "fluxjob", "job-orphan", "-n", "e2e", "-o", "jsonpath={.status.state}"},
              "Succeeded");
  const auto deleted =
      system_->Kubectl({"delete", "job", "orphan", "-n", "e2e", "--cascade=orphan"});
  ASSERT_TRUE(deleted.ok()) << Message(deleted.status());
  ASSERT_TRUE(system_->Kubectl({"delete", "pods", "-n", "e2e", "-l", "job-name=orphan"}).ok());
  ExpectShown({"get",
               "fluxjob",
               "job-orphan",
               "-n",
               "e2e",
               "-o",
               "jsonpath={.metadata.name}"
               "{.metadata.ownerReferences}"},
              "job-orphan");
  // It compares each hour, and when it starts.
  ASSERT_TRUE(system_->KillService("queue").ok());
  const absl::Status started = system_->StartService("queue");
  ASSERT_TRUE(started.ok()) << Message(started);
  ExpectShown({"get",
               "fluxjobs",
               "-n",
               "e2e",
               "-o",
               "jsonpath={.items[?(@.metadata.name==\"job-orphan\")].metadata.name}"},
              "");
}

TEST_F(WorkloadsTest, ADryRunLeavesNoTrace) {
  const int before = Count("queue.jobs");
  const auto applied =
      system_->Kubectl({"create", "--dry-run=server", "-f", "-"}, JobYaml("dry-run"));
  ASSERT_TRUE(applied.ok()) << Message(applied.status());
  Apply(JobYaml("not-dry"));
  ExpectState("not-dry", "Succeeded");
  EXPECT_EQ(Count("queue.jobs"), before + 1);
}

TEST_F(WorkloadsTest, ABadLabelIsRefusedWithKeyAndValue) {
  const auto applied = system_->Kubectl(
      {"create", "-f", "-"}, JobYaml("bad", {.annotations = "{fluxqueue.io/duration: soon}"}));
  ASSERT_FALSE(applied.ok());
  EXPECT_THAT(Message(applied.status()), HasSubstr("fluxqueue.io/duration"));
  EXPECT_THAT(Message(applied.status()), HasSubstr("soon"));
}

}  // namespace
}  // namespace fluxqueue::e2e
