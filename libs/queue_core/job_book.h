// The jobs and queues of one pool, with what is derived from them (lines, alarms, counts), and the
// undo journal of the batch.
//
// Derived: a job stands in its queue's line when it is Pending, not held, depends on nobody and its
// time has come; it has an alarm when it only waits for its time; a claim that runs, and not for
// ever, has an expiry; what it has while it is allocated or runs is on its owner's account; those
// on whom it depends can find it. Place() brings all in step with the job's fields, so a change is
// always the same three steps:
//
//   Job& job = book.Edit(entry);   // remembered for the undo, once for each batch
//   job.hold = true;
//   book.Place(entry);
//
// Thread-compatible. An Entry* lives until its job ends, or a Rollback or Clear.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <unordered_set>
#include <utility>
#include <vector>

#include "fluxqueue/events/v1/events.pb.h"

#include "libs/base/interner.h"
#include "libs/base/journaled.h"
#include "libs/queue_core/job.h"
#include "libs/queue_core/rows.h"
#include "libs/scheduling/dependencies.h"
#include "libs/scheduling/duration_predictor.h"
#include "libs/scheduling/queue_order.h"
#include "libs/scheduling/queue_tree.h"
#include "libs/scheduling/waiting_list.h"

namespace fluxqueue::queue_core {

struct Entry;

// Null: no FluxQueue of that name exists; jobs may wait for it.
using QueueConfig = std::shared_ptr<const events::v1::QueueConfigured>;

struct Queue {
  std::string name;
  QueueConfig config;
  scheduling::WaitingList<Entry> line;
  std::array<size_t, model::kJobStates> counts = {};
};

// A job and where it is listed.
struct Entry : scheduling::WaitingJob {  // line_key: while it stands in line
  Job job;
  // Where Place() has put it.
  Queue* counted_in = nullptr;
  model::JobState counted_as = model::JobState::kNone;
  Queue* in_line_of = nullptr;
  scheduling::Owner* owner = nullptr;
  // In whose line it stands, and the amounts to which the line has a pointer.
  scheduling::Owner* line_owner = nullptr;
  std::shared_ptr<const scheduling::Resources> line_amounts;
  // On the account of whom it has what; null: it has nothing.
  scheduling::Owner* holder = nullptr;
  std::shared_ptr<const scheduling::Resources> held;
  std::vector<std::string> awaited;  // what Dependents know it by
  int64_t alarm_ms = 0;
  int64_t expiry_ms = 0;
  // The batch whose journal knows it, and the batch in which its row changed.
  uint64_t remembered_in = 0;
  uint64_t changed_in = 0;
};

class JobBook {
 public:
  Entry* Find(std::string_view id);
  const Entry* Find(std::string_view id) const;

  // REQUIRES: the id is not known.
  Entry* Add(Job job);
  // `row_changes`: the change shows in the job's row.
  Job& Edit(Entry* entry, bool row_changes = true);
  void Place(Entry* entry);
  // The job is in a terminal state: it leaves memory, its id stays until Confirm, and its end is
  // remembered for those that come to depend on it.
  void End(Entry* entry);

  // The live job of that "namespace/name"; of several the one that was submitted last. Null: none.
  Entry* FindByName(const std::string& name) const;
  // Those that depend on the job of this id or "namespace/name", in order of submission.
  std::vector<Entry*> DependentsOf(const std::string& target) const;
  const scheduling::Endings& endings() const { return endings_; }
  // A job that had ended is to be added again.
  void TakeEndBack(const std::string& id) { endings_.Remove(id); }

  // Ended jobs whose last release is not confirmed: the attempt that was released.
  std::optional<uint32_t> EndedAttempt(std::string_view id) const;
  void Confirm(const std::string& id);

  // Made when it is not known yet, without a configuration.
  Queue* QueueOf(const std::string& name);
  bool Exists(const std::string& queue) const;
  // Null config: deleted.
  void Configure(const std::string& queue, QueueConfig config);
  // Those that exist, in the order in which they are served.
  const std::map<scheduling::QueueOrder, Queue*>& served() const { return served_; }
  // First in line of all; null: nobody is in line.
  Entry* Head() const;
  // Somebody has come into line, or to another place in it, or by another's move or a queue's
  // configuration may be free to be tried, since this was asked last.
  bool TakeEntered() { return std::exchange(entered_, false); }
  // Somebody has left the line.
  bool TakeLeft() { return std::exchange(left_, false); }

  // Jobs of the queue in that state, in order of submission. O(all jobs): for rare occasions.
  std::vector<Entry*> JobsOf(const std::string& queue, model::JobState state);
  // Jobs that were set aside as unsatisfiable and wait for their time, by that time.
  std::vector<Entry*> SetAside();

  // Puts into line whose time has come, and returns them.
  std::vector<Entry*> AdvanceTo(int64_t now_ms);
  // Those whose time is over (Job::expires_ms), the first to be over first.
  std::vector<Entry*> Expired() const;
  // The next alarm or expiry.
  std::optional<int64_t> NextAlarm() const;

  // Who holds and has used what.
  scheduling::QueueTree& tree() { return tree_; }
  const scheduling::QueueTree& tree() const { return tree_; }
  scheduling::DurationPredictor& predictor() { return predictor_; }
  const scheduling::DurationPredictor& predictor() const { return predictor_; }
  std::shared_ptr<const scheduling::Resources> Shared(scheduling::Resources amounts) {
    return amounts_(std::move(amounts));
  }
  // ---------------------------------------------------------------------------------- the batch
  void Commit();
  void Rollback(int64_t now_ms);
  // The rows of the batch; events aside.
  void Describe(const std::string& pool, Changes* changes) const;

  // ------------------------------------------------------------------------------------ restore
  void Clear(int64_t now_ms);
  void AddEnded(const std::string& id, uint32_t attempt) { ended_.Restore(id, attempt); }
  void AddEnding(const Job& job) { endings_.Restore(EndingOf(job)); }
  void SetLastEnding(uint64_t last) { endings_.RestoreLast(last); }
  // False: it is no row of queue.usage.
  bool AddUsage(const queue::v1::UsageRow& row);

  const std::map<std::string, uint32_t, std::less<>>& ended() const { return ended_.map(); }
  const std::map<std::string, std::unique_ptr<Queue>>& queues() const { return queues_; }
  // In order of submission. O(n log n).
  std::vector<const Entry*> Jobs() const;
  // All that hold something, by submission.
  const std::map<uint64_t, Entry*>& holding() const { return holding_; }
  // Of these, those that are elastic and not being stopped, by submission.
  const std::map<uint64_t, Entry*>& growing() const { return growing_; }
  // Those that lack slots that they have lost, by submission.
  const std::map<uint64_t, Entry*>& replacing() const { return replacing_; }
  // By (time, submission).
  const std::map<std::pair<int64_t, uint64_t>, Entry*>& alarms() const { return alarms_; }
  const std::map<std::pair<int64_t, uint64_t>, Entry*>& expiries() const { return expiries_; }
  size_t size() const { return jobs_.size(); }
  // In no order.
  const auto& all() const { return jobs_; }

 private:
  // Of jobs by their ids, which stay in the entries: the hash, and whether they agree.
  struct ById {
    using is_transparent = void;
    static std::string_view Of(std::string_view id) { return id; }
    static std::string_view Of(const std::unique_ptr<Entry>& entry) { return entry->job.id; }
    size_t operator()(const auto& job) const { return std::hash<std::string_view>()(Of(job)); }
    bool operator()(const auto& a, const auto& b) const { return Of(a) == Of(b); }
  };
  // As a job was before the batch.
  struct Before {
    std::optional<Job> job;        // none: not known
    uint64_t changed = 0;          // place among the changed rows of the batch, from 1
    std::unique_ptr<Entry> ended;  // ended in the batch, as it was last
  };

  Before& Remember(const std::string& id, Entry* entry);
  void PlaceInLine(Entry* entry, Queue* line);
  void LeaveLine(Entry* entry);
  void PlaceTimes(Entry* entry, bool wants);
  void PlaceHeld(Entry* entry);
  // What so many of its slots ask for.
  std::shared_ptr<const scheduling::Resources> AmountsOf(const Job& job, uint32_t slots);
  void PlaceAwaited(Entry* entry);
  void Unplace(Entry* entry);
  void Own(Entry* entry);
  void List(Entry* entry);
  void Unlist(Entry* entry);
  // All that follows from it.
  void SetConfig(Queue* queue, QueueConfig config);

  std::unordered_set<std::unique_ptr<Entry>, ById, ById> jobs_;
  Journaled<std::map<std::string, uint32_t, std::less<>>> ended_;
  std::map<std::string, std::unique_ptr<Queue>> queues_;
  Journaled<std::map<std::string, QueueConfig>> configs_;  // of those that were configured
  std::map<scheduling::QueueOrder, Queue*> served_;
  std::unordered_multimap<size_t, Entry*> by_name_;  // by the name's hash
  std::map<uint64_t, Entry*> by_submission_;         // of those that await somebody
  scheduling::QueueTree tree_;
  scheduling::Endings endings_;
  scheduling::Dependents dependents_;
  scheduling::DurationPredictor predictor_;
  Interner<std::string> users_;
  Interner<scheduling::Resources> amounts_;
  std::map<uint64_t, Entry*> holding_;
  std::map<uint64_t, Entry*> growing_;
  std::map<uint64_t, Entry*> replacing_;
  std::map<std::pair<int64_t, uint64_t>, Entry*> alarms_;
  std::map<std::pair<int64_t, uint64_t>, Entry*> expiries_;
  int64_t now_ms_ = 0;
  bool entered_ = false;
  bool left_ = false;

  uint64_t batch_ = 1;
  uint64_t changed_rows_ = 0;
  std::unordered_map<std::string, Before> journal_;
};

}  // namespace fluxqueue::queue_core
