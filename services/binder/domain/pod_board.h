// What the cluster's pods look like, as far as the binder cares: fed by the pod watch and by the
// answers of API calls, in any order.
//
// A pod moves only to a newer resourceVersion, so an old event that comes late changes nothing. A
// pod that is not here may be gone or not yet seen: only KnownGone() tells, and it remembers uids
// of pods of the jobs that are being followed, as many as kMostGone of each. One that it has
// forgotten is asked for when it matters.
//
// A store that has gone back (kubernetes/watch.h) shows pods with older versions than they had, and
// pods that were gone. Its later history takes the place of the former: versions are compared
// within one, and who was gone in the former is forgotten.
//
// Anybody may name any owner by its uid. A pod is of a job only if it is in the job's namespace,
// too, where the API server does not let others write.
//
// Pure. Not thread-safe.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "libs/kubernetes/labels.h"
#include "libs/kubernetes/quantity.h"
#include "libs/kubernetes/views.h"

namespace fluxqueue::binder {

// Of what is told of a node or a pod in a word.
inline constexpr size_t kMostReasonBytes = 200;

struct PodFacts {
  enum class Phase { kLive, kSucceeded, kFailed };

  std::string uid;
  std::string job_id;  // kubernetes::JobIdOf; of which group it is, the group's job says
  std::string space;   // namespace
  std::string name;
  uint64_t resource_version = 0;
  // Of the store, that the version is of. 0: not known (the answer of a call), taken for the one in
  // which the pod was seen last.
  uint64_t history = 0;
  std::string node;    // empty: not bound
  bool noted = false;  // that it is bound says a Binding's answer, and its watch has not shown it
  int index = -1;      // of an Indexed Job; -1: none
  Phase phase = Phase::kLive;
  bool deleting = false;
  bool direct = false;  // held by its scheduler's name
  bool gated = false;   // held by our gate
  // From our annotation, written when it was bound or released.
  std::optional<kubernetes::SlotName> slot;
  // The signature of it, as text; empty: none.
  std::string proof = {};
  // Why its node has put it out, or will ("Evicted", "OutOfcpu"); empty: it has not. At most
  // kMostReasonBytes: who may write a pod's status may write anything.
  std::string put_out = {};
  // Not bound: the reason of its condition PodScheduled, as long as put_out; empty: there is none.
  std::string waits_because = {};
  kubernetes::Amounts requests;  // empty once it has ended

  bool Bound() const { return !node.empty(); }
  bool Ended() const { return phase != Phase::kLive; }
  // Nothing of ours holds it any more: kube-scheduler may bind it at any time.
  bool Released() const { return !direct && !gated && !Bound(); }
  // Waits for a slot.
  bool Waiting() const { return (direct || gated) && !Bound() && !deleting && !Ended(); }
};

// Unset: it lacks uid or resourceVersion.
std::optional<PodFacts> ToFacts(const kubernetes::Pod& pod);

// Whether a bound pod's proof is the binder's, of the slot, node and job that it says.
using ProofCheck = std::function<bool(const PodFacts&)>;  // by PodFacts.job_id

class PodBoard {
 public:
  static constexpr size_t kMostGone = 10'000;

  explicit PodBoard(ProofCheck check) : check_(std::move(check)) {}

  // Before a pod is seen, or asked for, that is of it.
  void EnterHistory(uint64_t history);
  // False: nothing new (older than what is known, or known to be gone). It stays with the job that
  // it was first seen with, whatever becomes of its owner references.
  bool See(PodFacts pod);
  // `remember`: the job that it is of, `job_id`, is followed.
  void Gone(const std::string& uid, const std::string& job_id, bool remember);
  // A Binding has been accepted. The pod, if it is here, is on the node from now on, and not only
  // once the watch shows it.
  void NoteBound(const std::string& uid, const std::string& node);
  // It was read after that, and is to be seen as it is.
  void ForgetNote(const std::string& uid);
  // Whether one more of the job is remembered because a watch says so: its user may make and delete
  // pods as long as it lives. What the answer of a call says always is; calls are about slots.
  bool RemembersMore(const std::string& job_id) const;
  // The job's pods, as they are here; they are as never seen from now on.
  std::vector<PodFacts> Take(const std::string& job_id);
  // The job is no longer followed.
  void ForgetGone(const std::string& job_id) { gone_.erase(job_id); }

  // Null: not here. Valid until the next call that is not const.
  const PodFacts* Find(const std::string& uid) const;
  bool KnownGone(const std::string& uid, const std::string& job_id) const;
  // PodFacts::put_out, as it was seen last. REQUIRES: KnownGone().
  const std::string& WhyPutOut(const std::string& uid, const std::string& job_id) const;
  // The slot of the job that the pod says it has, the binder gave it. Of one state of a pod the
  // proof is checked once. REQUIRES: the pod is here.
  bool Proves(const PodFacts& pod, const std::string& job_id);
  // Those in the namespace `space`, in the order of their names.
  std::vector<const PodFacts*> OfJob(const std::string& job_id, std::string_view space) const;
  // Of these uids those that are here, in the namespace `space`, in their order.
  template <typename Uids>
  std::vector<const PodFacts*> OfGroup(const Uids& uids, std::string_view space) const {
    std::vector<const PodFacts*> pods;
    for (const std::string& uid : uids) {
      const PodFacts* pod = Find(uid);
      if (pod != nullptr && pod->space == space) pods.push_back(pod);
    }
    return pods;
  }
  size_t size() const { return pods_.size(); }
  // Uids of pods that wait and say that they do for lack of nodes.
  const std::set<std::string>& unschedulable() const { return unschedulable_; }

 private:
  void NoteUnschedulable(const PodFacts& pod);

  const ProofCheck check_;
  uint64_t history_ = 1;  // the latest
  std::unordered_map<std::string, PodFacts> pods_;
  std::set<std::string> unschedulable_;
  // By uid, of pods_: for which job it was checked, and what was found.
  std::unordered_map<std::string, std::pair<std::string, bool>> checked_;
  // Into pods_, whose entries stay where they are until they go. Null: seeing one failed halfway.
  std::unordered_map<std::string, std::vector<const PodFacts*>> by_job_;
  // By job and uid: why their nodes have put them out.
  std::unordered_map<std::string, std::unordered_map<std::string, std::string>> gone_;
};

}  // namespace fluxqueue::binder
