#include "libs/simulation/workload.h"

#include <algorithm>
#include <cmath>
#include <set>
#include <tuple>
#include <utility>

#include "libs/base/status_macros.h"
#include "libs/simulation/generator.h"
#include "libs/trace/capacity.h"

namespace fluxqueue::simulation {
namespace {

constexpr int64_t kMillicores = 1000;

Millis WholeSeconds(double seconds) {
  return std::chrono::seconds(static_cast<int64_t>(seconds));
}

void MakeOneSlot(trace::TraceJob* job) {
  for (auto& [resource, amount] : job->requests) amount *= job->slots;
  job->slots = 1;
}

// Many jobs ask for the same.
class Fitting {
 public:
  explicit Fitting(const Machine& machine) : machine_(machine) {}

  bool Fits(const trace::TraceJob& job) {
    Shape shape(job.slots, job.requests, job.gpu_models);
    if (fit_.contains(shape)) return true;
    const bool fits = trace::CanEverRun(job, machine_.offers);
    if (fits) fit_.insert(std::move(shape));
    return fits;
  }

 private:
  using Shape = std::tuple<int64_t, trace::Amounts, std::vector<std::string>>;

  const Machine& machine_;
  std::set<Shape> fit_;
};

absl::Status Refuse(const trace::TraceJob& job, const Machine& machine, std::string_view file) {
  const std::string where = job.line == 0 ? fmt::format("{}: job {}", file, job.name)
                                          : fmt::format("{}:{}: job {}", file, job.line, job.name);
  const std::string what =
      machine.homogeneous() ? fmt::format("asks for {} processors, and the machine has {}",
                                          ProcessorsOf(job),
                                          machine.processors)
                            : fmt::format("does not fit on the {} nodes, even when they are empty",
                                          machine.nodes.size());
  return InvalidArgument(
      "{} {}: it could never start. Take a larger machine, or leave such jobs out "
      "(--skip-too-wide)",
      where,
      what);
}

}  // namespace

absl::StatusOr<Workload> MakeWorkload(trace::Trace trace,
                                      const Machine& machine,
                                      TooWide too_wide,
                                      std::string_view file) {
  Workload workload{.without_run_time = trace.without_run_time,
                    .without_processors = trace.without_processors};
  Fitting fitting(machine);
  workload.jobs.reserve(trace.jobs.size());
  for (trace::TraceJob& job : trace.jobs) {
    if (job.run_s <= 0) {
      ++workload.without_run_time;
      continue;
    }
    if (machine.homogeneous()) MakeOneSlot(&job);
    if (fitting.Fits(job)) {
      workload.jobs.push_back(std::move(job));
    } else if (too_wide == TooWide::kLeaveOut) {
      ++workload.too_wide;
    } else {
      return Refuse(job, machine, file);
    }
  }
  if (workload.jobs.empty()) return InvalidArgument("{}: there is no job in it that can run", file);
  const double first = workload.jobs.front().submit_s;
  for (trace::TraceJob& job : workload.jobs) job.submit_s -= first;
  return workload;
}

Millis SubmitTime(const trace::TraceJob& job, double arrival_scale) {
  return WholeSeconds(std::round(job.submit_s * arrival_scale));
}

Millis RunTime(const trace::TraceJob& job) {
  return WholeSeconds(std::max(1.0, std::ceil(job.run_s)));
}

std::optional<Millis> Estimate(const trace::TraceJob& job,
                               const Setting& setting,
                               size_t* unknown) {
  switch (setting.estimates) {
    case Estimates::kExact:
      break;
    case Estimates::kRequested:
    case Estimates::kPredicted:
      if (job.requested_s > 0) return WholeSeconds(std::max(1.0, std::ceil(job.requested_s)));
      ++*unknown;
      if (setting.default_duration > Millis(0)) return std::nullopt;
      break;
    case Estimates::kDouble:
      return 2 * RunTime(job);
    case Estimates::kModal:
      return std::chrono::seconds(ModalRequest(job.run_s));
  }
  return RunTime(job);
}

int64_t ProcessorsOf(const trace::TraceJob& job) {
  const auto cpu = job.requests.find("cpu");
  const int64_t millicores = cpu == job.requests.end() ? 0 : cpu->second * job.slots;
  return std::max<int64_t>(1, (millicores + kMillicores - 1) / kMillicores);
}

}  // namespace fluxqueue::simulation
