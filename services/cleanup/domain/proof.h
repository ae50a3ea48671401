// What makes a pod a slot of a job: a row of binder.slots, which is committed before the pod is
// bound. Annotations, owner references and names are the user's to write; they only say where the
// row may be. Pure.
#pragma once

#include <string>
#include <unordered_map>
#include <vector>

#include "libs/kubernetes/labels.h"
#include "libs/kubernetes/views.h"

namespace fluxqueue::cleanup {

// The row.
struct Proof {
  std::string job_id;
  kubernetes::SlotName slot;
  std::string space;  // namespace
  std::string node;
};
using Proofs = std::unordered_map<std::string, Proof>;  // by the pod's uid

// The pod may have a row of this job.
struct Hint {
  std::string job_id;
  std::string pod_uid;
};

// The jobs that a bound pod may be of: the one that its annotation names, and, of a pod that only
// we may bind, its owner. What cannot be a uid is none. Empty: it does not say that it is ours.
std::vector<std::string> JobHints(const kubernetes::Pod& pod);

}  // namespace fluxqueue::cleanup
