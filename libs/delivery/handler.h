// What a service implements; the loops (partition_loop.h, shard_loop.h) call it, from one thread.
//
// One batch is   Handle…Handle Poll Write → Commit   or, when anything of it fails,   … → Rollback.
// A batch that failed is handled again, message by message as before. So memory is provisional
// until Commit: keep an undo journal (or work on a copy of what changes), and let effects out in
// Commit only.
//
// What a returned status does:
//   OK                                            on we go
//   Unavailable, Aborted, DeadlineExceeded        the batch is rolled back, and repeated after a
//   pause InvalidArgument, FailedPrecondition, NotFound Handle: this message goes to the dead
//   letters, the batch goes on; Handle
//                                                 must have changed nothing then. Write: the batch
//                                                 is repeated message by message, and the one that
//                                                 fails alone goes to the dead letters. Elsewhere:
//                                                 as below
//   anything else                                 the batch is rolled back and Run returns the
//   status: stop the process
// Load and Write may let libpqxx's exceptions out: the loop turns them into statuses
// (libs/postgres/status.h).
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>

#include <pqxx/pqxx>

#include "fluxqueue/events/v1/events.pb.h"

#include "libs/base/clock.h"
#include "libs/delivery/outbox.h"

#include "absl/status/status.h"

namespace fluxqueue::delivery {

// One message of the log: neither a duplicate nor behind a gap.
struct Record {
  int partition = 0;
  int64_t offset = 0;
  // The log's (libs/model/log_time.h). Never goes back, also over restarts.
  Millis time{0};
  events::v1::Envelope envelope;
};

class BatchHandler {
 public:
  virtual ~BatchHandler() = default;

  // Poll has something to say now: the loop makes a batch even when no message has come. Asked
  // often: make it cheap.
  virtual bool HasWork() const = 0;
  // Poll wants to be called then, at the latest. A time in the past means now.
  virtual std::optional<std::chrono::steady_clock::time_point> WakeAt() const = 0;
  // Before each commit, after the messages: say what did not come from the log (Ticks, results of
  // API calls, what watches saw). Rolled back batches are polled again: keep what was said until
  // Commit. Say at most a few thousand messages at once, HasWork brings the next batch. What other
  // threads hand over to the handler is the handler's to guard.
  virtual absl::Status Poll(Outbox& outbox) = 0;
  // Asked after Poll: whether Write has rows, or Commit lets effects out that must not go before
  // one. When neither, and nothing was said, the loop calls Commit without a transaction, and the
  // offset moves with a later one: such messages may be handled again after a restart. Most of what
  // a log or a watch brings is another's business.
  virtual bool HasRows() const = 0;
  // Rows of this batch, inside the transaction that moves the offsets; the locks are held and
  // checked. Set-based SQL.
  virtual absl::Status Write(pqxx::transaction_base& tx) = 0;
  // It is committed: memory is final, effects may go out. Must not block.
  virtual void Commit() = 0;
  // It is not: memory as before the batch.
  virtual void Rollback() = 0;
};

class PartitionHandler : public BatchHandler {
 public:
  // Rebuild the partition's memory from rows: it was gained, or its memory is in doubt. Never
  // between Handle and Commit/Rollback. If the transaction fails afterwards, Drop follows.
  virtual absl::Status Load(pqxx::transaction_base& tx, int partition) = 0;
  // Lost: forget. Never between Handle and Commit/Rollback.
  virtual void Drop(int partition) = 0;
  // No partition is held: nothing can be said or written, and no other call comes. Take what other
  // threads hand over, so that they need not wait. Any status but OK as of Poll.
  virtual absl::Status Idle() { return absl::OkStatus(); }
  // Folds one message. Where a batch begins and ends must change no output.
  virtual absl::Status Handle(const Record& record, Outbox& outbox) = 0;
  // The message goes to the dead letters, in this batch: it was not handled, or what came of it
  // could not be written. For who waits for it. `record.envelope`: what of it could be read.
  // Changes nothing in memory. Not called for what an operator has left out: nobody has read that.
  virtual void Buried(const Record& record, Outbox& outbox) {
    static_cast<void>(record);
    static_cast<void>(outbox);
  }
};

// For services without a log: admission and cleanup, which hold the lease of a watch. Poll asks
// their Quarantine (quarantine.h) before it handles an object, and may throw then.
class ShardHandler : public BatchHandler {
 public:
  // The lease is ours: rebuild memory from rows. If the transaction fails afterwards, Drop follows.
  virtual absl::Status Load(pqxx::transaction_base& tx) = 0;
  // The lease is another's: forget.
  virtual void Drop() = 0;
};

}  // namespace fluxqueue::delivery
