// The figures of a run. Pure.
//
// A job's wait is from its submission to its start; its bounded slowdown is
// max(1, (wait + run) / max(run, 10 s)). Utilisation is what the jobs used over what there was from
// the first submission to the last end: Σ processors · run / (P · (last end − first submission)).
// Percentiles are nearest ranks (libs/trace). Jobs that did not run are counted, and nothing else.
#pragma once

#include <cstddef>
#include <string>
#include <utility>
#include <vector>

#include "libs/simulation/machine.h"
#include "libs/simulation/outcome.h"
#include "libs/simulation/workload.h"

namespace fluxqueue::simulation {

inline constexpr double kSlowdownBound = 10;  // seconds

struct Spread {
  double mean = 0;
  double p50 = 0;
  double p95 = 0;
  double p99 = 0;
  double max = 0;
};

// Of some of the jobs.
struct Figures {
  size_t jobs = 0;
  size_t backfilled = 0;
  Spread wait_s;
  Spread bounded_slowdown;
};

// Of one of several queues.
struct QueueFigures {
  std::string name{};
  Figures figures{};
  // Of what all jobs used until the last one was submitted: its part, 0 to 1.
  double share = 0;
};

struct Summary {
  Figures all;
  // By size: of processors (1, 2-4, 5-16 …), or of GPUs where the machine has some. Empty classes
  // are left out.
  std::vector<std::pair<std::string, Figures>> classes;
  std::vector<QueueFigures> queues;  // where there are several
  double utilisation = 0;            // of cpus, 0 to 1
  double gpu_utilisation = 0;        // 0 too where there are no GPUs
  double fragmented_gpus = 0;        // mean over the span, see Timeline
  double span_s = 0;                 // first submission to last end
  size_t not_started = 0;            // when the simulation was over, rejected or cancelled
};

// `queues`: how many there are. REQUIRES: an outcome for each job.
Summary Summarise(const Workload& workload,
                  const Machine& machine,
                  const std::vector<Outcome>& outcomes,
                  size_t queues = 1);

double BoundedSlowdown(double wait_s, double run_s);

// Whether the job has run, or does.
bool Started(const Outcome& outcome);
double WaitOf(const Outcome& outcome);  // seconds

}  // namespace fluxqueue::simulation
