#include "services/queue/adapters/pool_handler.h"

#include <algorithm>
#include <utility>

#include "libs/base/status_macros.h"
#include "libs/model/abandoned_cycle.h"
#include "libs/tracing/trace_context.h"
#include "services/queue/adapters/queue_store.h"

namespace fluxqueue::queue {
namespace {

constexpr std::chrono::minutes kLongestSleep{1};
constexpr std::chrono::seconds kTickLost{30};
constexpr std::chrono::seconds kPositionInterval{10};
// It is a look at every job.
constexpr std::chrono::seconds kCountInterval{10};
constexpr std::chrono::seconds kLackInterval{10};

}  // namespace

PoolHandler::PoolHandler(JobObserver& observer,
                         FactFeed& feed,
                         CommandDesk& desk,
                         QueueMetrics& metrics,
                         const Clock& clock,
                         tracing::Tracer& tracer)
    : observer_(observer),
      feed_(feed),
      desk_(desk),
      metrics_(metrics),
      clock_(clock),
      tracer_(tracer),
      commands_(
          desk, [this](const std::string& pool) { return FindPool(pool); }, metrics) {}

std::optional<HeldPool> PoolHandler::FindPool(const std::string& name) const {
  for (const auto& [key, pool] : pools_) {
    if (key.second == name) return HeldPool{key.first, pool.core.get()};
  }
  return std::nullopt;
}

absl::Status PoolHandler::Load(pqxx::transaction_base& tx, int partition) {
  for (auto& [name, rows] : LoadPools(tx, partition)) {
    Pool pool;
    pool.core = std::make_unique<queue_core::QueueCore>(name);
    RETURN_IF_ERROR(pool.core->Restore(rows));
    pool.persisted = true;
    pool.seen = clock_.Monotonic();
    metrics_.Jobs(name, pool.core->Counts());
    feed_.Gained(name);
    uncounted_.emplace(partition, name);
    lack_unseen_.emplace(partition, name);
    pools_.insert_or_assign({partition, name}, std::move(pool));
  }
  if (!pools_.empty()) desk_.Open();
  gained_ = true;
  return absl::OkStatus();
}

void PoolHandler::Drop(int partition) {
  const auto first = pools_.lower_bound({partition, ""});
  const auto last = pools_.lower_bound({partition + 1, ""});
  std::set<std::string> lost;
  for (auto it = first; it != last; ++it) {
    const std::string& pool = it->first.second;
    feed_.Lost(pool);
    metrics_.Dropped(pool);
    lost.insert(pool);
  }
  if (!lost.empty()) observer_.PoolsLost(lost);
  pools_.erase(first, last);
  if (pools_.empty()) desk_.Shut();
}

PoolHandler::Pool& PoolHandler::Touch(int partition, const std::string& name) {
  const PoolKey key{partition, name};
  touched_.insert(key);
  Pool& pool = pools_[key];
  if (pool.core == nullptr) pool.core = std::make_unique<queue_core::QueueCore>(name);
  return pool;
}

absl::Status PoolHandler::Handle(const delivery::Record& record, delivery::Outbox& outbox) {
  const events::v1::Envelope& message = record.envelope;
  if (message.pool().empty()) return InvalidArgument("the message names no pool");
  if (!queue_core::QueueCore::Reads(message.event_case())) return absl::OkStatus();
  Pool& pool = Touch(record.partition, message.pool());
  queue_core::Outputs said;
  RETURN_IF_ERROR(pool.core->Handle(message, record.time, &said));
  pool.seen = clock_.Monotonic();
  if (message.has_tick()) pool.tick_said = false;
  for (events::v1::Envelope& out : said.pool) {
    outbox.AppendToPool(record.partition, record.partition, std::move(out));
  }
  for (events::v1::Envelope& out : said.jobs) {
    facts_.push_back(out.job_fact());
    outbox.AppendToJobs(record.partition, std::move(out));
  }
  timings_.insert(timings_.end(), said.timings.begin(), said.timings.end());
  metrics_.Stale(said.stale, said.unwanted);
  return absl::OkStatus();
}

void PoolHandler::Buried(const delivery::Record& record, delivery::Outbox& outbox) {
  const events::v1::Envelope& message = record.envelope;
  const auto pool = pools_.find({record.partition, message.pool()});
  const uint64_t cycle = message.cycle_answered().cycle_id();
  if (pool == pools_.end() || cycle == 0 || pool->second.core->cycle_in_flight() != cycle) return;
  outbox.AppendToPool(
      record.partition, record.partition, model::AbandonedCycle(message.pool(), cycle, "queue"));
}

std::optional<PoolHandler::TimePoint> PoolHandler::DueAt(const Pool& pool) const {
  // One that is on its way for long is lost.
  if (pool.tick_said) return pool.ticked + kTickLost;
  const std::optional<Millis> deadline = pool.core->NextDeadline();
  if (!deadline.has_value()) return std::nullopt;
  // A Tick brings the log's time, too: after messages that were long on their way it is behind.
  return pool.seen + std::min<Millis>(*deadline - pool.core->now(), kLongestSleep);
}

std::optional<PoolHandler::TimePoint> PoolHandler::WakeAt() const {
  std::optional<TimePoint> first;
  if (!uncounted_.empty()) first = next_count_;
  if (!lack_unseen_.empty()) first = std::min(first.value_or(next_lack_), next_lack_);
  for (const auto& [key, pool] : pools_) {
    const std::optional<TimePoint> due = DueAt(pool);
    if (due.has_value() && (!first.has_value() || *due < *first)) first = due;
  }
  return first;
}

absl::Status PoolHandler::Poll(delivery::Outbox& outbox) {
  for (auto& [key, pool] : pools_) {
    const std::optional<TimePoint> due = DueAt(pool);
    if (!due.has_value() || *due > clock_.Monotonic()) continue;
    events::v1::Envelope tick;
    tick.set_pool(key.second);
    tick.mutable_tick();
    outbox.AppendToPool(key.first, key.first, std::move(tick));
    pool.tick_said = true;
    pool.ticked = clock_.Monotonic();
    pool.tick_in_batch = true;
    touched_.insert(key);
  }
  commands_.Poll(clock_.Monotonic(), outbox);
  return absl::OkStatus();
}

absl::Status PoolHandler::Write(pqxx::transaction_base& tx) {
  for (const PoolKey& key : touched_) {
    const queue_core::Changes changes = pools_.at(key).core->TakeChanges();
    try {
      if (!changes.empty()) WriteChanges(tx, key.second, key.first, changes);
    } catch (const pqxx::unique_violation& taken) {
      // A job that ended long ago, so that the core knows it no more, is submitted again; or one
      // that was rejected goes on twice from the same version.
      const bool submits =
          std::any_of(changes.events.begin(), changes.events.end(), [](const auto& event) {
            return model::kWaitingStates.Has(event.state);
          });
      if (!submits) throw;
      return MakeStatus(absl::StatusCode::kFailedPrecondition,
                        "a job's id comes a second time: {}",
                        taken.what());
    }
  }
  if (IsLackDue()) WriteLack(tx);
  return commands_.Write(tx);
}

bool PoolHandler::IsLackDue() const {
  return !lack_unseen_.empty() && clock_.Monotonic() >= next_lack_;
}

void PoolHandler::WriteLack(pqxx::transaction_base& tx) {
  lack_written_ = true;
  for (const PoolKey& key : lack_unseen_) {
    const auto pool = pools_.find(key);
    if (pool == pools_.end()) continue;
    std::vector<std::string> ids = pool->second.core->LackNodes();
    if (pool->second.lack_nodes == ids) continue;
    WriteLackNodes(tx, key.second, ids);
    pool->second.lack_nodes = std::move(ids);
  }
}

void PoolHandler::Commit() {
  if (std::exchange(gained_, false)) observer_.PoolsGained(PoolNames());
  for (const PoolKey& key : touched_) {
    Pool& pool = pools_.at(key);
    pool.core->Commit();
    if (!pool.persisted) {
      feed_.Gained(key.second);
      desk_.Open();
    }
    pool.persisted = true;
    pool.tick_in_batch = false;
    metrics_.Jobs(key.second, pool.core->Counts());
  }
  if (std::exchange(lack_written_, false)) {
    lack_unseen_.clear();
    next_lack_ = clock_.Monotonic() + kLackInterval;
  }
  lack_unseen_.insert(touched_.begin(), touched_.end());
  uncounted_.merge(touched_);
  touched_.clear();
  for (const queue_core::Timing& timing : timings_) {
    metrics_.Timed(timing);
    Trace(timing);
  }
  timings_.clear();
  std::vector<JobSeen> seen;
  seen.reserve(facts_.size());
  for (events::v1::JobFact& fact : facts_) {
    metrics_.Fact(fact);
    Trace(fact);
    const int64_t position = PositionOf(fact.job_id());
    seen.push_back({std::move(fact), position});
  }
  facts_.clear();
  commands_.Commit();
  feed_.Changed(seen);
  if (!seen.empty()) observer_.Changed(std::move(seen));
  if (clock_.Monotonic() >= next_positions_) RefreshPositions();
  if (!uncounted_.empty() && clock_.Monotonic() >= next_count_) CountJobs();
}

std::set<std::string> PoolHandler::PoolNames() const {
  std::set<std::string> names;
  for (const auto& [key, pool] : pools_) names.insert(key.second);
  return names;
}

void PoolHandler::Rollback() {
  if (std::exchange(lack_written_, false)) {
    for (auto& [key, pool] : pools_) pool.lack_nodes.reset();
  }
  for (const PoolKey& key : touched_) {
    const auto it = pools_.find(key);
    if (it == pools_.end()) continue;
    Pool& pool = it->second;
    pool.core->Rollback();
    if (pool.tick_in_batch) pool.tick_said = pool.tick_in_batch = false;
    if (!pool.persisted) pools_.erase(it);
  }
  touched_.clear();
  facts_.clear();
  timings_.clear();
  commands_.Rollback();
}

int64_t PoolHandler::PositionOf(const std::string& job_id) const {
  for (const auto& [key, pool] : pools_) {
    if (const size_t position = pool.core->Position(job_id); position != 0) {
      return static_cast<int64_t>(position);
    }
  }
  return 0;
}

void PoolHandler::RefreshPositions() {
  next_positions_ = clock_.Monotonic() + kPositionInterval;
  std::vector<std::pair<std::string, int64_t>> positions;
  for (std::string& job_id : observer_.Waiting()) {
    const int64_t position = PositionOf(job_id);
    positions.emplace_back(std::move(job_id), position);
  }
  if (!positions.empty()) observer_.Moved(positions);
}

void PoolHandler::Trace(const queue_core::Timing& timing) {
  if (timing.kind != queue_core::Timing::Kind::kWait) return;
  const tracing::Time end{Millis(timing.end_ms)};
  tracer_.JobSpan(
      timing.job_id, timing.attempt, "wait", end - timing.took, end, {{"queue", timing.queue}});
}

void PoolHandler::Trace(const events::v1::JobFact& fact) {
  const auto state = static_cast<model::JobState>(fact.state());
  if (!model::IsTerminal(state)) return;
  tracer_.JobSpan(fact.job_id(),
                  0,
                  tracing::kJobSpan,
                  tracing::Time{Millis(fact.created_ms())},
                  tracing::Time{Millis(fact.time_ms())},
                  {{"queue", fact.queue()},
                   {"namespace", fact.workload().namespace_()},
                   {"name", fact.workload().name()},
                   {"state", std::string(model::Name(state))},
                   {"reason", fact.reason()}});
}

void PoolHandler::CountJobs() {
  next_count_ = clock_.Monotonic() + kCountInterval;
  for (const PoolKey& key : uncounted_) {
    const auto pool = pools_.find(key);
    if (pool != pools_.end()) metrics_.Figures(key.second, pool->second.core->Figures());
  }
  uncounted_.clear();
}

}  // namespace fluxqueue::queue
