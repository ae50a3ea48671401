// A pool's log as it was, and as it might have been (history.h), in one drawing. Pure.
#pragma once

#include <string>
#include <vector>

#include "libs/simulation/machine.h"
#include "libs/simulation/run.h"
#include "libs/simulation/workload.h"

namespace fluxqueue::simulation {

// The wait of each job; jobs that have started, that wait, and cpus in use, over time. `machine`:
// as it was; what a run with more nodes uses is in percent of that one.
std::string PlotWhatIf(const std::vector<Result>& runs,
                       const Workload& workload,
                       const Machine& machine);

}  // namespace fluxqueue::simulation
