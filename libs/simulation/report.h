// Runs as JSON, for programs. Pure.
#pragma once

#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "libs/simulation/fill.h"
#include "libs/simulation/run.h"
#include "libs/simulation/workload.h"

namespace fluxqueue::simulation {

// {"settings": [{"name", "strategy", "policy", "estimates", "jobs", "backfilled", "utilisation",
// "wait_seconds": {"mean", "p50", "p95", "p99", "max"}, "bounded_slowdown": {the same},
// "classes": [{"name", …}], …}], "left_out": {…}}. Nothing in it depends on the clock.
nlohmann::json ToJson(const std::vector<Result>& runs, const Workload& workload);

// {"policies": [{"policy", "gpus_left", "of_each_seed", "dropped": {"share": 0.1, …}}]}
nlohmann::json ToJson(const std::vector<FillResult>& fills);

}  // namespace fluxqueue::simulation
