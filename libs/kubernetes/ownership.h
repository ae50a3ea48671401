// Which objects are ours, how they are held, and what one job is (kubernetes.md "What is ours",
// "How things are held"). Pure predicates, thread-safe.
#pragma once

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

// `space` is the object's namespace. Whether a pod's owner is ours is not looked at: a pod made
// from a template of ours carries our hold already (CarriedHold).
Ownership PodOwnership(const Pod& pod, const Namespace& space);
Ownership JobOwnership(const Job& job, const Namespace& space);
// Namespaces that are never ours, whatever their labels say.
bool IsSystemNamespace(std::string_view name);

enum class Mode {
  kDirect,  // schedulerName fluxqueue; started by a Binding
  kPinned,  // gate fluxqueue.io/gate; started by node affinity and the gate's removal
};

// Needs kube-scheduler's last step: PVCs, ephemeral volumes, resource claims → pinned.
Mode ChooseMode(const PodSpec& pod);
// Which hold of ours it carries; unset: none. A pod of ours that carries none is foreign.
std::optional<Mode> CarriedHold(const PodSpec& pod);

// The Job has another controller than a CronJob (JobSet …), or spec.managedBy names one: a suspend
// would be undone.
bool IsControlled(const Job& job);
// Held by suspend: not controlled, and more than `hold_pods` pods, or time that counts (an
// activeDeadlineSeconds of its own, or `ends`: one that its queue will set).
bool HoldsBySuspend(const Job& job, int64_t hold_pods, bool ends);
// The object's activeDeadlineSeconds, unless we have set it. 0: none.
int64_t OwnDeadline(const ObjectMeta& meta, int64_t active_deadline_s);
// Suspended, and the suspend is ours.
bool IsSuspendedByUs(const Job& job);

// The job that a pod belongs to: the uid of its controller if that is a batch/v1 Job, its own uid
// if it has no controller; unset for pods of other owners.
std::optional<std::string> JobIdOf(const Pod& pod);

}  // namespace fluxqueue::kubernetes
