// Held workloads → what the logs are told of them, and the rows that remember it. Pure; confined to
// one thread.
//
// Level-triggered: Observe() compares what is with what was said, so that seeing an object twice,
// after a restart or by a sweep, says nothing twice.
//
//   seen first: held by us, not bound, not ended, not going      JobSubmitted
//   user's keys changed (hold, priority, queue, duration, begin,
//   cancel; not depends-on: what a job waits for is settled)      JobUpdated, only what changed
//   a waiting pod asks more than its slot; the template of a
//   suspended Job changed; a waiting bare pod was resized; a
//   Job that waits has another size                               JobUpdated with revision + 1
//   its job was rejected, and it is asked for again: by another
//   value of the key `retry`, or by keys or a template that the
//   job was not rejected with                                     JobSubmitted, which goes on from
//                                                                 the job that was rejected
//   gone (or its label taken off) before its end was seen, or a
//   pod that ended without having been bound                      JobWithdrawn
//   ended                                                         nothing: cleanup's business;
//   forgotten
//
// A Job that its user suspended is not submitted before he resumes it; one suspended later is on
// hold. What cannot be submitted (a FluxQueue that has gone, a key that was made bad after CREATE,
// an object that opted out and has our label from somebody else) is refused: it waits, and is
// fetched again when queues change and by each sweep.
//
// What a workload asks for is kept as a hash. When it is another, the queue is looked at once
// (`looks`, Learn): a job that is not rejected has heard of it by JobUpdated, or has nothing to do
// with it. What is handed in again is looked at in each sweep until the queue has followed, and
// said again as long as it has not. A Job whose size was changed while it ran is looked at in each
// sweep, too: should it be requeued, it is placed with its new size.
//
// What a look has found is old once a watch has told of the workload after the look was asked for:
// that it has gone, or how it is. It is dropped then, as whatever follows is told, too.
//
// What the workloads of each namespace come to is counted, and what is more than its queue's quota
// for one is refused as the above is; whenever something of the namespace has ended, one of those
// is looked at again.
//
// Pods of one group (libs/kubernetes/group.h) wait for each other, and are submitted as one job
// once all of them are there and wait. That job is of exactly these pods (tracker_groups.cc):
//
//   a pod goes before all have started  JobWithdrawn; the others wait for another one
//   all have ended or are gone          nothing, or JobWithdrawn where cleanup cannot see the end
//   others come while it runs           the next gang, once there are enough of them; else each is
//                                       a job of its own: a controller has replaced a pod
//
// A pod that takes a place of another pod's job (libs/kubernetes/places.h) is no workload.
//
// Memory: one entry for each live workload, no object. Changes are provisional until Commit();
// Rollback() takes them back. Outputs of a batch that is rolled back are to be thrown away, and the
// same observations given again.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <tuple>
#include <unordered_map>
#include <vector>

#include "fluxqueue/events/v1/events.pb.h"

#include "libs/base/boxed.h"
#include "libs/base/journaled.h"
#include "libs/kubernetes/group.h"
#include "libs/kubernetes/jobspec.h"
#include "libs/kubernetes/labels.h"
#include "libs/kubernetes/ownership.h"
#include "libs/kubernetes/shared_amounts.h"
#include "services/admission/domain/catalog.h"
#include "services/admission/domain/cluster_facts.h"
#include "services/admission/domain/sketch.h"

#include "absl/status/statusor.h"

namespace fluxqueue::admission {

// What was said of a submitted workload. Its job id is its uid.
struct WorkloadRow {
  std::string uid;
  WorkloadKind kind = WorkloadKind::kJob;
  std::string space;
  std::string name;
  std::string pool;
  std::string queue;
  std::string resource_version;  // of the object that the row was last written for
  uint32_t revision = 1;
  uint32_t slots = 1;
  uint32_t min_slots = 0;  // elastic
  int32_t priority = 0;
  bool hold = false;
  bool cancelled = false;
  std::optional<int64_t> duration_ms;
  int64_t begin_ms = 0;
  int64_t jobspec_bytes = 0;           // as last said
  kubernetes::SharedAmounts requests;  // of one slot, as last said; of a group none
  kubernetes::Topology topology;       // as last said
  uint64_t demand_hash =
      0;  // of what the object itself asked for: a change of it is a new revision
  // Of all for which a rejected job would be handed in again, as it was looked at last; unset: by a
  // version that did not know it.
  std::optional<uint64_t> asked;
  // The version of the rejected job that was handed in again, as long as the queue is not known to
  // have followed; else 0.
  uint64_t retried = 0;
  std::vector<std::string> pods{};  // of a group: uids, in the order of their slots

  friend bool operator==(const WorkloadRow&, const WorkloadRow&) = default;
};

// GET it, and give what comes back to Observe(), with the number of the look, or to Gone().
struct Fetch {
  WorkloadKind kind = WorkloadKind::kJob;
  std::string space;
  std::string name;
  std::string uid;
  uint64_t look = 0;
};

// For the user: why a workload is not queued, or a change to it is not followed.
struct Refusal {
  WorkloadKind kind = WorkloadKind::kJob;
  std::string space;
  std::string name;
  std::string uid;
  std::string message;
};

// A job that is Rejected, or waits, as the queue's table has it.
struct UnplacedJob {
  uint64_t version = 0;
  uint32_t attempt = 0;
  bool waits = false;
};

struct TrackerOutputs {
  std::vector<events::v1::Envelope> messages;  // pool set
  std::vector<Fetch> fetches;
  std::vector<std::string> looks;  // uids: is the job Rejected, does it wait? Answer by Learn().
  std::vector<Refusal> refusals;
};

struct TrackerChanges {
  std::vector<WorkloadRow> upserts;
  std::vector<std::string> deletes;  // uids

  bool empty() const { return upserts.empty() && deletes.empty(); }
};

class Tracker {
 public:
  // The catalog must outlive the tracker. A jobspec that has more bytes is refused, whenever it
  // comes: the webhook saw only the first.
  Tracker(const Catalog& catalog, size_t max_jobspec_bytes)
      : catalog_(catalog), max_jobspec_bytes_(max_jobspec_bytes) {}

  void Restore(std::vector<WorkloadRow> rows);

  void Observe(const Observation& seen, const ClusterFacts& facts, TrackerOutputs* out);
  // It cannot be handled: it is there, and no more is made of it.
  void LeaveOut(const Sketch& sketch);
  // A watch says that it is deleted (or no longer selected), or a GET by uid that it is not there.
  void Gone(const std::string& uid, TrackerOutputs* out);

  // A full list of this kind begins, and has been observed; it has shown those with the uids
  // `listed`. Whatever else was not seen since it began is to be confirmed.
  void BeginList(WorkloadKind kind);
  void EndList(WorkloadKind kind, const std::set<std::string>& listed, TrackerOutputs* out);
  // Queues have changed: what was refused may do now.
  void RetryRefused(TrackerOutputs* out);
  // Looks again at what the queue may not have heard.
  void LookAgain(TrackerOutputs* out);
  // Of groups that lacked pods at the last look, and still do: says so, or, where a gang of the
  // group runs, has the pods submitted one by one.
  void LookAtGroups(TrackerOutputs* out);
  bool HasIncompleteGroups() const;
  // What a look has found; unset: the job is neither Rejected nor waiting, or not known.
  void Learn(const std::string& uid,
             const std::optional<UnplacedJob>& unplaced,
             TrackerOutputs* out);

  // Their submissions are lost, or their jobspecs: they are looked at, and handed in again from the
  // beginning, for the service that lacks them. Those of the last call that were not handed in
  // since (refused, or not to be read) are not: meanwhile they may have ended, and would run again.
  void HandInLost(const std::vector<std::string>& uids, TrackerOutputs* out);

  TrackerChanges Changes() const;
  void Commit();
  void Rollback();

  // As of the last commit.
  size_t submitted() const { return submitted_; }
  size_t refused() const { return refused_; }

 private:
  // What was seen of a Job's pods before the Job itself.
  struct Early {
    // What they ask for, by their namespace. Of those in others than the Job's only the reference
    // says that they are of it, which anybody may write.
    std::map<std::string, kubernetes::PodDemand> demands;
    // Likewise, of those that say that they are of a group: their names, by uid.
    std::map<std::string, std::string> members;
  };

  // One for each live workload: what few of them have is boxed.
  struct Entry {
    std::optional<WorkloadRow> row;  // submitted
    uint64_t digest = 0;
    uint64_t told = 0;  // looks up to this one are older than what a watch has told
    uint32_t list = 0;  // the list that showed it last
    WorkloadKind kind = WorkloadKind::kJob;
    std::string space;
    std::string name;
    std::string refusal;  // not submitted, or an update not followed: why
    Boxed<Early> early;
    std::optional<uint64_t> asks;  // other than row->asked, and looked at
    Boxed<UnplacedJob> rejected;   // to be handed in again when it is seen next; version 0: lost
    // A Job whose pods are of a group, which say neither this nor who has made them.
    Boxed<std::string> admitted_to;
    // Such a Job, or a pod of a group.
    std::string group;                      // as its sketch says
    Boxed<kubernetes::GroupMember> member;  // as seen last
    std::string gang;                       // the job that it is of; empty: it waits
    // The job of a group.
    std::set<std::string> pods;  // uids of those that have not ended
    bool lost = false;           // one of them went that was not bound as one of its gang

    bool resized = false;  // a Job that asks for something else than was said: it may have started
    bool waits = false;    // it has not: what it asks for is to be said when it is seen next
    bool bound = false;    // a pod of a group, as its sketch says
    bool started = false;  // bound, or released, as one of its gang; of a group's job: some pod was
    bool alone = false;    // of a group, and submitted by itself
  };
  using Entries = std::unordered_map<std::string, Entry>;  // by uid; a group's job by its id

  // Of the pods with one Sketch.group.
  struct Group {
    // Those that are of no job yet, the oldest first; uids are last.
    using Place = std::tuple<int64_t, std::string, std::string>;
    std::set<Place> waiting;
    std::set<std::string> gangs;  // ids of its jobs that have not ended
    std::set<std::string> alone;  // uids of those that are jobs of their own
    std::string refused;          // the job that those that wait would be, but for its refusal
    bool incomplete = false;      // it was when it was looked at last
    std::string told;             // what was said of that
  };

  struct Maker {
    std::string user;
    std::string admitted_to;
  };

  // A workload as both kinds show it.
  struct Wish {
    events::v1::JobSubmitted submission;
    kubernetes::PodDemand demand;
    kubernetes::Topology topology;
    std::string retry;
    std::string qos;
    std::string admitted_to;
    bool cancel = false;
    bool ready = false;      // to be submitted: held by us, by nobody else
    bool nobodys = false;    // a pod of which nothing says who made it
    bool respecify = false;  // nothing of it has started: its demand may still change
    std::optional<kubernetes::Ownership> declined;  // it says itself that it is not for the queue
  };

  // A Job whose pods are of a group.
  void ObserveGroupJob(const Observation& seen, TrackerOutputs* out);
  // The group that the pod is of; a Job's pod is of that Job's. Empty: of none, or the Job was not
  // seen yet.
  std::string GroupOf(const Sketch& sketch, const Entry* known) const;
  // Of a pod of `group` that a Job has made.
  Maker MakerOf(const Sketch& sketch, const std::string& group) const;
  absl::StatusOr<kubernetes::GroupMember> ReadMember(
      const Sketch& sketch,
      const std::string& group,
      const absl::StatusOr<kubernetes::Pod>& pod) const;
  void ObserveMember(const Observation& seen,
                     const std::string& group,
                     const ClusterFacts& facts,
                     TrackerOutputs* out);
  // The pods of the group that wait, once there are enough of them.
  void Gather(const std::string& group, const ClusterFacts& facts, TrackerOutputs* out);
  // What a pod of the gang asks for has changed.
  void UpdateGang(const std::string& id, const ClusterFacts& facts, TrackerOutputs* out);
  // A pod of a group has ended, or is gone.
  void MemberOver(const std::string& uid, bool ended, TrackerOutputs* out);
  void Withdraw(const std::string& id, const std::string& why, TrackerOutputs* out);
  void Disband(const std::string& id, TrackerOutputs* out);
  // Why a pod that is of no gang cannot be; unset: it can.
  std::optional<std::string> WaitProblem(const std::string& group,
                                         const kubernetes::Pod& pod,
                                         const ClusterFacts& facts) const;
  // REQUIRES: the pod is of a gang.
  void NoteStarted(const std::string& uid);
  void StopWaiting(const std::string& uid, TrackerOutputs* out);
  struct Leaver {
    std::string uid{};
    std::string key{};  // its group
    bool ended = false;
    bool started = false;
    bool bound = false;
  };
  void PodLeft(const std::string& id, const Leaver& pod, TrackerOutputs* out);
  void DropIfEmpty(const std::string& key);
  void StandsAlone(const std::string& uid, const std::string& group);
  bool Runs(const Group& group) const;
  bool HasStartedGang(const Group& group) const;
  // Any pod is bound of those groups whose keys begin with `prefix` and that are of `any_size`.
  bool SomeRun(const std::string& prefix, const std::string& any_size) const;
  // Those that wait are jobs of their own from now on.
  void PlaceAlone(const std::string& key, TrackerOutputs* out);
  void TellIncomplete(const std::string& key, TrackerOutputs* out);
  // Looks at one that waits, with which the others are gathered.
  void LookAtFirst(const Group& group, TrackerOutputs* out);
  static Group::Place PlaceOf(const kubernetes::GroupMember& member);
  static absl::StatusOr<Wish> WishOf(const std::string& space,
                                     const std::string& name,
                                     const std::vector<const kubernetes::GroupMember*>& members);
  static absl::StatusOr<Wish> ReadWish(const Observation& seen, const ClusterFacts& facts);
  absl::StatusOr<Wish> ReadWish(const Observation& seen,
                                const std::string& group,
                                const ClusterFacts& facts) const;
  void ObserveJobPod(const Observation& seen, TrackerOutputs* out);
  // The Job of a pod that was seen before it.
  Early& EditUnseenJob(const Sketch& pod);
  // Looks at the pod once its Job was seen, which says of which group it is.
  void AwaitJob(const Sketch& pod);
  // False: refused, or not to be submitted yet.
  bool Submit(const Sketch& sketch,
              absl::StatusOr<Wish> wish,
              const ClusterFacts& facts,
              TrackerOutputs* out);
  void Update(const Sketch& sketch,
              absl::StatusOr<Wish> wish,
              const ClusterFacts& facts,
              TrackerOutputs* out);
  static uint64_t HashOf(const Wish& wish);
  // What the workload asks for may not be what its job was rejected with.
  static void Ask(const std::string& uid, const Wish& wish, Entry* entry, TrackerOutputs* out);
  static void HandInAgain(Wish wish, Entry* entry, TrackerOutputs* out);
  // Why the wish cannot be followed as a whole; unset: it can. A workload that only lacks room in
  // its namespace's quota is noted in crowded_.
  std::optional<std::string> Problem(const Wish& wish,
                                     const WorkloadRow* row,
                                     const ClusterFacts& facts);
  void Enlarge(WorkloadRow* row, const kubernetes::PodDemand& demand, TrackerOutputs* out);
  // As the workload is seen now.
  Entry& EditSeen(const Sketch& sketch);
  void Refuse(const Sketch& sketch, const std::string& why, TrackerOutputs* out);
  // At a pod of it, of a group's job.
  void Look(const std::string& uid, const Entry& entry, TrackerOutputs* out);
  void Forget(const std::string& uid, TrackerOutputs* out);
  void Count(const Entry& entry, bool added);
  // Moves what is counted of the workload from its row before to its row now.
  void Recount(const std::optional<WorkloadRow>& before, const std::optional<WorkloadRow>& now);
  // Something of the namespace's has ended: one that waits for that is looked at again.
  void LetOneIn(std::set<std::string>* crowded, TrackerOutputs* out);

  const Catalog& catalog_;
  const size_t max_jobspec_bytes_;
  Journaled<Entries> entries_;
  Journaled<std::map<std::string, Group>> groups_;  // by Sketch.group
  Journaled<UsageBySpace> usage_;
  kubernetes::AmountsPool requests_;  // of rows that are committed
  // By namespace: workloads that were refused when it had too much. Hints: any may be gone.
  std::map<std::string, std::set<std::string>> crowded_;
  uint32_t lists_[2] = {0, 0};
  uint64_t last_look_ = 0;
  size_t submitted_ = 0;
  size_t refused_ = 0;
};

}  // namespace fluxqueue::admission
