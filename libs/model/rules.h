// Versions of the rules by which the cores decide. A pool's log says which holds from where on
// (PoolConfigured.rules), so a log is replayed by the rules that it was made by. A log that asks
// for a later version than a build knows must be read by another build.
#pragma once

#include <cstdint>

namespace fluxqueue::model {

// Plans that did not hold are corrected: a job that overruns is planned to end later by growing
// steps (libs/graph/planned_end.h). Predictions are used where they were better than what was
// declared, and the short are tried first in backfilling where the queue predicts.
inline constexpr uint32_t kRulesOfCorrectedPlans = 2;

// What new configurations ask for.
inline constexpr uint32_t kLatestRules = kRulesOfCorrectedPlans;

}  // namespace fluxqueue::model
