// The matcher's gRPC side as one component:
//
//   gRPC ─┬─ Matcher ─────────────────────────┐
//         ├─ FluxionService, FluxcliService ──┼─► GraphResolver ─┬─► private graphs
//         └─ ExternalPluginService ───────────┘                  └─► ClusterGraph, if there is one
#pragma once

#include <memory>
#include <string>

#include "libs/base/clock.h"
#include "libs/lifecycle/component.h"
#include "libs/metrics/metrics.h"
#include "libs/rpc/server.h"
#include "services/matcher/rpc/graph_calls.h"
#include "services/matcher/rpc/rpc_config.h"

#include "absl/status/status.h"

namespace fluxqueue::matcher {

class MatcherRpc final : public lifecycle::Component {
 public:
  // `cluster` may be null: calls that name no private graph are then FAILED_PRECONDITION. `ready`
  // is what health says. All references outlive the component.
  MatcherRpc(const RpcConfig& config,
             ClusterGraph* cluster,
             rpc::Readiness ready,
             metrics::Registry& metrics,
             tracing::Tracer& tracer,
             const Clock& clock);
  ~MatcherRpc() override;
  MatcherRpc(const MatcherRpc&) = delete;
  MatcherRpc& operator=(const MatcherRpc&) = delete;

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

}  // namespace fluxqueue::matcher
