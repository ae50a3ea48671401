// Every interval the whole is compared: rows of live jobs with the picture of the cluster. A
// difference is acted on only after a GET by uid and a second look at the row have both confirmed
// it; then it goes through the shard like all else. In a thread of its own, beside the loop.
#pragma once

#include "libs/base/clock.h"
#include "libs/kubernetes/client.h"
#include "libs/lifecycle/loop_component.h"
#include "libs/postgres/connection.h"
#include "services/cleanup/adapters/watch_shard.h"

#include "absl/status/status.h"

namespace fluxqueue::cleanup {

class Sweeper {
 public:
  // `held`: the lease is ours. References must outlive the sweeper.
  Sweeper(WatchShard& shard,
          kubernetes::Client& client,
          postgres::Options postgres,
          CleanupMetrics& metrics,
          Millis interval,
          std::function<bool()> held)
      : shard_(shard),
        client_(client),
        metrics_(metrics),
        interval_(interval),
        held_(std::move(held)),
        connection_(std::move(postgres)) {}

  // Sweeps every interval until stopped.
  absl::Status Run(lifecycle::LoopContext& context);

 private:
  absl::Status SweepOnce(lifecycle::LoopContext& context);
  absl::Status ReadNodes(std::vector<HeardNode>* nodes);
  absl::Status ReadLive(std::vector<LiveJob>* live);
  absl::Status ConfirmGone(const std::vector<LiveJob>& suspects);
  absl::Status ConfirmOrphans(const std::vector<Observer::OwnPod>& suspects);

  WatchShard& shard_;
  kubernetes::Client& client_;
  CleanupMetrics& metrics_;
  const Millis interval_;
  const std::function<bool()> held_;
  postgres::Connection connection_;
};

}  // namespace fluxqueue::cleanup
