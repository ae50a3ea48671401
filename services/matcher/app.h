// The matcher, wired together:
//
//   fluxqueue.pool ─► PartitionLoop ─► PoolHandler ─► MatcherCore (one for each pool)
//                          └─ rows: matcher_store
//   Pruner ─► matcher_store: what was released a day ago goes
#pragma once

#include <memory>
#include <stop_token>

#include "libs/lifecycle/service_main.h"
#include "services/matcher/config.h"

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace fluxqueue::matcher {

absl::StatusOr<std::unique_ptr<lifecycle::App>> MakeApp(const lifecycle::AppContext& context,
                                                        const MatcherConfig& config);

// Its tables and topics (lifecycle::Service::prepare).
absl::Status Prepare(const config::ServiceConfig& config, std::stop_token stop);

}  // namespace fluxqueue::matcher
