// Runs to be looked at: one drawing, and one page that needs nothing else. Pure.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "libs/simulation/machine.h"
#include "libs/simulation/run.h"
#include "libs/simulation/workload.h"

namespace fluxqueue::simulation {

// Utilisation, queue length and GPU fragmentation over time with all settings in one chart each;
// wait and bounded slowdown by size of the jobs; for each setting a Gantt chart.
std::string PlotSvg(const std::vector<Result>& runs,
                    const Workload& workload,
                    const Machine& machine);

// The same below a table of the figures. `title`: what was simulated.
std::string PlotHtml(const std::vector<Result>& runs,
                     const Workload& workload,
                     const Machine& machine,
                     std::string_view title);

}  // namespace fluxqueue::simulation
