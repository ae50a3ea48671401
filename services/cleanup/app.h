// Cleanup, wired together:
//
//   watches of nodes, pods, held Jobs ─► WatchShard (Observer) ─► ShardLoop ─► fluxqueue.pool
//                                             ▲
//                     rows of live jobs ─► Sweeper
#pragma once

#include <memory>

#include "libs/lifecycle/service_main.h"
#include "services/cleanup/config.h"

#include "absl/status/statusor.h"

namespace fluxqueue::cleanup {

absl::StatusOr<std::unique_ptr<lifecycle::App>> MakeApp(const lifecycle::AppContext& context,
                                                        const CleanupConfig& config);

}  // namespace fluxqueue::cleanup
