#include "services/graph/rpc/graph_rpc.h"

#include <algorithm>
#include <condition_variable>
#include <mutex>
#include <stop_token>
#include <thread>
#include <utility>

#include "libs/rpc/worker_pool.h"
#include "services/graph/rpc/ancestor_services.h"
#include "services/graph/rpc/graph_directory.h"
#include "services/graph/rpc/graph_resolver.h"
#include "services/graph/rpc/matcher_service.h"

namespace fluxqueue::graph_service {

namespace {

constexpr int kStrangers = 4;
// Calls of theirs that wait.
constexpr size_t kMostStrangers = 256;

}  // namespace

class GraphRpc::Impl {
 public:
  Impl(const RpcConfig& config,
       ClusterGraph* cluster,
       const GraphJudge& judge,
       rpc::Readiness ready,
       metrics::Registry& metrics,
       tracing::Tracer& tracer,
       const Clock& clock)
      : directory_(config.private_graphs, clock),
        pool_(config.grpc.enabled() ? config.workers : 0),
        makers_(config.grpc.enabled() ? 1 : 0),
        strangers_(config.grpc.enabled() && judge.on() ? kStrangers : 0, kMostStrangers),
        resolver_({directory_, cluster, judge, pool_, makers_, strangers_},
                  config.grpc.callers,
                  config.calls),
        matcher_(resolver_, pool_),
        fluxion_(resolver_, pool_),
        fluxcli_(resolver_),
        external_(resolver_, config.grpc.max_message),
        server_(config.grpc,
                Services(config.ancestors, cluster, judge.on()),
                std::move(ready),
                metrics,
                tracer) {
    metrics.GaugesFrom(
        "fluxqueue_private_graphs", "Private graphs that clients have made.", {}, [this] {
          return OneSample(static_cast<double>(directory_.graphs()));
        });
    metrics.GaugesFrom(
        "fluxqueue_private_graph_vertices", "Vertices of all private graphs.", {}, [this] {
          return OneSample(static_cast<double>(directory_.vertices()));
        });
  }

  absl::Status Start() {
    absl::Status started = server_.Start();
    if (started.ok() && server_.port() != 0) {
      sweeper_ = std::jthread([this](const std::stop_token& stop) { SweepUntil(stop); });
    }
    return started;
  }

  void Stop() {
    sweeper_ = {};
    server_.Stop();
    directory_.DropAll();
  }

  const rpc::Server& server() const { return server_; }

 private:
  std::vector<rpc::ServedService> Services(bool ancestors, ClusterGraph* cluster, bool tokens) {
    const auto drain = [this, cluster] {
      matcher_.Drain();
      if (cluster != nullptr) cluster->Drain();
    };
    std::vector<rpc::ServedService> services = {rpc::Serve<v1::Matcher>(matcher_, drain, tokens)};
    if (ancestors) {
      services.push_back(rpc::Serve<::fluxion::FluxionService>(fluxion_, {}, tokens));
      services.push_back(rpc::Serve<::fluxcli::FluxcliService>(fluxcli_, {}, tokens));
      services.push_back(rpc::Serve<::service::ExternalPluginService>(external_, {}, tokens));
    }
    return services;
  }

  static std::vector<metrics::Sample> OneSample(double value) { return {{{}, value}}; }

  void SweepUntil(const std::stop_token& stop) {
    const Millis interval =
        std::clamp<Millis>(directory_.limits().idle / 10, Millis(10), std::chrono::seconds(30));
    std::mutex mutex;
    std::condition_variable_any wake;
    std::unique_lock lock(mutex);
    while (!stop.stop_requested()) {
      wake.wait_for(lock, stop, interval, [] { return false; });
      directory_.Sweep();
    }
  }

  // In the order in which they use each other: the server ends first, then the pool does what was
  // posted.
  GraphDirectory directory_;
  rpc::WorkerPool pool_;
  rpc::WorkerPool makers_;
  rpc::WorkerPool strangers_;
  GraphResolver resolver_;
  MatcherService matcher_;
  FluxionService fluxion_;
  FluxcliService fluxcli_;
  ExternalPluginService external_;
  rpc::Server server_;
  std::jthread sweeper_;
};

GraphRpc::GraphRpc(const RpcConfig& config,
                   ClusterGraph* cluster,
                   const GraphJudge& judge,
                   rpc::Readiness ready,
                   metrics::Registry& metrics,
                   tracing::Tracer& tracer,
                   const Clock& clock)
    : impl_(std::make_unique<Impl>(
          config, cluster, judge, std::move(ready), metrics, tracer, clock)) {}

GraphRpc::~GraphRpc() {
  Stop();
}

const std::string& GraphRpc::name() const {
  return impl_->server().name();
}

absl::Status GraphRpc::Start() {
  return impl_->Start();
}

void GraphRpc::Stop() {
  impl_->Stop();
}

absl::Status GraphRpc::Ready() const {
  return impl_->server().Ready();
}

int GraphRpc::port() const {
  return impl_->server().port();
}

}  // namespace fluxqueue::graph_service
