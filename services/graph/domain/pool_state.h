// A pool as it was at one moment, of the rows that the matcher keeps of it. Pure.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "libs/base/clock.h"
#include "libs/graph/closure.h"
#include "libs/graph/types.h"
#include "libs/matcher_core/rows.h"

#include "absl/status/statusor.h"

namespace fluxqueue::graph_service {

// What one job holds: its allocations.
using HeldByJob = std::vector<graph::Placement>;
// By their ids.
using Jobs = std::map<std::string, HeldByJob>;

struct PoolState {
  int64_t now_s = 0;  // since the pool's beginning
  std::string policy;
  std::vector<std::string> levels;
  std::vector<graph::NodeSpec> nodes;
  using Placements = std::vector<std::pair<graph::AllocationKey, graph::Placement>>;
  Placements held;
  Placements reserved = {};
  std::vector<graph::Closure> closures = {};  // that are not over
};

// `now`: since the Unix epoch. Of the rows it looks at nodes, allocations, reservations and the
// pool's own. DataLoss: one does not decode.
absl::StatusOr<PoolState> StateOf(const matcher_core::Rows& rows, Millis now);
// Of the pool's own row.
absl::StatusOr<std::vector<std::string>> LevelsOf(const std::string& pool_row);
absl::StatusOr<Jobs> JobsOf(const std::vector<matcher_core::AllocationRow>& rows);

}  // namespace fluxqueue::graph_service
