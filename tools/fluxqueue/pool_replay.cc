#include "tools/fluxqueue/pool_replay.h"

#include <utility>
#include <vector>

#include "libs/base/status_macros.h"

#include "tools/fluxqueue/log_reader.h"

namespace fluxqueue::cli {

PoolReplay::PoolReplay(EventSource& source, Options options, Hooks hooks)
    : source_(source), options_(std::move(options)), hooks_(std::move(hooks)) {}

absl::Status PoolReplay::Begin(int partition, int64_t first_offset) {
  const verify::EventFileHeader& header = source_.header();
  const int64_t next = options_.from.has_value() ? options_.from->next_offset() : 0;
  const int64_t begins = header.archived ? header.from.log : first_offset;
  if (!header.whole && begins > next) {
    return MakeStatus(absl::StatusCode::kFailedPrecondition,
                      "the log of pool {} begins at offset {}, and not where the pool began: it is "
                      "replayed from a snapshot that was made there or later (--from-snapshot)",
                      header.pool,
                      begins);
  }
  replayer_ = std::make_unique<verify::Replayer>(
      partition, facts_, verify::LogFilter::Buried(), EnginesOf(options_.library));
  replayer_->OnFact(hooks_.decided);
  replayer_->OnDecision(hooks_.said);
  if (options_.keeps_rows) replayer_->KeepRows();
  if (!options_.from.has_value()) return absl::OkStatus();
  if (options_.from->pool() != header.pool) {
    return InvalidArgument(
        "the snapshot is of pool {}, and the log of pool {}", options_.from->pool(), header.pool);
  }
  now_ = Millis(options_.from->time_ms());
  return replayer_->Restore(*options_.from);
}

// Times only rise, so a log that began again has later ones at the same offsets.
absl::Status PoolReplay::CheckIsItsLog(const verify::EventLine& passed) const {
  if (passed.time.count() <= options_.from->time_ms()) return absl::OkStatus();
  return MakeStatus(absl::StatusCode::kFailedPrecondition,
                    "the snapshot is older than the log of pool {}, which has begun again: its "
                    "offset {} is of later than the snapshot, which stands behind it",
                    pool(),
                    passed.offset);
}

absl::Status PoolReplay::Take(const verify::EventLine& line) {
  if (line.message.has_job_fact()) {
    if (options_.compares_facts) facts_.Fold(line);
    return absl::OkStatus();
  }
  if (replayer_ == nullptr) RETURN_IF_ERROR(Begin(line.partition, line.offset));
  if (options_.from.has_value() && line.offset < options_.from->next_offset()) {
    return CheckIsItsLog(line);
  }
  if (line.time.count() > options_.to_ms || line.offset >= options_.to_offset) {
    return absl::CancelledError();
  }
  now_ = line.time;
  if (hooks_.before) hooks_.before(line);
  RETURN_IF_ERROR(replayer_->Fold(line));
  return hooks_.after ? hooks_.after() : absl::OkStatus();
}

absl::Status PoolReplay::Run() {
  const absl::Status status =
      source_.Read([this](const verify::EventLine& line) { return Take(line); });
  if (!status.ok() && !absl::IsCancelled(status)) return status;
  if (replayer_ != nullptr) return absl::OkStatus();
  if (options_.from.has_value()) {
    return Begin(options_.from->partition(), options_.from->next_offset());
  }
  return MakeStatus(absl::StatusCode::kNotFound, "the log has no record of a pool");
}

verify::PoolReplay PoolReplay::Result() {
  constexpr int64_t kEnd = std::numeric_limits<int64_t>::max();
  const bool whole =
      !options_.from.has_value() && options_.to_ms == kEnd && options_.to_offset == kEnd;
  std::vector<verify::PoolReplay> pools = replayer_->Finish(whole);
  return pools.empty() ? verify::PoolReplay{.pool = pool()} : std::move(pools.front());
}

}  // namespace fluxqueue::cli
