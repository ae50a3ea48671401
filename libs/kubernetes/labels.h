// Every key that Fluxqueue reads or writes on Kubernetes objects, and what their values may be.
// Pure, thread-safe.
#pragma once

#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "libs/base/clock.h"
#include "libs/kubernetes/views.h"
#include "libs/scheduling/dependencies.h"

#include "absl/status/statusor.h"

namespace fluxqueue::kubernetes {

inline constexpr std::string_view kPrefix = "fluxqueue.io/";
inline constexpr std::string_view kSchedulerName = "fluxqueue";
inline constexpr std::string_view kDefaultScheduler = "default-scheduler";
inline constexpr std::string_view kSystemNamespace = "fluxqueue-system";
inline constexpr std::string_view kDefaultQueue = "default";
inline constexpr std::string_view kDefaultPool = "default";

// What users write. The keys of the first group are taken from a label or an annotation.
inline constexpr std::string_view kQueueKey = "fluxqueue.io/queue";
// Labels of a namespace: the queue of what is made there and names none; and of what runs without
// an end (Deployments and the like), where that is another one. They go by the first without it.
inline constexpr std::string_view kNamespaceQueueKey = "fluxqueue.io/queue";
inline constexpr std::string_view kServingQueueKey = "fluxqueue.io/serving-queue";
inline constexpr std::string_view kPriorityKey = "fluxqueue.io/priority";
inline constexpr std::string_view kDurationKey = "fluxqueue.io/duration";
inline constexpr std::string_view kQosKey = "fluxqueue.io/qos";
inline constexpr std::string_view kHoldKey = "fluxqueue.io/hold";
inline constexpr std::string_view kCancelKey = "fluxqueue.io/cancel";
// Any value that it did not have before hands in again what was rejected.
inline constexpr std::string_view kRetryKey = "fluxqueue.io/retry";
inline constexpr std::string_view kTopologyKey = "fluxqueue.io/topology";
inline constexpr std::string_view kDependsOnKey = "fluxqueue.io/depends-on";
inline constexpr std::string_view kBeginKey = "fluxqueue.io/begin";
inline constexpr std::string_view kMinSlotsKey = "fluxqueue.io/min-slots";
inline constexpr std::string_view kMaxSlotsKey = "fluxqueue.io/max-slots";
inline constexpr std::string_view kArrayKey = "fluxqueue.io/array";
// Of pods: the gang that they are of, and how many pods it has (group.h).
inline constexpr std::string_view kGroupNameKey = "fluxqueue.io/group-name";
inline constexpr std::string_view kGroupSizeKey = "fluxqueue.io/group-size";
// Of the pods of a StatefulSet or ReplicaSet: whether those of its first start are one gang.
inline constexpr std::string_view kGrowthKey = "fluxqueue.io/growth";
// Of Jobs, read when they are made: a rule in their podFailurePolicy that ignores disruptions.
inline constexpr std::string_view kIgnoreDisruptionsKey = "fluxqueue.io/ignore-disruptions";
inline constexpr std::string_view kManagedLabel = "fluxqueue.io/managed";  // object, namespace
inline constexpr std::string_view kPoolLabel = "fluxqueue.io/pool";        // node
// Of a managed namespace: what runs there past the queue is stopped.
inline constexpr std::string_view kEnforceLabel = "fluxqueue.io/enforce";
inline constexpr std::string_view kEnforceStrict = "strict";

// Taint of nodes that are kept for us; the webhook makes what it holds tolerate it.
inline constexpr std::string_view kDedicatedTaint = "fluxqueue.io/dedicated";

// What Fluxqueue writes.
inline constexpr std::string_view kHeldLabel =
    "fluxqueue.io/held";  // "direct" or "pinned"; on pod templates too
inline constexpr std::string_view kHeldDirect = "direct";
inline constexpr std::string_view kHeldPinned = "pinned";
inline constexpr std::string_view kGate = "fluxqueue.io/gate";  // scheduling gate of pinned pods
inline constexpr std::string_view kJobIdAnnotation = "fluxqueue.io/job-id";
inline constexpr std::string_view kAllocationAnnotation = "fluxqueue.io/allocation";
// The binder's proof of the slot (slot_proof.h).
inline constexpr std::string_view kProofAnnotation = "fluxqueue.io/proof";
// Of a pod that asks for GPUs in parts: those of its node that it has them of, such as "0,2".
inline constexpr std::string_view kDevicesAnnotation = "fluxqueue.io/gpu-devices";
inline constexpr std::string_view kSuspendedByAnnotation = "fluxqueue.io/suspended-by";
inline constexpr std::string_view kSuspendedByUs = "fluxqueue";
// An activeDeadlineSeconds that we have set: its value.
inline constexpr std::string_view kDeadlineAnnotation = "fluxqueue.io/deadline";
inline constexpr std::string_view kFencedAnnotation = "fluxqueue.io/fenced";
// The group of a pod, "<name>/<size>", as it was made (group.h).
inline constexpr std::string_view kGroupAnnotation = "fluxqueue.io/group";
// Who made it, as the API server told the webhook.
inline constexpr std::string_view kUserAnnotation = "fluxqueue.io/user";
// The queue that its maker was found to be allowed to submit to (spec.subjects), when it was made.
inline constexpr std::string_view kAdmittedToAnnotation = "fluxqueue.io/admitted-to";
// The webhook's span in the trace of the request that made it.
inline constexpr std::string_view kTraceparentAnnotation = "fluxqueue.io/traceparent";

// What is held has no more annotations of its user's, nor its pod template. The policies allow some
// more (templates/policy.yaml of the chart), which are ours.
inline constexpr size_t kMostAnnotations = 500;

// Those above that are our record of a workload, and that nobody but us may change: the table
// deploy/helm/fluxqueue/files/keys.yaml, compiled in, of which the policies are made, too.
const std::set<std::string, std::less<>>& RecordedKeys();

// Levels of the cluster (zone, rack …) within one vertex of which all pods of a job must be, or
// rather are. Empty: any.
struct Topology {
  std::string required;
  std::string preferred;

  friend bool operator==(const Topology&, const Topology&) = default;
};

// Another job that has to have ended first: its uid, or its name in the same namespace.
struct DependsOn {
  scheduling::Condition condition = scheduling::Condition::kAfterOk;
  std::string job;

  friend bool operator==(const DependsOn&, const DependsOn&) = default;
};
inline constexpr size_t kMaxDependencies = 64;

// Not to be started before: a time, or so long after the object was made.
struct Begin {
  int64_t at_ms = 0;
  std::optional<Millis> after;

  int64_t At(int64_t created_ms) const { return after ? created_ms + after->count() : at_ms; }

  friend bool operator==(const Begin&, const Begin&) = default;
};

// What a user asked for on one object. Unset: not said.
struct UserKeys {
  std::optional<std::string> queue;
  std::optional<int32_t> priority;
  std::optional<Millis> duration;  // 0: unlimited
  std::optional<Topology> topology;
  std::optional<std::vector<DependsOn>> depends_on;
  std::optional<Begin> begin;
  // Of Jobs: elastic, or a job array of so many indexes at a time.
  std::optional<int64_t> min_slots;
  std::optional<int64_t> max_slots;
  std::optional<int64_t> array;
  std::optional<bool> ignore_disruptions;
  bool hold = false;
  bool cancel = false;
  std::string retry;
  std::string qos;

  friend bool operator==(const UserKeys&, const UserKeys&) = default;
};

// Reads the keys above from labels and annotations. InvalidArgument names key, value and what is
// allowed: a bad value, a key that is there as label and as annotation with different values, a key
// of ours that no version knows (a typing error), or one that this version cannot honour yet
// (exclusive, jobspec).
absl::StatusOr<UserKeys> ParseUserKeys(const StringMap& labels, const StringMap& annotations);

// Asked for by one of the keys min-slots, max-slots and array of the Job or its template, whatever
// they say.
bool MayBeElastic(const Job& job);

// A Job's own keys, and where they are silent its template's.
absl::StatusOr<UserKeys> ParseUserKeys(const Job& job);

enum class Growth { kEach, kAll };
// "each": every pod is a job of its own; "all": those of the first start are one gang.
absl::StatusOr<Growth> ParseGrowth(std::string_view text);

// "90" (seconds), "90s", "1h30m", "500ms"; "0": unlimited.
absl::StatusOr<Millis> ParseDuration(std::string_view text);
// "afterok:prepare", also several, "afterok:a:b,afterany:c"; afterok, afterany, afternotok.
absl::StatusOr<std::vector<DependsOn>> ParseDependsOn(std::string_view text);
// "2026-01-31T12:00:00Z", or "+1h30m" after the object was made.
absl::StatusOr<Begin> ParseBegin(std::string_view text);
// "required: rack", "preferred: rack", or both: "required: zone, preferred: rack".
absl::StatusOr<Topology> ParseTopology(std::string_view text);
// The same the other way; "" for neither.
std::string FormatTopology(const Topology& topology);
// "true" or "false".
absl::StatusOr<bool> ParseBool(std::string_view text);

// Where a pod stands in its job: the annotation "<attempt>.<part>.<slot>/<slots>".
struct SlotName {
  uint32_t attempt = 0;
  uint32_t part = 0;
  uint32_t slot = 0;
  uint32_t slots = 0;
};
std::string FormatSlotName(const SlotName& name);
absl::StatusOr<SlotName> ParseSlotName(std::string_view text);

}  // namespace fluxqueue::kubernetes
