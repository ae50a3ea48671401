// Where threads of the API hand commands and questions over to the loop's thread: a mailbox.
//
// An errand is answered once, on the loop's thread (or, by a desk that is shut or full, on the
// caller's):
// `done` must not block. A command is answered when the batch that wrote it to the log is
// committed, and is acted on when it is read back; a question, when the batch that it was asked in
// is over. What nobody has taken by its deadline is not done at all. While no pool is held, nobody
// comes to take: the desk is shut, and answers kNotHeld itself.
//
// Bounded: while kMost wait, or commands of kMostBytes, it answers kFull. What the loop has taken
// may come back beside that: one batch. How many were turned away is fluxqueue_commands_total with
// the outcome "full", and for questions and commands alike times_full().
//
// Thread-safe.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "fluxqueue/events/v1/events.pb.h"

#include "libs/queue_core/explanation.h"

#include "absl/status/status.h"

namespace fluxqueue::queue {

struct ErrandResult {
  enum class Outcome {
    kDone,      // a command: it is in the log
    kRepeated,  // its client's id was accepted before
    kNotHeld,   // the pool is another replica's, or nobody's
    kNotLive,   // the job is not known here (any more)
    kRefused,   // `why`
    kLate,      // its deadline was over
    kFull,      // as many wait as may
  };

  Outcome outcome = Outcome::kDone;
  absl::Status why = {};
  // The job as it is; unset: a claim that is new.
  std::optional<events::v1::JobFact> job = {};
  int64_t position = 0;  // in its queue, from 1; 0: not in line
  std::optional<queue_core::Explanation> explanation = {};
  uint64_t cycle = 0;  // that is abandoned
};

// For metrics: "done".
const char* Name(ErrandResult::Outcome outcome);

struct Errand {
  std::string pool;
  std::string job_id;  // empty: it is about the pool
  // Unset: a question.
  std::optional<events::v1::CommandAccepted> command;
  bool explain = false;  // the question
  std::chrono::steady_clock::time_point deadline;
  std::function<void(ErrandResult)> done;
  // Found in the tables: accepted before.
  bool known = false;
};

class CommandDesk {
 public:
  static constexpr size_t kMost = 10'000;
  static constexpr size_t kMostBytes = size_t{64} << 20;

  // `wake`: the loop should look at the desk; thread-safe.
  explicit CommandDesk(std::function<void()> wake) : wake_(std::move(wake)) {}

  void Put(Errand errand);
  bool empty() const { return size() == 0; }
  size_t size() const;
  uint64_t times_full() const;
  // For the loop: up to `max`, in the order in which they came; and back, in front of the others.
  std::vector<Errand> Take(size_t max);
  void Return(std::vector<Errand> errands);
  // Some pool is held; none is any more.
  void Open();
  void Shut();

 private:
  static size_t BytesOf(const Errand& errand);

  const std::function<void()> wake_;
  mutable std::mutex mutex_;
  std::deque<Errand> errands_;  // guarded by mutex_, as what follows
  size_t bytes_ = 0;            // of their commands
  uint64_t times_full_ = 0;
  bool open_ = false;
};

}  // namespace fluxqueue::queue
