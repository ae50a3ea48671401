#include "libs/delivery/partition_worker.h"

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <optional>

#include "libs/base/log.h"
#include "libs/base/status_macros.h"

namespace fluxqueue::delivery {
namespace {

// How long an offset may lag and acknowledged outbox rows may stay when no batch takes them along.
constexpr Millis kTidy{500};
// So many messages are worth a commit at any time.
constexpr size_t kLargeBatch = 50;

bool IsIdle(const Batch& batch) {
  return batch.received + batch.duplicates + batch.gaps + batch.letters.size() == 0;
}

}  // namespace

void PartitionWorker::Forget() {
  inbox_.clear();
  single_ = 0;
  deps_.folder.Pardon();
}

bool PartitionWorker::Due() const {
  const auto wake_at = deps_.handler.WakeAt();
  return deps_.handler.HasWork() || (wake_at.has_value() && *wake_at <= deps_.clock.Monotonic());
}

bool PartitionWorker::Paced() const {
  return inbox_.size() < kLargeBatch && deps_.clock.Monotonic() < deps_.committer.next_commit();
}

absl::Status PartitionWorker::Fold(Batch* batch, size_t* folded) {
  *folded = 0;
  for (const kafka::Message& message : inbox_) {
    ++*folded;
    deps_.progress.Step();
    PartitionTable::Partition* partition = deps_.table.Find(message.partition);
    if (partition == nullptr || message.offset < partition->now.next_offset) continue;
    RETURN_IF_ERROR(deps_.folder.Fold(message, *partition, batch));
    if (single_ > 0) break;
  }
  return absl::OkStatus();
}

absl::Status PartitionWorker::Make(bool due, Batch* batch, size_t* folded) {
  RETURN_IF_ERROR(Fold(batch, folded));
  // One by one: what the handler has to say besides comes after the messages, in a batch of its
  // own.
  if (single_ > 0 || (!due && IsIdle(*batch))) return absl::OkStatus();
  const absl::Status status = deps_.handler.Poll(batch->outbox);
  return IsPoison(status) ? Internal("Poll: {}", Message(status)) : status;
}

absl::StatusOr<bool> PartitionWorker::Work(bool settled, const std::stop_token& stop) {
  if (deps_.table.held().empty()) {
    inbox_.clear();
    return false;
  }
  const bool due = Due() && !deps_.committer.publisher().Full();
  if (inbox_.empty() && !due) return Tidy(stop);
  if (Paced()) return false;

  Batch batch;
  size_t folded = 0;
  if (const absl::Status made = Make(due, &batch, &folded); !made.ok()) {
    Rollback();
    return made;
  }
  if (MayKeep(settled, batch)) {
    Keep(batch);
  } else if (due || !IsIdle(batch)) {
    const absl::Status status = deps_.committer.Commit(batch, deps_.table, &deps_.handler, stop);
    if (!status.ok()) {
      Rollback();
      return Recover(status, batch, folded);
    }
  }
  inbox_.erase(inbox_.begin(), inbox_.begin() + static_cast<std::ptrdiff_t>(folded));
  deps_.folder.Pardon();
  single_ -= std::min(single_, folded);
  return true;
}

// No row would change but the offset's, which need not be exact; the tables were there last time.
bool PartitionWorker::MayKeep(bool settled, const Batch& batch) const {
  return batch.outbox.empty() && batch.letters.empty() && !deps_.handler.HasRows() && settled &&
         (!deps_.table.Ahead() || deps_.clock.Monotonic() - deps_.committer.last_commit() < kTidy);
}

void PartitionWorker::Keep(const Batch& batch) {
  deps_.table.Keep();
  deps_.handler.Commit();
  deps_.stats.received += batch.received;
  deps_.stats.duplicates += batch.duplicates;
  deps_.stats.gaps += batch.gaps;
}

// Offsets, and outbox rows whose messages are in Kafka, go with the next batch; when none comes,
// alone.
absl::StatusOr<bool> PartitionWorker::Tidy(const std::stop_token& stop) {
  if (deps_.clock.Monotonic() - deps_.committer.last_commit() < kTidy ||
      (deps_.committer.publisher().Prefixes().empty() && !deps_.table.Ahead())) {
    return false;
  }
  Batch none;
  const absl::Status status = deps_.committer.Commit(none, deps_.table, nullptr, stop);
  if (!status.ok()) return Recover(status, none, 0);
  return true;
}

void PartitionWorker::Rollback() {
  deps_.table.Rollback();
  deps_.handler.Rollback();
}

absl::StatusOr<bool> PartitionWorker::Recover(const absl::Status& status,
                                              const Batch& batch,
                                              size_t folded) {
  if (deps_.table.AnyForeign()) return false;
  if (!IsPoison(status)) return status;
  if (folded == 0 || batch.received == 0) return Internal("{}", Message(status));
  if (single_ == 0) {
    LogWarning("a batch cannot be written: its messages one by one",
               {{"because", Message(status)}});
    single_ = folded;
    return false;
  }
  if (deps_.folder.condemns()) return Internal("{}", Message(status));
  deps_.folder.Condemn(inbox_[folded - 1], Message(status));
  return false;
}

}  // namespace fluxqueue::delivery
