// What both loops share: one batch in one transaction, its publication, and what becomes of a
// commit whose outcome is unknown. Confined to the loop's thread.
#pragma once

#include <chrono>
#include <memory>
#include <mutex>
#include <stop_token>
#include <string>
#include <vector>

#include <pqxx/pqxx>

#include "libs/base/backoff.h"
#include "libs/base/clock.h"
#include "libs/delivery/faults.h"
#include "libs/delivery/handler.h"
#include "libs/delivery/ledger.h"
#include "libs/delivery/options.h"
#include "libs/delivery/pacer.h"
#include "libs/delivery/progress.h"
#include "libs/delivery/publisher.h"
#include "libs/delivery/stamper.h"
#include "libs/delivery/stats.h"

#include "absl/status/status.h"

namespace fluxqueue::delivery {

// A batch under way. It lives for one try.
struct Batch {
  Outbox outbox;
  std::vector<DeadLetter> letters;
  // Records looked at, and what was made of them.
  uint64_t received = 0;
  uint64_t duplicates = 0;
  uint64_t gaps = 0;
  uint64_t leads = 0;  // as Stats::leads
  uint64_t newer = 0;  // as Stats::newer
};

// The rows that stand for what is ours: inbox rows, or a lease.
class BatchGuard {
 public:
  enum class Outcome {
    kCommitted,
    kNotCommitted,
    kTaken,  // the rows are another's by now: it can no longer be told, nor does it matter
  };

  virtual ~BatchGuard() = default;
  // Locks the rows; Aborted when one is not as our memory has it.
  virtual absl::Status Lock(pqxx::transaction_base& tx) = 0;
  // What the batch moves in the rows.
  virtual BatchRows Rows(const Batch& batch) = 0;
  // After a commit whose outcome is unknown: locks the rows (so that a commit still under way is
  // waited for) and tells.
  virtual Outcome Settle(pqxx::transaction_base& tx) = 0;
  virtual void Committed() = 0;
};

// Whether the loop does its work, for other threads. Says changes in the log, each once.
class Readiness {
 public:
  explicit Readiness(absl::Status initial) : status_(std::move(initial)) {}

  absl::Status Get() const;
  void Set(const absl::Status& status);
  // What is to be done before it is ready, and is under way: nothing to be warned of.
  void Begin(const absl::Status& status);

 private:
  // False: it was that already.
  bool Change(const absl::Status& status);

  mutable std::mutex mutex_;
  absl::Status status_;
};

class Committer {
 public:
  Committer(const LoopOptions& options,
            const Clock& clock,
            Stats& stats,
            Readiness& ready,
            Progress& progress,
            FaultInjector* faults);

  // Commits and publishes; calls handler->Write and Commit (nullptr: a batch without rows of the
  // handler). Any status but OK means that it is not committed: the caller rolls back. Cancelled:
  // stopped before the outcome could be told.
  absl::Status Commit(Batch& batch, BatchGuard& guard, BatchHandler* handler, std::stop_token stop);

  postgres::Store& store() { return *store_; }
  Publisher& publisher() { return publisher_; }
  Stamper& stamper() { return stamper_; }
  std::chrono::steady_clock::time_point last_commit() const { return last_commit_; }
  // When the next batch may begin, unless it is a large one.
  std::chrono::steady_clock::time_point next_commit() const { return pacer_.NextAt(); }

 private:
  absl::Status Transact(BatchGuard& guard,
                        BatchHandler* handler,
                        const BatchRows& rows,
                        const std::vector<OutboxRow>& sent,
                        bool* in_doubt);
  absl::Status Settle(BatchGuard& guard, const absl::Status& cause, std::stop_token stop);
  // Of the last second or so.
  double Busy();

  const LoopOptions& options_;
  const Clock& clock_;
  Stats& stats_;
  Readiness& ready_;
  Progress& progress_;
  FaultInjector* faults_;
  const std::unique_ptr<postgres::Store> store_;
  Publisher publisher_;
  Stamper stamper_;
  std::chrono::steady_clock::time_point last_commit_;
  Pacer pacer_;
  double busy_ = 0;
  std::chrono::steady_clock::time_point look_at_;
};

}  // namespace fluxqueue::delivery
