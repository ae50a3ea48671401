// tools/bench e2e: the same Jobs on one real control plane, first left to Kubernetes alone (Job
// controller and kube-scheduler), then through Fluxqueue. Jobs/s, pods/s, writes to the API server,
// and on the idle system the time from a Job's creation to its pod's binding. Last a Deployment is
// scaled from none to many replicas.
//
// The driver is the same for both, and so is the cluster; only the namespace differs. Figures of
// the two are kept in files, as the services are started in between.
#pragma once

#include <string>

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

// Both sides, compared, with the targets.
Report CompareE2e(const nlohmann::ordered_json& plain, const nlohmann::ordered_json& managed);

}  // namespace fluxqueue::bench
