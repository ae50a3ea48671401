// One row of a comparison: a setting, run to its end. Pure.
#pragma once

#include <string>
#include <vector>

#include "libs/simulation/machine.h"
#include "libs/simulation/outcome.h"
#include "libs/simulation/setting.h"
#include "libs/simulation/simulator.h"
#include "libs/simulation/summary.h"
#include "libs/simulation/workload.h"

#include "absl/status/statusor.h"

namespace fluxqueue::simulation {

struct Result {
  std::string name{};
  Setting setting{};
  std::vector<Outcome> outcomes{};
  Summary summary{};
  size_t unknown_estimates = 0;  // see TraceScript
};

// The workload of a trace in the setting. InvalidArgument: there is no such setting.
absl::StatusOr<Result> RunSetting(const Workload& workload,
                                  const Machine& machine,
                                  const Setting& setting,
                                  const Simulator::Progress& progress);

}  // namespace fluxqueue::simulation
