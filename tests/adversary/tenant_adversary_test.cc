// Whatever mallory writes, the services live, alice's jobs go on, and nothing runs that was not
// given its place.
#include <chrono>
#include <string>
#include <utility>
#include <vector>

#include <gmock/gmock.h>

#include "tests/adversary/tenant_test_base.h"

namespace fluxqueue::e2e {
namespace {

using std::chrono::seconds;
using ::testing::HasSubstr;

// A pod that its maker says to be a slot of a job, on a node of his choice.
std::string ForgedPod(const std::string& name,
                      const std::string& job_id,
                      const std::string& allocation,
                      const std::string& node,
                      const std::string& runs) {
  return fmt::format(R"(apiVersion: v1
kind: Pod
metadata:
  name: {}
  namespace: evil
  annotations:
    fluxqueue.io/job-id: "{}"
    fluxqueue.io/allocation: "{}"
    fluxqueue.io/run-seconds: "{}"
spec:
  nodeName: {}
  restartPolicy: Never
  containers: [{{name: main, image: busybox, resources: {{requests: {{cpu: "1"}}}}}}]
)",
                     name,
                     job_id,
                     allocation,
                     runs,
                     node);
}

TEST_F(TenantTest, ANulInAnAnnotationEndsNoService) {
  Creates(ForgedPod("nul", "a\\0", "1.0.0/1", "nope", "600"));
  Creates(ForgedPod("long", std::string(100'000, 'x'), "1.0.0/1", "nope", "600"));
  ExpectAllLive("after-nul");
}

TEST_F(TenantTest, AForgedPodSaysNothingOfAnothersJob) {
  Apply(JobYaml("alices", {.parallelism = 2, .completions = 2, .run_seconds = "25"}));
  ExpectState("alices", "Running");
  const std::string id = JobIdOf("alices");
  Creates(ForgedPod("lost", id, "1.0.0/2", "nope", "600"));               // its node is lost
  Creates(ForgedPod("done", id, "1.0.1/2", NodeOf(0), "0.1"));            // it has succeeded
  Creates(ForgedPod("sleeps", id, "1.0.0/2", NodeOf(1), "600"));          // it runs on
  Creates(ForgedPod("later", id, "4294967295.0.0/2", NodeOf(2), "600"));  // of a later attempt
  ExpectAllLive("after-forged");
  EXPECT_EQ(StateOf("alices"), "Running");
  ExpectState("alices", "Succeeded");
  EXPECT_EQ(AttemptOf("alices"), "1");
  const absl::Status released = system_->WaitFor(
      [&] {
        return Count(fmt::format("matcher.allocations WHERE NOT released AND job_id = '{}'", id)) ==
               0;
      },
      seconds(30),
      [] { return "the slots of alice's job to be free"; });
  EXPECT_TRUE(released.ok()) << Message(released);
  const auto gone =
      AsMallory({"delete", "pods", "--all", "-n", "evil", "--grace-period=0", "--force"});
  EXPECT_TRUE(gone.ok()) << Message(gone.status());
}

TEST_F(TenantTest, AForgedPodOfHisOwnJobIsUseOfItsNode) {
  // All cores of a node but one, as pods that say to be slots of a job that has one slot.
  Creates(R"(apiVersion: batch/v1
kind: Job
metadata: {name: his, namespace: lab}
spec:
  backoffLimit: 0
  template:
    metadata: {annotations: {fluxqueue.io/run-seconds: "60"}}
    spec:
      restartPolicy: Never
      containers: [{name: main, image: busybox, resources: {requests: {cpu: 500m}}}]
)");
  ExpectState("his", "Running");
  for (int node = 0; node < 3; ++node) {
    for (int pod = 0; pod < 6; ++pod) {
      Creates(ForgedPod(
          fmt::format("free-{}-{}", node, pod), JobIdOf("his"), "1.0.0/1", NodeOf(node), "600"));
    }
  }
  // Six of the eight cores of each node are in use.
  Apply(JobYaml("wide", {.cpu = "4"}));
  ExpectReason("wide", "Busy");
  const auto gone = AsMallory({"delete", "pods", "--all", "-n", "evil", "--grace-period=0"});
  EXPECT_TRUE(gone.ok()) << Message(gone.status());
  ExpectState("wide", "Succeeded");
}

TEST_F(TenantTest, JobsWithManyTermsDoNotStopThePool) {
  std::string all;
  for (int i = 0; i < 40; ++i) {
    std::string terms;
    for (int term = 0; term < 1000; ++term) {
      terms += fmt::format(
          "                - {{key: {}.example.com/{}-{}, operator: In, values: [\"v\"]}}\n",
          std::string(60, 'x'),
          i,
          term);
    }
    all += fmt::format(R"(apiVersion: batch/v1
kind: Job
metadata:
  name: many-{}
  namespace: lab
  annotations: {{fluxqueue.io/begin: "+5s"}}
spec:
  template:
    spec:
      restartPolicy: Never
      containers: [{{name: main, image: busybox, resources: {{requests: {{cpu: 500m}}}}}}]
      affinity:
        nodeAffinity:
          requiredDuringSchedulingIgnoredDuringExecution:
            nodeSelectorTerms:
            - matchExpressions:
{}---
)",
                       i,
                       terms);
  }
  Creates(all);
  const absl::Status tried = system_->WaitFor(
      [&] { return Count("queue.jobs WHERE name LIKE 'many-%' AND message <> ''") == 40; },
      seconds(60),
      [] { return "all of his jobs to be told why they wait"; });
  EXPECT_TRUE(tried.ok()) << Message(tried);
  ExpectAllLive("after-many");
  const auto longest = system_->QueryOne("SELECT max(octet_length(message)) FROM queue.jobs");
  ASSERT_TRUE(longest.ok());
  EXPECT_LE(std::stoi(*longest), 4096);
  const auto letters = system_->Fluxqueue({"dead-letters", "-o", "json"});
  ASSERT_TRUE(letters.ok()) << Message(letters.status());
  EXPECT_THAT(letters->output, ::testing::Not(HasSubstr("can be sent")));
  const auto gone = AsMallory({"delete", "jobs", "-n", "lab", "--all"});
  EXPECT_TRUE(gone.ok()) << Message(gone.status());
}

TEST_F(TenantTest, APathIsNoName) {
  IsRefused(R"(apiVersion: batch/v1
kind: Job
metadata: {name: path, namespace: lab}
spec:
  template:
    spec:
      priorityClassName: "../../../../api/v1/pods?x="
      restartPolicy: Never
      containers: [{name: main, image: busybox}]
)",
            "priorityClassName: it is not the name of an object");
}

TEST_F(TenantTest, ADeploymentWaitsInLine) {
  MakeQueue("two", "{limits: {queue: {runningJobs: 2}}}");
  Creates(R"(apiVersion: apps/v1
kind: Deployment
metadata: {name: web, namespace: lab}
spec:
  replicas: 6
  selector: {matchLabels: {app: web}}
  template:
    metadata:
      labels: {app: web, fluxqueue.io/queue: two}
      annotations: {fluxqueue.io/run-seconds: "600"}
    spec:
      containers: [{name: main, image: busybox, resources: {requests: {cpu: 500m}}}]
)");
  const absl::Status all =
      system_->WaitFor([&] { return Count("queue.jobs WHERE name LIKE 'web-%'") == 6; },
                       seconds(60),
                       [] { return "the six pods of a Deployment to be jobs"; });
  EXPECT_TRUE(all.ok()) << Message(all);
  const auto running = [&] {
    return Count("queue.jobs WHERE name LIKE 'web-%' AND state = 'Running'");
  };
  const absl::Status two =
      system_->WaitFor([&] { return running() == 2; },
                       seconds(60),
                       [&] { return fmt::format("two of them to run; {} do", running()); });
  EXPECT_TRUE(two.ok()) << Message(two);
  // The next in line has been told what holds it back.
  const absl::Status limited = system_->WaitFor(
      [&] { return Count("queue.jobs WHERE name LIKE 'web-%' AND reason = 'Limit'") >= 1; },
      seconds(30),
      [] { return "the third to wait for the limit"; });
  EXPECT_TRUE(limited.ok()) << Message(limited);
  EXPECT_EQ(running(), 2);
  const auto gone = AsMallory({"delete", "deployment", "web", "-n", "lab"});
  EXPECT_TRUE(gone.ok()) << Message(gone.status());
}

TEST_F(TenantTest, AnothersJobHasOnlyItsOwnPods) {
  Apply(JobYaml("victim", {.parallelism = 2, .completions = 2, .run_seconds = "20"}));
  ExpectState("victim", "Running");
  const auto adopted = [&](const char* space, const char* labels) {
    return fmt::format(R"(apiVersion: v1
kind: Pod
metadata:
  name: adopted
  namespace: {}
  labels: {}
  ownerReferences: [{{apiVersion: batch/v1, kind: Job, name: victim, uid: {}, controller: true}}]
spec:
  schedulerName: fluxqueue
  restartPolicy: Never
  containers: [{{name: main, image: busybox, resources: {{requests: {{cpu: "7"}}}}}}]
)",
                       space,
                       labels,
                       JobIdOf("victim"));
  };
  IsRefused(adopted("lab", "{}"), "leave the owner out, and the pod is queued by itself");
  // Where the webhook does not look.
  IsRefused(adopted("evil", "{fluxqueue.io/held: direct}"),
            "the pods of a Job are made by the Job's controller alone");
  Creates(adopted("evil", "{}"));
  ExpectState("victim", "Succeeded");
  EXPECT_EQ(AttemptOf("victim"), "1");
}

TEST_F(TenantTest, ASuspendedJobKeepsItsHold) {
  Creates(R"(apiVersion: batch/v1
kind: Job
metadata:
  name: sheds
  namespace: lab
  annotations: {fluxqueue.io/hold: "true"}
spec:
  parallelism: 20
  completions: 20
  template:
    spec:
      restartPolicy: Never
      containers: [{name: main, image: busybox, resources: {requests: {cpu: 500m}}}]
)");
  ExpectState("sheds", "Pending");
  const auto shed = AsMallory(
      {"patch",
       "job",
       "sheds",
       "-n",
       "lab",
       "--type=json",
       "-p",
       R"([{"op": "remove", "path": "/spec/template/metadata/labels/fluxqueue.io~1held"}])"});
  EXPECT_FALSE(shed.ok());
  EXPECT_THAT(Message(shed.status()), HasSubstr("the label fluxqueue.io/held is Fluxqueue's"));
  // Nor may its pods be made to say that they are of a gang, or have or take another pod's place.
  for (const char* record : {R"("fluxqueue.io/group": "a/2")",
                             R"("fluxqueue.io/places": "2 cpu=1")",
                             R"("fluxqueue.io/place-of": "a")"}) {
    const auto joined = AsMallory(
        {"patch",
         "job",
         "sheds",
         "-n",
         "lab",
         "-p",
         fmt::format(R"({{"spec": {{"template": {{"metadata": {{"annotations": {{{}}}}}}}}}}})",
                     record)});
    EXPECT_THAT(Message(joined.status()), HasSubstr("are Fluxqueue's own record of the object"))
        << record;
  }
  // What is his he may change.
  const auto changed = AsMallory(
      {"annotate", "--overwrite", "job", "sheds", "-n", "lab", "fluxqueue.io/hold=false"});
  EXPECT_TRUE(changed.ok()) << Message(changed.status());
  const auto gone = AsMallory({"delete", "job", "sheds", "-n", "lab"});
  EXPECT_TRUE(gone.ok()) << Message(gone.status());
}

std::string Pod(const std::string& name,
                const std::string& space,
                const std::string& metadata,
                const std::string& spec = "") {
  return fmt::format(R"(apiVersion: v1
kind: Pod
metadata: {{name: {}, namespace: {}, {}}}
spec:
  schedulerName: fluxqueue
  restartPolicy: Never
  containers: [{{name: main, image: busybox}}]
  {}
)",
                     name,
                     space,
                     metadata,
                     spec);
}

// In a namespace where the webhook does not look.
TEST_F(TenantTest, NobodySaysThatHeHasPassedTheWebhook) {
  IsRefused(Pod("held", "evil", "labels: {fluxqueue.io/held: direct}"),
            "this namespace is not managed by it");
  const auto queued = [](const std::string& more) {
    return "labels: {fluxqueue.io/held: direct, fluxqueue.io/queue: default" + more + "}";
  };
  IsRefused(Pod("declined", "evil", queued(", fluxqueue.io/managed: \"false\"")),
            "says that the object is not for the queue");
  IsRefused(Pod("pinned", "evil", queued(""), "nodeName: nope"),
            "says that the pod needs no queue");
}

TEST_F(TenantTest, WhatWeWriteIsNotHis) {
  Creates(Pod(
      "mine", "lab", "annotations: {fluxqueue.io/run-seconds: \"600\", fluxqueue.io/user: alice}"));
  ExpectState("mine", "Running");
  EXPECT_EQ(Field("mine", "username"), "mallory");
  const std::string record = "Fluxqueue's own record of the object";
  const std::string owner = fmt::format(
      R"({{"metadata": {{"ownerReferences": [{{"apiVersion": "batch/v1", "kind": "Job", "name": )"
      R"("other", "uid": "{}", "controller": true}}]}}}})",
      JobIdOf("mine"));
  using Words = std::vector<std::string>;
  for (const auto& [change, says] : {
           std::pair(Words{"annotate", "pod", "mine", "fluxqueue.io/allocation-"}, record),
           std::pair(Words{"annotate", "pod", "mine", "fluxqueue.io/job-id=other"}, record),
           std::pair(Words{"annotate", "pod", "mine", "fluxqueue.io/place-of=other"}, record),
           std::pair(Words{"annotate", "pod", "mine", "fluxqueue.io/user=alice"},
                     std::string("says who made the object")),
           std::pair(Words{"label", "pod", "mine", "fluxqueue.io/held-"},
                     std::string("the label fluxqueue.io/held is Fluxqueue's")),
           std::pair(Words{"patch", "pod", "mine", "--type=merge", "-p", owner},
                     std::string("says whose slots the pod has")),
       }) {
    Words words = change;
    words.insert(words.end(), {"-n", "lab"});
    if (words[0] != "patch") words.emplace_back("--overwrite");
    const auto changed = AsMallory(words);
    EXPECT_THAT(Message(changed.status()), HasSubstr(says))
        << fmt::format("{}", fmt::join(change, " "));
  }
  const auto gone = AsMallory({"delete", "pod", "mine", "-n", "lab", "--grace-period=0"});
  EXPECT_TRUE(gone.ok()) << Message(gone.status());
  ExpectAllLive("after-changes");
}

TEST_F(TenantTest, APodKeepsItsGate) {
  Creates(Pod("gated",
              "lab",
              "annotations: {fluxqueue.io/hold: \"true\"}",
              "volumes: [{name: data, persistentVolumeClaim: {claimName: none}}]"));
  ExpectState("gated", "Pending");
  const auto opened = AsMallory({"patch",
                                 "pod",
                                 "gated",
                                 "-n",
                                 "lab",
                                 "--type=json",
                                 "-p",
                                 R"([{"op": "remove", "path": "/spec/schedulingGates"}])"});
  EXPECT_THAT(Message(opened.status()), HasSubstr("is Fluxqueue's to take away"));
  const auto gone = AsMallory({"delete", "pod", "gated", "-n", "lab", "--grace-period=0"});
  EXPECT_TRUE(gone.ok()) << Message(gone.status());
}

}  // namespace
}  // namespace fluxqueue::e2e
