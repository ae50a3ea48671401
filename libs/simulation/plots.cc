#include "libs/simulation/plots.h"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "libs/simulation/chart.h"
#include "libs/simulation/timeline.h"

namespace fluxqueue::simulation {
namespace {

constexpr size_t kIntervals = 400;

double SpanOf(const std::vector<Result>& runs) {
  double span = 1;
  for (const Result& run : runs) span = std::max(span, run.summary.span_s);
  return span;
}

struct Series {
  const char* title;
  const char* y_label;
  std::vector<double> Timeline::*values;
  double factor;
};
constexpr Series kSeries[] = {
    {"Utilisation over time", "cpus in use, %", &Timeline::utilisation, 100},
    {"GPU utilisation over time", "GPUs in use, %", &Timeline::gpu_utilisation, 100},
    {"Queue length over time", "jobs that wait", &Timeline::queue_length, 1},
    {"GPU fragmentation over time", "free GPUs without use", &Timeline::fragmented_gpus, 1},
};

void AddSeries(const std::vector<Result>& runs,
               const std::vector<Timeline>& timelines,
               double span_s,
               std::vector<Piece>* pieces) {
  const TimeUnit unit = UnitOf(span_s);
  for (const Series& series : kSeries) {
    LineChart chart{.title = series.title,
                    .y_label = series.y_label,
                    .x_label = fmt::format("time since the first submission, {}", unit.name),
                    .x_max = span_s / unit.seconds};
    for (size_t i = 0; i < runs.size(); ++i) {
      Line line{runs[i].name, timelines[i].*series.values};
      if (line.values.empty()) break;
      for (double& value : line.values) value *= series.factor;
      chart.lines.push_back(std::move(line));
    }
    if (!chart.lines.empty()) pieces->push_back({Draw(chart), kChartHeight});
  }
}

// Mean and 95th percentile of `spread`, of all jobs and of each class.
BarChart ByClass(const std::vector<Result>& runs, Spread Figures::*spread) {
  BarChart chart;
  chart.groups.push_back({.name = "all jobs"});
  for (const auto& [name, figures] : runs.front().summary.classes) {
    chart.groups.push_back({.name = name});
  }
  for (const Result& run : runs) {
    const auto add = [spread](BarGroup* group, const Figures& figures) {
      group->bars.push_back((figures.*spread).mean);
      group->marks.push_back((figures.*spread).p95);
    };
    add(&chart.groups.front(), run.summary.all);
    for (size_t i = 1; i < chart.groups.size(); ++i) {
      const auto& classes = run.summary.classes;
      const auto found = std::find_if(classes.begin(), classes.end(), [&](const auto& each) {
        return each.first == chart.groups[i].name;
      });
      add(&chart.groups[i], found == classes.end() ? Figures{} : found->second);
    }
  }
  return chart;
}

void AddClasses(const std::vector<Result>& runs, std::vector<Piece>* pieces) {
  BarChart wait = ByClass(runs, &Figures::wait_s);
  wait.title = "Wait by size of the job (bar: mean, line: 95th percentile)";
  wait.y_label = "wait, s";
  pieces->push_back({Draw(wait), kChartHeight});
  BarChart slowdown = ByClass(runs, &Figures::bounded_slowdown);
  slowdown.title = "Bounded slowdown by size of the job (bar: mean, line: 95th percentile)";
  slowdown.y_label = "bounded slowdown";
  pieces->push_back({Draw(slowdown), kChartHeight});
}

void AddGantts(const std::vector<Result>& runs,
               const Workload& workload,
               const Machine& machine,
               double span_s,
               std::vector<Piece>* pieces) {
  const TimeUnit unit = UnitOf(span_s);
  const std::string x_label = fmt::format("time since the first submission, {}", unit.name);
  for (const Result& run : runs) {
    // Of what was replayed nobody has noted where it ran.
    const bool nowhere = std::all_of(run.outcomes.begin(),
                                     run.outcomes.end(),
                                     [](const Outcome& o) { return o.places.empty(); });
    if (!machine.homogeneous() && nowhere) continue;
    const Gantt gantt = GanttOf(workload, machine, run.outcomes, span_s);
    const char* legend = gantt.of_nodes
                             ? "the darker, the more of a node (its GPUs, else cpus) is in use"
                             : "blue: in order, orange: backfilled";
    const std::string title = fmt::format("{} ({})", run.name, legend);
    pieces->push_back({Draw(gantt, title, x_label, span_s / unit.seconds), kChartHeight});
  }
}

std::string Row(const Result& run, size_t number) {
  const Figures& all = run.summary.all;
  std::string row = fmt::format("<tr><td><span style=\"color:{}\">&#9632;</span> {}</td>",
                                ColourOf(number),
                                Escaped(run.name));
  const auto cell = [&row](std::string text) { row += "<td>" + std::move(text) + "</td>"; };
  cell(fmt::format("{}", all.jobs));
  cell(fmt::format("{}", all.backfilled));
  cell(fmt::format("{:.1f}", 100 * run.summary.utilisation));
  for (const Spread* spread : {&all.wait_s, &all.bounded_slowdown}) {
    for (const double value : {spread->mean, spread->p50, spread->p95, spread->p99, spread->max}) {
      cell(fmt::format("{:.1f}", value));
    }
  }
  return row + "</tr>\n";
}

constexpr std::string_view kHead =
    "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n<title>{0}</title>\n"
    "<style>\nbody {{ font-family: sans-serif; margin: 2em; color: #111; }}\n"
    "table {{ border-collapse: collapse; margin-bottom: 1em; }}\n"
    "td, th {{ border: 1px solid #ccc; padding: 3px 8px; text-align: right; }}\n"
    "td:first-child, th:first-child {{ text-align: left; white-space: nowrap; }}\n"
    "svg {{ max-width: 100%; height: auto; }}\n</style>\n</head>\n<body>\n<h1>{0}</h1>\n"
    "<p>Left out: {1} jobs without a run time, {2} without processors, {3} too wide for the "
    "machine.</p>\n<table>\n"
    "<tr><th rowspan=\"2\">setting</th><th rowspan=\"2\">jobs</th><th rowspan=\"2\">backfilled</th>"
    "<th rowspan=\"2\">utilisation, %</th><th colspan=\"5\">wait, s</th>"
    "<th colspan=\"5\">bounded slowdown</th></tr>\n"
    "<tr><th>mean</th><th>p50</th><th>p95</th><th>p99</th><th>max</th>"
    "<th>mean</th><th>p50</th><th>p95</th><th>p99</th><th>max</th></tr>\n";

}  // namespace

std::string PlotSvg(const std::vector<Result>& runs,
                    const Workload& workload,
                    const Machine& machine) {
  const double span_s = SpanOf(runs);
  std::vector<Timeline> timelines;
  std::vector<std::string> names;
  for (const Result& run : runs) {
    timelines.push_back(TimelineOf(workload, machine, run.outcomes, span_s, kIntervals));
    names.push_back(run.name);
  }
  std::vector<Piece> pieces;
  pieces.push_back({Legend(names), LegendHeight(names.size())});
  AddSeries(runs, timelines, span_s, &pieces);
  AddClasses(runs, &pieces);
  AddGantts(runs, workload, machine, span_s, &pieces);
  return Stack(pieces);
}

std::string PlotHtml(const std::vector<Result>& runs,
                     const Workload& workload,
                     const Machine& machine,
                     std::string_view title) {
  std::string page = fmt::format(kHead,
                                 Escaped(title),
                                 workload.without_run_time,
                                 workload.without_processors,
                                 workload.too_wide);
  for (size_t i = 0; i < runs.size(); ++i) page += Row(runs[i], i);
  return page + "</table>\n" + PlotSvg(runs, workload, machine) + "</body>\n</html>\n";
}

}  // namespace fluxqueue::simulation
