// Every interval the whole is compared: rows of live jobs with the picture of the cluster. A
// difference is acted on only after a GET by uid and a second look at the row have both confirmed
// it; then it goes through the shard like all else. In a thread of its own, beside the loop.
#pragma once

#include <functional>
#include <memory>
#include <stop_token>
#include <utility>
#include <vector>

#include "libs/base/clock.h"
#include "libs/kubernetes/cluster.h"
#include "libs/postgres/store.h"
#include "services/cleanup/adapters/watch_shard.h"

#include "absl/status/status.h"

namespace fluxqueue::cleanup {

class Sweeper {
 public:
  // `held`: the lease is ours. References must outlive the sweeper.
  Sweeper(WatchShard& shard,
          kubernetes::Cluster& cluster,
          std::unique_ptr<postgres::Store> store,
          CleanupMetrics& metrics,
          const Clock& clock,
          Millis interval,
          std::function<bool()> held)
      : shard_(shard),
        cluster_(cluster),
        metrics_(metrics),
        clock_(clock),
        interval_(interval),
        held_(std::move(held)),
        store_(std::move(store)) {}

  // Sweeps every interval until stopped.
  absl::Status Run(const std::stop_token& stop);

 private:
  absl::Status SweepOnce(const std::stop_token& stop);
  absl::Status ReadNodes(std::vector<HeardNode>* nodes);
  absl::Status ReadLive(std::vector<LiveJob>* live);
  absl::Status ConfirmGone(const std::vector<LiveJob>& suspects);
  absl::Status ConfirmOrphans(const std::vector<Observer::OwnPod>& suspects);

  WatchShard& shard_;
  kubernetes::Cluster& cluster_;
  CleanupMetrics& metrics_;
  const Clock& clock_;
  const Millis interval_;
  const std::function<bool()> held_;
  const std::unique_ptr<postgres::Store> store_;
};

}  // namespace fluxqueue::cleanup
