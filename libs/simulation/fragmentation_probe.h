// How many free GPUs the pods of a workload have no use for, over time. Pure.
#pragma once

#include <cstddef>
#include <vector>

#include "libs/simulation/machine.h"
#include "libs/simulation/outcome.h"
#include "libs/simulation/workload.h"

namespace fluxqueue::simulation {

// Timeline::fragmented_gpus: what is free on each node and what a slot could use of it are
// libs/graph/fragmentation.h's. Of the workload's shapes of slots the 64 that come most often
// count.
std::vector<double> FragmentedGpus(const Workload& workload,
                                   const Machine& machine,
                                   const std::vector<Outcome>& outcomes,
                                   double interval_s,
                                   size_t intervals);

}  // namespace fluxqueue::simulation
