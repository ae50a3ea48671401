#include "tools/fluxqueue/simulate_tables.h"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "tools/fluxqueue/table.h"

namespace fluxqueue::cli {
namespace {

using simulation::Figures;
using simulation::Result;

std::string Round(double value) {
  return value >= 100 ? Thousands(static_cast<uint64_t>(std::llround(value)))
                      : fmt::format("{:.2f}", value);
}

void AddFigures(const Figures& figures, std::vector<Cell>* row) {
  row->emplace_back(Thousands(figures.jobs));
  row->emplace_back(Thousands(figures.backfilled));
  for (const simulation::Spread* spread : {&figures.wait_s, &figures.bounded_slowdown}) {
    for (const double value : {spread->mean, spread->p50, spread->p95, spread->p99}) {
      row->emplace_back(Round(value));
    }
  }
}

const std::vector<std::string> kFigureColumns = {"JOBS",
                                                 "BACKFILLED",
                                                 "WAIT s: MEAN",
                                                 "P50",
                                                 "P95",
                                                 "P99",
                                                 "SLOWDOWN: MEAN",
                                                 "P50",
                                                 "P95",
                                                 "P99"};

std::vector<std::string> Header(std::vector<std::string> first, std::vector<std::string> last) {
  first.insert(first.end(), kFigureColumns.begin(), kFigureColumns.end());
  first.insert(first.end(), last.begin(), last.end());
  return first;
}

bool HasGpus(const std::vector<Result>& runs) {
  return std::any_of(
      runs.begin(), runs.end(), [](const Result& run) { return run.summary.gpu_utilisation > 0; });
}

std::string Percent(double share) {
  return fmt::format("{:.1f} %", 100 * share);
}

std::string LeftOut(const std::vector<Result>& runs, const simulation::Workload& workload) {
  std::string text;
  const auto say = [&text](size_t count, std::string_view what) {
    if (count > 0) text += fmt::format("{} {}\n", Thousands(count), what);
  };
  say(workload.without_run_time, "jobs without a run time were left out");
  say(workload.without_processors, "jobs without processors were left out");
  say(workload.too_wide, "jobs that are too wide for the machine were left out");
  for (const Result& run : runs) {
    const bool has_default = run.setting.default_duration > Millis(0);
    say(run.unknown_estimates,
        fmt::format("jobs of \"{}\" have no requested time: the {} was taken",
                    run.name,
                    has_default ? "queue's default" : "exact one"));
    say(run.summary.not_started, fmt::format("jobs of \"{}\" did not start", run.name));
  }
  return text;
}

}  // namespace

std::string FormatRuns(const std::vector<Result>& runs,
                       const simulation::Workload& workload,
                       bool colour) {
  const bool gpus = HasGpus(runs);
  std::vector<std::string> last = {"UTILISATION"};
  if (gpus) last.insert(last.end(), {"OF GPUS", "GPUS FRAGMENTED"});
  Table settings(Header({"SETTING"}, last));
  Table classes(Header({"SETTING", "SIZE"}, {}));
  Table queues(Header({"SETTING", "QUEUE", "WEIGHT", "SHARE"}, {}));
  for (const Result& run : runs) {
    std::vector<Cell> row = {run.name};
    AddFigures(run.summary.all, &row);
    row.emplace_back(Percent(run.summary.utilisation));
    if (gpus) {
      row.emplace_back(Percent(run.summary.gpu_utilisation));
      row.emplace_back(Round(run.summary.fragmented_gpus));
    }
    settings.Add(std::move(row));
    for (const auto& [name, figures] : run.summary.classes) {
      std::vector<Cell> line = {run.name, name};
      AddFigures(figures, &line);
      classes.Add(std::move(line));
    }
    for (size_t i = 0; i < run.summary.queues.size(); ++i) {
      const simulation::QueueFigures& queue = run.summary.queues[i];
      std::vector<Cell> line = {
          run.name, queue.name, fmt::format("{}", run.setting.queues[i]), Percent(queue.share)};
      AddFigures(queue.figures, &line);
      queues.Add(std::move(line));
    }
  }
  std::string text = settings.Render(colour);
  if (!classes.empty()) text += "\n" + classes.Render(colour);
  if (!queues.empty()) text += "\n" + queues.Render(colour);
  const std::string left_out = LeftOut(runs, workload);
  if (!left_out.empty()) text += "\n" + left_out;
  return text;
}

std::string FormatFills(const std::vector<simulation::FillResult>& fills, bool colour) {
  std::vector<std::string> header = {"POLICY", "GPUS LEFT", "OF EACH SEED"};
  for (const std::string_view name : simulation::kFillClasses) {
    header.push_back(fmt::format("DROPPED: {}", name));
  }
  Table table(header);
  for (const simulation::FillResult& fill : fills) {
    const auto [least, most] = std::minmax_element(fill.left.begin(), fill.left.end());
    std::vector<Cell> row = {fill.policy,
                             fmt::format("{:.0f}", fill.MeanLeft()),
                             fmt::format("{:.0f} to {:.0f}", *least, *most)};
    for (size_t i = 0; i < simulation::kFillClasses.size(); ++i) {
      row.emplace_back(Percent(fill.Dropped(i)));
    }
    table.Add(std::move(row));
  }
  return table.Render(colour);
}

}  // namespace fluxqueue::cli
