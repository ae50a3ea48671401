// Admission, wired together:
//
//   API server ─► WebhookServer ─► Decide() ◄─ FactsCache ◄─ watches: namespaces, FluxQueues,
//   classes …
//                                                  │            (every replica)
//   watches: held Jobs, Pods ─► WorkloadFeed ─► WatchShard ─► Catalog, Tracker
//                                   ▲              │             (the replica with the lease)
//                              ErrandRunner ◄──────┤
//                                                  └─► rows: admission_store; the pools' logs
#pragma once

#include <memory>
#include <stop_token>

#include "libs/lifecycle/service_main.h"
#include "services/admission/config.h"

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace fluxqueue::admission {

// InvalidArgument: the kubeconfig cannot be used.
absl::StatusOr<std::unique_ptr<lifecycle::App>> MakeApp(const lifecycle::AppContext& context,
                                                        const AdmissionConfig& config);

// Its tables and topics (lifecycle::Service::prepare).
absl::Status Prepare(const config::ServiceConfig& config, std::stop_token stop);

}  // namespace fluxqueue::admission
