// The queue, wired together:
//
//   fluxqueue.pool ─► PartitionLoop ─► PoolHandler ─► QueueCore (one for each pool)
//                          └─ rows: queue_store    └─► facts: fluxqueue.jobs
//                                                  └─► FluxJobWriter ─► FluxJob objects, Events
//   gRPC ─► QueueService ─┬─ reads: the tables     └─► FactFeed ─► watchers, waiters
//                         ├─ commands: CommandDesk ─► PoolHandler ─► fluxqueue.pool
//                         └─ who calls, and may he: ClusterAuthority ─► the API server
//   AttemptKeeper ─► the months of queue.attempts
//   Pruner ─► prune_store: what is old goes
#pragma once

#include <memory>
#include <stop_token>

#include "libs/lifecycle/service_main.h"
#include "services/queue/config.h"

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace fluxqueue::queue {

absl::StatusOr<std::unique_ptr<lifecycle::App>> MakeApp(const lifecycle::AppContext& context,
                                                        const QueueConfig& config);

// Its tables and topics (lifecycle::Service::prepare).
absl::Status Prepare(const config::ServiceConfig& config, std::stop_token stop);

}  // namespace fluxqueue::queue
