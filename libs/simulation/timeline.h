// What a machine and its queue looked like over time, from the outcomes of a run. Pure.
#pragma once

#include <cstddef>
#include <vector>

#include "libs/simulation/machine.h"
#include "libs/simulation/outcome.h"
#include "libs/simulation/workload.h"

namespace fluxqueue::simulation {

// Equal intervals from the first submission on.
struct Timeline {
  double interval_s = 0;
  std::vector<double> utilisation{};      // of cpus, 0 to 1, mean of the interval
  std::vector<double> gpu_utilisation{};  // the same; empty: the machine has no GPUs
  std::vector<double> queue_length{};     // jobs that wait, mean of the interval
  // GPUs that are free in the middle of the interval and that a typical pod could not use: the mean
  // over the pods of the workload that ask for GPUs, each as often as its like comes. A GPU of a
  // model that the pod may not have counts, too. Empty: the machine has no GPUs.
  std::vector<double> fragmented_gpus{};
};

// Over `span_s` seconds, so that runs of several settings can share an axis.
// REQUIRES: intervals >= 1, span_s > 0.
Timeline TimelineOf(const Workload& workload,
                    const Machine& machine,
                    const std::vector<Outcome>& outcomes,
                    double span_s,
                    size_t intervals);

}  // namespace fluxqueue::simulation
