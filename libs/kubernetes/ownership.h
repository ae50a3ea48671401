// Which objects are ours, how they are held, and what one job is (kubernetes.md "What is ours",
// "How things are held"). Pure predicates, thread-safe.
#pragma once

#include <compare>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "libs/kubernetes/views.h"

namespace fluxqueue::kubernetes {

// Why an object is ours or not: one word for programs, a sentence for people. The texts are static.
struct Ownership {
  bool ours = false;
  std::string_view reason;  // "Managed", "QueueLabel", "SystemNamespace", "OptedOut",
                            // "AlreadyBound", "MirrorPod", "DaemonSet", "NotManaged"
  std::string_view message;
};

// Who makes an object, as the API server authenticated it. Owner references and annotations are
// written by whoever makes the object, so that they alone prove nothing.
struct Maker {
  std::string_view user;
  bool node = false;  // of the group system:nodes: a kubelet
};
// The account of this controller of Kubernetes ("job-controller"), or the one that they all have
// where each has none of its own.
bool IsController(std::string_view user, std::string_view name);
bool IsJobController(std::string_view user);
bool IsDaemonSetController(std::string_view user);
// Any controller of Kubernetes itself, or what else runs as an account of kube-system.
bool IsOfTheCluster(std::string_view user);

// `space` is the object's namespace. Pods of every other owner are ours like those of none.
Ownership PodOwnership(const Pod& pod, const Namespace& space, const Maker& maker);
Ownership JobOwnership(const Job& job, const Namespace& space);
// What is never ours, whoever makes it: by its namespace, or because its label, its template's
// (`inner`) or its namespace's says that it is not. Unset: it may be ours.
std::optional<Ownership> Declined(const StringMap& labels,
                                  const StringMap& inner,
                                  const Namespace& space);
// Or because spec.managedBy names another controller: nobody makes its pods here.
std::optional<Ownership> Declined(const Job& job, const Namespace& space);
// Namespaces that are never ours, whatever their labels say.
bool IsSystemNamespace(std::string_view name);
// All that is made there is for the queue.
bool IsManaged(const Namespace& space);
// Managed, and what runs past the queue is stopped (fluxqueue.io/enforce: strict).
bool IsStrict(const Namespace& space);

// What bypasses the queue, if its namespace is managed: of the pods that these selectors let
// through (bound, not ended, not held, not said to be for no queue) those that neither a DaemonSet
// nor a kubelet's file has made (NodesOwn). Who may say that a pod is for no queue, the policy
// fluxqueue-bypass asks.
inline constexpr std::string_view kBypassLabels =
    "!fluxqueue.io/held,fluxqueue.io/managed notin (false)";
inline constexpr std::string_view kBypassFields =
    "spec.nodeName!=,status.phase!=Succeeded,status.phase!=Failed,metadata.namespace!=kube-system";

// Of what a pod says it is, whereby it would belong to its node. Whoever makes a pod writes that,
// so it holds only if there is an object of this name and uid.
struct OwnerClaim {
  enum class Kind {
    kDaemonSet,  // of the pod's namespace
    kNode,       // a mirror pod: the node's kubelet has made it from a file
  };
  Kind kind = Kind::kDaemonSet;
  std::string space{};  // of the owner
  std::string name{};
  std::string uid{};

  friend auto operator<=>(const OwnerClaim&, const OwnerClaim&) = default;
};
// Unset: it says nothing of the kind. A kubelet names its node as the owner of each mirror pod.
std::optional<OwnerClaim> NodesOwn(const ObjectMeta& pod);

enum class Mode {
  kDirect,  // schedulerName fluxqueue; started by a Binding
  kPinned,  // gate fluxqueue.io/gate; started by node affinity and the gate's removal
};

// Needs kube-scheduler's last step: PVCs, ephemeral volumes, resource claims → pinned.
Mode ChooseMode(const PodSpec& pod);
// Which hold of ours it carries; unset: none. A pod of ours that carries none is foreign.
std::optional<Mode> CarriedHold(const PodSpec& pod);

// The first scheduling gate that is not ours; null: there is none.
const std::string* ForeignGate(const PodSpec& pod);

// The Job has another controller than a CronJob (JobSet …): a suspend would be undone.
bool IsControlled(const Job& job);
// Held by suspend: not controlled, and more than `hold_pods` pods, or time that counts (an
// activeDeadlineSeconds of its own, or `ends`: one that its queue will set).
bool HoldsBySuspend(const Job& job, int64_t hold_pods, bool ends);
// The object's activeDeadlineSeconds, unless we have set it. 0: none.
int64_t OwnDeadline(const ObjectMeta& meta, int64_t active_deadline_s);
// Suspended, and the suspend is ours.
bool IsSuspendedByUs(const Job& job);

// Its controller is a batch/v1 Job, of a uid that can be one.
bool IsOfAJob(const Pod& pod);
// Nor is it of a group, by which it waits for others (group.h).
bool WaitsForItsJob(const Pod& pod);
// The job that such a pod belongs to: the uid of its Job, or of the pod whose place it takes
// (places.h). Any other is a job of its own: its controller makes another in its place, which is
// another job. What is held is of a Job only if the Job's controller made it: others are refused
// (the webhook, and k8s/policy.yaml). Its namespace must be the job's, too.
std::string JobIdOf(const Pod& pod);

}  // namespace fluxqueue::kubernetes
