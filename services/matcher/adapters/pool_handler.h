// The matcher's side of the delivery loop: a MatcherCore for each pool of the partitions held.
//
// Repeats: a batch that was rolled back is folded again, from the same memory. Dead letters:
// messages that the core refuses as invalid, and messages without a pool. Confined to the loop's
// thread.
#pragma once

#include <chrono>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "libs/base/clock.h"
#include "libs/delivery/handler.h"
#include "libs/fluxion/engines.h"
#include "libs/matcher_core/matcher_core.h"
#include "libs/tracing/tracer.h"
#include "services/matcher/metrics.h"

namespace fluxqueue::matcher {

class PoolHandler final : public delivery::PartitionHandler {
 public:
  // `engines`: where a pool's engine comes from.
  PoolHandler(fluxion::EngineOptions engines,
              MatcherMetrics& metrics,
              const Clock& clock,
              tracing::Tracer& tracer)
      : engines_(std::move(engines)), metrics_(metrics), clock_(clock), tracer_(tracer) {}

  absl::Status Load(pqxx::transaction_base& tx, int partition) override;
  void Drop(int partition) override;
  absl::Status Handle(const delivery::Record& record, delivery::Outbox& outbox) override;
  // Of a request for a cycle: no answer will come, so the cycle is abandoned.
  void Buried(const delivery::Record& record, delivery::Outbox& outbox) override;

  // The matcher says nothing of itself; it counts what is free.
  bool HasWork() const override { return false; }
  std::optional<std::chrono::steady_clock::time_point> WakeAt() const override;
  absl::Status Poll(delivery::Outbox&) override { return absl::OkStatus(); }

  bool HasRows() const override { return !touched_.empty(); }
  absl::Status Write(pqxx::transaction_base& tx) override;
  void Commit() override;
  void Rollback() override;

 private:
  struct Pool {
    std::unique_ptr<matcher_core::MatcherCore> core;
    bool persisted = false;  // it has a row
  };
  using TimePoint = std::chrono::steady_clock::time_point;
  using PoolKey = std::pair<int, std::string>;  // partition, pool

  void CountResources();
  void Tried(const std::string& engine, const events::v1::Outcome& outcome);
  std::unique_ptr<matcher_core::MatcherCore> MakeCore(const std::string& pool);
  Pool& Touch(int partition, const std::string& pool);

  const fluxion::EngineOptions engines_;
  MatcherMetrics& metrics_;
  const Clock& clock_;
  tracing::Tracer& tracer_;
  std::map<PoolKey, Pool> pools_;
  std::set<PoolKey> touched_;  // by the batch under way
  std::vector<events::v1::Envelope> said_;
  // Whose resources have changed since they were counted.
  std::set<PoolKey> uncounted_;
  TimePoint next_count_{};
  TimePoint tried_at_{};  // the last candidate
};

}  // namespace fluxqueue::matcher
