// The shard "watch": what the feed and the facts show → tracker and catalog → logs and rows. One
// replica holds it at a time (libs/delivery/shard_loop.h).
//
// A batch that is rolled back is kept and handled again; errands are started once it has committed.
// Nothing is said before the facts have been listed: a FluxQueue that we have not seen yet is not
// one that was deleted.
//
// A workload that cannot be handled, or not even be read, is left out (libs/delivery/quarantine.h):
// nothing is said of it, and it counts as listed, so that its job is not withdrawn.
//
// Confined to the loop's thread; HasWork() too.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "libs/base/clock.h"
#include "libs/delivery/handler.h"
#include "libs/delivery/quarantine.h"
#include "libs/delivery/shard_loop.h"
#include "libs/tracing/tracer.h"
#include "services/admission/adapters/admission_store.h"
#include "services/admission/adapters/errand_runner.h"
#include "services/admission/adapters/facts_cache.h"
#include "services/admission/adapters/workload_feed.h"
#include "services/admission/domain/catalog.h"
#include "services/admission/domain/tracker.h"
#include "services/admission/domain/unheard.h"
#include "services/admission/domain/webhook.h"
#include "services/admission/metrics.h"

namespace fluxqueue::admission {

struct WatchShardOptions {
  events::v1::PoolConfigured pool;  // what every pool is configured with
  int pool_partitions = 1;
  size_t max_jobspec_bytes = WebhookOptions().max_jobspec_bytes;
  size_t max_batch = 1000;
  Millis sweep_interval{std::chrono::minutes(10)};
  // A group that lacks pods for two of these is told so.
  Millis group_interval{std::chrono::seconds(20)};
  // How often the workloads are compared with what queue and matcher have.
  Millis compare_interval{std::chrono::seconds(20)};
};

class WatchShard final : public delivery::ShardHandler {
 public:
  struct Deps {
    const FactsCache& facts;
    WorkloadFeed& feed;
    ErrandRunner& errands;
    const Clock& clock;
    AdmissionMetrics& metrics;
    tracing::Tracer& tracer;
    delivery::Quarantine& quarantine;
    std::function<delivery::ShardLoop&()> loop;  // the shard's own
  };

  // What `deps` refers to must outlive the shard.
  WatchShard(WatchShardOptions options, Deps deps);

  absl::Status Load(pqxx::transaction_base& tx) override;
  void Drop() override;
  bool HasWork() const override;
  std::optional<std::chrono::steady_clock::time_point> WakeAt() const override;
  absl::Status Poll(delivery::Outbox& outbox) override;
  bool HasRows() const override;
  absl::Status Write(pqxx::transaction_base& tx) override;
  void Commit() override;
  void Rollback() override;

 private:
  // What is not of a single workload: the sweep, looks, the catalog. True: there was something.
  bool PollRest();
  absl::Status PollEvents(delivery::Outbox& outbox);
  absl::Status Apply(const FeedEvent& event, const ClusterFacts& facts);
  void Append(delivery::Outbox& outbox);
  void Observe(const Observation& seen, const ClusterFacts& facts);
  bool ReconcileCatalog(const ClusterFacts& facts);
  void ReportWorkloads();
  // What queue or matcher has lost is said again.
  void SayLost(const Neighbours& neighbours);
  bool IsCompareDue() const { return loaded_ && deps_.clock.Monotonic() >= next_compare_; }

  const WatchShardOptions options_;
  const Deps deps_;

  Catalog catalog_;
  Tracker tracker_;
  bool loaded_ = false;
  std::chrono::steady_clock::time_point next_sweep_;
  std::chrono::steady_clock::time_point next_compare_;
  Unheard unheard_jobs_;
  Unheard unheard_jobspecs_;
  NeighbourPages pages_;
  // When groups that lack pods are looked at; unset: there is none.
  std::optional<std::chrono::steady_clock::time_point> next_groups_;

  // The version of the FluxQueues that the catalog stands at; unset: none.
  std::optional<uint64_t> catalog_version_;
  std::optional<uint64_t> committed_catalog_version_;

  // What a look at the queue's jobs has found: rejected, waiting, or neither. Read by the batch
  // under way, and by the one before, for this one.
  using Looks = std::vector<std::pair<std::string, std::optional<UnplacedJob>>>;
  Looks read_;
  Looks learnt_;
  // The same of a comparison.
  std::optional<Neighbours> compared_;
  std::optional<Neighbours> neighbours_;

  // The batch under way.
  std::vector<FeedEvent> batch_;
  size_t applied_ = 0;  // of these
  TrackerOutputs out_;
  std::vector<events::v1::Envelope::EventCase> said_;
  struct Submitted {
    std::string job_id;
    Millis created;
    std::optional<tracing::Context> review;  // the webhook's span; unset: not traced
  };
  std::vector<Submitted> submitted_;  // for their spans; none where nobody takes them
};

}  // namespace fluxqueue::admission
