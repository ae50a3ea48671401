// fluxqueue simulate: a trace in virtual time, through the cores of the live services.
#include <memory>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <unistd.h>

#include "libs/base/status_macros.h"
#include "libs/simulation/report.h"
#include "libs/simulation/run.h"
#include "libs/trace/openb.h"
#include "libs/trace/swf.h"

#include "tools/fluxqueue/commands.h"
#include "tools/fluxqueue/load/progress_line.h"
#include "tools/fluxqueue/load/trace_file.h"

namespace fluxqueue::cli {
namespace {

struct Options {
  std::string jobs;
  std::string format;
  std::string nodes;
  int64_t processors = 0;
  std::vector<std::string> strategies = {"fcfs"};
  std::vector<std::string> policies = {"first"};
  std::vector<std::string> estimates = {"exact"};
  double arrival_scale = 1;
  uint32_t depth = 0;
  uint32_t reservations = 0;
};

absl::StatusOr<int> Run(const Options& options, const Context&) {
  ASSIGN_OR_RETURN(const std::string text, load::ReadTraceFile(options.jobs));
  ASSIGN_OR_RETURN(trace::Trace trace, trace::ParseSwf(text, {options.jobs}));
  const simulation::Machine machine = simulation::MachineOfProcessors(options.processors);
  ASSIGN_OR_RETURN(const simulation::Workload workload,
                   simulation::MakeWorkload(std::move(trace), machine, simulation::TooWide::kRefuse, options.jobs));
  std::vector<simulation::Result> runs;
  for (const auto& strategy : options.strategies) {
    simulation::Setting setting{.strategy = strategy, .arrival_scale=options.arrival_scale, .queue_depth=options.depth};
    ASSIGN_OR_RETURN(runs.emplace_back(), simulation::RunSetting(workload, machine, setting, nullptr));
  }
  fmt::print("{}\n", simulation::ToJson(runs, workload).dump(2));
  return 0;
}

}  // namespace

void RegisterSimulate(CLI::App& app, Context& context) {
  const auto options = std::make_shared<Options>();
  CLI::App* sub = app.add_subcommand("simulate", "x");
  sub->add_option("--jobs", options->jobs)->required();
  sub->add_option("--format", options->format);
  sub->add_option("--processors", options->processors);
  sub->add_option("--strategy", options->strategies)->delimiter(',');
  sub->add_option("--arrival-scale", options->arrival_scale);
  sub->add_option("--depth", options->depth);
  sub->callback([&context, options] {
    context.command = [&context, options] { return Run(*options, context); };
  });
}

}  // namespace fluxqueue::cli
