#include "libs/simulation/what_if_plot.h"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "libs/simulation/chart.h"
#include "libs/simulation/summary.h"
#include "libs/simulation/timeline.h"

namespace fluxqueue::simulation {
namespace {

constexpr size_t kIntervals = 400;

double Seconds(Millis time) {
  return static_cast<double>(time.count()) / 1000;
}

Millis FirstSubmission(const Result& run) {
  Millis first = Millis::max();
  for (const Outcome& outcome : run.outcomes) first = std::min(first, outcome.submitted);
  return first;
}

// To its start; of a job that has none, to its end or that of the run.
double WaitUntil(const Outcome& outcome, Millis end) {
  if (Started(outcome)) return WaitOf(outcome);
  const bool waits = outcome.end == Outcome::End::kWaits;
  return std::max(0.0, Seconds((waits ? end : outcome.ended) - outcome.submitted));
}

// Means of equal parts of the jobs, in the order of their submission; few jobs are parts of one.
std::vector<double> Waits(const Result& run, double span_s) {
  const Millis end = FirstSubmission(run) + Millis(static_cast<int64_t>(span_s * 1000));
  const size_t jobs = run.outcomes.size();
  const size_t parts = std::min(jobs, kIntervals);
  std::vector<double> means(parts);
  for (size_t part = 0; part < parts; ++part) {
    const size_t from = part * jobs / parts;
    const size_t to = (part + 1) * jobs / parts;
    for (size_t job = from; job < to; ++job) means[part] += WaitUntil(run.outcomes[job], end);
    means[part] /= static_cast<double>(to - from);
  }
  return means;
}

// Jobs that have started until the middle of each interval.
std::vector<double> StartedBy(const Result& run, double span_s) {
  const Millis first = FirstSubmission(run);
  std::vector<double> starts;
  for (const Outcome& outcome : run.outcomes) {
    if (Started(outcome)) starts.push_back(Seconds(outcome.started - first));
  }
  std::sort(starts.begin(), starts.end());
  std::vector<double> counts;
  for (size_t i = 0; i < kIntervals; ++i) {
    const double until_s = span_s * (static_cast<double>(i) + 0.5) / kIntervals;
    counts.push_back(static_cast<double>(std::upper_bound(starts.begin(), starts.end(), until_s) -
                                         starts.begin()));
  }
  return counts;
}

// Of places nothing is drawn, and those on nodes that the machine has not are none of its own.
Timeline TimelineOfCpus(const Result& run,
                        const Workload& workload,
                        const Machine& machine,
                        double span_s) {
  std::vector<Outcome> outcomes = run.outcomes;
  for (Outcome& outcome : outcomes) outcome.places.clear();
  return TimelineOf(workload, machine, outcomes, span_s, kIntervals);
}

void Scale(double factor, std::vector<double>* values) {
  for (double& value : *values) value *= factor;
}

double Most(const std::vector<Line>& lines) {
  double most = 1;
  for (const Line& line : lines) {
    for (const double value : line.values) most = std::max(most, value);
  }
  return most;
}

LineChart WaitChart(const std::vector<Result>& runs, double span_s) {
  LineChart chart{.title = "Wait of each job",
                  .x_label = "jobs, in the order of their submission",
                  .x_max = static_cast<double>(runs.front().outcomes.size())};
  for (const Result& run : runs) chart.lines.push_back({run.name, Waits(run, span_s)});
  const TimeUnit unit = UnitOf(Most(chart.lines));
  for (Line& line : chart.lines) Scale(1 / unit.seconds, &line.values);
  chart.y_label = fmt::format("submission to start, {}", unit.name);
  return chart;
}

std::vector<LineChart> TimeCharts(const std::vector<Result>& runs,
                                  const Workload& workload,
                                  const Machine& machine,
                                  double span_s) {
  const TimeUnit unit = UnitOf(span_s);
  const std::string x_label = fmt::format("time since the first submission, {}", unit.name);
  const auto chart = [&](const char* title, const char* y_label) {
    return LineChart{
        .title = title, .y_label = y_label, .x_label = x_label, .x_max = span_s / unit.seconds};
  };
  std::vector<LineChart> charts = {chart("Jobs that have started", "jobs"),
                                   chart("Jobs that wait", "jobs"),
                                   chart("Cpus in use", "% of those that there were")};
  for (const Result& run : runs) {
    Timeline timeline = TimelineOfCpus(run, workload, machine, span_s);
    Scale(100, &timeline.utilisation);
    charts[0].lines.push_back({run.name, StartedBy(run, span_s)});
    charts[1].lines.push_back({run.name, std::move(timeline.queue_length)});
    charts[2].lines.push_back({run.name, std::move(timeline.utilisation)});
  }
  return charts;
}

}  // namespace

std::string PlotWhatIf(const std::vector<Result>& runs,
                       const Workload& workload,
                       const Machine& machine) {
  double span_s = 1;
  std::vector<std::string> names;
  for (const Result& run : runs) {
    span_s = std::max(span_s, run.summary.span_s);
    names.push_back(run.name);
  }
  std::vector<Piece> pieces = {{Legend(names), LegendHeight(names.size())},
                               {Draw(WaitChart(runs, span_s)), kChartHeight}};
  for (const LineChart& chart : TimeCharts(runs, workload, machine, span_s)) {
    pieces.push_back({Draw(chart), kChartHeight});
  }
  return Stack(pieces);
}

}  // namespace fluxqueue::simulation
