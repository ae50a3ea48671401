// The front of the queue behind the API server, wired together:
//
//   the API server's front proxy ─► Api ─► QueueCalls ─► the queue's gRPC
//
// It keeps nothing: any number of replicas answers.
#pragma once

#include <memory>

#include "libs/lifecycle/service_main.h"
#include "services/visibility/config.h"

#include "absl/status/statusor.h"

namespace fluxqueue::visibility {

absl::StatusOr<std::unique_ptr<lifecycle::App>> MakeApp(const lifecycle::AppContext& context,
                                                        const VisibilityConfig& config);

}  // namespace fluxqueue::visibility
