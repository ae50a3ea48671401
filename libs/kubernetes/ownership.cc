#include "libs/kubernetes/ownership.h"

#include <algorithm>

#include "libs/base/text.h"
#include "libs/kubernetes/labels.h"
#include "libs/kubernetes/names.h"
#include "libs/kubernetes/places.h"

namespace fluxqueue::kubernetes {
namespace {

constexpr Ownership kManaged{
    true, "Managed", "its namespace is labelled fluxqueue.io/managed=true"};
constexpr Ownership kQueueLabelled{true, "QueueLabel", "it is labelled fluxqueue.io/queue"};
constexpr Ownership kSystem{
    false, "SystemNamespace", "kube-system and fluxqueue-system are never queued"};
constexpr Ownership kOptedOut{false, "OptedOut", "it is labelled fluxqueue.io/managed=false"};
constexpr Ownership kAlreadyBound{false, "AlreadyBound", "spec.nodeName is set already"};
constexpr Ownership kOthersJob{false, "ManagedBy", "spec.managedBy names another controller"};
constexpr Ownership kMirror{false, "MirrorPod", "it mirrors a static pod of a kubelet"};
constexpr Ownership kDaemon{false, "DaemonSet", "pods of a DaemonSet belong to their node"};
constexpr Ownership kNotManaged{false,
                                "NotManaged",
                                "neither its namespace is labelled fluxqueue.io/managed=true nor "
                                "it itself fluxqueue.io/queue"};

bool Has(const StringMap& map, std::string_view key, std::string_view value) {
  const auto found = map.find(key);
  return found != map.end() && found->second == value;
}

// What holds for pods and Jobs alike; `inner` are the labels of a Job's template.
Ownership ByLabels(const StringMap& labels, const StringMap& inner, const Namespace& space) {
  if (const auto declined = Declined(labels, inner, space)) return *declined;
  if (labels.contains(kQueueKey) || inner.contains(kQueueKey)) return kQueueLabelled;
  return IsManaged(space) ? kManaged : kNotManaged;
}

bool IsMirror(const ObjectMeta& meta) {
  // hint: asked of what a kubelet makes, or of what the policy fluxqueue-bypass has let be bound.
  // The API server lets nobody put it on later.
  return meta.annotations.contains("kubernetes.io/config.mirror");
}

bool IsOfADaemonSet(const ObjectMeta& pod) {
  const OwnerReference* owner = pod.Controller();
  return owner != nullptr && owner->kind == "DaemonSet";
}

constexpr std::string_view kControllerManager = "system:kube-controller-manager";
constexpr std::string_view kAccounts = "system:serviceaccount:kube-system:";

}  // namespace

bool IsController(std::string_view user, std::string_view name) {
  if (user == kControllerManager) return true;
  return user.starts_with(kAccounts) && user.substr(kAccounts.size()) == name;
}

bool IsOfTheCluster(std::string_view user) {
  return user == kControllerManager || user.starts_with(kAccounts);
}

bool IsJobController(std::string_view user) {
  return IsController(user, "job-controller");
}

bool IsDaemonSetController(std::string_view user) {
  return IsController(user, "daemon-set-controller");
}

std::optional<Ownership> Declined(const StringMap& labels,
                                  const StringMap& inner,
                                  const Namespace& space) {
  if (IsSystemNamespace(space.name)) return kSystem;
  if (Has(labels, kManagedLabel, "false") || Has(inner, kManagedLabel, "false") ||
      Has(space.labels, kManagedLabel, "false")) {
    return kOptedOut;
  }
  return std::nullopt;
}

std::optional<Ownership> Declined(const Job& job, const Namespace& space) {
  // hint: as above.
  if (auto declined = Declined(job.meta.labels, job.template_labels, space)) return declined;
  const bool ours = job.managed_by.empty() || job.managed_by == "kubernetes.io/job-controller";
  return ours ? std::nullopt : std::optional(kOthersJob);
}

bool IsSystemNamespace(std::string_view name) {
  return name == "kube-system" || name == kSystemNamespace;
}

bool IsManaged(const Namespace& space) {
  return !IsSystemNamespace(space.name) && Has(space.labels, kManagedLabel, "true");
}

bool IsStrict(const Namespace& space) {
  return IsManaged(space) && Has(space.labels, kEnforceLabel, kEnforceStrict);
}

std::optional<OwnerClaim> NodesOwn(const ObjectMeta& pod) {
  const OwnerReference* owner = pod.Controller();
  if (owner == nullptr || !IsUid(owner->uid) || !IsDnsSubdomain(owner->name)) return std::nullopt;
  if (owner->kind == "DaemonSet" && owner->api_version.starts_with("apps/")) {
    return OwnerClaim{OwnerClaim::Kind::kDaemonSet, pod.namespace_name, owner->name, owner->uid};
  }
  if (IsMirror(pod) && owner->kind == "Node" && owner->api_version == "v1") {
    return OwnerClaim{OwnerClaim::Kind::kNode, "", owner->name, owner->uid};
  }
  return std::nullopt;
}

Ownership PodOwnership(const Pod& pod, const Namespace& space, const Maker& maker) {
  // hint: a user's own word. Who may say that it is for no queue, the policy fluxqueue-bypass asks.
  const Ownership by_labels = ByLabels(pod.meta.labels, {}, space);
  if (!by_labels.ours) return by_labels;
  if (maker.node && IsMirror(pod.meta)) return kMirror;
  if (IsOfADaemonSet(pod.meta) && IsDaemonSetController(maker.user)) return kDaemon;
  return pod.Bound() ? kAlreadyBound : by_labels;
}

Ownership JobOwnership(const Job& job, const Namespace& space) {
  // hint: as of a pod.
  const Ownership by_labels = ByLabels(job.meta.labels, job.template_labels, space);
  if (!by_labels.ours) return by_labels;
  if (const auto declined = Declined(job, space)) return *declined;
  return job.pod.node_name.empty() ? by_labels : kAlreadyBound;
}

Mode ChooseMode(const PodSpec& pod) {
  const bool pinned =
      !pod.claim_volume.empty() || !pod.ephemeral_volume.empty() || !pod.resource_claim.empty();
  return pinned ? Mode::kPinned : Mode::kDirect;
}

std::optional<Mode> CarriedHold(const PodSpec& pod) {
  if (std::find(pod.gates.begin(), pod.gates.end(), kGate) != pod.gates.end()) return Mode::kPinned;
  if (pod.scheduler_name == kSchedulerName) return Mode::kDirect;
  return std::nullopt;
}

const std::string* ForeignGate(const PodSpec& pod) {
  const auto gate = std::find_if(
      pod.gates.begin(), pod.gates.end(), [](const std::string& name) { return name != kGate; });
  return gate == pod.gates.end() ? nullptr : &*gate;
}

bool IsControlled(const Job& job) {
  const OwnerReference* owner = job.meta.Controller();
  return owner != nullptr && owner->kind != "CronJob";
}

bool HoldsBySuspend(const Job& job, int64_t hold_pods, bool ends) {
  return !IsControlled(job) && (job.Slots() > hold_pods || job.active_deadline_s > 0 || ends);
}

int64_t OwnDeadline(const ObjectMeta& meta, int64_t active_deadline_s) {
  // hint: the webhook takes it out of what is made, or the policy fluxqueue-taken-in refuses it.
  // Later fluxqueue-keys lets nobody but the binder write it.
  const bool ours = Has(meta.annotations, kDeadlineAnnotation, std::to_string(active_deadline_s));
  return ours ? 0 : active_deadline_s;
}

bool IsSuspendedByUs(const Job& job) {
  // hint: the webhook leaves it on what it would suspend itself, and fluxqueue-keys lets nobody but
  // the binder change it.
  return job.suspend && Has(job.meta.annotations, kSuspendedByAnnotation, kSuspendedByUs);
}

bool IsOfAJob(const Pod& pod) {
  const OwnerReference* owner = pod.meta.Controller();
  return owner != nullptr && owner->kind == "Job" && owner->api_version == "batch/v1" &&
         IsUid(owner->uid);
}

bool WaitsForItsJob(const Pod& pod) {
  // hint: the webhook writes it into a Job's template, or takes it out of that.
  return IsOfAJob(pod) && pod.meta.Annotation(kGroupAnnotation).empty();
}

std::string JobIdOf(const Pod& pod) {
  if (IsOfAJob(pod)) return WaitsForItsJob(pod) ? pod.meta.Controller()->uid : pod.meta.uid;
  // hint: the webhook writes it, or takes it out, and fluxqueue-keys lets no user change it.
  const std::string& place_of = pod.meta.Annotation(kPlaceOfAnnotation);
  return IsUid(place_of) ? place_of : pod.meta.uid;
}

}  // namespace fluxqueue::kubernetes
