#include "libs/kubernetes/views.h"

#include <algorithm>
#include <charconv>
#include <limits>
#include <utility>

#include "libs/base/status_macros.h"
#include "libs/kubernetes/json_reader.h"
#include "libs/kubernetes/labels.h"
#include "libs/kubernetes/requests.h"

#include "fmt/format.h"
#include "fmt/ranges.h"

namespace fluxqueue::kubernetes {
namespace {

using internal::Document;
using internal::Field;

constexpr int64_t kInt32Max = std::numeric_limits<int32_t>::max();
constexpr int64_t kInt32Min = std::numeric_limits<int32_t>::min();

std::optional<int32_t> OptionalInt32(const Field& field) {
  const std::optional<int64_t> value = field.OptionalInt(kInt32Min, kInt32Max);
  return value ? std::optional<int32_t>(static_cast<int32_t>(*value)) : std::nullopt;
}

std::optional<uint32_t> OptionalCount(const Field& field) {
  const std::optional<int64_t> value = field.OptionalInt(0, kInt32Max);
  return value ? std::optional<uint32_t>(static_cast<uint32_t>(*value)) : std::nullopt;
}

ObjectMeta ReadMeta(const Field& field) {
  ObjectMeta meta;
  meta.name = field["name"].String();
  meta.generate_name = field["generateName"].String();
  meta.namespace_name = field["namespace"].String();
  meta.uid = field["uid"].String();
  meta.resource_version = field["resourceVersion"].String();
  meta.labels = field["labels"].StringMembers();
  meta.annotations = field["annotations"].StringMembers();
  meta.created_ms = field["creationTimestamp"].TimeMs();
  meta.deleted_ms = field["deletionTimestamp"].TimeMs();
  field["ownerReferences"].ForEach([&](const Field& owner) {
    meta.owners.push_back({owner["apiVersion"].String(),
                           owner["kind"].String(),
                           owner["name"].String(),
                           owner["uid"].String(),
                           owner["controller"].Bool()});
  });
  return meta;
}

Container ReadContainer(const Field& field, bool host_network, bool init) {
  Container container;
  container.name = field["name"].String();
  const Field resources = field["resources"];
  container.requests = resources["requests"].Quantities();
  container.limits = resources["limits"].Quantities();
  container.sidecar = init && field["restartPolicy"].String() == "Always";
  field["ports"].ForEach([&](const Field& port) {
    int64_t number = port["hostPort"].Int(0);
    if (number == 0 && host_network) number = port["containerPort"].Int(0);
    if (number == 0) return;
    container.host_ports.push_back(HostPortResource(number, port["protocol"].StringOr("TCP")));
  });
  return container;
}

std::vector<NodeExpression> ReadExpressions(const Field& field) {
  std::vector<NodeExpression> expressions;
  field.ForEach([&](const Field& e) {
    expressions.push_back({e["key"].String(), e["operator"].String(), e["values"].Strings()});
  });
  return expressions;
}

LabelSelector ReadSelector(const Field& field) {
  return {.labels = field["matchLabels"].StringMembers(),
          .expressions = ReadExpressions(field["matchExpressions"])};
}

std::optional<LabelSelector> OptionalSelector(const Field& field) {
  if (!field.present()) return std::nullopt;
  return ReadSelector(field);
}

PodTerm ReadPodTerm(const Field& term) {
  return {.pods = OptionalSelector(term["labelSelector"]),
          .topology_key = term["topologyKey"].String(),
          .namespaces = term["namespaces"].Strings(),
          .selects_namespaces = term["namespaceSelector"].present(),
          .same_keys = term["matchLabelKeys"].Strings(),
          .other_keys = term["mismatchLabelKeys"].Strings()};
}

NodeTerm ReadTerm(const Field& term) {
  return {ReadExpressions(term["matchExpressions"]), ReadExpressions(term["matchFields"])};
}

void ReadAffinity(const Field& affinity, PodSpec* spec) {
  constexpr std::string_view kRequired = "requiredDuringSchedulingIgnoredDuringExecution";
  constexpr std::string_view kPreferred = "preferredDuringSchedulingIgnoredDuringExecution";
  const Field required = affinity["nodeAffinity"][kRequired];
  if (required.present()) {
    std::vector<NodeTerm> terms;
    required["nodeSelectorTerms"].ForEach(
        [&](const Field& term) { terms.push_back(ReadTerm(term)); });
    spec->required_node_terms = std::move(terms);
  }
  affinity["nodeAffinity"][kPreferred].ForEach([&](const Field& preferred) {
    spec->preferred_node_terms.push_back(
        {ReadTerm(preferred["preference"]), preferred["weight"].Int(0)});
  });
  for (const auto& [kind, sign] : {std::pair("podAffinity", 1), std::pair("podAntiAffinity", -1)}) {
    affinity[kind][kPreferred].ForEach([&, sign = sign](const Field& preferred) {
      spec->preferred_pods.push_back(
          {ReadPodTerm(preferred["podAffinityTerm"]), sign * preferred["weight"].Int(0)});
    });
  }
  affinity["podAffinity"][kRequired].ForEach(
      [&](const Field& term) { spec->beside_pods.push_back(ReadPodTerm(term)); });
  affinity["podAntiAffinity"][kRequired].ForEach(
      [&](const Field& term) { spec->apart_from_pods.push_back(ReadPodTerm(term)); });
}

SpreadTerm ReadSpread(const Field& field) {
  return {.pods = OptionalSelector(field["labelSelector"]),
          .topology_key = field["topologyKey"].String(),
          .max_skew = field["maxSkew"].Int(1),
          .min_domains = field["minDomains"].Int(1),
          .same_keys = field["matchLabelKeys"].Strings(),
          .heeds_affinity = field["nodeAffinityPolicy"].StringOr("Honor") == "Honor",
          .heeds_taints = field["nodeTaintsPolicy"].String() == "Honor"};
}

void ReadVolumes(const Field& spec, PodSpec* pod) {
  spec["volumes"].ForEach([&](const Field& volume) {
    if (pod->claim_volume.empty() && volume["persistentVolumeClaim"].present()) {
      pod->claim_volume = volume["name"].String();
    }
    if (pod->ephemeral_volume.empty() && volume["ephemeral"].present()) {
      pod->ephemeral_volume = volume["name"].String();
    }
  });
  spec["resourceClaims"].ForEach([&](const Field& claim) {
    if (pod->resource_claim.empty()) pod->resource_claim = claim["name"].String();
  });
}

void ReadContainers(const Field& spec, PodSpec* pod) {
  pod->host_network = spec["hostNetwork"].Bool();
  spec["containers"].ForEach([&](const Field& c) {
    pod->containers.push_back(ReadContainer(c, pod->host_network, /*init=*/false));
  });
  spec["initContainers"].ForEach([&](const Field& c) {
    pod->init_containers.push_back(ReadContainer(c, pod->host_network, /*init=*/true));
  });
  pod->overhead = spec["overhead"].Quantities();
  const Field resources = spec["resources"];
  pod->has_pod_resources = resources.present();
  pod->pod_requests = resources["requests"].Quantities();
  pod->pod_limits = resources["limits"].Quantities();
}

std::vector<Toleration> ReadTolerations(const Field& field) {
  std::vector<Toleration> tolerations;
  field.ForEach([&](const Field& t) {
    tolerations.push_back({t["key"].String(),
                           t["operator"].StringOr("Equal"),
                           t["value"].String(),
                           t["effect"].String()});
  });
  return tolerations;
}

PodSpec ReadPodSpec(const Field& spec) {
  PodSpec pod;
  pod.scheduler_name = spec["schedulerName"].String();
  pod.pod_group = spec["schedulingGroup"]["podGroupName"].String();
  pod.node_name = spec["nodeName"].String();
  pod.priority_class = spec["priorityClassName"].String();
  pod.priority = OptionalInt32(spec["priority"]);
  pod.runtime_class = spec["runtimeClassName"].String();
  pod.restart_policy = spec["restartPolicy"].String();
  pod.active_deadline_s = spec["activeDeadlineSeconds"].Int(0);
  pod.node_selector = spec["nodeSelector"].StringMembers();
  spec["schedulingGates"].ForEach(
      [&](const Field& gate) { pod.gates.push_back(gate["name"].String()); });
  pod.tolerations = ReadTolerations(spec["tolerations"]);
  spec["topologySpreadConstraints"].ForEach([&](const Field& spread) {
    const bool required = spread["whenUnsatisfiable"].String() == "DoNotSchedule";
    (required ? pod.spread : pod.preferred_spread).push_back(ReadSpread(spread));
  });
  ReadContainers(spec, &pod);
  ReadAffinity(spec["affinity"], &pod);
  ReadVolumes(spec, &pod);
  return pod;
}

PodStatus ReadPodStatus(const Field& field) {
  PodStatus status;
  status.phase = field["phase"].String();
  status.reason = field["reason"].String();
  status.message = field["message"].String();
  status.started_ms = field["startTime"].TimeMs();
  field["conditions"].ForEach([&](const Field& condition) {
    const std::string type = condition["type"].String();
    const std::string state = condition["status"].String();
    if (type == kPodScheduled && state == "False") {
      status.waits_because = condition["reason"].String();
    }
    if (state != "True") return;
    if (type == "Ready") status.ready = true;
    if (type == kDisruptionTarget) status.disruption_target = true;
  });
  field["containerStatuses"].ForEach([&](const Field& container) {
    status.finished_ms =
        std::max(status.finished_ms, container["state"]["terminated"]["finishedAt"].TimeMs());
  });
  return status;
}

bool IgnoresDisruptions(const Field& rule) {
  bool matches = false;
  rule["onPodConditions"].ForEach([&](const Field& condition) {
    matches = matches || (condition["type"].String() == kDisruptionTarget &&
                          condition["status"].StringOr("True") == "True");
  });
  return matches && rule["action"].String() == "Ignore";
}

void ReadJobSpec(const Field& spec, Job* job) {
  job->parallelism = spec["parallelism"].OptionalInt(0, kInt32Max).value_or(1);
  job->completions = spec["completions"].OptionalInt(0, kInt32Max);
  job->indexed = spec["completionMode"].String() == "Indexed";
  job->suspend = spec["suspend"].Bool();
  job->active_deadline_s = spec["activeDeadlineSeconds"].Int(0);
  job->managed_by = spec["managedBy"].String();
  job->pod_replacement = spec["podReplacementPolicy"].String();
  bool others_first = false;  // the first rule that matches a pod decides
  spec["podFailurePolicy"]["rules"].ForEach([&](const Field& rule) {
    ++job->failure_rules;
    if (IgnoresDisruptions(rule) && !others_first) job->ignores_disruptions = true;
    others_first = others_first || rule["action"].String() != "Ignore";
  });
  const Field meta = spec["template"]["metadata"];
  job->template_labels = meta["labels"].StringMembers();
  job->template_annotations = meta["annotations"].StringMembers();
  job->pod = ReadPodSpec(spec["template"]["spec"]);
}

void ReadJobStatus(const Field& status, Job* job) {
  job->started_ms = status["startTime"].TimeMs();
  job->completed_ms = status["completionTime"].TimeMs();
  job->active = status["active"].Int(0);
  job->ready = status["ready"].Int(0);
  job->succeeded = status["succeeded"].Int(0);
  job->failed = status["failed"].Int(0);
  status["conditions"].ForEach([&](const Field& condition) {
    if (condition["status"].String() != "True") return;
    const std::string type = condition["type"].String();
    if (type == "Suspended") job->suspended = true;
    if (type != "Complete" && type != "Failed") return;
    (type == "Complete" ? job->complete : job->has_failed) = true;
    job->reason = condition["reason"].String();
    job->message = condition["message"].String();
    if (job->completed_ms == 0) job->completed_ms = condition["lastTransitionTime"].TimeMs();
  });
}

std::optional<int64_t> OptionalDuration(const Field& field) {
  if (!field.present()) return std::nullopt;
  const absl::StatusOr<Millis> duration = ParseDuration(field.String());
  if (duration.ok()) return duration->count();
  field.Fail(FromAbsl(duration.status().message()));
  return std::nullopt;
}

// Where limits name amounts; "gpu" is of every maker.
Amounts ReadAmounts(const Field& field) {
  Amounts amounts = field["resources"].Quantities();
  for (const char* resource : {"cpu", "memory", "gpu"}) {
    const std::optional<int64_t> amount = field[resource].OptionalQuantity(resource);
    if (amount) amounts.insert_or_assign(resource, *amount);
  }
  return amounts;
}

Subject ReadSubject(const Field& field) {
  return {.kind = field["kind"].String(),
          .name = field["name"].String(),
          .space = field["namespace"].String(),
          .verbs = field["verbs"].Strings()};
}

Members ReadMembers(const Field& field) {
  return {.users = field["users"].Strings(), .namespaces = field["namespaces"].Strings()};
}

QueueLimits ReadLimits(const Field& field) {
  QueueLimits limits;
  limits.running_jobs = OptionalCount(field["runningJobs"]);
  limits.queued_jobs = OptionalCount(field["queuedJobs"]);
  limits.gpu_hours = field["gpuHours"].OptionalInt(0, kInt32Max);
  limits.amounts = ReadAmounts(field);
  return limits;
}

// Runs `read` over the document and returns what it read, or the first error.
template <typename View, typename Read>
absl::StatusOr<View> Parse(std::string_view kind, std::string_view json, Read read) {
  Document document(kind, json);
  View view;
  read(document.root(), &view);
  RETURN_IF_ERROR(document.status());
  return view;
}

}  // namespace

bool Members::Include(std::string_view user, std::string_view space) const {
  return AreAll() || std::find(users.begin(), users.end(), user) != users.end() ||
         std::find(namespaces.begin(), namespaces.end(), space) != namespaces.end();
}

bool Subject::Has(std::string_view verb) const {
  return std::find(verbs.begin(), verbs.end(), verb) != verbs.end();
}

bool Subject::Is(std::string_view user, const std::vector<std::string>& groups) const {
  if (kind == "User") return user == name;
  if (kind == "Group") return std::find(groups.begin(), groups.end(), name) != groups.end();
  return kind == "ServiceAccount" &&
         user == fmt::format("system:serviceaccount:{}:{}", space, name);
}

const std::string& ObjectMeta::Annotation(std::string_view key) const {
  static const std::string none;
  const auto found = annotations.find(key);
  return found == annotations.end() ? none : found->second;
}

const OwnerReference* ObjectMeta::Controller() const {
  const auto owner =
      std::find_if(owners.begin(), owners.end(), [](const auto& o) { return o.controller; });
  return owner == owners.end() ? nullptr : &*owner;
}

std::optional<int> Pod::Index() const {
  for (const std::string_view key :
       {"batch.kubernetes.io/job-completion-index", "apps.kubernetes.io/pod-index"}) {
    // hint: it tells the pods of one job from each other, no job from another.
    for (const StringMap* map : {&meta.labels, &meta.annotations}) {
      const auto found = map->find(key);
      if (found == map->end()) continue;
      const std::string& text = found->second;
      int index = -1;
      const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), index);
      if (error == std::errc() && end == text.data() + text.size() && index >= 0) return index;
    }
  }
  return std::nullopt;
}

int64_t Job::Slots() const {
  return std::max<int64_t>(1, completions ? std::min(parallelism, *completions) : parallelism);
}

absl::StatusOr<ObjectMeta> ParseMeta(std::string_view json) {
  return Parse<ObjectMeta>("object", json, [](const Field& root, ObjectMeta* meta) {
    *meta = ReadMeta(root["metadata"]);
  });
}

absl::StatusOr<Pod> ParsePod(std::string_view json) {
  return Parse<Pod>("pod", json, [](const Field& root, Pod* pod) {
    pod->meta = ReadMeta(root["metadata"]);
    pod->spec = ReadPodSpec(root["spec"]);
    pod->status = ReadPodStatus(root["status"]);
  });
}

absl::StatusOr<Job> ParseJob(std::string_view json) {
  return Parse<Job>("job", json, [](const Field& root, Job* job) {
    job->meta = ReadMeta(root["metadata"]);
    ReadJobSpec(root["spec"], job);
    ReadJobStatus(root["status"], job);
  });
}

absl::StatusOr<Node> ParseNode(std::string_view json) {
  return Parse<Node>("node", json, [](const Field& root, Node* node) {
    node->meta = ReadMeta(root["metadata"]);
    node->unschedulable = root["spec"]["unschedulable"].Bool();
    root["spec"]["taints"].ForEach([&](const Field& taint) {
      node->taints.push_back(
          {taint["key"].String(), taint["value"].String(), taint["effect"].String()});
    });
    node->allocatable = root["status"]["allocatable"].Quantities();
    root["status"]["conditions"].ForEach([&](const Field& condition) {
      if (condition["type"].String() != "Ready") return;
      node->ready = condition["status"].String() == "True";
      node->ready_changed_ms = condition["lastTransitionTime"].TimeMs();
    });
  });
}

absl::StatusOr<Namespace> ParseNamespace(std::string_view json) {
  return Parse<Namespace>("namespace", json, [](const Field& root, Namespace* space) {
    space->name = root["metadata"]["name"].String();
    space->labels = root["metadata"]["labels"].StringMembers();
  });
}

absl::StatusOr<LimitRange> ParseLimitRange(std::string_view json) {
  return Parse<LimitRange>("limitrange", json, [](const Field& root, LimitRange* range) {
    range->meta = ReadMeta(root["metadata"]);
    root["spec"]["limits"].ForEach([&](const Field& item) {
      if (item["type"].String() != "Container") return;
      FillMissing(range->default_requests, item["defaultRequest"].Quantities());
      FillMissing(range->default_limits, item["default"].Quantities());
    });
  });
}

absl::StatusOr<RuntimeClass> ParseRuntimeClass(std::string_view json) {
  return Parse<RuntimeClass>("runtimeclass", json, [](const Field& root, RuntimeClass* runtime) {
    runtime->name = root["metadata"]["name"].String();
    runtime->overhead = root["overhead"]["podFixed"].Quantities();
    runtime->node_selector = root["scheduling"]["nodeSelector"].StringMembers();
    runtime->tolerations = ReadTolerations(root["scheduling"]["tolerations"]);
  });
}

absl::StatusOr<PriorityClass> ParsePriorityClass(std::string_view json) {
  return Parse<PriorityClass>("priorityclass", json, [](const Field& root, PriorityClass* klass) {
    klass->name = root["metadata"]["name"].String();
    klass->value = OptionalInt32(root["value"]).value_or(0);
    klass->global_default = root["globalDefault"].Bool();
  });
}

absl::StatusOr<FluxQueue> ParseFluxQueue(std::string_view json) {
  return Parse<FluxQueue>("fluxqueue", json, [](const Field& root, FluxQueue* queue) {
    queue->meta = ReadMeta(root["metadata"]);
    const Field spec = root["spec"];
    queue->pool = spec["pool"].String();
    queue->strategy = spec["strategy"].String();
    queue->weight = OptionalInt32(spec["weight"]);
    queue->priority = OptionalInt32(spec["priority"]);
    queue->queue_depth = OptionalCount(spec["queueDepth"]);
    queue->reservation_depth = OptionalCount(spec["reservationDepth"]);
    queue->default_duration_ms = OptionalDuration(spec["defaultDuration"]);
    queue->max_duration_ms = OptionalDuration(spec["maxDuration"]);
    queue->reject_after_ms = OptionalDuration(spec["rejectAfter"]);
    queue->reserve_after_ms = OptionalDuration(spec["reserveAfter"]);
    queue->enforce_duration = spec["enforceDuration"].String();
    queue->enforce_grace_ms = OptionalDuration(spec["enforceGrace"]);
    queue->undeclared_duration = spec["undeclaredDuration"].String();
    queue->parent = spec["parent"].String();
    queue->order = spec["order"].String();
    const Field limits = spec["limits"];
    queue->limits = ReadLimits(limits["queue"]);
    queue->namespace_limits = ReadLimits(limits["perNamespace"]);
    queue->user_limits = ReadLimits(limits["perUser"]);
    queue->most_per_job = ReadAmounts(limits["perJob"]);
    queue->least_per_job = ReadAmounts(limits["perJobAtLeast"]);
    queue->guarantee = spec["guarantee"].Quantities();
    queue->max_priority = OptionalInt32(spec["maxPriority"]);
    queue->members = ReadMembers(spec["members"]);
    const Field selector = spec["namespaceSelector"];
    if (selector.present()) queue->namespace_selector = ReadSelector(selector);
    spec["subjects"].ForEach(
        [queue](const Field& subject) { queue->subjects.push_back(ReadSubject(subject)); });
    const Field quota = spec["namespaceQuota"];
    queue->namespace_quota = {.jobs = quota["jobs"].OptionalInt(0, kInt32Max),
                              .jobspec_bytes = quota["jobspecBytes"].OptionalQuantity("memory")};
    queue->claim_quota = spec["claimQuota"].OptionalInt(0, kInt32Max);
    queue->claim_bytes = spec["claimBytes"].OptionalQuantity("memory");
    spec["users"].ForEach([queue](const Field& user) {
      queue->user_weights.emplace(user["name"].String(), OptionalInt32(user["weight"]).value_or(1));
    });
    spec["budgets"].ForEach([queue](const Field& budget) {
      queue->budgets.push_back({.resource = budget["resource"].String(),
                                .hours = budget["hours"].OptionalInt(0, kInt32Max).value_or(0),
                                .period = budget["period"].String(),
                                .when_spent = budget["whenSpent"].String()});
    });
    spec["qos"].ForEach([queue](const Field& klass) {
      queue->qos.push_back({.name = klass["name"].String(),
                            .max_priority = OptionalInt32(klass["maxPriority"]),
                            .max_duration_ms = OptionalDuration(klass["maxDuration"]),
                            .most = ReadAmounts(klass["perJob"]),
                            .members = ReadMembers(klass["members"])});
    });
    queue->default_qos = spec["defaultQos"].String();
    queue->half_life_ms = OptionalDuration(spec["halfLife"]);
    queue->aging_ms = OptionalDuration(spec["agingPeriod"]);
    queue->predict_durations = spec["predictDurations"].Bool();
    const Field preemption = spec["preemption"];
    queue->preempts_to_reclaim = preemption["reclaim"].Bool();
    queue->preempts_by_priority = preemption["byPriority"].Bool();
    queue->preemption_grace_ms = OptionalDuration(preemption["grace"]);
  });
}

absl::StatusOr<FluxWindow> ParseFluxWindow(std::string_view json) {
  return Parse<FluxWindow>("fluxwindow", json, [](const Field& root, FluxWindow* window) {
    window->meta = ReadMeta(root["metadata"]);
    const Field spec = root["spec"];
    window->pool = spec["pool"].String();
    window->start_ms = spec["start"].TimeMs();
    window->end_ms = spec["end"].TimeMs();
    window->duration_ms = OptionalDuration(spec["duration"]);
    window->nodes = spec["nodes"].Strings();
    window->node_selector = spec["nodeSelector"].StringMembers();
    window->namespaces = spec["namespaces"].Strings();
  });
}

}  // namespace fluxqueue::kubernetes
