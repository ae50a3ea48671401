#include "tools/fluxqueue/replay_what_if.h"

#include <algorithm>
#include <charconv>
#include <map>
#include <optional>
#include <utility>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "libs/base/status_macros.h"
#include "libs/simulation/report.h"
#include "libs/simulation/setting.h"
#include "libs/simulation/what_if_plot.h"

#include "tools/fluxqueue/simulate_tables.h"
#include "tools/fluxqueue/table.h"
#include "tools/fluxqueue/text_file.h"

namespace fluxqueue::cli {
namespace {

using nlohmann::json;
using simulation::History;
using simulation::Outcome;
using simulation::Result;

constexpr uint32_t kMostNodes = 100'000;
constexpr std::string_view kAllowed = "allowed: strategy=NAME, policy=NAME, nodes=+N";

absl::StatusOr<uint32_t> ParseNodes(const std::string& value) {
  uint32_t nodes = 0;
  const char* const end = value.data() + value.size();
  if (value.starts_with('+')) {
    const auto [at, error] = std::from_chars(value.data() + 1, end, nodes);
    if (error == std::errc() && at == end && nodes >= 1 && nodes <= kMostNodes) return nodes;
  }
  return InvalidArgument("--what-if nodes={}: allowed: +1 to +{}", value, kMostNodes);
}

absl::StatusOr<History> ReadSource(EventSource& source, const PoolReplay::Options& bounds) {
  std::vector<verify::EventLine> lines;
  RETURN_IF_ERROR(source.Read([&](const verify::EventLine& line) {
    const bool is_before = line.message.has_job_fact() || line.offset < bounds.to_offset;
    if (is_before && line.time.count() <= bounds.to_ms) lines.push_back(line);
    return absl::OkStatus();
  }));
  const std::string name = "the log of pool " + source.header().pool;
  if (!source.header().whole) {
    return MakeStatus(absl::StatusCode::kFailedPrecondition,
                      "{} does not begin where the pool began, so it cannot be played",
                      name);
  }
  return simulation::MakeHistory(std::move(lines), name);
}

// By job id.
std::map<std::string, std::string> NamesOf(const History& history) {
  std::map<std::string, std::string> names;
  for (const verify::EventLine& line : history.log) {
    if (!line.message.has_job_submitted()) continue;
    const events::v1::Workload& workload = line.message.job_submitted().workload();
    names[line.message.job_submitted().job_id()] = workload.namespace_() + "/" + workload.name();
  }
  return names;
}

std::optional<int64_t> StartOf(const Outcome& outcome) {
  if (!simulation::Started(outcome)) return std::nullopt;
  return outcome.started.count();
}

// A job in both runs.
struct Row {
  std::string id;
  std::string name;
  int64_t submitted_ms;
  std::optional<int64_t> was_ms;
  std::optional<int64_t> would_be_ms;
};

std::vector<Row> Rows(const History& history, const Result& was, const Result& would_be) {
  const std::map<std::string, std::string> names = NamesOf(history);
  std::vector<Row> rows;
  for (size_t i = 0; i < history.workload.jobs.size(); ++i) {
    const std::string& id = history.workload.jobs[i].name;
    const auto name = names.find(id);
    rows.push_back({id,
                    name == names.end() ? id : name->second,
                    was.outcomes[i].submitted.count(),
                    StartOf(was.outcomes[i]),
                    StartOf(would_be.outcomes[i])});
  }
  return rows;
}

std::string Difference(const Row& row) {
  if (!row.was_ms || !row.would_be_ms) return "-";
  const int64_t later = *row.would_be_ms - *row.was_ms;
  if (later == 0) return "0s";
  return (later < 0 ? "-" : "+") + ShortDuration(Millis(later < 0 ? -later : later));
}

// Of the day of the last submission the times alone.
std::string FormatRows(const std::vector<Row>& rows, bool colour) {
  Table table({"JOB", "SUBMITTED", "STARTED", "WOULD START", "DIFFERENCE"});
  for (const Row& row : rows) {
    const std::string difference = Difference(row);
    table.Add({row.name,
               ShortTime(row.submitted_ms, rows.back().submitted_ms),
               ShortTime(row.was_ms.value_or(0), rows.back().submitted_ms),
               ShortTime(row.would_be_ms.value_or(0), rows.back().submitted_ms),
               {difference,
                difference.starts_with('+')   ? Colour::kRed
                : difference.starts_with('-') ? Colour::kGreen
                                              : Colour::kNone}});
  }
  return table.Render(colour);
}

json ToJson(const std::vector<Row>& rows) {
  json jobs = json::array();
  for (const Row& row : rows) {
    jobs.push_back({{"id", row.id},
                    {"name", row.name},
                    {"submittedMs", row.submitted_ms},
                    {"startedMs", row.was_ms ? json(*row.was_ms) : json()},
                    {"wouldStartMs", row.would_be_ms ? json(*row.would_be_ms) : json()}});
  }
  return jobs;
}

void Print(const Context& context,
           const History& history,
           const std::vector<Row>& rows,
           const std::vector<Result>& runs) {
  if (!context.structured()) {
    fmt::print("{}\n{}",
               FormatRows(rows, context.colour),
               FormatRuns(runs, history.workload, context.colour));
    return;
  }
  json object = simulation::ToJson(runs, history.workload);
  object["jobs"] = ToJson(rows);
  fmt::print("{}", context.Structured(object));
}

}  // namespace

absl::StatusOr<simulation::Override> ParseWhatIf(const std::vector<std::string>& changes) {
  simulation::Override result;
  simulation::Setting check;
  for (const std::string& change : changes) {
    const size_t equals = std::min(change.find('='), change.size());
    const std::string key = change.substr(0, equals);
    const std::string value = change.substr(std::min(equals + 1, change.size()));
    if (value.empty()) {
      return InvalidArgument("--what-if {}: {}", change, kAllowed);
    }
    if (key == "strategy") {
      result.strategy = check.strategy = value;
    } else if (key == "policy") {
      result.policy = check.policy = value;
    } else if (key == "nodes") {
      ASSIGN_OR_RETURN(result.more_nodes, ParseNodes(value));
    } else {
      return InvalidArgument("--what-if {}: {}", change, kAllowed);
    }
  }
  RETURN_IF_ERROR(Annotate(simulation::CheckSetting(check), "--what-if"));
  return result;
}

absl::StatusOr<int> PlayWhatIf(const Context& context, const ReplayOptions& options) {
  ASSIGN_OR_RETURN(const simulation::Override change, ParseWhatIf(options.what_if));
  ASSIGN_OR_RETURN(const ReplayInput input,
                   OpenReplay(context, options, {.facts = true, .written = options.plot}));
  ASSIGN_OR_RETURN(const History history, ReadSource(*input.source, input.bounds));
  ASSIGN_OR_RETURN(simulation::Recorded recorded, simulation::ReplayHistory(history));
  ASSIGN_OR_RETURN(Result would_be, simulation::WhatIf(history, change, nullptr));
  const std::vector<Row> rows = Rows(history, recorded.result, would_be);
  const std::vector<Result> runs = {std::move(recorded.result), std::move(would_be)};
  if (options.plot != "-") Print(context, history, rows, runs);
  if (!options.plot.empty()) {
    RETURN_IF_ERROR(WriteTextFile(options.plot,
                                  simulation::PlotWhatIf(runs, history.workload, history.machine)));
  }
  if (recorded.replay.total.different() == 0) return 0;
  fmt::print(stderr,
             "{} of {} decisions are not as recorded\n",
             Thousands(recorded.replay.total.different()),
             Thousands(recorded.replay.total.decisions));
  return 1;
}

}  // namespace fluxqueue::cli
