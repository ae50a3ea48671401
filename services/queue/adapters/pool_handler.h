// The queue's side of the delivery loop: a QueueCore for each pool of the partitions held.
//
// Repeats: a batch that was rolled back is folded again, from the same memory. Dead letters: facts
// that the core calls impossible, and messages without a pool. Facts go to the observer in Commit
// only. An answer of the matcher that becomes a dead letter is waited for no more: the log is told
// that its cycle is abandoned.
//
// Time: a core names its next deadline in the log's time. The handler translates it to the
// monotonic clock, counting from the moment at which it saw the pool's last message (or loaded the
// pool), and says a Tick when it is due. The Tick is stamped by the broker like all else; should
// the broker's clock run slower than ours, the deadline is still ahead when the Tick is read, and
// another follows.
//
// Besides the log it reads the desk: commands go into the log, and are acted on when they are read
// back from there like all else.
//
// Confined to the loop's thread.
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
#include "libs/queue_core/queue_core.h"
#include "libs/tracing/tracer.h"
#include "services/queue/adapters/command_batch.h"
#include "services/queue/adapters/command_desk.h"
#include "services/queue/adapters/fact_feed.h"
#include "services/queue/adapters/job_observer.h"
#include "services/queue/metrics.h"

namespace fluxqueue::queue {

class PoolHandler final : public delivery::PartitionHandler {
 public:
  // References must outlive the handler.
  PoolHandler(JobObserver& observer,
              FactFeed& feed,
              CommandDesk& desk,
              QueueMetrics& metrics,
              const Clock& clock,
              tracing::Tracer& tracer);

  absl::Status Load(pqxx::transaction_base& tx, int partition) override;
  void Drop(int partition) override;
  absl::Status Handle(const delivery::Record& record, delivery::Outbox& outbox) override;
  bool HasWork() const override { return commands_.HasWork(); }
  void Buried(const delivery::Record& record, delivery::Outbox& outbox) override;
  std::optional<std::chrono::steady_clock::time_point> WakeAt() const override;
  absl::Status Poll(delivery::Outbox& outbox) override;
  bool HasRows() const override { return !touched_.empty() || commands_.HasRows() || IsLackDue(); }
  absl::Status Write(pqxx::transaction_base& tx) override;
  void Commit() override;
  void Rollback() override;

 private:
  using TimePoint = std::chrono::steady_clock::time_point;
  using PoolKey = std::pair<int, std::string>;  // partition, pool

  struct Pool {
    std::unique_ptr<queue_core::QueueCore> core;
    bool persisted = false;
    TimePoint seen;              // when core->now() was true
    bool tick_said = false;      // a Tick is on its way
    TimePoint ticked;            // since then
    bool tick_in_batch = false;  // … and not committed yet
    // QueueCore::LackNodes, as the table has it. Unset: that is not known.
    std::optional<std::vector<std::string>> lack_nodes;
  };

  std::optional<HeldPool> FindPool(const std::string& name) const;
  Pool& Touch(int partition, const std::string& pool);
  std::optional<TimePoint> DueAt(const Pool& pool) const;
  void RefreshPositions();
  void CountJobs();
  bool IsLackDue() const;
  void WriteLack(pqxx::transaction_base& tx);
  void Trace(const queue_core::Timing& timing);
  // One that has ended.
  void Trace(const events::v1::JobFact& fact);
  std::set<std::string> PoolNames() const;
  int64_t PositionOf(const std::string& job_id) const;

  JobObserver& observer_;
  FactFeed& feed_;
  CommandDesk& desk_;
  QueueMetrics& metrics_;
  const Clock& clock_;
  tracing::Tracer& tracer_;
  std::map<PoolKey, Pool> pools_;
  CommandBatch commands_;
  std::set<PoolKey> touched_;                // by the batch under way
  std::vector<events::v1::JobFact> facts_;   // of the batch under way, in order
  std::vector<queue_core::Timing> timings_;  // as facts_
  // What has changed since it was counted, and since it was seen which jobs lack nodes.
  std::set<PoolKey> uncounted_;
  std::set<PoolKey> lack_unseen_;
  bool lack_written_ = false;  // by the batch under way: what is in lack_unseen_
  // Pools were loaded, and the observer does not know it: a claim may fail after that, and is
  // repeated. The first batch tells it, which what is in lack_unseen_ brings soon.
  bool gained_ = false;
  TimePoint next_count_{};
  TimePoint next_lack_{};
  TimePoint next_positions_{};
};

}  // namespace fluxqueue::queue
