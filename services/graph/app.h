// The graph service, wired together:
//
//   gRPC ─► GraphRpc ─┬─► private graphs
//                     └─► ClusterCalls ─┬─► PoolPictures ─► the matcher's tables
//                                       ├─► AllocationFeed ─► the same
//                                       └─► Claims ─► the queue's API
//                 GraphJudge ─► the API server, where callers are asked for
//
// But for private graphs it keeps nothing: any number of replicas answers, and none is missed.
#pragma once

#include <memory>

#include "libs/lifecycle/service_main.h"
#include "services/graph/config.h"

#include "absl/status/statusor.h"

namespace fluxqueue::graph_service {

absl::StatusOr<std::unique_ptr<lifecycle::App>> MakeApp(const lifecycle::AppContext& context,
                                                        const GraphConfig& config);

}  // namespace fluxqueue::graph_service
