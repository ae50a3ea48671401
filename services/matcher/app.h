// The matcher, wired together:
//
//   fluxqueue.pool ─► PartitionLoop ─► PoolHandler ─► MatcherCore (one for each pool)
//                          └─ rows: matcher_store
#pragma once

#include <memory>

#include "libs/lifecycle/service_main.h"

#include "absl/status/statusor.h"

namespace fluxqueue::matcher {

absl::StatusOr<std::unique_ptr<lifecycle::App>> MakeApp(const lifecycle::AppContext& context);

}  // namespace fluxqueue::matcher
