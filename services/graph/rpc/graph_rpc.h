// The service's gRPC side as one component:
//
//   gRPC ─┬─ Matcher ─────────────────────────┐
//         ├─ FluxionService, FluxcliService ──┼─► GraphResolver ─┬─► private graphs
//         └─ ExternalPluginService ───────────┘                  └─► ClusterGraph, if there is one
//
// All but Matcher are those of its ancestors: they are served where the configuration says
// `ancestors`.
#pragma once

#include <memory>
#include <string>

#include "libs/base/clock.h"
#include "libs/lifecycle/component.h"
#include "libs/metrics/metrics.h"
#include "libs/rpc/server.h"
#include "services/graph/rpc/graph_calls.h"
#include "services/graph/rpc/graph_judge.h"
#include "services/graph/rpc/rpc_config.h"

#include "absl/status/status.h"

namespace fluxqueue::graph_service {

class GraphRpc final : public lifecycle::Component {
 public:
  // `cluster` may be null: calls that name no private graph are then FAILED_PRECONDITION. `ready`
  // is what health says. All references outlive the component.
  GraphRpc(const RpcConfig& config,
           ClusterGraph* cluster,
           const GraphJudge& judge,
           rpc::Readiness ready,
           metrics::Registry& metrics,
           tracing::Tracer& tracer,
           const Clock& clock);
  ~GraphRpc() override;
  GraphRpc(const GraphRpc&) = delete;
  GraphRpc& operator=(const GraphRpc&) = delete;

  const std::string& name() const override;
  absl::Status Start() override;
  void Stop() override;
  absl::Status Ready() const override;

  // That it listens on; 0 when it does not.
  int port() const;

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace fluxqueue::graph_service
