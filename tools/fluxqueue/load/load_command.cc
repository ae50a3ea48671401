#include "tools/fluxqueue/load/load_command.h"

#include <algorithm>
#include <cctype>
#include <charconv>
#include <stop_token>
#include <utility>
#include <vector>

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include "libs/base/clock.h"
#include "libs/base/status_macros.h"
#include "libs/kubernetes/client.h"
#include "libs/kubernetes/config.h"
#include "libs/kubernetes/labels.h"
#include "libs/lifecycle/signal_watch.h"
#include "libs/trace/openb.h"
#include "libs/trace/swf.h"

#include "tools/fluxqueue/load/cluster_loader.h"
#include "tools/fluxqueue/load/load_plan.h"
#include "tools/fluxqueue/load/load_report.h"
#include "tools/fluxqueue/load/trace_file.h"

namespace fluxqueue::load {
namespace {

constexpr size_t kMaxNodes = 100'000;

absl::StatusOr<Plan> ReadSwf(const LoadOptions& options) {
  size_t count = 0;
  const char* end = options.nodes.data() + options.nodes.size();
  const auto [stop, error] = std::from_chars(options.nodes.data(), end, count);
  if (error != std::errc() || stop != end || count == 0 || count > kMaxNodes) {
    return InvalidArgument(
        "--nodes {}: an SWF log has no list of nodes; say how many one-cpu nodes, from 1 to {}",
        options.nodes,
        kMaxNodes);
  }
  ASSIGN_OR_RETURN(const std::string text, ReadTraceFile(options.trace));
  ASSIGN_OR_RETURN(trace::Trace trace, trace::ParseSwf(text, {options.trace, options.jobs}));
  return MakePlan(std::move(trace), ProcessorNodes(options.space, count), options.speed);
}

absl::StatusOr<Plan> ReadOpenb(const LoadOptions& options) {
  if (std::all_of(options.nodes.begin(), options.nodes.end(), [](unsigned char c) {
        return std::isdigit(c) != 0;
      })) {
    return InvalidArgument("--nodes {}: with --format openb it is the file of the node list",
                           options.nodes);
  }
  ASSIGN_OR_RETURN(const std::string pods, ReadTraceFile(options.trace));
  ASSIGN_OR_RETURN(trace::Trace trace, trace::ParseOpenbPods(pods, {options.trace, options.jobs}));
  ASSIGN_OR_RETURN(const std::string list, ReadTraceFile(options.nodes));
  ASSIGN_OR_RETURN(std::vector<trace::TraceNode> nodes,
                   trace::ParseOpenbNodes(list, {options.nodes}));
  return MakePlan(std::move(trace), std::move(nodes), options.speed);
}

absl::StatusOr<Plan> ReadPlan(const LoadOptions& options) {
  ASSIGN_OR_RETURN(Plan plan, options.format == "swf" ? ReadSwf(options) : ReadOpenb(options));
  if (plan.jobs.empty()) {
    return InvalidArgument("{}: there is no job in it that can be played", options.trace);
  }
  return plan;
}

}  // namespace

void AddLoadOptions(CLI::App& command, LoadOptions* options) {
  command.add_option("--trace", options->trace, "The trace; may be gzipped")
      ->required()
      ->check(CLI::ExistingFile);
  command.add_option("--format", options->format, "What it is: swf or openb")
      ->required()
      ->check(CLI::IsMember({"swf", "openb"}));
  command
      .add_option("--nodes",
                  options->nodes,
                  "openb: the file of its node list; swf: how many nodes of one cpu")
      ->required();
  command.add_option("--jobs", options->jobs, "Only the first N jobs of the trace");
  command.add_option("--speed", options->speed, "How many times faster than it was")
      ->check(CLI::PositiveNumber)
      ->capture_default_str();
  command
      .add_option("--namespace",
                  options->space,
                  "Made for the load and deleted after it; the nodes are labelled with it")
      ->capture_default_str();
  command.add_option("--queue", options->queue, "The FluxQueue of the jobs");
  command.add_option("--timeout", options->timeout, "When to stop waiting, such as 90s or 1h30m")
      ->capture_default_str();
  command.add_flag("--keep", options->keep, "Leave namespace and nodes when it is over");
  command.add_flag("--unmanaged",
                   options->unmanaged,
                   "Without Fluxqueue: Kubernetes schedules the jobs, for comparison");
}

absl::StatusOr<bool> RunLoad(const LoadOptions& options, const std::string& kubeconfig, bool json) {
  std::stop_source stop;
  // Before any other thread.
  const lifecycle::SignalWatch signals([&stop](const std::string& name) {
    fmt::print(stderr, "\n{}: taking away what was made; again to leave at once\n", name);
    stop.request_stop();
  });
  ASSIGN_OR_RETURN(const Millis timeout, kubernetes::ParseDuration(options.timeout));
  if (timeout == Millis(0))
    return InvalidArgument("--timeout {}: allowed is more than 0", options.timeout);
  ASSIGN_OR_RETURN(const Plan plan, ReadPlan(options));
  ASSIGN_OR_RETURN(kubernetes::ClusterConfig config, kubernetes::LoadClusterConfig(kubeconfig));
  kubernetes::Client client(std::move(config));
  const RealClock clock;
  ClusterLoader loader(client,
                       clock,
                       plan,
                       {.space = options.space,
                        .queue = options.queue,
                        .managed = !options.unmanaged,
                        .keep = options.keep,
                        .timeout = timeout});
  ASSIGN_OR_RETURN(const LoadReport report, loader.Run(stop.get_token()));
  fmt::print("{}", json ? FormatJson(report) : FormatTable(report));
  return report.Good();
}

}  // namespace fluxqueue::load
