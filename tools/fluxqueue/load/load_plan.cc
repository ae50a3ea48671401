#include "tools/fluxqueue/load/load_plan.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include <fmt/format.h>

#include "libs/trace/capacity.h"

namespace fluxqueue::load {
namespace {

Millis Scaled(double seconds, double speed) {
  return Millis(static_cast<Millis::rep>(std::llround(seconds / speed * 1000)));
}

}  // namespace

Plan MakePlan(trace::Trace trace, std::vector<trace::TraceNode> nodes, double speed) {
  Plan plan;
  plan.nodes = std::move(nodes);
  plan.without_run_time = trace.without_run_time;
  plan.without_processors = trace.without_processors;
  plan.jobs.reserve(trace.jobs.size());
  for (trace::TraceJob& job : trace.jobs) {
    PlannedJob& planned = plan.jobs.emplace_back();
    planned.submit = Scaled(job.submit_s, speed);
    planned.run = std::max(Scaled(job.run_s, speed), kShortestRun);
    planned.can_run = trace::CanEverRun(job, plan.nodes);
    planned.job = std::move(job);
  }
  return plan;
}

std::vector<trace::TraceNode> ProcessorNodes(std::string_view prefix, size_t count) {
  std::vector<trace::TraceNode> nodes(count);
  for (size_t i = 0; i < count; ++i) {
    nodes[i].name = fmt::format("{}-{}", prefix, i);
    nodes[i].offers = {{"cpu", 1000}};
  }
  return nodes;
}

}  // namespace fluxqueue::load
