#include "libs/simulation/timeline.h"

#include <algorithm>
#include <limits>

#include "libs/simulation/fragmentation_probe.h"
#include "libs/simulation/summary.h"

namespace fluxqueue::simulation {
namespace {

double Seconds(Millis time) {
  return static_cast<double>(time.count()) / 1000;
}

double AmountOf(const trace::TraceJob& job, std::string_view resource) {
  const auto amount = job.requests.find(resource);
  if (amount == job.requests.end()) return 0;
  return static_cast<double>(amount->second) * static_cast<double>(job.slots);
}

// A quantity that is so much more from one time to another, as means of intervals. The naive way
// adds to each interval that is touched; here those between the first and the last are summed up
// once at the end, so a job costs the same however long it is.
class Area {
 public:
  Area(double interval_s, size_t intervals)
      : interval_s_(interval_s), parts_(intervals), whole_(intervals + 1) {}

  void Add(double from_s, double to_s, double amount) {
    const double end = interval_s_ * static_cast<double>(parts_.size());
    from_s = std::clamp(from_s, 0.0, end);
    to_s = std::clamp(to_s, 0.0, end);
    if (to_s <= from_s) return;
    const size_t first = IntervalOf(from_s);
    const size_t last = IntervalOf(to_s);
    if (first == last) {
      parts_[first] += amount * (to_s - from_s);
      return;
    }
    parts_[first] += amount * (Begin(first + 1) - from_s);
    parts_[last] += amount * (to_s - Begin(last));
    whole_[first + 1] += amount;
    whole_[last] -= amount;
  }

  std::vector<double> Means(double unit) const {
    std::vector<double> means(parts_.size());
    double through = 0;
    for (size_t i = 0; i < parts_.size(); ++i) {
      through += whole_[i];
      means[i] = (through + parts_[i] / interval_s_) / unit;
    }
    return means;
  }

 private:
  double Begin(size_t interval) const { return interval_s_ * static_cast<double>(interval); }
  size_t IntervalOf(double time_s) const {
    return std::min(static_cast<size_t>(time_s / interval_s_), parts_.size() - 1);
  }

  const double interval_s_;
  std::vector<double> parts_;
  std::vector<double> whole_;  // changes of what holds for whole intervals
};

Millis FirstSubmission(const std::vector<Outcome>& outcomes) {
  Millis first = Millis::max();
  for (const Outcome& outcome : outcomes) first = std::min(first, outcome.submitted);
  return first;
}

}  // namespace

Timeline TimelineOf(const Workload& workload,
                    const Machine& machine,
                    const std::vector<Outcome>& outcomes,
                    double span_s,
                    size_t intervals) {
  Timeline timeline;
  timeline.interval_s = span_s / static_cast<double>(intervals);
  Area cpu(timeline.interval_s, intervals);
  Area gpu(timeline.interval_s, intervals);
  Area queue(timeline.interval_s, intervals);
  const Millis first = FirstSubmission(outcomes);
  const double forever = std::numeric_limits<double>::max();
  for (size_t i = 0; i < outcomes.size(); ++i) {
    const Outcome& outcome = outcomes[i];
    const double submitted = Seconds(outcome.submitted - first);
    if (!Started(outcome)) {
      const bool waits = outcome.end == Outcome::End::kWaits;
      queue.Add(submitted, waits ? forever : Seconds(outcome.ended - first), 1);
      continue;
    }
    const double started = Seconds(outcome.started - first);
    const bool ended = outcome.end == Outcome::End::kEnded;
    const double end = ended ? Seconds(outcome.ended - first) : forever;
    queue.Add(submitted, started, 1);
    cpu.Add(started, end, AmountOf(workload.jobs[i], "cpu"));
    gpu.Add(started, end, AmountOf(workload.jobs[i], trace::kGpuMilli));
  }
  timeline.queue_length = queue.Means(1);
  const auto unit = [&](std::string_view resource) {
    return std::max(1.0, static_cast<double>(machine.Total(resource)));
  };
  timeline.utilisation = cpu.Means(unit("cpu"));
  if (machine.Total(trace::kGpuMilli) > 0) {
    timeline.gpu_utilisation = gpu.Means(unit(trace::kGpuMilli));
    timeline.fragmented_gpus =
        FragmentedGpus(workload, machine, outcomes, timeline.interval_s, intervals);
  }
  return timeline;
}

}  // namespace fluxqueue::simulation
