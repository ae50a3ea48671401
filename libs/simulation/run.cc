#include "libs/simulation/run.h"

#include <numeric>
#include <utility>

#include "libs/base/status_macros.h"
#include "libs/simulation/fragmentation_probe.h"

namespace fluxqueue::simulation {
namespace {

// Moments at which the fragmentation of GPUs is looked at.
constexpr size_t kFragmentationSamples = 200;

double Mean(const std::vector<double>& values) {
  return std::accumulate(values.begin(), values.end(), 0.0) / static_cast<double>(values.size());
}

}  // namespace

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
  run.summary = Summarise(workload, machine, run.outcomes, setting.queues.size());
  const double span_s = run.summary.span_s;
  if (machine.Total(trace::kGpuMilli) > 0 && span_s > 0) {
    const std::vector<double> fragmented = FragmentedGpus(
        workload, machine, run.outcomes, span_s / kFragmentationSamples, kFragmentationSamples);
    run.summary.fragmented_gpus = Mean(fragmented);
  }
  run.unknown_estimates = script.unknown_estimates();
  return run;
}

}  // namespace fluxqueue::simulation
