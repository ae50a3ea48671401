#include "libs/delivery/committer.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include "libs/base/failure_point.h"
#include "libs/base/log.h"
#include "libs/base/status_macros.h"
#include "libs/postgres/statement.h"

namespace fluxqueue::delivery {

using std::chrono::duration_cast;
using std::chrono::microseconds;

namespace {

// How often the machine is looked at, which has to be long beside the kernel's clock tick.
constexpr Millis kLookEvery{250};

postgres::Options OwnOptions(postgres::Options options, Progress& progress) {
  options.plans = postgres::Plans::kKept;
  options.answered = [&progress] { progress.Step(); };
  return options;
}

}  // namespace

Committer::Committer(const LoopOptions& options,
                     const Clock& clock,
                     Stats& stats,
                     Readiness& ready,
                     Progress& progress,
                     FaultInjector* faults)
    : options_(options),
      clock_(clock),
      stats_(stats),
      ready_(ready),
      progress_(progress),
      faults_(faults),
      store_(options.stores->Open(OwnOptions(options.postgres, progress))),
      publisher_(options, clock, stats),
      stamper_(options.service, options.topics, options.max_clock_lead) {}

absl::Status Committer::Transact(BatchGuard& guard,
                                 BatchHandler* handler,
                                 const BatchRows& rows,
                                 const std::vector<OutboxRow>& sent,
                                 bool* in_doubt) {
  const CommitFault fault = faults_ == nullptr ? CommitFault::kNone : faults_->NextCommit();
  uint64_t delivery_rows = 0;
  uint64_t handler_rows = 0;
  absl::Status status = store_->Transact([&](pqxx::transaction_base& tx) -> absl::Status {
    const absl::Status locked = guard.Lock(tx);
    if (faults_ == nullptr || !faults_->Lacks(Safety::kEpoch)) RETURN_IF_ERROR(locked);
    if (handler != nullptr) {
      const uint64_t before = postgres::RowsWritten();
      RETURN_IF_ERROR(handler->Write(tx));
      handler_rows = postgres::RowsWritten() - before;
    }
    delivery_rows = WriteBatch(tx, rows, sent);
    // From here on a failure does not say whether the commit took effect.
    *in_doubt = true;
    FailurePoint("commit.before");
    if (fault == CommitFault::kBefore) return Unavailable("injected: the connection died");
    return absl::OkStatus();
  });
  if (status.ok()) {
    FailurePoint("commit.after");
    stats_.delivery_rows += delivery_rows;
    stats_.handler_rows += handler_rows;
    if (fault == CommitFault::kAfter) {
      store_->Close();
      status = Unavailable("injected: the connection died");
    }
  }
  return status;
}

absl::Status Committer::Settle(BatchGuard& guard, const absl::Status& cause, std::stop_token stop) {
  ++stats_.doubts;
  if (faults_ != nullptr && faults_->Lacks(Safety::kSettle)) return absl::OkStatus();
  Backoff backoff(options_.retry_min, options_.retry_max, options_.seed);
  while (true) {
    BatchGuard::Outcome outcome{};
    absl::Status status = store_->Transact([&](pqxx::transaction_base& tx) {
      outcome = guard.Settle(tx);
      return absl::OkStatus();
    });
    if (status.ok()) {
      switch (outcome) {
        case BatchGuard::Outcome::kCommitted:
          return absl::OkStatus();
        case BatchGuard::Outcome::kNotCommitted:
          return cause;
        case BatchGuard::Outcome::kTaken:
          return MakeStatus(absl::StatusCode::kAborted, "taken by another: {}", Message(cause));
      }
    }
    if (!IsTransient(status) && !postgres::IsOutcomeUnknown(status)) return status;
    if (stop.stop_requested()) {
      return MakeStatus(absl::StatusCode::kCancelled, "stopped in doubt: {}", Message(cause));
    }
    ready_.Set(status);
    progress_.Step();
    Pause(clock_, backoff.Next(), stop);
  }
}

double Committer::Busy() {
  if (last_commit_ >= look_at_) {
    busy_ += (options_.busy() - busy_) / 4;
    look_at_ = last_commit_ + kLookEvery;
  }
  return busy_;
}

absl::Status Committer::Commit(Batch& batch,
                               BatchGuard& guard,
                               BatchHandler* handler,
                               std::stop_token stop) {
  BatchRows rows = guard.Rows(batch);
  rows.cleared = publisher_.Prefixes();
  std::ranges::move(batch.outbox.mutable_letters(), std::back_inserter(batch.letters));
  const size_t letters = batch.letters.size();
  int oversized = 0;
  const auto now = duration_cast<Millis>(clock_.Now().time_since_epoch());
  std::vector<OutboxRow> sent =
      stamper_.Stamp(batch.outbox.mutable_messages(), std::move(batch.letters), now, &oversized);

  const auto begun = clock_.Monotonic();
  bool in_doubt = false;
  absl::Status status = Transact(guard, handler, rows, sent, &in_doubt);
  if (!status.ok() && in_doubt) status = Settle(guard, status, stop);
  if (!status.ok()) {
    stamper_.Rollback();
    ++stats_.rollbacks;
    return status;
  }
  last_commit_ = clock_.Monotonic();
  pacer_.Committed(last_commit_, last_commit_ - begun, Busy());
  const auto took =
      static_cast<uint64_t>(duration_cast<microseconds>(last_commit_ - begun).count());

  stamper_.Commit();
  guard.Committed();
  publisher_.Deleted(rows.cleared);
  for (OutboxRow& row : sent) publisher_.Add(std::move(row));
  publisher_.Pump(Millis{0});
  if (handler != nullptr) handler->Commit();

  ++stats_.commits;
  stats_.commit_micros += took;
  stats_.last_commit_micros = took;
  stats_.received += batch.received;
  stats_.duplicates += batch.duplicates;
  stats_.gaps += batch.gaps;
  stats_.leads += batch.leads;
  stats_.newer += batch.newer;
  stats_.dead_letters += letters + static_cast<uint64_t>(oversized);
  stats_.oversized += static_cast<uint64_t>(oversized);
  return absl::OkStatus();
}

absl::Status Readiness::Get() const {
  const std::scoped_lock lock(mutex_);
  return status_;
}

bool Readiness::Change(const absl::Status& status) {
  const std::scoped_lock lock(mutex_);
  if (status_ == status) return false;
  status_ = status;
  return true;
}

void Readiness::Begin(const absl::Status& status) {
  if (Change(status)) LogInfo("delivery begins", {{"with", Message(status)}});
}

void Readiness::Set(const absl::Status& status) {
  if (!Change(status)) return;
  if (status.ok()) {
    LogInfo("delivery goes on");
  } else {
    LogWarning("delivery waits", {{"because", Message(status)}});
  }
}

}  // namespace fluxqueue::delivery
