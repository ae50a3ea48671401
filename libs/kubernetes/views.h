// Typed views of Kubernetes objects, read from the JSON text that the API server, a watch or an
// AdmissionReview gives: only the fields that Fluxqueue uses. A field that is missing or null has
// its default; one of a wrong type is an InvalidArgument that names its path ("pod default/a:
// spec.containers[0].resources.requests.cpu: "x" is not a quantity …"). Unknown fields are ignored.
//
// Times are milliseconds since the Unix epoch, 0 when absent. Pure, thread-safe (one parser for
// each thread).
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "libs/base/label_selector.h"
#include "libs/kubernetes/quantity.h"

#include "absl/status/statusor.h"

namespace fluxqueue::kubernetes {

using fluxqueue::LabelSelector;
using StringMap = LabelMap;

struct OwnerReference {
  std::string api_version;
  std::string kind;
  std::string name;
  std::string uid;
  bool controller = false;
};

struct ObjectMeta {
  std::string name;  // empty in an AdmissionReview with generateName
  std::string generate_name;
  std::string namespace_name;
  std::string uid;
  std::string resource_version;
  StringMap labels;
  StringMap annotations;
  std::vector<OwnerReference> owners;
  int64_t created_ms = 0;
  int64_t deleted_ms = 0;  // deletionTimestamp: it is going

  // The owner with controller: true; null if there is none.
  const OwnerReference* Controller() const;
  // "" where there is none. Users can write it: a hint, never a proof (tools/lint looks for the
  // reason why a service may read one).
  const std::string& Annotation(std::string_view key) const;
};

struct Container {
  std::string name;
  Amounts requests;
  Amounts limits;
  bool sidecar = false;  // an init container with restartPolicy Always
  // hostPort, or with hostNetwork containerPort: the names of requests.h.
  std::vector<std::string> host_ports;
};

struct Toleration {
  std::string key;
  std::string op;  // "Equal", "Exists"
  std::string value;
  std::string effect;  // empty: all
};

using NodeExpression = LabelExpression;  // Gt and Lt, too

// All of its expressions and fields must hold.
struct NodeTerm {
  std::vector<NodeExpression> expressions;  // of labels
  std::vector<NodeExpression> fields;       // of metadata.name
};

struct PreferredTerm {
  NodeTerm term;
  int64_t weight = 0;
};

// Of required (anti-)affinity to pods: those that are meant, and how far beside them reaches.
struct PodTerm {
  std::optional<LabelSelector> pods{};  // unset: none is meant
  std::string topology_key{};
  std::vector<std::string> namespaces{};
  bool selects_namespaces = false;  // has a namespaceSelector
  // Keys whose value here, and any but whose value here, the pods must have, too.
  std::vector<std::string> same_keys{};
  std::vector<std::string> other_keys{};
};

struct PreferredPodTerm {
  PodTerm term;
  int64_t weight = 0;  // below 0: of an anti-affinity
};

// Of topologySpreadConstraints.
struct SpreadTerm {
  std::optional<LabelSelector> pods{};
  std::string topology_key{};
  int64_t max_skew = 1;
  int64_t min_domains = 1;
  std::vector<std::string> same_keys{};
  bool heeds_affinity = true;  // nodes that the pod does not select do not count
  bool heeds_taints = false;   // nor those that it does not tolerate
};

struct PodSpec {
  std::string scheduler_name;
  std::string node_name;
  std::string priority_class;
  std::optional<int32_t> priority;
  std::string runtime_class;
  std::string restart_policy;
  std::vector<std::string> gates;
  StringMap node_selector;
  // requiredDuringSchedulingIgnoredDuringExecution: one of the terms must hold. Unset: no such
  // affinity.
  std::optional<std::vector<NodeTerm>> required_node_terms;
  // preferredDuringSchedulingIgnoredDuringExecution.
  std::vector<PreferredTerm> preferred_node_terms;
  std::vector<Toleration> tolerations;
  std::vector<Container> containers;
  std::vector<Container> init_containers;
  Amounts overhead;
  // spec.resources; unset when the field is absent.
  bool has_pod_resources = false;
  Amounts pod_requests;
  Amounts pod_limits;
  int64_t active_deadline_s = 0;
  bool host_network = false;
  std::vector<PodTerm> beside_pods;      // podAffinity, required
  std::vector<PodTerm> apart_from_pods;  // podAntiAffinity, required
  std::vector<PreferredPodTerm> preferred_pods;
  std::vector<SpreadTerm> spread;            // DoNotSchedule
  std::vector<SpreadTerm> preferred_spread;  // ScheduleAnyway
  std::string claim_volume;      // name of the first volume that is a persistentVolumeClaim
  std::string ephemeral_volume;  // name of the first volume that is `ephemeral`
  std::string resource_claim;    // name of the first of resourceClaims
  std::string pod_group;         // schedulingGroup.podGroupName, of Kubernetes 1.36 and later
};

// The condition of a pod that is stopped for a reason that is not its own.
inline constexpr std::string_view kDisruptionTarget = "DisruptionTarget";
// The condition of a pod that has a node, and its reason where nodes are what is missing:
// autoscalers add some for such a pod.
inline constexpr std::string_view kPodScheduled = "PodScheduled";
inline constexpr std::string_view kUnschedulable = "Unschedulable";

struct PodStatus {
  std::string phase;  // Pending, Running, Succeeded, Failed, Unknown
  std::string reason;
  std::string message;
  int64_t started_ms = 0;
  int64_t finished_ms = 0;  // the last container's end, once the pod has ended
  bool ready = false;
  bool disruption_target = false;  // the condition kDisruptionTarget: evicted, preempted …
  std::string waits_because;       // reason of the condition PodScheduled, where it is False
};

struct Pod {
  ObjectMeta meta;
  PodSpec spec;
  PodStatus status;

  bool Ended() const { return status.phase == "Succeeded" || status.phase == "Failed"; }
  bool Bound() const { return !spec.node_name.empty(); }
  // The index of an Indexed Job's or StatefulSet's pod; unset for others.
  std::optional<int> Index() const;
};

struct Job {
  ObjectMeta meta;
  // spec
  int64_t parallelism = 1;
  std::optional<int64_t> completions;
  bool indexed = false;
  bool suspend = false;
  int64_t active_deadline_s = 0;
  std::string managed_by;     // spec.managedBy
  int64_t failure_rules = 0;  // spec.podFailurePolicy.rules: how many there are
  // One of them is Ignore for the condition kDisruptionTarget, and all before it ignore, too.
  bool ignores_disruptions = false;
  std::string pod_replacement;  // spec.podReplacementPolicy
  StringMap template_labels;
  StringMap template_annotations;
  PodSpec pod;
  // status
  int64_t started_ms = 0;
  int64_t completed_ms = 0;
  int64_t active = 0;
  int64_t ready = 0;
  int64_t succeeded = 0;
  int64_t failed = 0;
  bool complete = false;    // condition Complete
  bool has_failed = false;  // condition Failed
  bool suspended = false;   // condition Suspended
  std::string reason;       // of the condition Complete or Failed
  std::string message;

  bool Ended() const { return complete || has_failed; }
  // Pods that run at once: min(parallelism, completions), at least 1.
  int64_t Slots() const;
};

struct Taint {
  std::string key;
  std::string value;
  std::string effect;
};

struct Node {
  ObjectMeta meta;
  Amounts allocatable;
  std::vector<Taint> taints;
  bool unschedulable = false;
  bool ready = false;
  int64_t ready_changed_ms = 0;  // lastTransitionTime of the condition Ready
};

struct Namespace {
  std::string name;
  StringMap labels;
};

// The Container items of one LimitRange.
struct LimitRange {
  ObjectMeta meta;
  Amounts default_requests;
  Amounts default_limits;
};

struct RuntimeClass {
  std::string name;
  Amounts overhead;  // overhead.podFixed
  // scheduling
  StringMap node_selector{};
  std::vector<Toleration> tolerations{};
};

struct PriorityClass {
  std::string name;
  int32_t value = 0;
  bool global_default = false;
};

// What is not said has no limit.
struct QueueLimits {
  std::optional<uint32_t> running_jobs;
  std::optional<uint32_t> queued_jobs;
  std::optional<int64_t> gpu_hours;
  Amounts amounts;  // "gpu": of every maker

  friend bool operator==(const QueueLimits&, const QueueLimits&) = default;
};

// Users and namespaces; of both none: all there are.
struct Members {
  std::vector<std::string> users{};
  std::vector<std::string> namespaces{};

  bool AreAll() const { return users.empty() && namespaces.empty(); }
  bool Include(std::string_view user, std::string_view space) const;
};

// The verb of subjects that may hand in jobs, in a FluxQueue and in those below it.
inline constexpr std::string_view kSubmitVerb = "submit";

// As in a RoleBinding of Kubernetes, with the verbs beside it.
struct Subject {
  std::string kind;  // User, Group, ServiceAccount
  std::string name;
  std::string space{};  // of a ServiceAccount
  std::vector<std::string> verbs{};

  bool Has(std::string_view verb) const;
  bool Is(std::string_view user, const std::vector<std::string>& groups) const;
};

// What the jobs of one namespace may come to; more are refused. Unset: any number.
struct NamespaceQuota {
  std::optional<int64_t> jobs{};
  std::optional<int64_t> jobspec_bytes{};

  bool empty() const { return !jobs && !jobspec_bytes; }
};

struct QueueBudget {
  std::string resource;
  int64_t hours = 0;
  std::string period{};      // "day" …; empty: "month"
  std::string when_spent{};  // "warn", "hold"; empty: "hold"
};

// What jobs that name the class may ask for.
struct QosClass {
  std::string name;
  std::optional<int32_t> max_priority{};
  std::optional<int64_t> max_duration_ms{};
  Amounts most{};  // of one job
  Members members{};
};

// fluxqueues.fluxqueue.io/v1alpha1. Unset fields are unset; what they default to is admission's.
struct FluxQueue {
  ObjectMeta meta;
  std::string pool;
  std::string strategy;
  std::optional<int32_t> weight;
  std::optional<int32_t> priority;
  std::optional<int32_t> max_priority;  // of a job
  std::optional<uint32_t> queue_depth;
  std::optional<uint32_t> reservation_depth;
  std::optional<int64_t> default_duration_ms;
  std::optional<int64_t> max_duration_ms;
  std::optional<int64_t> reject_after_ms;
  std::optional<int64_t> reserve_after_ms;
  std::string enforce_duration;  // "never", "warn", "end"; empty: "warn"
  std::optional<int64_t> enforce_grace_ms;
  std::string undeclared_duration;  // "plan", "bound", "refuse"; empty: see BoundsUndeclared
  std::string parent;
  std::string order;
  QueueLimits limits;
  QueueLimits namespace_limits;
  QueueLimits user_limits;
  Amounts most_per_job;
  Amounts least_per_job;
  Amounts guarantee;
  Members members;
  std::optional<LabelSelector> namespace_selector;  // whose jobs it takes; unset: of all
  std::vector<Subject> subjects;
  NamespaceQuota namespace_quota;
  // Of one user, who wants another here.
  std::optional<int64_t> claim_quota;
  std::optional<int64_t> claim_bytes;
  std::map<std::string, int32_t> user_weights;
  std::vector<QueueBudget> budgets;
  std::vector<QosClass> qos;
  std::string default_qos;
  std::optional<int64_t> half_life_ms;
  std::optional<int64_t> aging_ms;
  bool predict_durations = false;
  bool preempts_to_reclaim = false;
  bool preempts_by_priority = false;
  std::optional<int64_t> preemption_grace_ms;

  bool EndsDurations() const { return enforce_duration == "end"; }
  // Jobs that declare none have maxDuration: where that is said, and where others are ended.
  bool BoundsUndeclared() const {
    return undeclared_duration == "bound" || undeclared_duration == "refuse" ||
           (undeclared_duration.empty() && EndsDurations());
  }
};

// fluxwindows.fluxqueue.io/v1alpha1: nodes that are kept for a time.
struct FluxWindow {
  ObjectMeta meta;
  std::string pool;
  int64_t start_ms = 0;
  // One of the two, as the schema has it.
  int64_t end_ms = 0;  // 0: unset
  std::optional<int64_t> duration_ms;
  // These, and those with all of these labels; neither: every node.
  std::vector<std::string> nodes;
  StringMap node_selector;
  std::vector<std::string> namespaces;  // that may use them
};

absl::StatusOr<ObjectMeta> ParseMeta(std::string_view json);  // of any object
absl::StatusOr<Pod> ParsePod(std::string_view json);
absl::StatusOr<Job> ParseJob(std::string_view json);
absl::StatusOr<Node> ParseNode(std::string_view json);
absl::StatusOr<Namespace> ParseNamespace(std::string_view json);
absl::StatusOr<LimitRange> ParseLimitRange(std::string_view json);
absl::StatusOr<RuntimeClass> ParseRuntimeClass(std::string_view json);
absl::StatusOr<PriorityClass> ParsePriorityClass(std::string_view json);
absl::StatusOr<FluxQueue> ParseFluxQueue(std::string_view json);
absl::StatusOr<FluxWindow> ParseFluxWindow(std::string_view json);

}  // namespace fluxqueue::kubernetes
