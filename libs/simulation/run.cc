#include "libs/simulation/run.h"

#include <utility>

#include "libs/base/status_macros.h"

namespace fluxqueue::simulation {

absl::StatusOr<Result> RunSetting(const Workload& workload,
                                  const Machine& machine,
                                  const Setting& setting,
                                  const Simulator::Progress& progress) {
  RETURN_IF_ERROR(CheckSetting(setting));
  std::vector<std::string> jobs;
  jobs.reserve(workload.jobs.size());
  for (const trace::TraceJob& job : workload.jobs) jobs.push_back(job.name);
  std::vector<std::string> nodes;
  if (!machine.homogeneous()) {
    for (const events::v1::Node& node : machine.nodes) nodes.push_back(node.name());
  }
  TraceScript script(workload, machine, setting);
  Simulator simulator(std::string(kPool), std::move(jobs), nodes, script);
  Result run{.name = setting.Name(), .setting = setting};
  ASSIGN_OR_RETURN(run.outcomes, simulator.Run(progress));
  run.summary = Summarise(workload, machine, run.outcomes);
  run.unknown_estimates = script.unknown_estimates();
  return run;
}

}  // namespace fluxqueue::simulation
