// What `fluxqueue simulate` prints for people. Pure.
#pragma once

#include <string>
#include <vector>

#include "libs/simulation/fill.h"
#include "libs/simulation/run.h"
#include "libs/simulation/workload.h"

namespace fluxqueue::cli {

// A line for each setting, then one for each of its size classes, then what was left out.
std::string FormatRuns(const std::vector<simulation::Result>& runs,
                       const simulation::Workload& workload,
                       bool colour);

std::string FormatFills(const std::vector<simulation::FillResult>& fills, bool colour);

}  // namespace fluxqueue::cli
