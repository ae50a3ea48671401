// The binder, wired together:
//
//   fluxqueue.jobs ─► PartitionLoop ─► JobsHandler ─► BindPlanner ──calls──► CallWorkers ─► API
//   server
//                          └─ rows: binder_store         ▲                        │
//   held pods ─► PodFeed ─► Inbox ───────────────────────┴────────answers─────────┘
#pragma once

#include <memory>

#include "libs/lifecycle/service_main.h"
#include "services/binder/config.h"

#include "absl/status/statusor.h"

namespace fluxqueue::binder {

absl::StatusOr<std::unique_ptr<lifecycle::App>> MakeApp(const lifecycle::AppContext& context,
                                                        const BinderConfig& config);

}  // namespace fluxqueue::binder
