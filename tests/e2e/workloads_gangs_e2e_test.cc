// Pods that are one gang, on a whole system.
#include <fstream>
#include <string>
#include <vector>

#include <gmock/gmock.h>

#include "libs/testing/shell.h"
#include "tests/e2e/workloads_fixture.h"

namespace fluxqueue::e2e {
namespace {

using ::testing::HasSubstr;

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

// It waits for room for all of it; later it grows and replaces its pods one by one, at once.
TEST_F(WorkloadsTest, AParallelStatefulSetStartsAsAWhole) {
  Apply(JobYaml("blocks", {.cpu = "8", .run_seconds = "600"}));
  ExpectState("blocks", "Running");
  Apply(R"(apiVersion: apps/v1
kind: StatefulSet
metadata: {name: shards, namespace: e2e}
spec:
  serviceName: shards
  podManagementPolicy: Parallel
  replicas: 4
  selector: {matchLabels: {app: shards}}
  template:
    metadata: {labels: {app: shards}}
    spec:
      terminationGracePeriodSeconds: 0
      containers: [{name: main, image: busybox, resources: {requests: {cpu: "5"}}}]
)");
  ExpectState("shards", "Pending");
  EXPECT_EQ(Field("shards", "kind"), "PodGroup");
  EXPECT_EQ(Field("shards", "slots"), "4");
  Apply(JobYaml("beside-shards"));
  ExpectState("beside-shards", "Succeeded");
  EXPECT_EQ(Count("binder.slots s JOIN queue.jobs j USING (job_id) WHERE j.name = 'shards'"), 0)
      << "three of its four pods have room, and none is placed";
  ASSERT_TRUE(system_->Kubectl({"delete", "job", "blocks", "-n", "e2e"}).ok());
  ExpectState("shards", "Running", std::chrono::seconds(60));
  EXPECT_THAT(PodNodes("app=shards"), ::testing::SizeIs(4));

  const std::string uid =
      system_->Kubectl({"get", "pod", "shards-1", "-n", "e2e", "-o", "jsonpath={.metadata.uid}"})
          .value_or("");
  ASSERT_TRUE(system_->Kubectl({"delete", "pod", "shards-1", "-n", "e2e"}).ok());
  ExpectState("shards-1", "Running", std::chrono::seconds(15));
  EXPECT_NE(
      system_->Kubectl({"get", "pod", "shards-1", "-n", "e2e", "-o", "jsonpath={.metadata.uid}"})
          .value_or(uid),
      uid);
  EXPECT_EQ(Field("shards", "state"), "Running") << "the others stay one job";
  ASSERT_TRUE(system_->Kubectl({"delete", "statefulset", "shards", "-n", "e2e"}).ok());
  ExpectState("shards-1", "Cancelled", std::chrono::seconds(60));
}

// A Deployment asks for it; and one that is silent grows pod by pod.
TEST_F(WorkloadsTest, ADeploymentStartsAsAWholeWhereItAsksForThat) {
  const auto deployment = [](const std::string& name, const std::string& keys) {
    return fmt::format(R"(apiVersion: apps/v1
kind: Deployment
metadata: {{name: {0}, namespace: e2e}}
spec:
  replicas: 5
  selector: {{matchLabels: {{app: {0}}}}}
  template:
    metadata: {{labels: {{app: {0}}}, annotations: {{{1}}}}}
    spec:
      terminationGracePeriodSeconds: 0
      containers: [{{name: main, image: busybox, resources: {{requests: {{cpu: "5"}}}}}}]
)",
                       name,
                       keys);
  };
  Apply(deployment("whole", "fluxqueue.io/growth: all"));
  const std::string whole = "queue.jobs WHERE name LIKE 'whole-%'";
  const absl::Status waits = system_->WaitFor(
      [&] {
        return Count(whole + " AND kind = 'PodGroup' AND slots = 5 AND message LIKE '%cpu%'") == 1;
      },
      std::chrono::seconds(60),
      [&] {
        return system_->QueryOne("SELECT string_agg(kind || message, '; ') FROM " + whole)
            .value_or("");
      });
  EXPECT_TRUE(waits.ok()) << Message(waits);
  EXPECT_THAT(PodNodes("app=whole"), ::testing::IsEmpty()) << "there are four nodes";
  ASSERT_TRUE(system_->Kubectl({"delete", "deployment", "whole", "-n", "e2e"}).ok());
  Apply(deployment("each", "fluxqueue.io/growth: each"));
  const absl::Status four = system_->WaitFor([&] { return PodNodes("app=each").size() == 4; },
                                             std::chrono::seconds(60),
                                             [] { return "four of the five pods"; });
  EXPECT_TRUE(four.ok()) << Message(four);
  ASSERT_TRUE(system_->Kubectl({"delete", "deployment", "each", "-n", "e2e"}).ok());
  const auto refused =
      system_->Kubectl({"create", "-f", "-"}, deployment("some", "fluxqueue.io/growth: some"));
  EXPECT_THAT(Message(refused.status()), HasSubstr("allowed are each and all"));
}

// The objects that the controllers of JobSet, MPIJob, RayCluster and AppWrapper make, and pods of a
// PodGroup.
TEST_F(WorkloadsTest, GangsWhoseSizeAnotherObjectSays) {
  for (const auto& [kind, plural, group, version] :
       {std::tuple("JobSet", "jobsets", "jobset.x-k8s.io", "v1alpha2"),
        std::tuple("PodGroup", "podgroups", "scheduling.x-k8s.io", "v1alpha1"),
        std::tuple("MPIJob", "mpijobs", "kubeflow.org", "v2beta1"),
        std::tuple("RayCluster", "rayclusters", "ray.io", "v1"),
        std::tuple("AppWrapper", "appwrappers", "workload.codeflare.dev", "v1beta2")}) {
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
---
apiVersion: workload.codeflare.dev/v1beta2
kind: AppWrapper
metadata: {name: wrap, namespace: e2e}
status:
  componentStatus:
    - {kind: Job, podSets: [{replicas: 2, path: template.spec.template}]}
    - {kind: Pod, podSets: [{path: template}]}
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
  const std::string wrap = "{workload.codeflare.dev/appwrapper: wrap}";
  Apply(job_of_set("set-driver-0", 1) + job_of_set("set-workers-0", 2) +
        JobOf("mpi-launcher", 1, mpi) + PodOf("mpi-worker-0", mpi) + PodOf("ray-head", ray) +
        PodOf("ray-worker-0", ray) + PodOf("pg-0", "{scheduling.x-k8s.io/pod-group: pg}") +
        JobOf("wrap-job", 2, wrap));
  Apply(JobYaml("beside-sets"));
  ExpectState("beside-sets", "Succeeded");
  EXPECT_EQ(Count("queue.jobs WHERE name ~ '^(set|mpi|ray|pg|wrap)'"), 0) << "none is complete";
  Apply(job_of_set("set-workers-1", 2) + PodOf("mpi-worker-1", mpi) + PodOf("ray-worker-1", ray) +
        PodOf("pg-1", "{scheduling.x-k8s.io/pod-group: pg}") + PodOf("wrap-pod", wrap));
  for (const char* gang : {"set-0", "mpi", "ray", "pg", "wrap"}) {
    ExpectState(gang, "Succeeded");
    EXPECT_EQ(Field(gang, "kind"), "PodGroup");
  }
  EXPECT_EQ(Count("queue.jobs WHERE name ~ '^(set|mpi|ray|pg|wrap)'"), 5) << "each is one job";
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
  // The steps of an Argo Workflow, whose controller makes their pods: each is a job, and those that
  // their template makes a group are one gang.
  const std::string step = "workflows.argoproj.io/workflow: flow";
  const std::string fan = "{" + step +
                          ", fluxqueue.io/group-name: fan, "
                          "fluxqueue.io/group-size: \"2\"}";
  Apply(PodOf("flow-prepare", "{" + step + "}") + PodOf("flow-fan-0", fan) +
        PodOf("flow-fan-1", fan));
  ExpectState("flow-prepare", "Succeeded");
  ExpectState("fan", "Succeeded");
  EXPECT_EQ(Field("fan", "slots"), "2");
  // Volcano is not installed here.
  Apply(PodOf("volcanic", "{scheduling.k8s.io/group-name: v}"));
  ExpectState("volcanic", "Succeeded");
}

// As Spark's operator makes the driver, and the driver the executors.
std::string SparkPod(const std::string& name, const std::string& cpu, const std::string& driver) {
  const std::string owners = driver.empty()
                                 ? "[]"
                                 : fmt::format(
                                       "[{{apiVersion: v1, kind: Pod, name: pi-driver, uid: {}, "
                                       "controller: true}}]",
                                       driver);
  return fmt::format(R"(apiVersion: v1
kind: Pod
metadata:
  name: {}
  namespace: e2e
  labels: {{sparkoperator.k8s.io/app-name: pi, spark-role: {}}}
  ownerReferences: {}
spec:
  serviceAccountName: spark
  restartPolicy: Never
  terminationGracePeriodSeconds: 0
  containers: [{{name: main, image: busybox, resources: {{requests: {{cpu: "{}", memory: 896Mi}}}}}}]
---
)",
                     name,
                     driver.empty() ? "driver" : "executor",
                     owners,
                     cpu);
}

// A kubeconfig with the token that Kubernetes mounts into this pod of the account "spark".
std::string KubeconfigOf(testing::MiniSystem& system, const std::string& pod) {
  const auto config = system.Kubectl({"config", "view", "--raw", "--flatten"});
  EXPECT_TRUE(config.ok()) << Message(config.status());
  const auto token = system.Kubectl({"create",
                                     "token",
                                     "spark",
                                     "-n",
                                     "e2e",
                                     "--bound-object-kind=Pod",
                                     "--bound-object-name=" + pod});
  EXPECT_TRUE(token.ok()) << Message(token.status());
  std::string path = system.folder() + "/spark.kubeconfig";
  std::ofstream(path) << config.value_or("");
  for (const std::vector<std::string>& words : std::vector<std::vector<std::string>>{
           {"config", "set-credentials", "spark", "--token=" + token.value_or("")},
           {"config", "set-context", "--current", "--user=spark"}}) {
    const auto set = testing::Run(testing::KubectlCommand(path, words));
    EXPECT_TRUE(set.ok()) << Message(set.status());
  }
  return path;
}

// Four nodes of 8 cpus: an executor of 7 leaves no room for the driver.
TEST_F(WorkloadsTest, ASparkDriverStartsWithRoomForItsExecutors) {
  DefineKind("SparkApplication", "sparkapplications", "sparkoperator.k8s.io", "v1beta2");
  for (const std::vector<std::string>& words : std::vector<std::vector<std::string>>{
           {"serviceaccount", "spark"},
           {"role", "spark", "--verb=create", "--resource=pods"},
           {"rolebinding", "spark", "--role=spark", "--serviceaccount=e2e:spark"}}) {
    std::vector<std::string> create = {"create", "-n", "e2e"};
    create.insert(create.end(), words.begin(), words.end());
    const auto made = system_->Kubectl(create);
    ASSERT_TRUE(made.ok()) << Message(made.status());
  }
  Apply(JobYaml("spark-blocks",
                {.parallelism = 3, .completions = 3, .cpu = "8", .run_seconds = "600"}));
  ExpectState("spark-blocks", "Running");
  Apply(R"(apiVersion: sparkoperator.k8s.io/v1beta2
kind: SparkApplication
metadata: {name: pi, namespace: e2e}
spec:
  type: Scala
  driver: {cores: 2, memory: 512m, serviceAccount: spark}
  executor: {instances: 2, cores: 7, memory: 512m}
)");
  Apply(SparkPod("pi-driver", "2", ""));
  ExpectState("pi-driver", "Pending");
  EXPECT_EQ(Field("pi-driver", "kind"), "Pod");
  EXPECT_EQ(Field("pi-driver", "slots"), "3");
  Apply(JobYaml("beside-spark"));
  ExpectState("beside-spark", "Succeeded");
  EXPECT_EQ(Field("pi-driver", "state"), "Pending") << "alone it would fit";
  ASSERT_TRUE(system_->Kubectl({"delete", "job", "spark-blocks", "-n", "e2e"}).ok());
  ExpectState("pi-driver", "Running", std::chrono::seconds(60));

  Apply(JobYaml("greedy", {.parallelism = 3, .completions = 3, .cpu = "7", .run_seconds = "1"}));
  ExpectState("greedy", "Pending");
  const auto driver =
      system_->Kubectl({"get", "pod", "pi-driver", "-n", "e2e", "-o", "jsonpath={.metadata.uid}"});
  ASSERT_TRUE(driver.ok()) << Message(driver.status());
  const std::string of_driver = KubeconfigOf(*system_, "pi-driver");
  const auto execute = [&](const std::string& name) {
    const std::string file = system_->folder() + "/executor.yaml";
    std::ofstream(file) << SparkPod(name, "7", *driver);
    const auto made = testing::Run(testing::KubectlCommand(of_driver, {"create", "-f", file}));
    ASSERT_TRUE(made.ok()) << Message(made.status());
  };
  const auto expect_slot = [&](const std::string& pod, const std::string& slot) {
    ExpectShown({"get",
                 "pod",
                 pod,
                 "-n",
                 "e2e",
                 "-o",
                 "jsonpath={.status.phase} {.metadata.annotations.fluxqueue\\.io/allocation}"},
                "Running " + slot);
  };
  // Another of the same account is no executor of it.
  const auto stolen =
      system_->Kubectl({"create", "-f", "-", "--as=system:serviceaccount:e2e:spark"},
                       SparkPod("pi-thief", "7", *driver));
  ASSERT_TRUE(stolen.ok()) << Message(stolen.status());
  execute("pi-exec-1");
  execute("pi-exec-2");
  expect_slot("pi-driver", "1.0.0/3");
  expect_slot("pi-exec-1", "1.0.1/3");
  expect_slot("pi-exec-2", "1.0.2/3");
  // One that has gone is replaced.
  ASSERT_TRUE(system_->Kubectl({"delete", "pod", "pi-exec-1", "-n", "e2e"}).ok());
  execute("pi-exec-3");
  expect_slot("pi-exec-3", "1.0.1/3");
  EXPECT_EQ(Field("greedy", "state"), "Pending");
  EXPECT_EQ(Count("queue.jobs WHERE name LIKE 'pi-%'"), 2) << "the driver, and the thief";
  ASSERT_TRUE(system_->Kubectl({"delete", "pod", "pi-thief", "-n", "e2e"}).ok());
  EXPECT_EQ(Field("pi-driver", "state"), "Running");
  ExpectPromisesKept();

  ASSERT_TRUE(
      system_
          ->Kubectl({"annotate", "pod", "pi-driver", "-n", "e2e", "fluxqueue.io/run-seconds=0.1"})
          .ok());
  ExpectShown({"get", "pod", "pi-driver", "-n", "e2e", "-o", "jsonpath={.status.phase}"},
              "Succeeded");
  EXPECT_EQ(Field("pi-driver", "state"), "Running") << "its executors are still there";
  ASSERT_TRUE(system_->Kubectl({"delete", "pods", "-n", "e2e", "-l", "spark-role=executor"}).ok());
  ExpectState("pi-driver", "Succeeded");
  ExpectState("greedy", "Succeeded", std::chrono::seconds(60));

  ASSERT_TRUE(system_->Kubectl({"delete", "sparkapplication", "pi", "-n", "e2e"}).ok());
  ASSERT_TRUE(system_->Kubectl({"delete", "pod", "pi-driver", "-n", "e2e"}).ok());
  std::string other = SparkPod("pi-alone", "1", "");
  Apply(
      other.insert(other.find("labels:"), "annotations: {fluxqueue.io/run-seconds: \"0.1\"}\n  "));
  ExpectState("pi-alone", "Succeeded");
  EXPECT_EQ(Field("pi-alone", "slots"), "1") << "no application says what it makes";
}

// Of Kubernetes 1.37 and later (tools/test --kubernetes).
TEST_F(WorkloadsTest, AGangOfKubernetesOwnPodGroup) {
  const auto served = system_->Kubectl(
      {"api-resources", "--api-group", "scheduling.k8s.io", "--no-headers", "-o", "name"});
  if (served.value_or("").find("podgroups") == std::string::npos) {
    GTEST_SKIP() << "this Kubernetes has no PodGroups";
  }
  Apply(R"(apiVersion: scheduling.k8s.io/v1beta1
kind: PodGroup
metadata: {name: own, namespace: e2e}
spec: {schedulingPolicy: {gang: {minCount: 2}}}
)");
  const auto pod = [](const std::string& name) {
    std::string yaml = PodOf(name, "{app: own}");
    return yaml.insert(yaml.find("restartPolicy"), "schedulingGroup: {podGroupName: own}, ");
  };
  Apply(pod("own-0"));
  Apply(JobYaml("beside-own"));
  ExpectState("beside-own", "Succeeded");
  EXPECT_EQ(Count("queue.jobs WHERE name LIKE 'own%'"), 0) << "it is not complete";
  Apply(pod("own-1"));
  ExpectState("own", "Succeeded");
  EXPECT_EQ(Field("own", "kind"), "PodGroup");
  EXPECT_EQ(Field("own", "slots"), "2");
}

}  // namespace
}  // namespace fluxqueue::e2e
