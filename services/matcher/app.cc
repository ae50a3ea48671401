#include "services/matcher/app.h"

#include <utility>

#include "libs/base/status_macros.h"
#include "libs/delivery/partition_loop.h"
#include "libs/delivery/wiring.h"
#include "libs/lifecycle/loop_component.h"
#include "libs/peers/peers.h"
#include "services/matcher/adapters/claims.h"
#include "services/matcher/adapters/cluster_calls.h"
#include "services/matcher/adapters/pool_desk.h"
#include "services/matcher/adapters/pool_handler.h"
#include "services/matcher/metrics.h"
#include "services/matcher/rpc/matcher_rpc.h"

#include "matcher_migrations.h"

namespace fluxqueue::matcher {
namespace {

delivery::LoopOptions MakeOptions(const config::ServiceConfig& common,
                                  const MatcherConfig& config) {
  delivery::LoopOptions options = delivery::MakeLoopOptions(common, "matcher");
  options.address = config.Address();
  return options;
}

peers::PeerOptions PeersOf(job_store::Service service, const MatcherConfig& config) {
  const rpc::ServerConfig& grpc = config.rpc.grpc;
  const bool matcher = service == job_store::Service::kMatcher;
  return {.service = service,
          .own_address = matcher ? config.Address() : "",
          .files = {.certificate = grpc.tls.certificate,
                    .key = grpc.tls.key,
                    .authority = config.peer_ca.empty() ? grpc.tls.client_ca : config.peer_ca,
                    .name = matcher ? grpc.callers.matcher : grpc.callers.queue}};
}

// Of the API: calls at once that read Postgres.
constexpr size_t kConnections = 2;

class MatcherApp final : public lifecycle::App {
 public:
  MatcherApp(const lifecycle::AppContext& context, const MatcherConfig& config)
      : metrics_(context.metrics),
        options_(MakeOptions(context.config, config)),
        desk_([this] { loop_.Wake(); }),
        handler_(config.engines, desk_, metrics_, context.clock, context.tracer),
        loop_({options_, options_.topics.pool, {&migrations::matcher()}}, handler_, context.clock),
        component_(
            "pool loop",
            [this](lifecycle::LoopContext& loop) { return loop_.Run(loop.stop_token()); },
            [this] { return loop_.Ready(); },
            context.failures),
        facts_(options_.postgres, kConnections),
        queues_(PeersOf(job_store::Service::kQueue, config), facts_),
        matchers_(PeersOf(job_store::Service::kMatcher, config), facts_),
        claims_(queues_, workers_),
        cluster_(desk_, claims_, matchers_, workers_),
        workers_(config.rpc.workers),
        rpc_(
            config.rpc,
            &cluster_,
            [this] { return loop_.Ready(); },
            context.metrics,
            context.tracer,
            context.clock) {
    delivery::ExportStats(context.metrics, "matcher", loop_.stats());
  }

  std::vector<lifecycle::Component*> Components() override { return {&component_, &rpc_}; }

 private:
  MatcherMetrics metrics_;
  const delivery::LoopOptions options_;
  PoolDesk desk_;
  PoolHandler handler_;
  delivery::PartitionLoop loop_;
  lifecycle::LoopComponent component_;
  job_store::FactStore facts_;
  peers::Peers queues_;
  peers::Peers matchers_;
  Claims claims_;
  ClusterCalls cluster_;
  rpc::WorkerPool workers_;  // its tasks use the others: it does what is left of them first
  MatcherRpc rpc_;
};

}  // namespace

absl::StatusOr<std::unique_ptr<lifecycle::App>> MakeApp(const lifecycle::AppContext& context,
                                                        const MatcherConfig& config) {
  if (!config.engines.library.empty()) {
    RETURN_IF_ERROR(Annotate(fluxion::CheckLibrary(config.engines), "matcher.fluxion.library"));
  }
  return std::make_unique<MatcherApp>(context, config);
}

absl::Status Prepare(const config::ServiceConfig& config, std::stop_token stop) {
  return delivery::PrepareService(config, "matcher", {&migrations::matcher()}, std::move(stop));
}

}  // namespace fluxqueue::matcher
