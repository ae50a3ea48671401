// What the cluster shows of our jobs and nodes, and what has to be said of it.
//
//   pods, Jobs, nodes (watches) ─► Observer ─► JobStarted, PodEnded, JobEnded, JobNodeLost
//                                         └──► NodeUpserted, NodeGone, InventorySynced
//
// Level-triggered: Observe… moves the picture, Collect() compares it with what has been said and
// gives the difference. Nothing is said before Synced(), because half a picture looks like loss.
// What Collect gave is provisional until Commit(); after Rollback() the next Collect gives it
// again.
//
// A pod of ours is bound where the binder's row of its slot says so (proof.h); the row names job
// and attempt. Once proven it stays proven, whatever its user makes of its annotations. Everything
// else that is bound and has not ended uses its node as a foreigner, and nothing is said of the job
// that it names; so do pods of ours that hold no slot any more (Disown), and those that are being
// deleted on a lost node.
//
// A pod may be proven later: its row was restored or made after it was bound. UnprovenPods() are to
// be looked up again from time to time.
//
// The pods of a group are its workload: it has ended once each of its slots has had its pod, and
// none runs any more. Of one whose pods went unseen the sweep says that it is gone.
//
// A bare pod is its own workload. Its end needs no row, as a Job's needs none: its uid is the
// job's, and the API server has made it. Where it has places (libs/kubernetes/places.h), the job
// ends with it, once the pods that took them have ended, too; how these end is nothing to the job.
//
// Pure: time is an argument. Not thread-safe.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <unordered_map>
#include <unordered_set>
#include <utility>
#include <vector>

#include "fluxqueue/events/v1/events.pb.h"

#include "libs/base/boxed.h"
#include "libs/base/clock.h"
#include "libs/base/interner.h"
#include "libs/kubernetes/labels.h"
#include "libs/kubernetes/shared_amounts.h"
#include "libs/kubernetes/views.h"
#include "services/cleanup/domain/foreign_pods.h"
#include "services/cleanup/domain/proof.h"

namespace fluxqueue::cleanup {

struct Said {
  // Facts of jobs, in order. Their pool is the job's, which the caller knows (envelope.pool is
  // empty).
  std::vector<std::pair<std::string, events::v1::Envelope>> jobs;  // job id, fact
  // Facts of nodes, in order, with their pool.
  std::vector<events::v1::Envelope> nodes;

  bool empty() const { return jobs.empty() && nodes.empty(); }
};

// A node as a graph has it.
struct HeardNode {
  std::string pool;
  std::string name;
  std::string uid;
  size_t inventory = 0;  // hash of kubernetes::InventoryOf

  static HeardNode Of(const std::string& pool, const events::v1::Node& node);
};

class Observer {
 public:
  // A node that is not ready for longer than `node_lost_grace` is lost with all that runs on it.
  explicit Observer(Millis node_lost_grace) : node_lost_grace_(node_lost_grace) {}

  // `proof`: the row of a slot of this pod, if there is one where NeedsProof(pod) says.
  void ObservePod(const kubernetes::Pod& pod, const std::optional<Proof>& proof);
  void PodGone(const std::string& uid);
  void ObserveJob(const kubernetes::Job& job);
  void JobGone(const std::string& uid);
  void ObserveNode(const kubernetes::Node& node, Millis now);
  void NodeGone(const std::string& name, const std::string& uid);
  // What cannot be handled is there all the same: a bound pod uses its node as a foreigner, and a
  // Job has not ended.
  void LeaveOut(const kubernetes::Pod& pod);
  void LeaveOut(const kubernetes::Job& job);
  // The picture is complete: everything that exists has been observed.
  void Synced();
  bool synced() const { return synced_; }

  // Where to look for the proof of a pod before it is observed. Empty: it is proven, needs none, or
  // does not say that it is ours.
  std::vector<Hint> NeedsProof(const kubernetes::Pod& pod) const;
  // The same of the unfinished pods in the picture.
  std::vector<Hint> UnprovenPods() const;
  // The row of a pod that was observed without one. False: no such pod, it is proven already, or
  // the row is of a pod elsewhere.
  bool Prove(const std::string& pod_uid, const Proof& proof);

  // What a predecessor has said: the graph's nodes, and the jobs that run.
  void Remember(const std::string& pool, const events::v1::Node& node);
  void RememberStarted(const std::string& job_id, uint32_t attempt);

  // The job's end was said and has not been heard: say it again. True when there was one.
  bool SayEndAgain(const std::string& job_id);
  // The same of the start of that attempt.
  bool SayStartAgain(const std::string& job_id, uint32_t attempt);
  // What the graphs have: all nodes. What has not been heard since the last call is said again, and
  // the more seldom the longer it is not; of at most kMostSaidAgain nodes at once. Returns of how
  // many.
  size_t HearNodes(const std::vector<HeardNode>& heard);
  static constexpr size_t kMostSaidAgain = 1000;
  // The sweep has confirmed that the workload is gone and that nothing of the job is in the
  // picture.
  void ConfirmGone(const std::string& job_id);
  // The sweep has confirmed that the pod's job holds nothing (any more): it counts as foreign use.
  // True when it did not before.
  bool Disown(const std::string& pod_uid);

  // Is anything of the job in the picture: its workload, or a pod of ours? Of a group: a pod
  // that has not ended, or one that may be of it once it is proven.
  bool Shows(std::string_view job_id) const;
  // An unfinished pod of ours.
  struct OwnPod {
    std::string job_id;
    uint32_t attempt = 0;
    std::string uid;
  };
  // `visit`: called with job id, attempt and uid of each.
  template <typename Visit>
  void ForEachOwnPod(Visit visit) const {
    for (const auto& [uid, pod] : pods_) {
      if (pod.job_id.empty() || pod.Ended() || pod.disowned) continue;
      visit(pod.job_id, pod.slot.attempt, uid);
    }
  }

  // There may be something to say.
  bool HasNews() const;
  // When a node's grace period ends next.
  std::optional<Millis> NextDeadline() const;

  Said Collect(Millis now);
  void Commit();
  void Rollback();

  size_t jobs() const { return jobs_.size(); }
  size_t nodes() const { return nodes_.size(); }

 private:
  enum class Phase : uint8_t { kWaits, kRuns, kSucceeded, kFailed };
  static Phase PhaseOf(std::string_view phase);

  struct PodEntry {
    std::string job_id;  // empty: foreign
    kubernetes::SlotName slot;
    std::vector<std::string> hints;  // of a foreign one: jobs that it may be of
    std::string space;               // namespace
    std::string node;
    int64_t started_ms = 0;
    kubernetes::SharedAmounts requests;
    std::shared_ptr<const PodIdentity> identity;  // of a foreign one
    Boxed<std::string> controller_job;            // of one that says that it is of a group
    // It does: if its slot is neither its own job's nor its Job's, it is of a gang, whose pods are
    // all that there is of the job.
    bool of_group = false;
    Phase phase = Phase::kWaits;
    bool deleting = false;
    bool disowned = false;

    bool Ended() const { return phase == Phase::kSucceeded || phase == Phase::kFailed; }
  };
  using Pods = std::unordered_map<std::string, PodEntry>;  // by uid
  using Pod = Pods::value_type;
  struct ByUid {
    bool operator()(const Pod* a, const Pod* b) const { return a->first < b->first; }
  };
  // Into pods_, whose entries stay where they are: DropPod takes one out of all sets before it
  // goes.
  using PodSet = std::set<const Pod*, ByUid>;

  // What has been said of a job.
  struct JobSaid {
    uint32_t started_attempt = 0;
    bool ended = false;
  };
  using NodeOfAttempt = std::pair<std::string, uint32_t>;

  // Ends and losses: a job of one pod that runs has none.
  struct Ends {
    std::string message;               // of the job's end
    std::set<std::string> pods_ended;  // uids: noted in `ended`, now or before
    // Of a group: how the pods of its slots have ended.
    std::map<uint32_t, events::v1::PodEnded::Result> slots_ended;
    std::set<NodeOfAttempt> nodes_lost;       // said
    std::vector<events::v1::PodEnded> ended;  // since the last Commit
  };

  struct JobEntry {
    bool present = false;  // the workload exists
    bool seen = false;     // it did, at some time
    bool is_pod = false;
    bool is_group = false;
    bool confirmed_gone = false;
    bool elastic = false;
    bool had_pods = false;
    uint32_t slots = 0;    // of a group
    uint32_t attempt = 0;  // the highest seen on a pod
    JobSaid said;
    std::optional<events::v1::JobEnded::Result> result;
    int64_t completions = 0;
    int64_t started_ms = 0;  // of that attempt; 0: not yet
    // A job may have hundreds of thousands of pods that have ended: a turn looks at none of them.
    PodSet pods;        // pods of ours, ended ones included, until they go
    PodSet unfinished;  // of these
    PodSet unchecked;   // of these: may be on a node that is lost
    Boxed<Ends> ends;

    Ends& EditEnds() { return ends ? *ends : ends.emplace(); }
  };

  // What has been said of a node.
  struct NodeSaid {
    std::string uid;
    std::string inventory;  // kubernetes::InventoryOf
  };

  struct NodeEntry {
    bool present = false;
    std::string uid;
    std::string pool;
    kubernetes::Node view;  // without annotations
    PodSet pods;            // bound ones, ours and foreign
    std::optional<Millis> not_ready_since;
    bool lost = false;
    bool drained = false;  // somebody wants its jobs requeued (libs/kubernetes/drain.h)
    // What has been said; the pool it was said to.
    std::optional<NodeSaid> said;
    std::string said_pool;
    uint64_t newest = 0;  // resourceVersion with which something was said
  };

  // The pool's graph is to have it, as far as was said.
  static bool BelongsTo(const std::string& pool, const NodeEntry& node);

  // What Collect gave and Commit has not confirmed: what had been said before.
  struct Provisional {
    struct OfJob {
      std::string job_id;
      JobSaid before;
      std::vector<std::string> checked;       // uids of pods that were unchecked
      std::vector<NodeOfAttempt> nodes_lost;  // were not said
    };
    std::vector<OfJob> jobs;
    std::vector<std::pair<std::string, std::pair<std::optional<NodeSaid>, std::string>>> nodes;
    std::vector<std::string> pools;
  };

  JobEntry& Touch(const std::string& job_id);
  void DropPod(const std::string& uid, bool gone);
  // The row is of this pod: from now on it is ours.
  static bool TakeSlot(const Proof& proof, PodEntry* entry);
  void TrackOwnPod(const Pod& pod, const std::string& message);
  void NotePodEnded(JobEntry& job,
                    const std::string& uid,
                    const PodEntry& pod,
                    events::v1::PodEnded::Result result);
  // The slot of a group's pod is done with.
  static void NoteSlotEnded(JobEntry& job,
                            const PodEntry& pod,
                            events::v1::PodEnded::Result result,
                            const std::string& message);
  // A job of ours is there, or comes: of foreign pods there it is said who they are.
  void NoteNamespace(const std::string& space);
  bool CountsAsForeign(const PodEntry& pod) const;
  ForeignPods ForeignOf(const NodeEntry& node) const;
  bool HasLivePods(const NodeEntry& node) const;
  // Something has to be said of the jobs with pods on it.
  void MarkJobsOf(const NodeEntry& node);
  void CheckLost(Millis now);

  void CollectJob(const std::string& job_id, JobEntry& job, Said* said);
  void CollectNode(const std::string& name, NodeEntry& node, Said* said);
  void CollectLostNode(const std::string& job_id,
                       JobEntry& job,
                       Provisional::OfJob* before,
                       Said* said);
  std::optional<events::v1::JobEnded> EndOf(const std::string& job_id, const JobEntry& job) const;
  void ForgetEnded(const std::string& job_id);

  const Millis node_lost_grace_;
  bool synced_ = false;
  std::map<std::string, bool> pools_;  // that had a node: whether InventorySynced was said
  Pods pods_;                          // bound ones
  kubernetes::AmountsPool requests_;   // of these
  Interner<PodIdentity> identities_;   // the same
  std::set<std::string> job_spaces_;   // namespaces where jobs of ours are, or were
  std::unordered_map<std::string, JobEntry> jobs_;
  std::map<std::string, NodeEntry> nodes_;
  std::set<std::string> missing_;  // present, not ready, and not lost yet
  struct Unheard {
    size_t said = 0;  // hash of it
    uint32_t looks = 0;
  };
  // By pool and node, at the last look.
  std::map<std::pair<std::string, std::string>, Unheard> unheard_;

  // Sets are ordered, so that equal pictures are told in equal order.
  std::set<std::string> dirty_jobs_;
  std::set<std::string> dirty_nodes_;

  std::optional<Provisional> provisional_;
};

}  // namespace fluxqueue::cleanup
