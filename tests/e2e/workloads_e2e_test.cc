// What users do, on a whole system: every kind of workload, waiting, refusal, hold, cancel, delete,
// a node that goes.
#include <algorithm>
#include <map>
#include <string>
#include <vector>

#include <absl/strings/ascii.h>
#include <absl/strings/str_split.h>
#include <gmock/gmock.h>

#include "tests/e2e/system_test_base.h"

namespace fluxqueue::e2e {
namespace {

using ::testing::AnyOf;
using ::testing::Eq;
using ::testing::HasSubstr;

class WorkloadsTest : public SystemTest {
 protected:
  static void SetUpTestSuite() {
    StartSystem({.nodes = 4, .sections = {{"queue", "flux_jobs: {told_after: 1s}\n"}}});
  }

  // Of the queue's Events on the Job: their reasons, and what they say, one a line.
  static std::string EventsOf(const std::string& job) {
    const auto events = system_->Kubectl({"get",
                                          "events",
                                          "-n",
                                          "e2e",
                                          "--field-selector",
                                          "involvedObject.kind=Job,involvedObject.name=" + job,
                                          "-o",
                                          "jsonpath={range .items[?(@.reportingComponent=="
                                          "\"fluxqueue.io/queue\")]}{.reason}: {.message}{\"\\n\"}"
                                          "{end}"});
    return events.ok() ? *events : std::string(Message(events.status()));
  }

  // What kubectl says, in the end.
  static void ExpectShown(const std::vector<std::string>& command, const std::string& wanted) {
    std::string shown;
    const absl::Status status = system_->WaitFor(
        [&] {
          shown = system_->Kubectl(command).value_or("");
          return absl::StripAsciiWhitespace(shown) == wanted;
        },
        std::chrono::seconds(30),
        [&] { return fmt::format("'{}', not '{}'", wanted, shown); });
    EXPECT_TRUE(status.ok()) << Message(status);
  }

  // A kind of which nothing is checked.
  static void DefineKind(const std::string& kind,
                         const std::string& plural,
                         const std::string& group,
                         const std::string& version) {
    const std::string name = fmt::format("{}.{}", plural, group);
    const auto made = system_->Kubectl({"create", "-f", "-"},
                                       fmt::format(R"(apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {{name: {}, annotations: {{api-approved.kubernetes.io: "unapproved, a test"}}}}
spec:
  group: {}
  scope: Namespaced
  names: {{kind: {}, plural: {}, singular: {}}}
  versions:
    - name: {}
      served: true
      storage: true
      schema: {{openAPIV3Schema: {{type: object, x-kubernetes-preserve-unknown-fields: true}}}}
)",
                                                   name,
                                                   group,
                                                   kind,
                                                   plural,
                                                   absl::AsciiStrToLower(kind),
                                                   version));
    ASSERT_TRUE(made.ok()) << Message(made.status());
    const auto served = system_->Kubectl({"wait", "crd", name, "--for=condition=established"});
    ASSERT_TRUE(served.ok()) << Message(served.status());
  }

  // `labels`: of their pods.
  static std::string JobOf(const std::string& name,
                           int pods,
                           const std::string& labels,
                           const std::string& owners = "[]") {
    return fmt::format(R"(apiVersion: batch/v1
kind: Job
metadata: {{name: {}, namespace: e2e, ownerReferences: {}}}
spec:
  parallelism: {}
  completions: {}
  template:
    metadata: {{labels: {}, annotations: {{fluxqueue.io/run-seconds: "1"}}}}
    spec: {{restartPolicy: Never, containers: [{{name: main, image: busybox}}]}}
---
)",
                       name,
                       owners,
                       pods,
                       pods,
                       labels);
  }
  static std::string PodOf(const std::string& name, const std::string& labels) {
    return fmt::format(R"(apiVersion: v1
kind: Pod
metadata:
  name: {}
  namespace: e2e
  labels: {}
  annotations: {{fluxqueue.io/run-seconds: "1"}}
spec: {{restartPolicy: Never, containers: [{{name: main, image: busybox}}]}}
---
)",
                       name,
                       labels);
  }
};

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

// A leader beside two smaller workers.
TEST_F(WorkloadsTest, AGangOfPodsStartsOnceAllOfThemAreThere) {
  const auto pod = [](const std::string& name, const std::string& cpu) {
    return fmt::format(R"(apiVersion: v1
kind: Pod
metadata:
  name: {}
  namespace: e2e
  labels: {{fluxqueue.io/group-name: train, fluxqueue.io/group-size: "3"}}
  annotations: {{fluxqueue.io/run-seconds: "1"}}
spec:
  restartPolicy: Never
  containers: [{{name: main, image: busybox, resources: {{requests: {{cpu: "{}"}}}}}}]
---
)",
                       name,
                       cpu);
  };
  for (const int round : {1, 2}) {
    Apply(pod("train-lead", "3") + pod("train-worker-0", "1"));
    Apply(JobYaml(fmt::format("beside-{}", round)));
    ExpectState(fmt::format("beside-{}", round), "Succeeded");
    EXPECT_EQ(Count("queue.jobs WHERE kind IN ('PodGroup', 'Pod') AND name LIKE 'train%'"),
              round - 1)
        << "nothing is queued, or held, for two of three pods";
    Apply(pod("train-worker-1", "1"));
    const absl::Status ended = system_->WaitFor(
        [&] {
          return Count("queue.jobs WHERE kind = 'PodGroup' AND state = 'Succeeded'") == round;
        },
        std::chrono::seconds(60),
        [] { return "the end of the gang"; });
    EXPECT_TRUE(ended.ok()) << Message(ended);
    const auto slots = system_->Kubectl({"get",
                                         "pods",
                                         "-n",
                                         "e2e",
                                         "-l",
                                         "fluxqueue.io/group-name=train",
                                         "-o",
                                         "jsonpath={range .items[*]}{.metadata.name}="
                                         "{.metadata.annotations.fluxqueue\\.io/allocation} "
                                         "{.status.phase}{\"\\n\"}{end}"});
    ASSERT_TRUE(slots.ok()) << Message(slots.status());
    EXPECT_EQ(*slots,
              "train-lead=1.0.0/3 Succeeded\ntrain-worker-0=1.0.1/3 Succeeded\n"
              "train-worker-1=1.0.2/3 Succeeded\n");
    ExpectShown({"get", "fluxjob", "podgroup-train", "-n", "e2e", "-o", "name"},
                "fluxjob.fluxqueue.io/podgroup-train");
    ASSERT_TRUE(
        system_->Kubectl({"delete", "pods", "-n", "e2e", "-l", "fluxqueue.io/group-name=train"})
            .ok());
  }
}

// As the controller of LeaderWorkerSets makes them, by StatefulSets.
TEST_F(WorkloadsTest, AReplacementInAGangThatRunsIsPlacedByItself) {
  Apply(R"(apiVersion: apps/v1
kind: StatefulSet
metadata: {name: llm-0, namespace: e2e}
spec:
  serviceName: llm
  podManagementPolicy: Parallel
  replicas: 2
  selector: {matchLabels: {leaderworkerset.sigs.k8s.io/name: llm}}
  template:
    metadata:
      labels: {leaderworkerset.sigs.k8s.io/name: llm, leaderworkerset.sigs.k8s.io/group-index: "0"}
      annotations: {leaderworkerset.sigs.k8s.io/size: "2"}
    spec: {containers: [{name: main, image: busybox}]}
)");
  ExpectState("llm-0", "Running");
  ASSERT_TRUE(system_->Kubectl({"delete", "pod", "llm-0-1", "-n", "e2e", "--wait=false"}).ok());
  ExpectState("llm-0-1", "Running", std::chrono::seconds(120));
  EXPECT_EQ(Count("queue.jobs WHERE name = 'llm-0' AND kind = 'PodGroup' AND state = 'Running'"),
            1);
  ASSERT_TRUE(system_->Kubectl({"delete", "statefulset", "llm-0", "-n", "e2e"}).ok());
  const absl::Status ended = system_->WaitFor(
      [&] {
        return Count("queue.jobs WHERE name LIKE 'llm-0%' AND live") == 0 &&
               Count("admission.workloads WHERE name LIKE 'llm-0%'") == 0;
      },
      std::chrono::seconds(60),
      [] { return "the end of the gang"; });
  EXPECT_TRUE(ended.ok()) << Message(ended);
}

// The objects that the controllers of JobSet, MPIJob and RayCluster make, and pods of a PodGroup.
TEST_F(WorkloadsTest, GangsWhoseSizeAnotherObjectSays) {
  for (const auto& [kind, plural, group, version] :
       {std::tuple("JobSet", "jobsets", "jobset.x-k8s.io", "v1alpha2"),
        std::tuple("PodGroup", "podgroups", "scheduling.x-k8s.io", "v1alpha1"),
        std::tuple("MPIJob", "mpijobs", "kubeflow.org", "v2beta1"),
        std::tuple("RayCluster", "rayclusters", "ray.io", "v1")}) {
    DefineKind(kind, plural, group, version);
  }
  Apply(R"(apiVersion: jobset.x-k8s.io/v1alpha2
kind: JobSet
metadata: {name: set, namespace: e2e}
spec:
  replicatedJobs:
    - {name: driver, template: {spec: {}}}
    - {name: workers, replicas: 2, template: {spec: {parallelism: 2, completions: 2}}}
---
apiVersion: kubeflow.org/v2beta1
kind: MPIJob
metadata: {name: mpi, namespace: e2e}
spec: {mpiReplicaSpecs: {Launcher: {}, Worker: {replicas: 2}}}
---
apiVersion: ray.io/v1
kind: RayCluster
metadata: {name: ray, namespace: e2e}
spec: {workerGroupSpecs: [{replicas: 2}]}
---
apiVersion: scheduling.x-k8s.io/v1alpha1
kind: PodGroup
metadata: {name: pg, namespace: e2e}
spec: {minMember: 2}
)");
  const auto uid =
      system_->Kubectl({"get", "jobset", "set", "-n", "e2e", "-o", "jsonpath={.metadata.uid}"});
  ASSERT_TRUE(uid.ok()) << Message(uid.status());
  const auto job_of_set = [&](const std::string& name, int pods) {
    return JobOf(name,
                 pods,
                 "{jobset.sigs.k8s.io/jobset-name: set, jobset.sigs.k8s.io/restart-attempt: \"0\"}",
                 fmt::format("[{{apiVersion: jobset.x-k8s.io/v1alpha2, kind: JobSet, name: set, "
                             "uid: {}, controller: true}}]",
                             *uid));
  };
  const std::string mpi =
      "{training.kubeflow.org/job-name: mpi, training.kubeflow.org/operator-name: mpi-operator}";
  const std::string ray = "{ray.io/cluster: ray, ray.io/is-ray-node: \"yes\"}";
  Apply(job_of_set("set-driver-0", 1) + job_of_set("set-workers-0", 2) +
        JobOf("mpi-launcher", 1, mpi) + PodOf("mpi-worker-0", mpi) + PodOf("ray-head", ray) +
        PodOf("ray-worker-0", ray) + PodOf("pg-0", "{scheduling.x-k8s.io/pod-group: pg}"));
  Apply(JobYaml("beside-sets"));
  ExpectState("beside-sets", "Succeeded");
  EXPECT_EQ(Count("queue.jobs WHERE name ~ '^(set|mpi|ray|pg)'"), 0) << "none is complete";
  Apply(job_of_set("set-workers-1", 2) + PodOf("mpi-worker-1", mpi) + PodOf("ray-worker-1", ray) +
        PodOf("pg-1", "{scheduling.x-k8s.io/pod-group: pg}"));
  for (const char* gang : {"set-0", "mpi", "ray", "pg"}) {
    ExpectState(gang, "Succeeded");
    EXPECT_EQ(Field(gang, "kind"), "PodGroup");
  }
  EXPECT_EQ(Count("queue.jobs WHERE name ~ '^(set|mpi|ray|pg)'"), 4) << "each is one job";
  EXPECT_EQ(Field("set-0", "slots"), "5");
  ExpectShown({"get",
               "job",
               "set-workers-1",
               "-n",
               "e2e",
               "-o",
               "jsonpath={.status.succeeded} {.spec.suspend}"},
              "2 false");

  const auto refused = system_->Kubectl({"create", "-f", "-"},
                                        PodOf("x", "{scheduling.x-k8s.io/pod-group: nowhere}"));
  EXPECT_THAT(Message(refused.status()), HasSubstr("podgroups 'nowhere'"));
  // Volcano is not installed here.
  Apply(PodOf("volcanic", "{scheduling.k8s.io/group-name: v}"));
  ExpectState("volcanic", "Succeeded");
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
