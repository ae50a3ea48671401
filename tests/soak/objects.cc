#include "tests/soak/objects.h"

#include <fmt/format.h>

namespace fluxqueue::soak {
namespace {

constexpr std::string_view kJobSetLabels =
    R"(jobset.sigs.k8s.io/jobset-name: {0}, jobset.sigs.k8s.io/restart-attempt: "0")";
constexpr std::string_view kMpiLabels =
    "training.kubeflow.org/job-name: {0}, training.kubeflow.org/operator-name: mpi-operator";

struct JobText {
  std::string name{};
  std::string owners{};       // "{apiVersion: …}"
  std::string annotations{};  // "a: b, c: d"
  std::string labels{};       // of its pods
  std::string pod_annotations{};
  std::string limits{};
  int parallelism = 1;
  int completions = 1;
  bool indexed = false;
  int retries = 4;
};

std::string Container(const std::string& cpu, const std::string& limits) {
  return fmt::format(
      "{{name: main, image: busybox, resources: {{requests: {{cpu: \"{}\", "
      "memory: 64Mi}}, limits: {{{}}}}}}}",
      cpu,
      limits);
}

std::string Runs(const Action& action) {
  return fmt::format(R"(fluxqueue.io/run-seconds: "{}")", action.seconds);
}

// Without an apiVersion of its own, for a Job and for a CronJob's template.
std::string JobSpec(const Action& action, const JobText& job) {
  return fmt::format(R"({{parallelism: {}, completions: {}, completionMode: {}, backoffLimit: {},
  ttlSecondsAfterFinished: 60,
  template: {{metadata: {{labels: {{{}}}, annotations: {{{}{}}}}},
    spec: {{restartPolicy: Never, containers: [{}]}}}}}})",
                     job.parallelism,
                     job.completions,
                     job.indexed ? "Indexed" : "NonIndexed",
                     job.retries,
                     job.labels,
                     Runs(action),
                     job.pod_annotations,
                     Container(action.cpu, job.limits));
}

std::string JobYaml(const Action& action, const JobText& job) {
  return fmt::format(R"(apiVersion: batch/v1
kind: Job
metadata: {{name: {}, namespace: e2e, annotations: {{{}}}, ownerReferences: [{}]}}
spec: {}
---
)",
                     job.name,
                     job.annotations,
                     job.owners,
                     JobSpec(action, job));
}

std::string QueueKey(const std::string& queue) {
  return queue.empty() ? "" : "fluxqueue.io/queue: " + queue;
}

std::string OwnJob(const Action& action) {
  JobText job{.name = action.name,
              .annotations = QueueKey(action.value),
              .parallelism = action.pods,
              .completions = action.pods};
  const auto says = [&job](const std::string& key) {
    job.annotations += (job.annotations.empty() ? "" : ", ") + key;
  };
  switch (action.what) {
    case What::kIndexedJob:
      job.indexed = true;
      break;
    case What::kRoundsJob:
      job.completions = action.pods * action.rounds;
      break;
    case What::kElasticJob:
      says(R"(fluxqueue.io/min-slots: "1", fluxqueue.io/ignore-disruptions: "true")");
      break;
    case What::kArrayJob:
      job.indexed = true;
      job.parallelism = job.completions = action.pods * action.rounds;
      says(R"(fluxqueue.io/array: "2")");
      break;
    case What::kTopologyJob:
      says(R"(fluxqueue.io/topology: "required: zone")");
      break;
    case What::kGpuJob:
      job.limits = "nvidia.com/gpu: 1";
      break;
    case What::kFailingJob:
      job.pod_annotations = ", fluxqueue.io/exit: fail";
      job.retries = 1;  // Kubernetes waits twice as long before each
      break;
    case What::kLateJob:
      says("fluxqueue.io/duration: 1s");
      break;
    case What::kHeldJob:
      says(R"(fluxqueue.io/hold: "true")");
      break;
    case What::kUrgentJob:
      job.annotations = R"(fluxqueue.io/queue: urgent, fluxqueue.io/priority: "9")";
      break;
    default:
      break;
  }
  return JobYaml(action, job);
}

std::string PodYaml(const std::string& name,
                    const Action& action,
                    const std::string& labels,
                    const std::string& owners = "") {
  return fmt::format(R"(apiVersion: v1
kind: Pod
metadata:
  name: {}
  namespace: e2e
  labels: {{{}}}
  annotations: {{{}}}
  ownerReferences: [{}]
spec: {{restartPolicy: Never, containers: [{}]}}
---
)",
                     name,
                     labels,
                     Runs(action),
                     owners,
                     Container(action.cpu, ""));
}

std::string PodGang(const Action& action) {
  std::string yaml;
  for (int i = 0; i < action.pods; ++i) {
    yaml += PodYaml(fmt::format("{}-{}", action.name, i),
                    action,
                    fmt::format(R"(fluxqueue.io/group-name: {}, fluxqueue.io/group-size: "{}")",
                                action.name,
                                action.pods));
  }
  return yaml;
}

// Its pods run until they are deleted, and are killed soon then. They would rather be apart.
std::string Serving(const Action& action,
                    const std::string& spec,
                    const std::string& labels,
                    const std::string& annotations) {
  return fmt::format(R"(apiVersion: apps/v1
kind: {}
metadata: {{name: {}, namespace: e2e}}
spec:
  replicas: {}
  selector: {{matchLabels: {{soak: {}}}}}
{}  template:
    metadata: {{labels: {{soak: {}{}}}, annotations: {{{}}}}}
    spec:
      terminationGracePeriodSeconds: 5
      containers: [{}]
      topologySpreadConstraints:
        - maxSkew: 1
          topologyKey: kubernetes.io/hostname
          whenUnsatisfiable: ScheduleAnyway
          labelSelector: {{matchLabels: {{soak: {}}}}}
)",
                     action.kind,
                     action.name,
                     action.pods,
                     action.name,
                     spec,
                     action.name,
                     labels,
                     annotations,
                     Container(action.cpu, ""),
                     action.name);
}

// As the controller of LeaderWorkerSets makes it.
std::string LeaderWorkerSet(const Action& action) {
  return Serving(action,
                 "  serviceName: soak\n  podManagementPolicy: Parallel\n",
                 fmt::format(", leaderworkerset.sigs.k8s.io/name: {}, "
                             "leaderworkerset.sigs.k8s.io/group-index: \"0\"",
                             action.name),
                 fmt::format("leaderworkerset.sigs.k8s.io/size: \"{}\"", action.pods));
}

std::string CronJob(const Action& action) {
  return fmt::format(R"(apiVersion: batch/v1
kind: CronJob
metadata: {{name: {}, namespace: e2e}}
spec:
  schedule: "* * * * *"
  concurrencyPolicy: Replace
  jobTemplate: {{spec: {}}}
)",
                     action.name,
                     JobSpec(action, {.parallelism = 2, .completions = 2}));
}

std::string JobSet(const Action& action) {
  return fmt::format(R"(apiVersion: jobset.x-k8s.io/v1alpha2
kind: JobSet
metadata: {{name: {}, namespace: e2e}}
spec:
  replicatedJobs:
    - {{name: driver, template: {{spec: {{}}}}}}
    - {{name: workers, replicas: 2, template: {{spec: {{parallelism: {}, completions: {}}}}}}}
)",
                     action.name,
                     action.pods,
                     action.pods);
}

std::string MpiJob(const Action& action) {
  return fmt::format(R"(apiVersion: kubeflow.org/v2beta1
kind: MPIJob
metadata: {{name: {}, namespace: e2e}}
spec: {{mpiReplicaSpecs: {{Launcher: {{}}, Worker: {{replicas: {}}}}}}}
)",
                     action.name,
                     action.pods);
}

std::string Owner(const Action& action, const std::string& version) {
  return fmt::format("{{apiVersion: {}, kind: {}, name: {}, uid: \"@BEFORE@\", controller: true}}",
                     version,
                     action.kind,
                     action.name);
}

}  // namespace

std::string ObjectYaml(const Action& action) {
  switch (action.what) {
    case What::kCronJob:
      return CronJob(action);
    case What::kPod:
      return PodYaml(action.name, action, "");
    case What::kPodGang:
      return PodGang(action);
    case What::kDeployment:
      return Serving(action, "", "", "");
    case What::kReplicaSet:
      return Serving(action, "", "", "fluxqueue.io/growth: all");
    case What::kStatefulSet:
      return Serving(action, "  serviceName: soak\n", "", "");
    case What::kParallelStatefulSet:
      return Serving(action, "  serviceName: soak\n  podManagementPolicy: Parallel\n", "", "");
    case What::kLeaderWorkerSet:
      return LeaderWorkerSet(action);
    case What::kJobSet:
      return JobSet(action);
    case What::kMpiJob:
      return MpiJob(action);
    default:
      return OwnJob(action);
  }
}

std::string ChildrenYaml(const Action& action) {
  std::string yaml;
  if (action.what == What::kJobSet) {
    JobText job{.owners = Owner(action, "jobset.x-k8s.io/v1alpha2"),
                .labels = fmt::format(fmt::runtime(kJobSetLabels), action.name)};
    job.name = action.name + "-driver-0";
    yaml += JobYaml(action, job);
    job.parallelism = job.completions = action.pods;
    for (const char* workers : {"-workers-0", "-workers-1"}) {
      job.name = action.name + workers;
      yaml += JobYaml(action, job);
    }
    return yaml;
  }
  const std::string owner = Owner(action, "kubeflow.org/v2beta1");
  const std::string labels = fmt::format(fmt::runtime(kMpiLabels), action.name);
  yaml += JobYaml(action, {.name = action.name + "-launcher", .owners = owner, .labels = labels});
  for (int i = 0; i < action.pods; ++i) {
    yaml += PodYaml(fmt::format("{}-worker-{}", action.name, i), action, labels, owner);
  }
  return yaml;
}

}  // namespace fluxqueue::soak
