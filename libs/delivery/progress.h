// Whether a loop gets on, for other threads: one that hangs in a call says nothing itself, and all
// else stays as it was.
//
// It gets on with each turn, with each try while something is away, with each message of a batch,
// and with each answer of the database: what is large takes many of those, and may take long. It
// begins with the first turn: before that the tables are migrated, for as long as it takes.
#pragma once

#include <atomic>
#include <chrono>

#include "libs/base/clock.h"

#include "absl/status/status.h"

namespace fluxqueue::delivery {

class Progress {
 public:
  // `limit`: no step takes longer; more than a claim's statement may (partition_holder.cc). The
  // clock must outlive it.
  Progress(const Clock& clock, Millis limit) : clock_(clock), limit_(limit) {}

  // The loop's thread: something has an end, whatever came of it. The first begins it.
  void Step() { at_ = clock_.Monotonic(); }
  // Any thread. OK: it gets on, or has not begun.
  absl::Status Check() const;

 private:
  using TimePoint = std::chrono::steady_clock::time_point;

  const Clock& clock_;
  const Millis limit_;
  std::atomic<TimePoint> at_ = TimePoint::max();
};

}  // namespace fluxqueue::delivery
