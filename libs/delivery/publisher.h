// Publishes committed outbox rows to Kafka, from memory, in the order of their sequences. Confined
// to the loop's thread. After a delivery error it makes a new producer and repeats from the first
// record that was not acknowledged.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "libs/base/backoff.h"
#include "libs/base/clock.h"
#include "libs/delivery/options.h"
#include "libs/delivery/outbox_tracker.h"
#include "libs/delivery/stats.h"
#include "libs/kafka/bus.h"

#include "absl/status/status.h"

namespace fluxqueue::delivery {

class Publisher {
 public:
  Publisher(const LoopOptions& options, const Clock& clock, Stats& stats);

  // REQUIRES: the row is committed.
  void Add(OutboxRow row);
  // Hands over what there is, and takes acknowledgements; waits up to `wait` for the first of
  // these.
  void Pump(Millis wait);
  // Pumps until all is acknowledged or the time is over.
  void Drain(Millis timeout);

  std::vector<Prefix> Prefixes() const { return tracker_.Prefixes(); }
  void Deleted(const std::vector<Prefix>& prefixes) { tracker_.Deleted(prefixes); }
  void DropStream(const std::string& stream) { tracker_.DropStream(stream); }

  // So much waits for Kafka that no more should be made.
  bool Full() const;
  // As the tracker's: rows added, and acknowledged.
  uint64_t added() const { return tracker_.last(); }
  uint64_t acknowledged() const { return tracker_.acknowledged(); }
  // Where the next record of the target will be. Blocks for up to two seconds.
  absl::StatusOr<int64_t> QueryEnd(const Target& target);
  // What keeps it from publishing: an error, or that Kafka has acknowledged nothing for a while.
  const absl::Status& status() const { return status_; }

 private:
  // Makes the producer if there is none and its time has come.
  bool Ensure();
  void GiveUp(absl::Status status);

  const LoopOptions& options_;
  const Clock& clock_;
  Stats& stats_;
  OutboxTracker tracker_;
  std::unique_ptr<kafka::Appender> producer_;
  Backoff backoff_;
  std::chrono::steady_clock::time_point retry_at_;
  std::chrono::steady_clock::time_point
      progress_at_;  // nothing waited, or something was acknowledged
  absl::Status status_;
};

}  // namespace fluxqueue::delivery
