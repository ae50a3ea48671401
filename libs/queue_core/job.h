// One job as the queue's core keeps it in memory: below a KB with its indexes, strings aside. What
// many jobs have in common (user, amounts) is shared by them, see libs/base/interner.h.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "fluxqueue/events/v1/events.pb.h"
#include "fluxqueue/queue/v1/rows.pb.h"

#include "libs/model/job_state.h"
#include "libs/scheduling/dependencies.h"
#include "libs/scheduling/queue_tree.h"
#include "libs/scheduling/resources.h"

namespace fluxqueue::queue_core {

// Another job that has to have ended first, by its id or by its name.
struct Dependency {
  scheduling::Condition condition = scheduling::Condition::kAfterOk;
  std::string job;

  friend bool operator==(const Dependency&, const Dependency&) = default;
};

// Of an attempt that goes on: its node was closed, or has put its pod out.
struct LostSlot {
  uint32_t slot = 0;
  std::string node;
  int64_t lost_ms = 0;
  bool closed = false;

  friend bool operator==(const LostSlot&, const LostSlot&) = default;
};

struct Job {
  std::string id;
  std::shared_ptr<const events::v1::Workload> workload;  // of which only `completions` ever changes
  std::shared_ptr<const std::string> user;               // never null; empty: not known
  std::string queue;
  int32_t priority = 0;
  uint32_t jobspec_bytes = 0;
  std::optional<int64_t> duration_ms;  // unset: the queue's default
  bool hold = false;
  uint32_t slots = 0;      // that it asks for; elastic: at most
  uint32_t min_slots = 0;  // elastic: with so many it may start; 0: all or nothing
  uint32_t revision = 0;
  uint64_t submission = 0;  // its place in the order of submission
  int64_t created_ms = 0;
  int64_t submitted_ms = 0;                              // in the log's time
  int64_t begin_ms = 0;                                  // not to be started before
  std::shared_ptr<const scheduling::Resources> amounts;  // of all slots; never null
  std::vector<Dependency> depends_on;                    // those that are not met yet
  std::shared_ptr<const std::string> qos;                // the class that it names; null: none

  uint64_t version = 0;
  uint32_t attempt = 1;
  uint32_t failures = 0;
  std::string reason;
  std::string message;
  int64_t updated_ms = 0;
  int64_t start_ms = 0;
  uint64_t placement_hash = 0;
  int64_t effective_duration_ms = 0;  // as in the last fact
  // As in the last fact: why a promise was withdrawn or is later, null: none was; so long after its
  // start Kubernetes ends the job, 0: it does not.
  std::shared_ptr<const events::v1::Slip> slip;
  // Why it starts later than it was told, which is not said yet; null: it does not.
  std::shared_ptr<const events::v1::Slip> unsaid_slip;
  int64_t ends_after_ms = 0;
  int64_t promised_ms = 0;     // as it was told last; 0: no start is promised
  bool promised_firm = false;  // that one
  bool firm = false;           // what is promised now
  bool overran = false;        // it was said that it runs for longer than it may
  bool grown = false;          // elastic: some of its slots came later than others
  bool resized = false;        // elastic for the rest of this attempt only (resize.h)
  // Named in the cycle in flight with this attempt. Not in the row: it follows from the cycle.
  bool in_cycle = false;
  model::JobState state = model::JobState::kNone;
  // When its time is over, of one that runs; 0: never. Not in the row: it follows from it.
  int64_t expires_ms = 0;

  // Pending: not a candidate before; see JobRow.
  int64_t not_before_ms = 0;
  int64_t unsatisfiable_since_ms = 0;
  int64_t first_ms =
      0;  // since when it has been the first of its queue that cannot start; 0: never

  // Stopping: what comes next, and as what a requeue counts.
  events::v1::JobFact::AfterStop after_stop = events::v1::JobFact::AFTER_STOP_UNSPECIFIED;
  bool requeue_is_failure = false;
  int64_t grace_ms = 0;  // given to its pods; 0: their own

  std::vector<uint32_t> released_slots;  // rising
  // Elastic: those that were given back for others while it went on, or are being; rising.
  std::vector<uint32_t> vacated_slots;
  // Those that were lost while it went on (replacement.h), rising; null: none. All are released.
  std::shared_ptr<const std::vector<LostSlot>> lost;
  uint64_t ending = 0;  // has ended: its number among the pool's endings

  // Of this attempt, for accounting (attempt.h).
  int64_t attempt_since_ms = 0;  // waits from its submission, or from the end of the attempt before
  int64_t allocated_ms = 0;      // holds its slots since; 0: it holds nothing
  int64_t slot_ms = 0;           // more (or less) than slots held now times the time since then

  // That it was given in this attempt so far; 0: it holds nothing or, where it is not elastic, none
  // in place of lost ones.
  uint32_t held_slots = 0;
  // How many of its slots had room when it was tried last. For people, and forgotten by a restart.
  uint32_t slots_now = 0;
  uint64_t succeeded = 0;  // elastic: of its pods, as far as it was seen
};

// The fact that says all of the job as it is. `pool` is the job's pool.
events::v1::JobFact ToFact(const Job& job, const std::string& pool);
queue::v1::JobRow ToRow(const Job& job, const std::string& pool);
Job FromRow(const queue::v1::JobRow& row);
scheduling::PastRow FromRow(const queue::v1::PastRow& row);

// What limits and shares count of a list, and the list again: gpus of every kind as thousandths.
using AmountList = google::protobuf::RepeatedPtrField<events::v1::Amount>;
scheduling::Resources ToResources(const AmountList& list);
AmountList ToAmounts(const scheduling::Resources& resources);

std::vector<Dependency> ToDependencies(
    const google::protobuf::RepeatedPtrField<events::v1::Dependency>& list);

// It was told when it starts.
bool IsPromised(const Job& job);

// What a workload is named by: "namespace/name".
std::string FullName(const Job& job);

// Equal for jobs of equal size: what a prediction of how long it runs goes by.
uint64_t ShapeOf(const Job& job);

// As others of its name are told of its end. REQUIRES: it has ended.
scheduling::Ending EndingOf(const Job& job);

// Holds resources without pods (libs/model/workload.h).
bool IsClaim(const Job& job);

// Starts with some of its slots, and takes more while it runs.
bool IsElastic(const Job& job);
// That it holds, as limits and shares count them: with those whose pods have succeeded and those
// that were lost and not replaced, without those that it gave back for others. Of one that holds
// none, as many as it asks for.
uint32_t SlotsOf(const Job& job);
// Of SlotsOf, those that were not given back.
uint32_t LiveSlots(const Job& job);
// Slots that are to be given back for others, and still hold a pod as far as is known; rising.
std::vector<uint32_t> Vacating(const Job& job);

// Empty for most.
const std::vector<LostSlot>& LostSlots(const Job& job);
// Slots that were lost while it runs, and in place of which it has no others.
uint32_t MissingSlots(const Job& job);

// True for a Job with no more completions than slots: a slot whose pod has succeeded has no use for
// it any more, and is given back before the rest. And for a gang of pods, whose slots are of these
// pods alone, however they end. Not one that has grown: a slot that it began with may have got its
// next pod before it was known that there are slots for all. Nor one that has given slots back for
// others, or was resized: the pods that it lacks come to those that it has left.
bool GivesSlotsBackEarly(const Job& job);

}  // namespace fluxqueue::queue_core
