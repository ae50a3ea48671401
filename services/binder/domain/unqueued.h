// What waits in a namespace that has just become managed, and is not for its queue: it was made
// before. It is told of in Events, so that its user does not wait for a queue that does not know
// it.
//
// Of what one controller has made one is named, the pods of a Job with their Job. What belongs to
// its node (a DaemonSet's pods), or is said to be for no queue, is left out.
//
// Pure, thread-safe.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "libs/kubernetes/views.h"

namespace fluxqueue::binder {

// The pods that wait: as kBypassLabels of libs/kubernetes/ownership.h, bound to no node yet.
inline constexpr std::string_view kWaitingFields = "spec.nodeName=,status.phase=Pending";

// In one namespace; what is left out the last one counts.
inline constexpr size_t kMostNamed = 20;

struct Unqueued {
  std::string kind;  // "Pod", "Job"
  std::string name;
  std::string uid;
  std::string note;  // what its Event says

  friend bool operator==(const Unqueued&, const Unqueued&) = default;
};

// Of `space`: those of the pods and Jobs that are named, Jobs first, each in the order of names.
std::vector<Unqueued> UnqueuedOf(const kubernetes::Namespace& space,
                                 std::vector<kubernetes::ObjectMeta> pods,
                                 std::vector<kubernetes::Job> jobs);

}  // namespace fluxqueue::binder
