// The queue's decisions for one pool, as a state machine over the pool's log.
//
//   the log (JobSubmitted, CommandAccepted, CycleAnswered, JobBound, JobEnded …)
//        └─► QueueCore ─┬─► CycleRequested, ReleaseRequested
//                       └─► JobFact, version by version
//
// It owns the state machine of every job of the pool (libs/model/job_state.h has the table), the
// order in which jobs are tried (libs/scheduling), and the cycle in flight: one at most. README.md
// tells the story.
//
// Pure: no clock, socket, thread or database; it does not throw. The same messages with the same
// times give the same bytes, wherever a batch begins or ends. What it decides is provisional until
// Commit():
//
//   core.Handle(envelope, now, &outputs);      // for each record of the batch
//   store.Write(tx, core.TakeChanges());       // rows
//   core.Commit();                             // or Rollback(): memory as it was before the batch
//
// A core made by Restore() from the rows of the last commit equals the one that wrote them.
//
// Time is the log's: `now` is the greatest record timestamp of the partition so far
// (Record::time). When something is due without a message, NextDeadline() says when; the
// shell appends a Tick by then.
//
// Submissions are deduplicated while a job is known, that is until the matcher has confirmed the
// release of all it held. That a workload is submitted once in its life is admission's promise (its
// row), that a claim is, the shell's (queue.jobs).
//
// Costs: O(log n) for a job's change, O(candidates) for a cycle, however many jobs wait.
// Thread-compatible; one thread at a time. Pointers from Find() live until the next call that is
// not const.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "fluxqueue/events/v1/events.pb.h"

#include "libs/base/clock.h"
#include "libs/queue_core/explanation.h"
#include "libs/queue_core/figures.h"
#include "libs/queue_core/job.h"
#include "libs/queue_core/rows.h"

#include "absl/status/status.h"

namespace fluxqueue::queue_core {

// What the shell has to send, in this order. Envelopes are complete but for stream, sequence,
// time_ms and traceparent, which the outbox stamps.
struct Outputs {
  std::vector<events::v1::Envelope> pool;  // to the pool's own log
  std::vector<events::v1::Envelope> jobs;  // JobFacts, to fluxqueue.jobs

  // For metrics. Facts that came too late; allocations that were released because no longer wanted.
  uint64_t stale = 0;
  uint64_t unwanted = 0;
  std::vector<Timing> timings;
};

class QueueCore {
 public:
  explicit QueueCore(std::string pool);
  ~QueueCore();
  QueueCore(QueueCore&&) noexcept;
  QueueCore& operator=(QueueCore&&) noexcept;

  // True for the types that the core reads. All others leave it as it is, so a shell may skip them.
  static bool Reads(events::v1::Envelope::EventCase type);

  // Folds one message of this pool; appends what follows from it to *out. A poison status (see
  // status_macros.h) means a dead letter: the message is impossible here, and nothing has changed.
  absl::Status Handle(const events::v1::Envelope& message, Millis now, Outputs* out);

  // When, in the log's time, something is due that no message brings.
  std::optional<Millis> NextDeadline() const;

  // The rows changed since the last Commit or Rollback. Calling it changes nothing.
  Changes TakeChanges() const;
  void Commit();
  void Rollback();

  // Replaces all that is in memory. DataLoss when a row does not decode or the rows contradict each
  // other; the core is then unusable until a Restore succeeds.
  absl::Status Restore(const Rows& rows);

  // Equal for equal states: of the rows, and of what is derived from them.
  uint64_t Fingerprint() const;

  // ------------------------------------------------------------------------------------- for
  // people

  const std::string& pool() const;
  Millis now() const;
  // Null when the job is not known (any more). Ended jobs are not.
  const Job* Find(std::string_view job_id) const;
  // It is known, or it has ended and the matcher has not confirmed its release yet.
  bool Remembers(std::string_view job_id) const;
  // Null: there is no such FluxQueue in the pool.
  const events::v1::QueueConfigured* FindQueue(const std::string& name) const;
  // 1 for the next of its queue, or, where users take turns by their shares, of its user's jobs of
  // that namespace in it; 0 when the job is not known or not in line (held, waiting for a
  // retry, started). O(log n).
  size_t Position(std::string_view job_id) const;
  // Ids for a screen: the first `most` in line of each queue, in their order, then of the others
  // the `most` that were submitted last. O(n log n) in all jobs.
  std::vector<std::string> Front(size_t most) const;
  // Ids of jobs that lack nothing but nodes. Of each queue the first in its order that was tried
  // and found none free: past those that a limit holds, or for which there is room but for a window
  // or another's promise. And of what no node of the pool could run, which holds up no job, of each
  // user the one that was submitted first, unless a limit would hold it. None while the pool's
  // nodes are not known. Looks at kLooked that stand in line, and at all that wait for a time.
  std::vector<std::string> LackNodes();
  static constexpr size_t kLooked = 1000;
  // Why the job waits, and what would let it start sooner. Nothing: it is not known. O(log n), and
  // a look at all that stand ahead of one that only a promise holds back.
  std::optional<Explanation> Explain(std::string_view job_id) const;
  // Jobs that have not ended, by queue and state.
  std::map<std::pair<std::string, model::JobState>, size_t> Counts() const;
  // By queue. O(jobs): now and then.
  std::map<std::string, QueueFigures> Figures() const;
  // Jobs that have not ended.
  size_t size() const;
  // The cycle that waits for its answer; 0: none.
  uint64_t cycle_in_flight() const;

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace fluxqueue::queue_core
