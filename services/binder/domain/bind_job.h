// One job as the binder follows it, from Allocated until it is over, and the rows that it lives in.
//
// A slot:
//
//   free ──► taken ──► bound ──► ended ──► taken (a replacement)
//              │         └─────────┐
//              └──► fenced         ▼
//                (it is stopped, vacated or lost, or its node is closed: the Binding that was meant
//                for its pod fails. A slot whose node is closed, and is not lost, may be taken
//                again)
//
// A slot that is to be vacated (JobFact.vacate) is stopped while the job goes on, and is given to
// no pod again.
//
// So is one that is lost (loss_planner.h), of which nothing is left to be stopped.
//
// A pod that has places (libs/kubernetes/places.h) has the first slot, and no other pod ever has.
// The others are for the pods that it makes, one after the other, while it runs: the job does not
// wait for them, and goes on whatever becomes of them.
//
// `taken` is committed before the call that starts its pod goes out. A slot is never given to
// another pod before its pod has ended, is known to be gone, or is fenced.
//
// Pure values. Not thread-safe.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "fluxqueue/events/v1/events.pb.h"

#include "libs/base/clock.h"
#include "libs/kubernetes/shared_amounts.h"

namespace fluxqueue::binder {

enum class SlotState : uint8_t { kFree, kTaken, kBound, kEnded, kFenced };

// As in the table: 'taken', 'bound', 'ended', 'fenced'; free slots have no row.
std::string_view Name(SlotState state);
std::optional<SlotState> ParseSlotState(std::string_view name);

// When to try a failed call again.
struct Retry {
  // More of them in a row, while the API server answers others, and what is asked for is given up
  // where there is another way.
  static constexpr int kMostRefusals = 8;

  int failures = 0;
  int refusals = 0;   // of the failures, those while the API server answered
  int conflicts = 0;  // of the failures, those where another had changed the object
  Millis at{0};

  bool IsHopeless() const { return refusals >= kMostRefusals; }
};

struct Slot {
  // Rows.
  std::string node;
  std::string pod_uid;
  std::string pod_name;
  SlotState state = SlotState::kFree;
  bool bound_once = false;  // counts for JobBound
  bool succeeded = false;   // done for ever: it may have been given back already

  // Memory.
  // Of `node`, when the slot was still on it; empty: it cannot be known. Unset: it was not asked
  // for.
  std::optional<std::string> node_uid = {};
  std::vector<uint32_t> devices = {};  // GPUs of the node that it has parts of, as placed
  bool released = false;               // given back
  bool vacating = false;               // to be given back, as the job's fact says
  bool vacated_said = false;           // SlotsVacated was said, in this memory
  bool given_up = false;               // it was lost, as the job's fact says
  bool losing = false;                 // it will be, once nothing can start in it
  bool lost = false;                   // its node is lost and the deletion accepted
  bool delete_sent = false;
  bool kill_sent = false;
  Millis deleted_at{0};  // when delete_sent became true
  // A slot that has had a pod is given to the next one where its node is open.
  std::optional<Millis> seen_open_at = {};  // when that was last seen
  std::string closed_because = {};          // as last seen
  std::optional<Millis> closed_since = {};
  // Why the last pod that was bound ended by the doing of its node; empty: it did not.
  std::string put_out = {};
  Retry look = {};    // at the node: `failures` also counts those that found it closed
  uint64_t call = 0;  // the one under way; 0: none
  Retry retry;
  // Of its pod; unset: not yet, or before this memory.
  std::optional<Millis> taken_at = {};
  std::optional<Millis> bound_at = {};

  bool Occupied() const { return state == SlotState::kTaken || state == SlotState::kBound; }
  // The job's own, and neither given back nor lost.
  bool Kept() const { return !released && !vacating && !given_up; }
  bool Open() const { return Kept() && !Occupied() && !succeeded && !losing; }
  // Its pod is to be started, and the uid of its node was not asked for.
  bool NeedsNode() const { return state == SlotState::kTaken && !node_uid.has_value(); }
  bool SameRow(const Slot& other) const;
  // Its pod is seen to be bound.
  void Bind(Millis now);
  // `closed`: why its node is closed; empty: it is open, or cannot be looked at.
  void SeeNode(const std::string& closed, Millis now);
  // Its pod has failed or gone. `put_out_by`: by the doing of its node; empty: not.
  void SeeUnsuccessful(const std::string& put_out_by);
  // "is cordoned", "has put its pod out: Evicted"; empty: nothing is known.
  std::string WhyLost() const;
};

// A reason of BindFailed: one word, and a sentence.
struct Failure {
  std::string reason;
  std::string message;
};

// Equal slots of a job: from `first` to before `end`.
struct SlotGroup {
  size_t first = 0;
  size_t end = 0;
  kubernetes::SharedAmounts requests;  // of one
};

struct BindJob {
  int partition = 0;
  // The first of this attempt, with its size and all slots to be vacated or lost since; or
  // Stopping. Without what is of no use here, as queue, user and reason.
  std::shared_ptr<const events::v1::JobFact> fact;
  bool stopping = false;

  // Rows.
  bool failed = false;   // BindFailed was said: nothing more is started
  bool stopped = false;  // JobStopped was said
  bool resumed = false;  // its suspend was taken away, and its deadline set

  // From the matcher's placement. An elastic job that has grown has more slots than its first fact
  // says: those are for pods that come, and nobody waits for them.
  bool placed = false;
  uint64_t placement_hash = 0;  // as the last fact said; memory
  // Until then its nodes are taken to be those that it was placed on; memory.
  Millis fresh_until{0};
  Millis placement_at{0};  // when to look for it (again)
  std::vector<SlotGroup> groups;
  std::vector<Slot> slots;

  // Memory.
  bool bound_said = false;
  std::optional<Failure> failure;  // to be said
  bool suspended = false;          // while stopping: the suspend was accepted
  bool workload_gone = false;
  std::optional<int64_t> completions_left;  // asked when pods do not come
  uint64_t call = 0;                        // about the Job object
  Retry retry;
  Millis since{0};         // when this attempt, or its stop, came to us
  Millis vacate_since{0};  // when slots were last to be vacated
  // Since when a pod waits for a slot in place of one that was lost.
  std::optional<Millis> other_awaited_since = {};
  // Since when nothing of it is there and it waits for any pod.
  std::optional<Millis> any_awaited_since = {};
  std::optional<Millis> done_awaited_since = {};  // the same, where all slots have served
  Millis progress{0};                             // when a pod last came or was bound

  const std::string& id() const { return fact->job_id(); }
  uint32_t attempt() const { return fact->attempt(); }
  const events::v1::Workload& workload() const { return fact->workload(); }
  bool IsJob() const { return workload().kind() == "Job"; }
  // Its slots are those of the pods that it names, each of one.
  bool IsGroup() const { return workload().pods_size() > 0; }
  // Its first slot is for the pod that it is.
  bool IsPod() const { return workload().kind() == "Pod"; }
  bool HasPlaces() const { return IsPod() && fact->slots() > 1; }
  bool IsPlace(const Slot& slot) const { return HasPlaces() && &slot != &slots.front(); }
  // With how many slots it began that have to have had their pods.
  size_t AwaitedSlots() const {
    return std::min<size_t>(HasPlaces() ? 1 : fact->slots(), slots.size());
  }
  // Stopped by `suspend: true`, not by deleting its pods.
  bool StopsBySuspend() const { return IsJob() && !workload().controlled() && !workload_gone; }
  // Each slot that it began with has had its pod, or is to have none.
  bool AllBound() const;
  // The same by what is in the rows of slots.
  bool AllBoundByRows() const;
  // Each slot is for one completion: none is used twice once it has succeeded. A job that began
  // with fewer uses them again, also when it has grown since; so does one that has given slots
  // back for others, or was resized.
  bool OneCompletionEach() const {
    return workload().completions() <= static_cast<int64_t>(fact->slots()) && !ReusesSlots() &&
           !HasPlaces();
  }
  bool ReusesSlots() const { return fact->resized() || !fact->vacate().empty(); }
};

struct JobRow {
  std::string job_id;
  int partition = 0;
  std::string pool;
  std::string fact;  // serialized
  uint64_t version = 0;
  uint32_t attempt = 0;
  bool failed = false;
  bool stopped = false;
  bool resumed = false;
};

struct SlotRow {
  std::string job_id;
  std::string space;  // namespace
  uint32_t attempt = 0;
  int slot = 0;
  Slot value;  // its row fields
};

// What a batch changes. Applied in this order.
struct Rows {
  std::vector<std::string> forgotten;  // job and slots
  std::vector<std::string> renewed;    // slots of an earlier attempt
  std::vector<JobRow> jobs;
  std::vector<SlotRow> slots;

  size_t size() const { return forgotten.size() + renewed.size() + jobs.size() + slots.size(); }
};

// Appends what leads from `before` to `after`; null: no such job.
void AppendChanges(const BindJob* before, const BindJob* after, Rows* rows);

// The slots as the matcher placed them. Slots that are absent there, and all of a placement that
// was given back, count as released.
void Place(const events::v1::Placement& placement, bool released, BindJob* job);
// By name, those of the nodes that were asked for; slots that are on them learn them. One that is
// not among `uids` cannot be known. REQUIRES: it was placed as it was after that.
void LearnNodes(const std::set<std::string>& asked,
                const std::map<std::string, std::string>& uids,
                BindJob* job);
// The slots that the fact says to vacate, those that it is done with, and those that were lost, are
// given to no pod.
void CloseSlots(BindJob* job);
// Of a stopping job whose placement is nowhere: as many slots, their nodes to be learnt from the
// pods.
void PlaceNowhere(BindJob* job);

}  // namespace fluxqueue::binder
