#include "services/queue/app.h"

#include <utility>

#include "libs/access/cluster_authority.h"
#include "libs/base/status_macros.h"
#include "libs/delivery/partition_loop.h"
#include "libs/delivery/wiring.h"
#include "libs/http/certificate_metrics.h"
#include "libs/kubernetes/client.h"
#include "libs/kubernetes/client_metrics.h"
#include "libs/lifecycle/loop_component.h"
#include "libs/metrics/mailbox_metrics.h"
#include "libs/postgres/pruner.h"
#include "libs/rpc/server.h"
#include "services/queue/adapters/attempt_keeper.h"
#include "services/queue/adapters/command_desk.h"
#include "services/queue/adapters/fact_feed.h"
#include "services/queue/adapters/flux_job_source.h"
#include "services/queue/adapters/flux_job_writer.h"
#include "services/queue/adapters/pool_handler.h"
#include "services/queue/adapters/prune_store.h"
#include "services/queue/adapters/rpc/queue_service.h"
#include "services/queue/metrics.h"

#include "queue_migrations.h"

namespace fluxqueue::queue {
namespace {

delivery::LoopOptions MakeOptions(const config::ServiceConfig& common, const QueueConfig& config) {
  delivery::LoopOptions options = delivery::MakeLoopOptions(common, "queue");
  options.address = config.Address();
  return options;
}

peers::PeerOptions MakePeerOptions(const QueueConfig& config) {
  const rpc::ServerConfig::Tls& tls = config.grpc.tls;
  return {.own_address = config.Address(),
          .files = {.certificate = tls.certificate,
                    .key = tls.key,
                    .authority = config.peer_ca.empty() ? tls.client_ca : config.peer_ca,
                    .name = config.grpc.callers.queue}};
}

class QueueApp final : public lifecycle::App {
 public:
  QueueApp(const lifecycle::AppContext& context,
           const QueueConfig& config,
           kubernetes::ClusterConfig cluster)
      : metrics_(context.metrics),
        options_(MakeOptions(context.config, config)),
        client_(std::move(cluster)),
        source_(options_.postgres),
        writer_(client_, source_, metrics_, context.clock, config.flux_jobs),
        desk_([this] { loop_.Wake(); }),
        handler_(writer_, feed_, desk_, metrics_, context.clock, context.tracer),
        loop_({options_, options_.topics.pool, {&migrations::queue()}}, handler_, context.clock),
        keeper_(options_.postgres, context.clock, config.accounting_months),
        pruner_(options_.postgres,
                context.clock,
                [retention = config.retention](pqxx::transaction_base& tx) {
                  return PruneSteps(tx, retention);
                }),
        authority_(client_, context.clock),
        service_(options_.postgres,
                 MakePeerOptions(config),
                 config.grpc.callers,
                 config.grpc.callers.wanted() ? &authority_ : nullptr,
                 desk_,
                 feed_),
        server_(
            config.grpc,
            {rpc::Serve<v1::Queue>(
                service_, [this] { service_.Drain(); }, /*tokens=*/true)},
            [this] { return loop_.Ready(); },
            context.metrics,
            context.tracer) {
    delivery::ExportStats(context.metrics, "queue", loop_.stats());
    http::ExportCertificates(context.metrics, "queue", {{"grpc", config.grpc.tls.certificate}});
    kubernetes::ExportCalls(context.metrics, "queue", client_);
    metrics::ExportMailboxes(context.metrics, "queue", {metrics::Watch("commands", desk_)});
    for (int i = 0; i < config.flux_job_writers; ++i) {
      components_.push_back(std::make_unique<lifecycle::LoopComponent>(
          fmt::format("FluxJob writer {}", i),
          [this](lifecycle::LoopContext& loop) { return writer_.Run(loop.stop_token()); },
          [this] { return writer_.Ready(); },
          context.failures));
    }
    components_.push_back(std::make_unique<lifecycle::LoopComponent>(
        "accounting",
        [this](lifecycle::LoopContext& loop) {
          return keeper_.Run([&loop](Millis time) { return loop.SleepFor(time); });
        },
        nullptr,
        context.failures));
    components_.push_back(std::make_unique<lifecycle::LoopComponent>(
        "pruning",
        [this](lifecycle::LoopContext& loop) {
          return pruner_.Run([&loop](Millis time) { return loop.SleepFor(time); });
        },
        nullptr,
        context.failures));
    components_.push_back(std::make_unique<lifecycle::LoopComponent>(
        "pool loop",
        [this](lifecycle::LoopContext& loop) { return loop_.Run(loop.stop_token()); },
        [this] { return loop_.Ready(); },
        context.failures,
        [this] { return loop_.Alive(); }));
  }

  std::vector<lifecycle::Component*> Components() override {
    std::vector<lifecycle::Component*> components;
    for (const auto& component : components_) components.push_back(component.get());
    components.push_back(&server_);
    return components;
  }

 private:
  QueueMetrics metrics_;
  const delivery::LoopOptions options_;
  kubernetes::Client client_;
  FluxJobSource source_;
  FluxJobWriter writer_;
  FactFeed feed_;
  CommandDesk desk_;
  PoolHandler handler_;
  delivery::PartitionLoop loop_;
  AttemptKeeper keeper_;
  postgres::Pruner pruner_;
  access::ClusterAuthority authority_;
  QueueService service_;
  rpc::Server server_;
  std::vector<std::unique_ptr<lifecycle::LoopComponent>> components_;
};

}  // namespace

absl::StatusOr<std::unique_ptr<lifecycle::App>> MakeApp(const lifecycle::AppContext& context,
                                                        const QueueConfig& config) {
  ASSIGN_OR_RETURN(kubernetes::ClusterConfig cluster,
                   kubernetes::LoadClusterConfig(context.config.kubernetes.kubeconfig));
  return std::make_unique<QueueApp>(context, config, std::move(cluster));
}

absl::Status Prepare(const config::ServiceConfig& config, std::stop_token stop) {
  return delivery::PrepareService(config, "queue", {&migrations::queue()}, std::move(stop));
}

}  // namespace fluxqueue::queue
