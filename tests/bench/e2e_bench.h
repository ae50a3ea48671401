// tools/bench e2e: the same Jobs on a real control plane left to Kubernetes alone (Job controller
// and kube-scheduler, and nothing of ours), and on one with Fluxqueue. Jobs/s, pods/s, writes to
// the API server, CPU by process, and on the idle system the time from the call that creates a Job
// to its pod's binding. Last a Deployment is scaled from none to many replicas.
//
// The driver is the same for both; each run has a cluster of its own, and leaves its figures in a
// file.
#pragma once

#include <string>
#include <vector>

#include "tests/bench/report.h"

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace fluxqueue::bench {

struct E2eOptions {
  std::string stack;
  bool managed = false;  // through Fluxqueue
  int jobs = 2000;
  int gangs = 200;
  int gang_pods = 16;
  int single = 100;     // Jobs one after another
  int replicas = 1000;  // of a Deployment; 0: leave it out
  int timeout_s = 600;  // of each phase
};

// Plays one side and gives its figures as JSON.
absl::StatusOr<nlohmann::ordered_json> PlayE2e(const E2eOptions& options);

// The medians of both sides' runs, compared, with the targets. One run of each at least.
Report CompareE2e(const std::vector<nlohmann::ordered_json>& plain,
                  const std::vector<nlohmann::ordered_json>& managed);

}  // namespace fluxqueue::bench
