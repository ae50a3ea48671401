// The matcher, wired together:
//
//   fluxqueue.pool ─► PartitionLoop ─► PoolHandler ─► MatcherCore (one for each pool)
//                          └─ rows: matcher_store
//   gRPC ─► MatcherRpc ─┬─► private graphs
//                       └─► ClusterCalls ─┬─► PoolDesk ─► PoolHandler, between two batches
//                                         └─► Claims ─► the queue's API
#pragma once

#include <memory>

#include "libs/lifecycle/service_main.h"
#include "services/matcher/config.h"

#include "absl/status/statusor.h"

namespace fluxqueue::matcher {

absl::StatusOr<std::unique_ptr<lifecycle::App>> MakeApp(const lifecycle::AppContext& context,
                                                        const MatcherConfig& config);

}  // namespace fluxqueue::matcher
