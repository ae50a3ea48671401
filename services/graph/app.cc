#include "services/graph/app.h"

#include <utility>

#include "libs/access/cluster_authority.h"
#include "libs/base/status_macros.h"
#include "libs/http/certificate_metrics.h"
#include "libs/job_store/fact_store.h"
#include "libs/kubernetes/client.h"
#include "libs/kubernetes/client_metrics.h"
#include "libs/peers/peers.h"
#include "services/graph/adapters/allocation_feed.h"
#include "services/graph/adapters/claims.h"
#include "services/graph/adapters/cluster_calls.h"
#include "services/graph/adapters/pool_pictures.h"
#include "services/graph/rpc/graph_rpc.h"

namespace fluxqueue::graph_service {
namespace {

peers::PeerOptions QueuesOf(const GraphConfig& config) {
  const rpc::ServerConfig& grpc = config.rpc.grpc;
  return {.own_address = "",
          .files = {.certificate = grpc.tls.certificate,
                    .key = grpc.tls.key,
                    .authority = config.peer_ca.empty() ? grpc.tls.client_ca : config.peer_ca,
                    .name = grpc.callers.queue}};
}

postgres::Options FactsOf(const config::ServiceConfig& config) {
  return {.dsn = config.postgres.dsn, .application = "graph", .schema = "queue"};
}

// Who is asked about callers.
struct Cluster {
  Cluster(kubernetes::ClusterConfig config, const lifecycle::AppContext& context)
      : client(std::move(config)), authority(client, context.clock) {
    kubernetes::ExportCalls(context.metrics, "graph", client);
  }

  kubernetes::Client client;
  access::ClusterAuthority authority;
};

class GraphApp final : public lifecycle::App {
 public:
  // `cluster`: null, where callers are not asked for.
  GraphApp(const lifecycle::AppContext& context,
           const GraphConfig& config,
           std::unique_ptr<Cluster> cluster)
      : cluster_(std::move(cluster)),
        judge_(cluster_ == nullptr ? nullptr : &cluster_->authority),
        facts_(FactsOf(context.config), config.rpc.workers),
        queues_(QueuesOf(config), facts_),
        claims_(queues_, workers_),
        // One more: of the feed.
        pictures_(context.config.postgres.dsn, config.rpc.workers + 1, context.clock),
        feed_(pictures_),
        calls_(pictures_, feed_, claims_, judge_, workers_),
        workers_(config.rpc.workers),
        rpc_(
            config.rpc,
            &calls_,
            judge_,
            [] { return absl::OkStatus(); },
            context.metrics,
            context.tracer,
            context.clock) {
    http::ExportCertificates(context.metrics, "graph", {{"grpc", config.rpc.grpc.tls.certificate}});
  }

  std::vector<lifecycle::Component*> Components() override { return {&rpc_}; }

 private:
  const std::unique_ptr<Cluster> cluster_;
  const GraphJudge judge_;
  job_store::FactStore facts_;
  peers::Peers queues_;
  Claims claims_;
  PoolPictures pictures_;
  AllocationFeed feed_;
  ClusterCalls calls_;
  rpc::WorkerPool workers_;  // its tasks use the others: it does what is left of them first
  GraphRpc rpc_;
};

}  // namespace

absl::StatusOr<std::unique_ptr<lifecycle::App>> MakeApp(const lifecycle::AppContext& context,
                                                        const GraphConfig& config) {
  std::unique_ptr<Cluster> cluster;
  if (config.rpc.grpc.callers.wanted()) {
    ASSIGN_OR_RETURN(kubernetes::ClusterConfig found,
                     kubernetes::LoadClusterConfig(context.config.kubernetes.kubeconfig));
    cluster = std::make_unique<Cluster>(std::move(found), context);
  }
  return std::make_unique<GraphApp>(context, config, std::move(cluster));
}

}  // namespace fluxqueue::graph_service
