#include "services/matcher/rpc/matcher_rpc.h"

#include <algorithm>
#include <condition_variable>
#include <mutex>
#include <stop_token>
#include <thread>
#include <utility>

#include "libs/rpc/worker_pool.h"
#include "services/matcher/rpc/ancestor_services.h"
#include "services/matcher/rpc/graph_directory.h"
#include "services/matcher/rpc/graph_resolver.h"
#include "services/matcher/rpc/matcher_service.h"

namespace fluxqueue::matcher {

class MatcherRpc::Impl {
 public:
  Impl(const RpcConfig& config,
       ClusterGraph* cluster,
       rpc::Readiness ready,
       metrics::Registry& metrics,
       tracing::Tracer& tracer,
       const Clock& clock)
      : directory_(config.private_graphs, clock),
        pool_(config.grpc.enabled() ? config.workers : 0),
        resolver_(directory_, cluster, config.grpc.callers),
        matcher_(resolver_, pool_),
        fluxion_(resolver_, pool_),
        fluxcli_(resolver_),
        external_(resolver_, config.grpc.max_message),
        server_(config.grpc,
                {rpc::Serve<v1::Matcher>(matcher_,
                                         [this, cluster] {
                                           matcher_.Drain();
                                           if (cluster != nullptr) cluster->Drain();
                                         }),
                 rpc::Serve<::fluxion::FluxionService>(fluxion_),
                 rpc::Serve<::fluxcli::FluxcliService>(fluxcli_),
                 rpc::Serve<::service::ExternalPluginService>(external_)},
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
  GraphResolver resolver_;
  MatcherService matcher_;
  FluxionService fluxion_;
  FluxcliService fluxcli_;
  ExternalPluginService external_;
  rpc::Server server_;
  std::jthread sweeper_;
};

MatcherRpc::MatcherRpc(const RpcConfig& config,
                       ClusterGraph* cluster,
                       rpc::Readiness ready,
                       metrics::Registry& metrics,
                       tracing::Tracer& tracer,
                       const Clock& clock)
    : impl_(std::make_unique<Impl>(config, cluster, std::move(ready), metrics, tracer, clock)) {}

MatcherRpc::~MatcherRpc() {
  Stop();
}

const std::string& MatcherRpc::name() const {
  return impl_->server().name();
}

absl::Status MatcherRpc::Start() {
  return impl_->Start();
}

void MatcherRpc::Stop() {
  impl_->Stop();
}

absl::Status MatcherRpc::Ready() const {
  return impl_->server().Ready();
}

int MatcherRpc::port() const {
  return impl_->server().port();
}

}  // namespace fluxqueue::matcher
