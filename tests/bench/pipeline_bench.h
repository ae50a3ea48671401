// tools/bench pipeline: the five services, real Kafka and PostgreSQL, and a cluster that costs
// little (fake_server.h). Measures how many jobs a second go through all states, what each costs,
// how long each state takes at half of that rate, and what the services weigh with many jobs
// waiting, or with many pods that run; then how soon each is ready again when it is killed. The
// webhook has no part in it: the Jobs are as it would leave them.
#pragma once

#include <string>

#include "tests/bench/report.h"

#include "absl/status/statusor.h"

namespace fluxqueue::bench {

struct PipelineOptions {
  std::string stack;  // the folder that tools/bench has started everything in
  int jobs = 20'000;
  int nodes = 1000;
  int waiting = 10'000;  // jobs of the second phase; 0: leave it out
  int per_node = 1;      // jobs that hold a node each meanwhile
  int running = 0;       // pods that run while memory is looked at, in place of those that wait
  int timeout_s = 300;   // of each phase
};

absl::StatusOr<Report> RunPipeline(const PipelineOptions& options);

}  // namespace fluxqueue::bench
