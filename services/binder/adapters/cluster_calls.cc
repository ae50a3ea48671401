#include "services/binder/adapters/cluster_calls.h"

#include <algorithm>
#include <utility>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "libs/base/status_macros.h"
#include "libs/kubernetes/json_text.h"
#include "libs/kubernetes/labels.h"
#include "libs/kubernetes/node.h"
#include "libs/kubernetes/ownership.h"
#include "libs/kubernetes/resource.h"
#include "libs/kubernetes/views.h"

namespace fluxqueue::binder {
namespace {

using Outcome = CallResult::Outcome;
using nlohmann::json;

CallResult Result(const Call& call, Outcome outcome, std::string message = {}) {
  return {.call = call, .outcome = outcome, .pod = {}, .message = std::move(message)};
}

// What never succeeds is told apart from what may: rights can be granted, so 403 is tried again.
CallResult NotDone(const Call& call, const absl::Status& status) {
  CallResult result = Result(call, Outcome::kRetry, Message(status));
  if (absl::IsNotFound(status)) result.outcome = Outcome::kGone;
  if (absl::IsInvalidArgument(status)) result.outcome = Outcome::kRefused;
  if (const std::optional<Millis> wish = kubernetes::RetryAfter(status)) result.retry_after = *wish;
  return result;
}

// It waits until the queue says what becomes of it.
CallResult NotMade(const Call& call, std::string why) {
  CallResult result = Result(call, Outcome::kRetry, std::move(why));
  result.unmade = true;
  return result;
}

bool IsConflict(const absl::Status& status) {
  return absl::IsAborted(status) || absl::IsAlreadyExists(status);
}

CallResult WithPod(const Call& call, Outcome outcome, const std::string& text) {
  const absl::StatusOr<kubernetes::Pod> pod = kubernetes::ParsePod(text);
  if (!pod.ok()) return Result(call, Outcome::kRetry, Message(pod.status()));
  if (pod->meta.uid != call.uid) return Result(call, Outcome::kGone);
  CallResult result = Result(call, outcome);
  result.pod = ToFacts(*pod);
  return result;
}

// What the pod is told when it is started.
kubernetes::StringMap AnnotationsOf(const Call& call, const std::string& proof) {
  kubernetes::StringMap annotations = {
      {std::string(kubernetes::kJobIdAnnotation), call.job_id},
      {std::string(kubernetes::kAllocationAnnotation), kubernetes::FormatSlotName(SlotOf(call))}};
  if (!proof.empty()) annotations[std::string(kubernetes::kProofAnnotation)] = proof;
  if (!call.devices.empty()) {
    annotations[std::string(kubernetes::kDevicesAnnotation)] =
        fmt::format("{}", fmt::join(call.devices, ","));
  }
  return annotations;
}

// A merge patch with the uid as its precondition.
json PatchOf(const Call& call) {
  json patch;
  patch["metadata"]["uid"] = call.uid;
  return patch;
}

// A shorter one that its user has set stays.
void SetDeadline(const kubernetes::ObjectMeta& meta,
                 int64_t deadline_s,
                 int64_t ends_after_s,
                 json* patch) {
  const int64_t own_s = kubernetes::OwnDeadline(meta, deadline_s);
  if (ends_after_s == 0 || (own_s > 0 && own_s <= ends_after_s)) return;
  (*patch)["metadata"]["annotations"][std::string(kubernetes::kDeadlineAnnotation)] =
      fmt::format("{}", ends_after_s);
  (*patch)["spec"]["activeDeadlineSeconds"] = ends_after_s;
}

}  // namespace

CallResult ClusterCalls::Make(const Call& call) {
  switch (call.kind) {
    case Call::Kind::kBind:
      return Bind(call);
    case Call::Kind::kRelease:
      return Release(call);
    case Call::Kind::kResume:
      return Resume(call);
    case Call::Kind::kLimit:
      return Limit(call);
    case Call::Kind::kSuspend:
      return Suspend(call);
    case Call::Kind::kDelete:
    case Call::Kind::kKill:
      return Delete(call);
    case Call::Kind::kFence:
      return Fence(call);
    case Call::Kind::kReadPod:
      return ReadPod(call, Outcome::kDone);
    case Call::Kind::kCheckNode:
      return CheckNode(call);
    case Call::Kind::kLookAtNode:
      return LookAtNode(call);
    case Call::Kind::kReadJob:
      return ReadJob(call);
  }
  return Result(call, Outcome::kRefused, "unknown kind of call");
}

CallResult ClusterCalls::Bind(const Call& call) {
  uint64_t version = call.resource_version;
  if (call.ends_after_s > 0) {
    const CallResult limited = LimitPod(call);
    if (limited.outcome != Outcome::kDone || !limited.pod.has_value()) return limited;
    version = limited.pod->resource_version;
  }
  if (std::optional<CallResult> replaced = NodeReplaced(call)) return *std::move(replaced);
  kubernetes::Binding binding;
  binding.space = call.space;
  binding.pod = call.name;
  binding.node = call.node;
  binding.preconditions = {call.uid, fmt::format("{}", version)};
  binding.annotations = AnnotationsOf(call, proofs_.Prove(call));
  const absl::Status status = cluster_.Bind(binding);
  return status.ok() ? Result(call, Outcome::kDone) : Failed(call, status);
}

// The deadline of a pod can be set and lowered, so its own is looked at first.
CallResult ClusterCalls::LimitPod(const Call& call) {
  const absl::StatusOr<std::string> text = cluster_.Get(kubernetes::kPods, call.space, call.name);
  if (!text.ok()) return NotDone(call, text.status());
  CallResult read = WithPod(call, Outcome::kConflict, *text);
  if (read.outcome != Outcome::kConflict || !read.pod.has_value()) return read;
  if (read.pod->resource_version != call.resource_version || !read.pod->Waiting()) return read;
  const absl::StatusOr<kubernetes::Pod> pod = kubernetes::ParsePod(*text);
  if (!pod.ok()) return Result(call, Outcome::kRetry, Message(pod.status()));
  json patch = PatchOf(call);
  SetDeadline(pod->meta, pod->spec.active_deadline_s, call.ends_after_s, &patch);
  if (!patch.contains("spec")) return WithPod(call, Outcome::kDone, *text);
  patch["metadata"]["resourceVersion"] = fmt::format("{}", call.resource_version);
  return PatchPod(call, kubernetes::JsonText(patch));
}

CallResult ClusterCalls::Failed(const Call& call, const absl::Status& status) {
  if (!IsConflict(status)) return NotDone(call, status);
  CallResult result = ReadPod(call, Outcome::kConflict);
  if (result.message.empty()) result.message = Message(status);
  return result;
}

CallResult ClusterCalls::ReadPod(const Call& call, Outcome found) {
  const absl::StatusOr<std::string> text = cluster_.Get(kubernetes::kPods, call.space, call.name);
  if (!text.ok()) return NotDone(call, text.status());
  return WithPod(call, found, *text);
}

CallResult ClusterCalls::PatchPod(const Call& call, const std::string& body) {
  const absl::StatusOr<std::string> text =
      cluster_.Patch(kubernetes::kPods, call.space, call.name, kubernetes::PatchType::kMerge, body);
  if (!text.ok()) return Failed(call, text.status());
  return WithPod(call, Outcome::kDone, *text);
}

// The patch depends on the pod's affinity, so the pod is read first; that it is still the version
// of the plan is checked here and once more by the API server.
CallResult ClusterCalls::Release(const Call& call) {
  const absl::StatusOr<std::string> text = cluster_.Get(kubernetes::kPods, call.space, call.name);
  if (!text.ok()) return NotDone(call, text.status());
  CallResult read = WithPod(call, Outcome::kConflict, *text);
  if (read.outcome != Outcome::kConflict || !read.pod.has_value()) return read;
  if (read.pod->resource_version != call.resource_version || !read.pod->Waiting()) return read;
  const std::string patch = ReleasePatch(*text, call, proofs_.Prove(call));
  if (patch.empty()) return Result(call, Outcome::kRefused, "the pod is not a JSON object");
  if (std::optional<CallResult> replaced = NodeReplaced(call)) return *std::move(replaced);
  return PatchPod(call, patch);
}

std::optional<CallResult> ClusterCalls::NodeReplaced(const Call& call) {
  const auto now = clock_.Monotonic().time_since_epoch();
  if (call.sure_until == Millis::max() || now <= call.sure_until) return std::nullopt;
  if (call.node_uid.empty()) return NotMade(call, "its node may be another by now");
  const absl::StatusOr<std::string> text = cluster_.Get(kubernetes::kNodes, "", call.node);
  if (absl::IsNotFound(text.status())) return NotMade(call, "its node is gone");
  if (!text.ok()) return NotDone(call, text.status());
  const absl::StatusOr<kubernetes::ObjectMeta> meta = kubernetes::ParseMeta(*text);
  if (!meta.ok()) return Result(call, Outcome::kRetry, Message(meta.status()));
  if (meta->uid == call.node_uid) return std::nullopt;
  return NotMade(call, "its node is another by now");
}

CallResult ClusterCalls::Fence(const Call& call) {
  json patch = PatchOf(call);
  patch["metadata"]["annotations"][std::string(kubernetes::kFencedAnnotation)] =
      fmt::format("{}", call.attempt);
  return PatchPod(call, kubernetes::JsonText(patch));
}

CallResult ClusterCalls::Disrupt(const Call& call) {
  const absl::StatusOr<std::string> patched = cluster_.Patch(kubernetes::kPods,
                                                             call.space,
                                                             call.name,
                                                             kubernetes::PatchType::kStrategic,
                                                             DisruptionPatch(call, clock_.Now()),
                                                             "status");
  return patched.ok() ? Result(call, Outcome::kDone) : Failed(call, patched.status());
}

CallResult ClusterCalls::Delete(const Call& call) {
  if (call.disruption.has_value()) {
    CallResult disrupted = Disrupt(call);
    if (disrupted.outcome != Outcome::kDone) return disrupted;
  }
  const absl::Status status = cluster_.Delete(
      kubernetes::kPods,
      call.space,
      call.name,
      {.preconditions = {call.uid, {}}, .grace_period_s = call.grace_s, .propagation = {}});
  return status.ok() ? Result(call, Outcome::kDone) : Failed(call, status);
}

CallResult ClusterCalls::PatchJob(const Call& call, const std::string& body) {
  const absl::StatusOr<std::string> patched =
      cluster_.Patch(kubernetes::kJobs, call.space, call.name, kubernetes::PatchType::kMerge, body);
  if (patched.ok()) return Result(call, Outcome::kDone);
  if (!IsConflict(patched.status())) return NotDone(call, patched.status());
  // Another Job of that name: ours has gone.
  const absl::StatusOr<std::string> text = cluster_.Get(kubernetes::kJobs, call.space, call.name);
  if (!text.ok()) return NotDone(call, text.status());
  const absl::StatusOr<kubernetes::ObjectMeta> meta = kubernetes::ParseMeta(*text);
  if (meta.ok() && meta->uid != call.uid) return Result(call, Outcome::kGone);
  return Result(call, Outcome::kRetry, Message(patched.status()));
}

CallResult ClusterCalls::Resume(const Call& call) {
  json patch = PatchOf(call);
  if (call.only_ours || call.ends_after_s > 0) {
    const std::variant<kubernetes::Job, CallResult> found = FindJob(call);
    const auto* job = std::get_if<kubernetes::Job>(&found);
    if (job == nullptr) return std::get<CallResult>(found);
    if (call.only_ours && !kubernetes::IsSuspendedByUs(*job)) return Result(call, Outcome::kDone);
    SetDeadline(job->meta, job->active_deadline_s, call.ends_after_s, &patch);
  }
  patch["metadata"]["annotations"][std::string(kubernetes::kSuspendedByAnnotation)] = nullptr;
  patch["metadata"]["annotations"][std::string(kubernetes::kJobIdAnnotation)] = call.job_id;
  patch["spec"]["suspend"] = false;
  return PatchJob(call, kubernetes::JsonText(patch));
}

// As it is now: what the API server does later than it answers must not stop the next attempt.
CallResult ClusterCalls::Suspend(const Call& call) {
  const std::variant<kubernetes::Job, CallResult> found = FindJob(call);
  const auto* job = std::get_if<kubernetes::Job>(&found);
  if (job == nullptr) return std::get<CallResult>(found);
  json patch = PatchOf(call);
  patch["metadata"]["resourceVersion"] = job->meta.resource_version;
  patch["metadata"]["annotations"][std::string(kubernetes::kSuspendedByAnnotation)] =
      kubernetes::kSuspendedByUs;
  patch["spec"]["suspend"] = true;
  return PatchJob(call, kubernetes::JsonText(patch));
}

// A Job that was never suspended counts from its creation, when it had no nodes yet.
CallResult ClusterCalls::Limit(const Call& call) {
  const std::variant<kubernetes::Job, CallResult> found = FindJob(call);
  const auto* job = std::get_if<kubernetes::Job>(&found);
  if (job == nullptr) return std::get<CallResult>(found);
  const Millis now = std::chrono::duration_cast<Millis>(clock_.Now().time_since_epoch());
  const int64_t ran_ms =
      job->started_ms == 0 ? 0 : std::max<int64_t>(0, now.count() - job->started_ms);
  json patch = PatchOf(call);
  SetDeadline(job->meta, job->active_deadline_s, call.ends_after_s + (ran_ms + 999) / 1000, &patch);
  return patch.contains("spec") ? PatchJob(call, kubernetes::JsonText(patch))
                                : Result(call, Outcome::kDone);
}

std::variant<kubernetes::Job, CallResult> ClusterCalls::FindJob(const Call& call) {
  const absl::StatusOr<std::string> text = cluster_.Get(kubernetes::kJobs, call.space, call.name);
  if (!text.ok()) return NotDone(call, text.status());
  absl::StatusOr<kubernetes::Job> job = kubernetes::ParseJob(*text);
  if (!job.ok()) return Result(call, Outcome::kRetry, Message(job.status()));
  if (job->meta.uid != call.uid) return Result(call, Outcome::kGone);
  return *std::move(job);
}

CallResult ClusterCalls::CheckNode(const Call& call) {
  CallResult result = Result(call, Outcome::kDone);
  const absl::StatusOr<std::string> text = cluster_.Get(kubernetes::kNodes, "", call.node);
  if (absl::IsNotFound(text.status())) {
    result.node_lost = true;
    return result;
  }
  if (!text.ok()) return NotDone(call, text.status());
  const absl::StatusOr<kubernetes::Node> node = kubernetes::ParseNode(*text);
  if (!node.ok()) return Result(call, Outcome::kRetry, Message(node.status()));
  const Millis since_change = std::chrono::duration_cast<Millis>(clock_.Now().time_since_epoch()) -
                              Millis(node->ready_changed_ms);
  result.node_lost = !node->ready && since_change >= node_lost_grace_;
  return result;
}

// The pod is read only for its tolerations, so only where it needs some.
CallResult ClusterCalls::LookAtNode(const Call& call) {
  CallResult result = Result(call, Outcome::kDone);
  const absl::StatusOr<std::string> text = cluster_.Get(kubernetes::kNodes, "", call.node);
  if (absl::IsNotFound(text.status())) {
    result.node_closed = "is gone";
    return result;
  }
  if (!text.ok()) return NotDone(call, text.status());
  const absl::StatusOr<kubernetes::Node> node = kubernetes::ParseNode(*text);
  if (!node.ok()) return Result(call, Outcome::kRetry, Message(node.status()));
  if (!call.node_uid.empty() && node->meta.uid != call.node_uid) {
    result.node_closed = "is another by now";
    return result;
  }
  std::optional<std::string> closed = kubernetes::WhyClosed(*node, {});
  if (closed.has_value()) {
    const absl::StatusOr<std::string> pod = cluster_.Get(kubernetes::kPods, call.space, call.name);
    // That it has gone the watch says.
    if (!pod.ok()) return Result(call, Outcome::kRetry, Message(pod.status()));
    const absl::StatusOr<kubernetes::Pod> parsed = kubernetes::ParsePod(*pod);
    if (!parsed.ok()) return Result(call, Outcome::kRetry, Message(parsed.status()));
    closed = kubernetes::WhyClosed(*node, parsed->spec.tolerations);
  }
  result.node_closed = closed.value_or("");
  return result;
}

CallResult ClusterCalls::ReadJob(const Call& call) {
  const std::variant<kubernetes::Job, CallResult> found = FindJob(call);
  const auto* job = std::get_if<kubernetes::Job>(&found);
  if (job == nullptr) return std::get<CallResult>(found);
  CallResult result = Result(call, Outcome::kDone);
  result.completions_left = job->completions.value_or(job->parallelism) - job->succeeded;
  return result;
}

std::string ReleasePatch(const std::string& pod, const Call& call, const std::string& proof) {
  const json object = json::parse(pod, nullptr, /*allow_exceptions=*/false);
  if (!object.is_object() || !object.contains("spec")) return {};
  json gates = json::array();
  for (const json& gate : object["spec"].value("schedulingGates", json::array())) {
    if (gate.value("name", "") != kubernetes::kGate) gates.push_back(gate);
  }
  static const json::json_pointer kTerms(
      "/spec/affinity/nodeAffinity/requiredDuringSchedulingIgnoredDuringExecution/"
      "nodeSelectorTerms");
  json terms = object.contains(kTerms) ? object[kTerms] : json::array();
  if (terms.empty()) terms.push_back({{"matchFields", json::array()}});
  for (json& term : terms) {
    if (term.empty()) continue;  // no node meets it, and the API server wants it to stay so
    term["matchFields"].push_back(
        {{"key", "metadata.name"}, {"operator", "In"}, {"values", json::array({call.node})}});
  }
  json patch = PatchOf(call);
  patch["metadata"]["resourceVersion"] = fmt::format("{}", call.resource_version);
  patch["metadata"]["annotations"] = AnnotationsOf(call, proof);
  if (const absl::StatusOr<kubernetes::Pod> own = kubernetes::ParsePod(pod); own.ok()) {
    SetDeadline(own->meta, own->spec.active_deadline_s, call.ends_after_s, &patch);
  }
  patch["spec"]["schedulingGates"] = gates.empty() ? json(nullptr) : gates;
  patch[kTerms] = terms;
  return kubernetes::JsonText(patch);
}

std::string DisruptionPatch(const Call& call, std::chrono::system_clock::time_point now) {
  json patch = PatchOf(call);
  patch["status"]["conditions"] = json::array({{{"type", kubernetes::kDisruptionTarget},
                                                {"status", "True"},
                                                {"reason", "DeletionByFluxqueue"},
                                                {"message", call.disruption.value_or("")},
                                                {"lastTransitionTime", FormatTime(now)}}});
  return kubernetes::JsonText(patch);
}

}  // namespace fluxqueue::binder
