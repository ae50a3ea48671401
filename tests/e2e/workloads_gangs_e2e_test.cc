// Pods that are one gang, on a whole system.
#include <string>

#include <gmock/gmock.h>

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

}  // namespace
}  // namespace fluxqueue::e2e
