// The binder's decisions: facts of jobs + placements + pods + answers of API calls → API calls,
// rows, messages. Deterministic; time is an argument; performs nothing.
//
// What it knows falls in two parts. Pods are the cluster's state: seen when they are seen, never
// undone. Jobs and slots are ours: provisional within a batch, and rows.
//
//   one batch:   Fold…Fold  Plan  WantedPlacements → Placed…  PlanPlaced  Changes  → Commit |
//   Rollback
//
// Calls come out of Commit only, so the slot that a call is about is a committed row before the
// call is made. Answers (Answer) may come at any time; they are applied by the next Plan, and again
// after a Rollback. An answer about a job that is not held any more, or to a call that was not made
// by this memory, is dropped: whoever holds the job makes the call again. JobBound and BindFailed
// are said once for each attempt, JobStopped once for each stop: what was said is in the rows.
// After a restart SlotsVacated may be said again, and JobBound where a slot was vacated before its
// pod was bound.
//
// An elastic job grows by a fact of the same attempt with another placement hash: its placement is
// read again, and the slots that are new are for whatever pods wait. Rows keep the first fact of an
// attempt, which says how many slots JobBound is about; after a restart the placement is read
// anyway.
//
// A fact of the same attempt may name slots to be vacated: their pods are stopped while the others
// go on (vacate_planner.h). These names are in the rows, with the first fact.
//
// Each pass looks at a job as a whole, and only at jobs that something has happened to.
//
// It throws nothing of itself. What is thrown through it all the same leaves no job half changed
// once the batch is rolled back; at_job() says which job it was about, and SetAside() takes the
// job's pods away.
//
// Not thread-safe.
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "fluxqueue/events/v1/events.pb.h"

#include "libs/base/clock.h"
#include "libs/base/journaled.h"
#include "services/binder/domain/bind_job.h"
#include "services/binder/domain/call.h"
#include "services/binder/domain/plan_context.h"
#include "services/binder/domain/pod_board.h"

#include "absl/status/status.h"

namespace fluxqueue::binder {

struct PlacementKey {
  std::string job_id;
  uint32_t attempt = 0;
  std::string pool = {};
  std::set<std::string> nodes = {};  // whose uids are needed, too
};

// A row of the matcher's `allocations`.
struct PlacementRow {
  events::v1::Placement placement;
  bool released = false;
  // By name, as they were before the row was read: a slot that is not released was on that node.
  std::map<std::string, std::string> node_uids = {};
};

class BindPlanner {
 public:
  BindPlanner(PlanOptions options, ProofCheck proofs)
      : options_(options), board_(std::move(proofs)) {}

  // The pod watch.
  void PodSeen(PodFacts pod);
  void PodGone(const std::string& uid);
  // The job's pods, of answers that wait, too: they are as never seen until they are seen again.
  // REQUIRES: it is a batch that will be rolled back, or none.
  std::vector<PodFacts> SetAside(const std::string& job_id);
  // Of the job that Plan or PlanPlaced was at when it threw. Empty: at none.
  const std::string& at_job() const { return at_job_; }
  // `in_view`: the first list is complete, and the watch stands.
  void SetPodsInView(bool in_view, Millis now);

  // Answers of calls. Thread: the planner's.
  void Answer(CallResult result) { answers_.push_back(std::move(result)); }

  // A fact from the log; those of claims are nobody's business here. InvalidArgument: it can never
  // be handled; nothing was changed. `age`: so long ago it was decided.
  absl::Status Fold(int partition,
                    const events::v1::JobFact& fact,
                    Millis now,
                    Millis age = Millis(0));
  // JobStopped, or BindFailed, was said and has not been heard: it is said again, if that still
  // holds. One that failed is tried again, and may start. False: neither was said.
  bool SayEndAgain(const std::string& job_id);
  void Plan(Millis now, std::vector<Saying>* sayings);
  // Jobs that cannot go on without their placement.
  std::vector<PlacementKey> WantedPlacements(Millis now) const;
  // Null: there is no such row.
  void Placed(const PlacementKey& key, const PlacementRow* row, Millis now);
  // For the jobs placed in this batch. Says nothing: what has to be said waits for the next.
  void PlanPlaced(Millis now);
  Rows Changes() const;
  // The batch has rows to write, rows to read, or calls that Commit will give.
  bool HasRows(Millis now) const;
  std::vector<Call> Commit();
  void Rollback();

  // From rows, never within a batch; its placement will be wanted. DataLoss: the row's fact does
  // not decode.
  absl::Status Restore(const JobRow& job, const std::vector<SlotRow>& slots, Millis now);
  void Drop(int partition);

  // Plan has something to do at once.
  bool HasWork() const { return !dirty_.empty() || answered_ < answers_.size(); }
  // When Plan has something to do.
  std::optional<Millis> WakeAt() const;

  const BindJob* Find(const std::string& job_id) const { return jobs_.Find(job_id); }
  const PodBoard& pods() const { return board_; }
  // It is of a job that is being followed.
  bool Follows(const PodFacts& pod) const { return !JobOf(pod).empty(); }
  size_t jobs() const { return jobs_.size(); }
  uint64_t dropped_answers() const { return dropped_answers_; }

 private:
  // The job that it is of, as far as that is being followed. Empty: it is not.
  std::string JobOf(const PodFacts& pod) const;
  // As PodBoard::See; of a group's pod it is the group's job that knows whether it has gone.
  bool See(PodFacts pod);
  void AddMembers(const BindJob& job);
  void RemoveMembers(const BindJob& job);
  // The job to be changed. Null: not known.
  BindJob* Touch(const std::string& job_id);
  // Its placement has changed, or is needed again.
  void PlaceAgain(BindJob* job, Millis now);
  // It names slots to be vacated: some that no fact before it has named, or those of which the
  // queue has not heard that they are.
  void Resize(const events::v1::JobFact& fact);
  void Vacate(const events::v1::JobFact& fact, Millis now);
  BindJob& Make(int partition, const events::v1::JobFact& fact, Millis now, Millis age);
  void Erase(const std::string& job_id);
  void SetWake(const std::string& job_id, Millis at);

  PlanContext Context(Millis now, bool may_speak, std::vector<Saying>* sayings);
  void PlanJob(const std::string& job_id, PlanContext context);
  void PlanEach(const std::set<std::string>& job_ids,
                bool may_speak,
                Millis now,
                std::vector<Saying>* sayings);
  void Apply(const CallResult& result, Millis now);
  void SeeResult(const CallResult& result);
  void ApplyToJob(const CallResult& result, Millis now, BindJob* job);
  void ApplyToSlot(const CallResult& result, Millis now, BindJob* job);
  void ApplyLook(const CallResult& result, Millis now, Slot* slot) const;
  void BackOff(const CallResult& result, Millis now, Retry* retry) const;

  const PlanOptions options_;
  PodBoard board_;
  bool pods_in_view_ = false;
  Millis in_view_since_{0};

  Journaled<std::unordered_map<std::string, BindJob>> jobs_;
  kubernetes::AmountsPool requests_;                        // of slots
  std::unordered_map<std::string, std::string> member_of_;  // pods of the groups in jobs_: which
  std::set<std::string> dirty_;
  std::set<std::string> planned_;  // of dirty_, by a Plan under way
  std::set<std::string> unplaced_;
  std::set<std::string> placed_now_;
  std::set<std::pair<Millis, std::string>> wakes_;
  std::unordered_map<std::string, Millis> wake_of_;

  // This batch.
  std::string at_job_;
  std::vector<Call> calls_;
  std::deque<CallResult> answers_;
  size_t answered_ = 0;  // of answers_, applied in this batch
  uint64_t last_call_ = 0;
  uint64_t dropped_answers_ = 0;
};

}  // namespace fluxqueue::binder
