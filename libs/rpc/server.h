// A gRPC server as a component of a service: health (grpc.health.v1), reflection, TLS and mutual
// TLS, callers that are known (caller.h), limits, metrics, traces, a graceful stop.
//
//   rpc::Server server(config.grpc,
//                      {rpc::Serve<v1::Queue>(queue_service)},
//                      [&] { return loop.Ready(); },
//                      context.metrics,
//                      context.tracer);
//
// Services are generated ones, callback or sync; a callback runs on one of gRPC's own two threads
// and must not wait there: what takes long goes to a WorkerPool (worker_pool.h).
//
// With a configuration that names no port the component does nothing.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "libs/lifecycle/component.h"
#include "libs/metrics/metrics.h"
#include "libs/rpc/server_config.h"
#include "libs/tracing/tracer.h"

#include "absl/status/status.h"

namespace grpc {
class Server;
class Service;
}  // namespace grpc

namespace fluxqueue::rpc {

using Readiness = std::function<absl::Status()>;

struct ServedService {
  std::string name;                  // full: "fluxqueue.queue.v1.Queue"
  grpc::Service* service;            // outlives the server
  Readiness ready = {};              // for its health; none: the server's
  std::function<void()> drain = {};  // at stop: ends its streams, which else end at the deadline
  // It takes calls with a token, and asks itself whose that is (ShownBy, in caller.h).
  bool tokens = false;
};

// REQUIRES: `service` implements the generated service `Generated`.
template <typename Generated, typename Implementation>
ServedService Serve(Implementation& service,
                    std::function<void()> drain = {},
                    bool tokens = false) {
  return {Generated::service_full_name(), &service, {}, std::move(drain), tokens};
}

namespace internal {
class CallMetrics;
}  // namespace internal

class Server final : public lifecycle::Component {
 public:
  // `ready` is what health says of the server as a whole, and of each service without its own; it
  // is asked several times a second, on a thread of the server. `metrics` and `tracer` outlive the
  // server.
  Server(ServerConfig config,
         std::vector<ServedService> services,
         Readiness ready,
         metrics::Registry& metrics,
         tracing::Tracer& tracer);
  ~Server() override;  // Stop()
  Server(const Server&) = delete;
  Server& operator=(const Server&) = delete;

  const std::string& name() const override { return name_; }
  // InvalidArgument: TLS files that cannot be used; FailedPrecondition: the address or the port.
  absl::Status Start() override;
  // Health says NOT_SERVING, streams are told to end, no call is accepted any more; those under way
  // have `drain` to end before they are cancelled.
  void Stop() override;
  absl::Status Ready() const override;

  // That it listens on; 0 when it does not.
  int port() const { return port_; }

 private:
  void WatchHealth(const std::stop_token& stop);
  void SayHealth(bool stopping);

  const std::string name_ = "gRPC server";
  const ServerConfig config_;
  const std::vector<ServedService> services_;
  const Readiness ready_;
  tracing::Tracer& tracer_;
  std::unique_ptr<internal::CallMetrics> calls_;
  std::optional<metrics::CounterFamily> refusals_;
  std::unique_ptr<grpc::Server> server_;
  int port_ = 0;
  std::jthread health_thread_;
};

}  // namespace fluxqueue::rpc
