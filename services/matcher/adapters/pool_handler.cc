#include "services/matcher/adapters/pool_handler.h"

#include <utility>

#include "libs/base/status_macros.h"
#include "libs/matcher_rows/matcher_rows.h"
#include "libs/model/abandoned_cycle.h"
#include "services/matcher/adapters/matcher_store.h"

namespace fluxqueue::matcher {
namespace {

// It is a look at every node.
constexpr std::chrono::seconds kCountInterval{10};

}  // namespace

absl::Status PoolHandler::Load(pqxx::transaction_base& tx, int partition) {
  for (const auto& loaded : matcher_rows::LoadPools(tx, partition)) {
    Pool pool{MakeCore(loaded.pool), true};
    RETURN_IF_ERROR(pool.core->Restore(loaded.rows));
    metrics_.Inventory(loaded.pool, *pool.core);
    uncounted_.emplace(partition, loaded.pool);
    pools_.insert_or_assign({partition, loaded.pool}, std::move(pool));
  }
  return absl::OkStatus();
}

void PoolHandler::Drop(int partition) {
  const auto begin = pools_.lower_bound({partition, ""});
  const auto end = pools_.lower_bound({partition + 1, ""});
  for (auto pool = begin; pool != end; ++pool) metrics_.Dropped(pool->first.second);
  pools_.erase(begin, end);
}

std::unique_ptr<matcher_core::MatcherCore> PoolHandler::MakeCore(const std::string& pool) {
  fluxion::EngineOptions engines = engines_;
  engines.pool = pool;
  engines.restarted = [this] { metrics_.LibraryRestarted(); };
  engines.compared = [this](fluxion::Comparison result, size_t answers) {
    metrics_.ShadowCompared(result, answers);
  };
  auto core =
      std::make_unique<matcher_core::MatcherCore>(pool, fluxion::MakeEngines(std::move(engines)));
  core->OnTried([this, made = core.get()](const events::v1::Outcome& outcome) {
    Tried(made->engine_kind().name, outcome);
  });
  return core;
}

void PoolHandler::Tried(const std::string& engine, const events::v1::Outcome& outcome) {
  const TimePoint now = clock_.Monotonic();
  const auto took = now - std::exchange(tried_at_, now);
  metrics_.Tried(engine, outcome, took);
  if (!tracer_.on() || outcome.kind() != events::v1::Outcome::KIND_ALLOCATED) return;
  const tracing::Time end = clock_.Now();
  tracer_.JobSpan(
      outcome.job_id(), outcome.attempt(), "match", end - took, end, {{"engine", engine}});
}

PoolHandler::Pool& PoolHandler::Touch(int partition, const std::string& name) {
  const PoolKey key{partition, name};
  touched_.insert(key);
  Pool& pool = pools_[key];
  if (pool.core == nullptr) pool.core = MakeCore(name);
  return pool;
}

absl::Status PoolHandler::Handle(const delivery::Record& record, delivery::Outbox& outbox) {
  if (record.envelope.pool().empty()) return InvalidArgument("the message names no pool");
  if (!matcher_core::MatcherCore::Reads(record.envelope.event_case())) return absl::OkStatus();
  Pool& pool = Touch(record.partition, record.envelope.pool());
  said_.clear();
  const TimePoint started = tried_at_ = clock_.Monotonic();
  RETURN_IF_ERROR(pool.core->Handle(record.envelope, record.time, &said_));
  for (events::v1::Envelope& message : said_) {
    if (message.has_cycle_answered()) {
      metrics_.CycleAnswered(message.cycle_answered(), clock_.Monotonic() - started);
    }
    outbox.AppendToPool(record.partition, record.partition, std::move(message));
  }
  return absl::OkStatus();
}

void PoolHandler::Buried(const delivery::Record& record, delivery::Outbox& outbox) {
  const events::v1::Envelope& message = record.envelope;
  const uint64_t cycle = message.cycle_requested().cycle_id();
  if (message.pool().empty() || cycle == 0) return;
  outbox.AppendToPool(
      record.partition, record.partition, model::AbandonedCycle(message.pool(), cycle, "matcher"));
}

absl::Status PoolHandler::Write(pqxx::transaction_base& tx) {
  for (const PoolKey& key : touched_) {
    const Pool& pool = pools_.at(key);
    const matcher_core::Changes changes = pool.core->TakeChanges();
    if (changes.empty() && pool.persisted) continue;
    WriteChanges(tx, key.second, key.first, changes, !pool.persisted);
  }
  return absl::OkStatus();
}

void PoolHandler::Commit() {
  for (const PoolKey& key : touched_) {
    Pool& pool = pools_.at(key);
    pool.core->Commit();
    pool.persisted = true;
    metrics_.Inventory(key.second, *pool.core);
  }
  uncounted_.merge(touched_);
  touched_.clear();
  if (!uncounted_.empty() && clock_.Monotonic() >= next_count_) CountResources();
}

std::optional<PoolHandler::TimePoint> PoolHandler::WakeAt() const {
  return uncounted_.empty() ? std::nullopt : std::optional(next_count_);
}

void PoolHandler::CountResources() {
  next_count_ = clock_.Monotonic() + kCountInterval;
  for (const PoolKey& key : uncounted_) {
    const auto pool = pools_.find(key);
    if (pool != pools_.end()) metrics_.Resources(key.second, pool->second.core->engine());
  }
  uncounted_.clear();
}

void PoolHandler::Rollback() {
  for (const PoolKey& key : touched_) {
    const auto pool = pools_.find(key);
    if (pool == pools_.end()) continue;
    pool->second.core->Rollback();
    if (!pool->second.persisted) pools_.erase(pool);
  }
  touched_.clear();
}

}  // namespace fluxqueue::matcher
