// Cleanup, wired together:
//
//   watches of nodes, pods, held Jobs ─► WatchShard (Observer) ─► ShardLoop ─► fluxqueue.pool
//                                             ▲
//                     rows of live jobs ─► Sweeper
#pragma once

#include <memory>
#include <stop_token>

#include "libs/lifecycle/service_main.h"
#include "services/cleanup/config.h"

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace fluxqueue::cleanup {

absl::StatusOr<std::unique_ptr<lifecycle::App>> MakeApp(const lifecycle::AppContext& context,
                                                        const CleanupConfig& config);

// Its tables and topics (lifecycle::Service::prepare).
absl::Status Prepare(const config::ServiceConfig& config, std::stop_token stop);

}  // namespace fluxqueue::cleanup
