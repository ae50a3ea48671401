#include "services/cleanup/app.h"

#include <utility>

#include "libs/base/status_macros.h"
#include "libs/delivery/shard_loop.h"
#include "libs/delivery/wiring.h"
#include "libs/kubernetes/client.h"
#include "libs/kubernetes/client_metrics.h"
#include "libs/lifecycle/loop_component.h"
#include "libs/metrics/mailbox_metrics.h"
#include "services/cleanup/adapters/sweeper.h"
#include "services/cleanup/adapters/watch_shard.h"
#include "services/cleanup/metrics.h"

namespace fluxqueue::cleanup {
namespace {

class CleanupApp final : public lifecycle::App {
 public:
  CleanupApp(const lifecycle::AppContext& context,
             const CleanupConfig& config,
             kubernetes::ClusterConfig cluster)
      : metrics_(context.metrics),
        options_(delivery::MakeLoopOptions(context.config, "cleanup")),
        client_(std::move(cluster)),
        quarantine_(context.clock, {"Job", "Pod"}),
        shard_(config,
               client_,
               options_.stores->Open(options_.postgres),
               metrics_,
               context.clock,
               context.tracer,
               quarantine_,
               [this] { loop_.Wake(); }),
        loop_({.loop = options_, .shard = "watch", .quarantine = &quarantine_},
              shard_,
              context.clock),
        sweeper_(shard_,
                 client_,
                 options_.stores->Open(options_.postgres),
                 metrics_,
                 context.clock,
                 config.sweep_interval,
                 [this] { return loop_.Held(); }),
        loop_component_(
            "watch loop",
            [this](lifecycle::LoopContext& loop) { return Run(loop.stop_token()); },
            [this] { return Ready(); },
            context.failures,
            [this] { return loop_.Alive(); }),
        sweep_component_(
            "sweep",
            [this](lifecycle::LoopContext& loop) { return sweeper_.Run(loop.stop_token()); },
            nullptr,
            context.failures) {
    delivery::ExportStats(context.metrics, "cleanup", loop_.stats());
    delivery::ExportQuarantine(context.metrics, "cleanup", quarantine_);
    kubernetes::ExportCalls(context.metrics, "cleanup", client_);
    metrics::ExportMailboxes(
        context.metrics, "cleanup", {metrics::Watch("cluster", shard_.mailbox())});
  }

  std::vector<lifecycle::Component*> Components() override {
    return {&loop_component_, &sweep_component_};
  }

 private:
  absl::Status Run(const std::stop_token& stop) {
    const absl::Status status = loop_.Run(stop);
    shard_.Drop();
    return status;
  }

  absl::Status Ready() const {
    RETURN_IF_ERROR(loop_.Ready());
    return shard_.Ready();
  }

  CleanupMetrics metrics_;
  const delivery::LoopOptions options_;
  kubernetes::Client client_;
  delivery::Quarantine quarantine_;
  WatchShard shard_;
  delivery::ShardLoop loop_;
  Sweeper sweeper_;
  lifecycle::LoopComponent loop_component_;
  lifecycle::LoopComponent sweep_component_;
};

}  // namespace

absl::StatusOr<std::unique_ptr<lifecycle::App>> MakeApp(const lifecycle::AppContext& context,
                                                        const CleanupConfig& config) {
  ASSIGN_OR_RETURN(kubernetes::ClusterConfig cluster,
                   kubernetes::LoadClusterConfig(context.config.kubernetes.kubeconfig));
  return std::make_unique<CleanupApp>(context, config, std::move(cluster));
}

absl::Status Prepare(const config::ServiceConfig& config, std::stop_token stop) {
  return delivery::PrepareService(config, "cleanup", {}, std::move(stop));
}

}  // namespace fluxqueue::cleanup
