// What a batch of the matcher's core did, and what was there before.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "fluxqueue/events/v1/events.pb.h"
#include "fluxqueue/matcher/v1/state.pb.h"

#include "libs/graph/engine.h"
#include "libs/graph/engine_kind.h"
#include "libs/matcher_core/matcher_core.h"
#include "libs/matcher_core/rows.h"

namespace fluxqueue::matcher_core {

// What was there before, for Rollback; and what changed, for TakeChanges.
struct MatcherCore::Batch {
  // Null: it is the same.
  std::unique_ptr<graph::Engine> engine_before;
  matcher::v1::PoolState state_before;
  std::string last_answer_before;
  std::vector<AllocationKey> plan_before;
  std::optional<graph::Forecast> forecast_before;  // nothing: it is the same

  std::map<AllocationKey, AllocationRow> allocations;
  std::set<AllocationKey> released;
  std::map<uint64_t, std::string> answers;
};

// What the pool's configuration asks for, or what is asked for when it says nothing.
std::string_view PolicyOf(const events::v1::PoolConfigured& config);
graph::EngineKind KindOf(const events::v1::PoolConfigured& config);

}  // namespace fluxqueue::matcher_core
