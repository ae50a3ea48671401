// What it is worth to know how long jobs run: each strategy on the same generated jobs
// (libs/simulation/generator.h), told the run time, twice of it, and what users ask for, with and
// without predictions. In virtual time, through the cores of the live services.
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <fstream>
#include <iterator>
#include <regex>
#include <string>
#include <utility>
#include <vector>

#include <CLI/CLI.hpp>
#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "libs/base/status_macros.h"
#include "libs/simulation/generator.h"
#include "libs/simulation/run.h"
#include "libs/trace/swf.h"

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace fluxqueue::bench {
namespace {

using simulation::Estimates;
using simulation::GeneratorOptions;
using simulation::Requests;
using simulation::Workload;

struct Options {
  int64_t jobs = 5000;
  int64_t processors = 256;
  double load = 0.9;
  uint64_t first_seed = 1;
  uint64_t seeds = 5;
  std::vector<std::string> strategies = {"fcfs", "easy", "conservative", "hybrid", "adaptive"};
  std::vector<std::string> traces{};  // FILE,PROCESSORS,ARRIVAL-SCALE
  std::string output = "table";
};

// Users who ask so, on which the plans of `told` are compared with predictions.
struct Kind {
  const char* name;
  Requests requests;
  double without_request;
  double liars;
};
constexpr Kind kKinds[] = {{"exact", Requests::kExact, 0, 0},
                           {"uniform", Requests::kUniform, 0, 0},
                           {"modal", Requests::kModal, 0, 0},
                           {"modal, 20 % none", Requests::kModal, 0.2, 0},
                           {"modal, 20 % none, 10 % lie", Requests::kModal, 0.2, 0.1}};
constexpr Millis kDefaultDuration = std::chrono::hours(1);

// Of one setting, on each workload.
struct Cell {
  std::vector<double> slowdowns;
  std::vector<double> waits_p99_s;
};

double GeometricMean(const std::vector<double>& values) {
  double sum = 0;
  for (const double value : values) sum += std::log(std::max(value, 1.0));
  return std::exp(sum / static_cast<double>(values.size()));
}

absl::StatusOr<Workload> WorkloadOf(trace::Trace trace,
                                    const simulation::Machine& machine,
                                    const std::string& file) {
  return simulation::MakeWorkload(std::move(trace), machine, simulation::TooWide::kLeaveOut, file);
}

absl::Status Play(const Workload& workload,
                  const simulation::Machine& machine,
                  const simulation::Setting& setting,
                  Cell* cell) {
  ASSIGN_OR_RETURN(const simulation::Result run,
                   simulation::RunSetting(workload, machine, setting, nullptr));
  cell->slowdowns.push_back(run.summary.all.bounded_slowdown.mean);
  cell->waits_p99_s.push_back(run.summary.all.wait_s.p99);
  return absl::OkStatus();
}

class Table {
 public:
  explicit Table(const Options& options) : json_(options.output == "json") {}

  void Add(const std::string& strategy,
           const std::string& told,
           const Cell& cell,
           const Cell* beside) {
    nlohmann::ordered_json row = {{"strategy", strategy},
                                  {"told", told},
                                  {"bounded_slowdown", GeometricMean(cell.slowdowns)},
                                  {"wait_p99_seconds", GeometricMean(cell.waits_p99_s)}};
    std::string ratio;
    if (beside != nullptr) {
      const double slowdown = GeometricMean(cell.slowdowns) / GeometricMean(beside->slowdowns);
      const double wait = GeometricMean(cell.waits_p99_s) / GeometricMean(beside->waits_p99_s);
      row["slowdown_beside"] = slowdown;
      row["wait_p99_beside"] = wait;
      ratio = fmt::format("{:.2f} | {:.2f}", slowdown, wait);
    } else {
      ratio = " | ";
    }
    rows_.push_back(row);
    if (json_) return;
    if (rows_.size() == 1) {
      fmt::print(
          "| strategy | told | slowdown | p99 wait, h | slowdown beside it | p99 beside it |\n"
          "|---|---|---|---|---|---|\n");
    }
    fmt::print("| {} | {} | {:.1f} | {:.1f} | {} |\n",
               strategy,
               told,
               GeometricMean(cell.slowdowns),
               GeometricMean(cell.waits_p99_s) / 3600,
               ratio);
    (void)std::fflush(stdout);
  }

  void Print() const {
    if (json_) fmt::print("{}\n", nlohmann::ordered_json({{"settings", rows_}}).dump(2));
  }

 private:
  const bool json_;
  std::vector<nlohmann::ordered_json> rows_;
};

absl::StatusOr<Cell> PlayKind(const Options& options,
                              const std::string& strategy,
                              const Kind& kind,
                              Estimates estimates) {
  const simulation::Machine machine = simulation::MachineOfProcessors(options.processors);
  Cell cell;
  for (uint64_t seed = options.first_seed; seed < options.first_seed + options.seeds; ++seed) {
    const GeneratorOptions generator{.seed = seed,
                                     .jobs = options.jobs,
                                     .processors = options.processors,
                                     .load = options.load,
                                     .requests = kind.requests,
                                     .without_request = kind.without_request,
                                     .liars = kind.liars};
    ASSIGN_OR_RETURN(
        const Workload workload,
        WorkloadOf(simulation::Generate(generator), machine, fmt::format("seed {}", seed)));
    RETURN_IF_ERROR(
        Play(workload,
             machine,
             {.strategy = strategy, .estimates = estimates, .default_duration = kDefaultDuration},
             &cell));
  }
  return cell;
}

absl::Status PlayGenerated(const Options& options, const std::string& strategy, Table* table) {
  ASSIGN_OR_RETURN(const Cell twice, PlayKind(options, strategy, kKinds[0], Estimates::kDouble));
  table->Add(strategy, "twice the run time", twice, nullptr);
  for (const Kind& kind : kKinds) {
    ASSIGN_OR_RETURN(const Cell requested,
                     PlayKind(options, strategy, kind, Estimates::kRequested));
    table->Add(strategy, kind.name, requested, nullptr);
    ASSIGN_OR_RETURN(const Cell predicted,
                     PlayKind(options, strategy, kind, Estimates::kPredicted));
    table->Add(strategy, fmt::format("{}, predicted", kind.name), predicted, &requested);
  }
  return absl::OkStatus();
}

// A log, plain text, and the machine that it is played on.
struct Log {
  std::string path;
  int64_t processors = 0;
  double arrival_scale = 0;
};

absl::StatusOr<Log> ParseLog(const std::string& text) {
  static const std::regex kForm(R"((.+),([1-9]\d{0,6}),(\d{1,6}(?:\.\d{1,6})?))");
  std::smatch parts;
  if (!std::regex_match(text, parts, kForm) || std::stod(parts[3]) <= 0) {
    return InvalidArgument(
        "--trace is \"{}\"; allowed: FILE,PROCESSORS,ARRIVAL-SCALE, as in nasa.swf,128,0.6", text);
  }
  return Log{parts[1], std::stoll(parts[2]), std::stod(parts[3])};
}

absl::Status PlayLog(const Log& log, const std::string& strategy, Table* table) {
  std::ifstream file(log.path);
  const std::string text((std::istreambuf_iterator<char>(file)), std::istreambuf_iterator<char>());
  ASSIGN_OR_RETURN(trace::Trace trace, trace::ParseSwf(text, {log.path}));
  const simulation::Machine machine = simulation::MachineOfProcessors(log.processors);
  ASSIGN_OR_RETURN(const Workload workload, WorkloadOf(std::move(trace), machine, log.path));
  simulation::Setting setting{.strategy = strategy, .arrival_scale = log.arrival_scale};
  const std::string name = log.path.substr(log.path.find_last_of('/') + 1);
  const auto compare = [&](const char* what, Estimates told) {
    Cell said;
    Cell predicted;
    setting.estimates = told;
    RETURN_IF_ERROR(Play(workload, machine, setting, &said));
    setting.estimates = Estimates::kPredicted;
    RETURN_IF_ERROR(Play(workload, machine, setting, &predicted));
    table->Add(strategy, fmt::format("{}, {}", name, what), said, nullptr);
    table->Add(strategy, fmt::format("{}, {}, predicted", name, what), predicted, &said);
    return absl::OkStatus();
  };
  RETURN_IF_ERROR(compare("exact", Estimates::kExact));
  setting.default_duration = kDefaultDuration;
  return compare("told nothing (1 h)", Estimates::kRequested);
}

absl::Status PlayAll(const Options& options, Table* table) {
  std::vector<Log> logs;
  for (const std::string& trace : options.traces) {
    ASSIGN_OR_RETURN(logs.emplace_back(), ParseLog(trace));
  }
  for (const std::string& strategy : options.strategies) {
    if (logs.empty()) RETURN_IF_ERROR(PlayGenerated(options, strategy, table));
    for (const Log& log : logs) RETURN_IF_ERROR(PlayLog(log, strategy, table));
  }
  return absl::OkStatus();
}

int Run(int argc, char** argv) {
  Options options;
  CLI::App app("How strategies do with what they are told of durations.");
  app.add_option("--jobs", options.jobs)->check(CLI::Range(1, 1'000'000));
  app.add_option("--processors", options.processors)->check(CLI::Range(2, 1'000'000));
  app.add_option("--load", options.load)->check(CLI::Range(0.01, 2.0));
  app.add_option("--first-seed", options.first_seed);
  app.add_option("--seeds", options.seeds)->check(CLI::Range(1, 1000));
  app.add_option("--strategies", options.strategies)->delimiter(',');
  app.add_option("--trace", options.traces, "FILE,PROCESSORS,ARRIVAL-SCALE of an SWF log");
  app.add_option("-o,--output", options.output)->check(CLI::IsMember({"table", "json"}));
  CLI11_PARSE(app, argc, argv);
  Table table(options);
  if (const absl::Status played = PlayAll(options, &table); !played.ok()) {
    fmt::print(stderr, "fluxqueue-bench-durations: {}\n", Message(played));
    return 2;
  }
  table.Print();
  return 0;
}

}  // namespace
}  // namespace fluxqueue::bench

int main(int argc, char** argv) {
  return fluxqueue::bench::Run(argc, argv);
}
