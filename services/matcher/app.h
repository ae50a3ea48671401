// The matcher, wired together:
//
//   fluxqueue.pool ─► PartitionLoop ─► PoolHandler ─► MatcherCore (one for each pool)
//                          └─ rows: matcher_store
#pragma once

#include <memory>

#include "absl/status/statusor.h"
#include "libs/lifecycle/service_main.h"

namespace fluxqueue::matcher {

absl::StatusOr<std::unique_ptr<lifecycle::App>> MakeApp(const lifecycle::AppContext& context);

}  // namespace fluxqueue::matcher
