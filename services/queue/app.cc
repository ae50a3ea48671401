#include "services/queue/app.h"

#include "libs/base/status_macros.h"
#include "libs/delivery/partition_loop.h"
#include "libs/delivery/wiring.h"
#include "libs/kubernetes/client.h"
#include "libs/kubernetes/client_metrics.h"
#include "libs/lifecycle/loop_component.h"
#include "services/queue/adapters/flux_job_source.h"
#include "services/queue/adapters/flux_job_writer.h"
#include "services/queue/adapters/pool_handler.h"
#include "services/queue/metrics.h"

#include "queue_migrations.h"

namespace fluxqueue::queue {
namespace {

class QueueApp final : public lifecycle::App {
 public:
  QueueApp(const lifecycle::AppContext& context,
           const QueueConfig& config,
           kubernetes::ClusterConfig cluster)
      : metrics_(context.metrics),
        options_(delivery::MakeLoopOptions(context.config, "queue")),
        client_(std::move(cluster)),
        source_(options_.postgres),
        writer_(client_, source_, metrics_, context.clock, config.flux_jobs),
        handler_(writer_, metrics_, context.clock),
        loop_({options_, options_.topics.pool, {&migrations::queue()}}, handler_, context.clock) {
    delivery::ExportStats(context.metrics, "queue", loop_.stats());
    kubernetes::ExportCalls(context.metrics, "queue", client_);
    for (int i = 0; i < config.flux_job_writers; ++i) {
      components_.push_back(std::make_unique<lifecycle::LoopComponent>(
          fmt::format("FluxJob writer {}", i),
          [this](lifecycle::LoopContext& loop) { return writer_.Run(loop.stop_token()); },
          [this] { return writer_.Ready(); },
          context.failures));
    }
    components_.push_back(std::make_unique<lifecycle::LoopComponent>(
        "pool loop",
        [this](lifecycle::LoopContext& loop) { return loop_.Run(loop.stop_token()); },
        [this] { return loop_.Ready(); },
        context.failures));
  }

  std::vector<lifecycle::Component*> Components() override {
    std::vector<lifecycle::Component*> components;
    for (const auto& component : components_) components.push_back(component.get());
    return components;
  }

 private:
  QueueMetrics metrics_;
  const delivery::LoopOptions options_;
  kubernetes::Client client_;
  FluxJobSource source_;
  FluxJobWriter writer_;
  PoolHandler handler_;
  delivery::PartitionLoop loop_;
  std::vector<std::unique_ptr<lifecycle::LoopComponent>> components_;
};

}  // namespace

absl::StatusOr<std::unique_ptr<lifecycle::App>> MakeApp(const lifecycle::AppContext& context,
                                                        const QueueConfig& config) {
  ASSIGN_OR_RETURN(kubernetes::ClusterConfig cluster,
                   kubernetes::LoadClusterConfig(context.config.kubernetes.kubeconfig));
  return std::make_unique<QueueApp>(context, config, std::move(cluster));
}

}  // namespace fluxqueue::queue
