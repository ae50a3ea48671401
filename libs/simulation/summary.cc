#include "libs/simulation/summary.h"

#include <algorithm>
#include <array>
#include <numeric>

#include "libs/base/check.h"
#include "libs/simulation/submission.h"
#include "libs/trace/statistics.h"

namespace fluxqueue::simulation {
namespace {

// Classes of processors: up to so many.
constexpr std::array<int64_t, 6> kWidths = {1, 4, 16, 64, 256, 1024};
constexpr int64_t kWholeGpu = 1000;

double Seconds(Millis time) {
  return static_cast<double>(time.count()) / 1000;
}

int64_t GpuMilli(const trace::TraceJob& job) {
  const auto gpu = job.requests.find(trace::kGpuMilli);
  return gpu == job.requests.end() ? 0 : gpu->second * job.slots;
}

// The classes' names, in their order, and which one a job is of.
struct Classes {
  std::vector<std::string> names;
  bool of_gpus = false;

  size_t Of(const trace::TraceJob& job) const {
    if (!of_gpus) {
      const int64_t width = ProcessorsOf(job);
      return static_cast<size_t>(std::lower_bound(kWidths.begin(), kWidths.end(), width) -
                                 kWidths.begin());
    }
    const int64_t gpu = GpuMilli(job);
    if (gpu == 0) return 0;
    if (gpu < kWholeGpu) return 1;
    if (gpu == kWholeGpu) return 2;
    return gpu < 8 * kWholeGpu ? 3 : 4;
  }
};

Classes ClassesOf(const Machine& machine) {
  if (machine.Total(trace::kGpuMilli) > 0) {
    return {{"no GPU", "part of a GPU", "1 GPU", "2-7 GPUs", "8 GPUs or more"}, true};
  }
  Classes classes{{"1 processor"}};
  for (size_t i = 1; i < kWidths.size(); ++i) {
    classes.names.push_back(fmt::format("{}-{}", kWidths[i - 1] + 1, kWidths[i]));
  }
  classes.names.push_back(fmt::format("{} and more", kWidths.back() + 1));
  return classes;
}

struct Samples {
  size_t backfilled = 0;
  std::vector<double> waits;
  std::vector<double> slowdowns;

  void Add(const Outcome& outcome, const trace::TraceJob& job) {
    backfilled += outcome.backfilled ? 1 : 0;
    waits.push_back(WaitOf(outcome));
    slowdowns.push_back(BoundedSlowdown(WaitOf(outcome), job.run_s));
  }
};

Spread SpreadOf(const std::vector<double>& values) {
  if (values.empty()) return {};
  return {std::accumulate(values.begin(), values.end(), 0.0) / static_cast<double>(values.size()),
          *trace::Percentile(values, 50),
          *trace::Percentile(values, 95),
          *trace::Percentile(values, 99),
          *std::max_element(values.begin(), values.end())};
}

Figures FiguresOf(const Samples& samples) {
  return {samples.waits.size(),
          samples.backfilled,
          SpreadOf(samples.waits),
          SpreadOf(samples.slowdowns)};
}

std::vector<QueueFigures> ByQueue(const Workload& workload,
                                  const std::vector<Outcome>& outcomes,
                                  size_t queues) {
  Millis last_submitted{0};
  for (const Outcome& outcome : outcomes) {
    last_submitted = std::max(last_submitted, outcome.submitted);
  }
  std::vector<Samples> samples(queues);
  std::vector<double> used(queues, 0);
  for (size_t i = 0; i < outcomes.size(); ++i) {
    const Outcome& outcome = outcomes[i];
    if (!Started(outcome)) continue;
    const trace::TraceJob& job = workload.jobs[i];
    const size_t queue = QueueOf(job, queues);
    samples[queue].Add(outcome, job);
    const Millis until = std::min(outcome.started + RunTime(job), last_submitted);
    if (until <= outcome.started) continue;
    used[queue] += Seconds(until - outcome.started) * static_cast<double>(ProcessorsOf(job));
  }
  const double all = std::accumulate(used.begin(), used.end(), 0.0);
  std::vector<QueueFigures> figures;
  for (size_t i = 0; i < queues; ++i) {
    figures.push_back({.name = QueueName(i, queues),
                       .figures = FiguresOf(samples[i]),
                       .share = all > 0 ? used[i] / all : 0});
  }
  return figures;
}

}  // namespace

double BoundedSlowdown(double wait_s, double run_s) {
  return std::max(1.0, (wait_s + run_s) / std::max(run_s, kSlowdownBound));
}

bool Started(const Outcome& outcome) {
  return outcome.end == Outcome::End::kEnded || outcome.end == Outcome::End::kRuns;
}

double WaitOf(const Outcome& outcome) {
  return Seconds(outcome.started - outcome.submitted);
}

Summary Summarise(const Workload& workload,
                  const Machine& machine,
                  const std::vector<Outcome>& outcomes,
                  size_t queues) {
  CHECK(workload.jobs.size() == outcomes.size(),
        "{} jobs and {} outcomes",
        workload.jobs.size(),
        outcomes.size());
  Summary summary;
  const Classes classes = ClassesOf(machine);
  Samples all;
  std::vector<Samples> by_class(classes.names.size());
  std::vector<trace::Use> uses;
  Millis first = outcomes.empty() ? Millis(0) : outcomes.front().submitted;
  Millis last = first;
  for (size_t i = 0; i < outcomes.size(); ++i) {
    const Outcome& outcome = outcomes[i];
    const trace::TraceJob& job = workload.jobs[i];
    if (!Started(outcome)) {
      ++summary.not_started;
      continue;
    }
    first = std::min(first, outcome.submitted);
    last = std::max(last, outcome.ended);
    uses.push_back({&job, job.run_s});
    all.Add(outcome, job);
    by_class[classes.Of(job)].Add(outcome, job);
  }
  summary.all = FiguresOf(all);
  for (size_t i = 0; i < by_class.size(); ++i) {
    if (by_class[i].waits.empty()) continue;
    summary.classes.emplace_back(classes.names[i], FiguresOf(by_class[i]));
  }
  if (queues > 1) summary.queues = ByQueue(workload, outcomes, queues);
  summary.span_s = Seconds(last - first);
  const auto used = [&](std::string_view resource) {
    return trace::Utilisation(uses, resource, machine.Total(resource), summary.span_s).value_or(0);
  };
  summary.utilisation = used("cpu");
  summary.gpu_utilisation = used(trace::kGpuMilli);
  return summary;
}

}  // namespace fluxqueue::simulation
