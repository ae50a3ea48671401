// The binder, wired together:
//
//   fluxqueue.jobs ─► PartitionLoop ─► JobsHandler ─► BindPlanner ──calls──► CallWorkers ─► API
//   server
//                          └─ rows: binder_store         ▲                        │
//   held pods ─► PodFeed ─► Inbox ───────────────────────┴────────answers─────────┘
#pragma once

#include <memory>
#include <stop_token>

#include "libs/lifecycle/service_main.h"
#include "services/binder/config.h"

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace fluxqueue::binder {

absl::StatusOr<std::unique_ptr<lifecycle::App>> MakeApp(const lifecycle::AppContext& context,
                                                        const BinderConfig& config);

// Its tables and topics (lifecycle::Service::prepare).
absl::Status Prepare(const config::ServiceConfig& config, std::stop_token stop);

}  // namespace fluxqueue::binder
