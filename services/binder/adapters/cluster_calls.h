// Makes one Call against the API server and says what came of it (domain/call.h). A conflict is
// looked into at once: the result carries the pod as it is now.
//
// Nothing is retried here; the planner repeats. Thread-safe.
#pragma once

#include <chrono>
#include <optional>
#include <string>
#include <variant>

#include "libs/base/clock.h"
#include "libs/kubernetes/cluster.h"
#include "libs/kubernetes/views.h"
#include "services/binder/adapters/slot_proofs.h"
#include "services/binder/domain/call.h"

#include "absl/status/status.h"

namespace fluxqueue::binder {

class ClusterCalls {
 public:
  // A node that was not ready for `node_lost_grace` is lost. References must outlive the object.
  ClusterCalls(kubernetes::Cluster& cluster,
               const SlotProofs& proofs,
               const Clock& clock,
               Millis node_lost_grace)
      : cluster_(cluster), proofs_(proofs), clock_(clock), node_lost_grace_(node_lost_grace) {}

  CallResult Make(const Call& call);

 private:
  CallResult Bind(const Call& call);
  CallResult Release(const Call& call);
  CallResult Fence(const Call& call);
  CallResult Delete(const Call& call);
  CallResult Disrupt(const Call& call);
  CallResult ReadPod(const Call& call, CallResult::Outcome found);
  CallResult PatchPod(const Call& call, const std::string& body);
  CallResult PatchJob(const Call& call, const std::string& body);
  CallResult Resume(const Call& call);
  CallResult Suspend(const Call& call);
  CallResult Limit(const Call& call);
  CallResult LimitPod(const Call& call);
  // The Job of the call, or the result that it cannot be had.
  std::variant<kubernetes::Job, CallResult> FindJob(const Call& call);
  // Unset: the node is still the one that the slot was given on, as far as can be known: the API
  // server does not heed the uid of a Binding's target.
  std::optional<CallResult> NodeReplaced(const Call& call);
  CallResult CheckNode(const Call& call);
  CallResult LookAtNode(const Call& call);
  CallResult ReadJob(const Call& call);
  // Of a pod's call that failed.
  CallResult Failed(const Call& call, const absl::Status& status);

  kubernetes::Cluster& cluster_;
  const SlotProofs& proofs_;
  const Clock& clock_;
  const Millis node_lost_grace_;
};

// The merge patch that lets kube-scheduler bind a gated pod, to `node` only: the gate goes, and
// every term of its required node affinity is narrowed. `pod` is the pod's JSON. `proof`: of the
// slot, empty for none. Empty if the pod cannot be read.
std::string ReleasePatch(const std::string& pod, const Call& call, const std::string& proof);

// The strategic patch of a pod's status that says, before it is deleted, that this is no failure of
// its own: the condition DisruptionTarget. `now` must be right to the minute: the cluster's
// controllers take back a condition of two minutes ago whose pod still runs.
std::string DisruptionPatch(const Call& call, std::chrono::system_clock::time_point now);

}  // namespace fluxqueue::binder
