// What a batch of the matcher's core did, and what was there before.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "fluxqueue/matcher/v1/state.pb.h"

#include "libs/graph/engine.h"
#include "libs/matcher_core/allocation_rows.h"
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

  AllocationRows allocations;
  std::map<uint64_t, std::string> answers;
};

}  // namespace fluxqueue::matcher_core
