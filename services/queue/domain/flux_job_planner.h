// Decides when the FluxJob object of each job is written. A write to the API server is the dearest
// thing in the system, so facts are coalesced:
//
//   - the first write waits `first_delay` after the first fact, longer where the API server is
//   slow,
//     so that a job that is quickly through costs one write, with its end in it;
//   - after that a job is written at most once an `interval`, with its latest fact;
//   - a position that moved is written only when nothing else is, every `position_interval` at
//     most;
//   - all jobs together are written `writes_per_second` times at most, and no faster than one write
//     after the other would go: what people look at must not take the API server from what starts
//     their jobs. Where it grows slow, writes grow few, and more jobs are through by their first;
//   - a job that has ended and has no object yet gets it when the API server is at leisure: the
//     longer writes take than they may, the fewer. Up to `most_ended` such jobs wait; of more the
//     oldest get no object. Their rows have all that it would have shown.
//
// With the writes go Events on the user's object, one for each step of an attempt at most. A job
// that starts within `told_after` costs none; of steps that follow each other quickly the last one
// is told.
//
// The naive way, a write for each fact, would show every state for a moment and cost five writes a
// job. Skipping states is safe because each fact is whole: the last one says all.
//
// Of each fact only what decides is kept: what is written is read from the job's row, which may be
// newer by then.
//
// Pure: time is an argument (any monotonic zero). Not thread-safe.
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "fluxqueue/events/v1/events.pb.h"

#include "libs/base/clock.h"
#include "libs/base/interner.h"

namespace fluxqueue::queue {

struct FluxJobTimes {
  Millis first_delay{1000};
  Millis interval{1000};
  Millis position_interval{10000};
  Millis told_after{10000};
  Millis not_started_after{300'000};
  int writes_per_second = 500;
  size_t most_ended = 20'000;
  Millis retry_min{500};
  Millis retry_max{30000};
};

// What an Event tells of a job, in the order in which an attempt takes them.
// kNotStarted: it has had its nodes for long.
enum class JobStep { kNone, kQueued, kReserved, kAllocated, kBound, kNotStarted };

// A job that should be shown as its row has it.
struct FluxJobWrite {
  std::string job_id;
  uint64_t version = 0;  // of the job, as it is known; its row is at this one or a later
  // Place in its queue, from 1; 0: not waiting, or not known.
  int64_t position = 0;
  // Of the object as it was written or seen last: another may have written it since, whose pool it
  // is by now. Empty: there is none yet, as far as is known.
  std::string resource_version;
  // The object shows all that already: only the step is to be told.
  bool shown = false;
  JobStep step = JobStep::kNone;  // of `version`: a later one has another to tell
};

class FluxJobPlanner {
 public:
  explicit FluxJobPlanner(FluxJobTimes times) : times_(times) {}

  // A fact of a job; older versions than the one known are ignored, and claims, which have no
  // FluxJob.
  void Observe(const events::v1::JobFact& fact, int64_t position, Millis now);
  // As Observe, of a job that has an object: it is at `resource_version` and shows `version` of the
  // job, the fact's or an older one.
  void ObserveShown(const events::v1::JobFact& fact,
                    uint64_t version,
                    std::string resource_version,
                    Millis now);
  // A waiting job has moved. Unknown jobs are ignored.
  void Move(const std::string& job_id, int64_t position, Millis now);

  // Takes up to `max` jobs whose write is due, longest due first, and no more than may be written
  // within a second. Each is then in flight until Written, Failed or Gone says how it went.
  std::vector<FluxJobWrite> TakeDue(Millis now, size_t max);

  // The object shows `version` now, the one that was taken or a later, and is at
  // `resource_version`.
  void Written(const std::string& job_id,
               uint64_t version,
               std::string resource_version,
               Millis now);
  // To be tried again after a backoff.
  void Failed(const std::string& job_id, Millis now);
  // There is nothing to show `version` of the job on: its workload is gone, or its object shows a
  // later one. A later one that is known by now is still written.
  void Gone(const std::string& job_id, uint64_t version, Millis now);
  // What a write took, whatever came of it. One that took longer than a second counts as a second:
  // else the calls of an API server that was away would slow all writes for minutes after it.
  void Took(std::chrono::duration<double> write);

  // Another shows the jobs of these pools from now on. Those that have ended are still written.
  void Lost(const std::set<std::string>& pools);

  // Up to `max` waiting jobs whose position may be shown wrong, those nearest to their turn first.
  std::vector<std::string> Waiting(size_t max) const;

  // When TakeDue has something next.
  std::optional<Millis> NextDue() const;
  size_t size() const { return jobs_.size(); }
  // Jobs that got no object, since the beginning.
  uint64_t left_out() const { return left_out_; }

 private:
  struct Entry {
    std::shared_ptr<const std::string> pool;
    // Of the fact.
    uint64_t version = 0;
    uint32_t attempt = 0;
    events::v1::JobState state = events::v1::JOB_STATE_UNSPECIFIED;
    JobStep step = JobStep::kNone;  // that it tells
    // Of the object.
    uint64_t written_version = 0;
    std::string resource_version;
    int64_t position = 0;
    int64_t written_position = 0;
    Millis written_at{0};
    std::optional<Millis> due;  // its place in due_ or ended_, when it has one
    bool in_ended = false;      // that place is in ended_
    uint64_t in_flight = 0;     // the version that is being written; 0: none is
    int failures = 0;
    // Of the fact's attempt.
    Millis known_since{0};
    Millis held_since{0};  // when it was first seen to have its nodes
    JobStep told = JobStep::kNone;
    JobStep telling = JobStep::kNone;  // by the write in flight
  };

  // The job's entry with this fact, not scheduled yet; null: it is older than the one known, or of
  // a claim.
  Entry* Note(const events::v1::JobFact& fact, int64_t position, Millis now);
  void Erase(const std::string& job_id);
  static bool IsShown(const Entry& entry);
  JobStep StepAt(const Entry& entry, Millis now) const;
  // When the step that it has reached, or the next one, is told. Unset: it was, or need not be.
  std::optional<Millis> TellAt(const Entry& entry) const;
  std::optional<Millis> DueAt(const Entry& entry, Millis now) const;
  void Schedule(const std::string& job_id, Entry& entry, Millis now);
  // Writes a second that are allowed.
  double Rate() const;
  // Whether the API server is at leisure: 1, down to 0 where writes take far longer than the best.
  double Ease() const;
  // Of jobs in ended_, where these may have `part` of all.
  double LeisureRate(double part) const;
  void SetDue(const std::string& job_id, Entry& entry, std::optional<Millis> due);
  void LeaveOut();
  // The first of `due` is on its way; `calls` counts what that takes.
  FluxJobWrite Take(std::set<std::pair<Millis, std::string>>& due, Millis now, int64_t* calls);

  FluxJobTimes times_;
  Millis next_take_{0};       // what was taken before has used up the rate until then
  Millis next_ended_{0};      // and that of jobs in ended_
  double write_seconds_ = 0;  // that a write takes, smoothed
  double best_seconds_ = 0;   // the least that one took lately
  Interner<std::string> pools_;
  std::unordered_map<std::string, Entry> jobs_;
  std::set<std::pair<Millis, std::string>> due_;
  std::set<std::pair<Millis, std::string>> ended_;  // those that have ended and have no object
  uint64_t left_out_ = 0;
};

}  // namespace fluxqueue::queue
