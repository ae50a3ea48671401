// Whether `adaptive` holds what it promises: far less slowdown than `easy`, for hardly a longer p99
// wait, on generated workloads (libs/simulation/generator.h) of each kind; where several queues
// share the pool, with the shares that they have without it; and nothing for who declares too
// little. In virtual time, through the cores of the live services.
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <string>
#include <vector>

#include <CLI/CLI.hpp>
#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "libs/base/status_macros.h"
#include "libs/simulation/generator.h"
#include "libs/simulation/run.h"

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace fluxqueue::bench {
namespace {

using simulation::Estimates;
using simulation::GeneratorOptions;
using simulation::Machine;
using simulation::Requests;
using simulation::Result;
using simulation::Setting;
using simulation::Workload;

struct Options {
  int64_t jobs = 3000;
  int64_t processors = 256;
  double load = 0.9;
  uint64_t first_seed = 1;
  uint64_t seeds = 4;
  std::vector<std::string> kinds{};
  uint32_t rules = 0;
  std::string output = "table";
};

// What is wanted: at most this part of easy's mean slowdown, and at most this much more p99 wait.
struct Kind {
  const char* name;
  double slowdown;
  double p99_percent;
  Requests requests = Requests::kExact;
  double liars = 0;
  double failures = 0;
  double drift = 1;
  bool gpus = false;
  std::vector<int32_t> queues{};
};

const std::vector<Kind>& Kinds() {
  static const std::vector<Kind> kinds = {
      {.name = "exact", .slowdown = 0.40, .p99_percent = 2},
      {.name = "uniform", .slowdown = 0.50, .p99_percent = 5, .requests = Requests::kUniform},
      {.name = "modal", .slowdown = 0.50, .p99_percent = 5, .requests = Requests::kModal},
      {.name = "harsh",
       .slowdown = 0.50,
       .p99_percent = 5,
       .requests = Requests::kModal,
       .liars = 0.1,
       .failures = 0.1,
       .drift = 2},
      {.name = "gpus",
       .slowdown = 0.60,
       .p99_percent = 5,
       .requests = Requests::kUniform,
       .gpus = true},
      {.name = "two queues", .slowdown = 0.60, .p99_percent = 5, .queues = {1, 1}},
      {.name = "five queues", .slowdown = 0.60, .p99_percent = 5, .queues = {5, 4, 3, 2, 1}}};
  return kinds;
}

constexpr int64_t kGpusOfNode = 8;
// Who says 1 s of each job: neither one of those who submit most nor of those who submit least.
constexpr int64_t kLiar = 4;
constexpr const char* kLiarKind = "liar";

Machine MachineOf(const Options& options, bool gpus) {
  if (!gpus) return simulation::MachineOfProcessors(options.processors);
  std::vector<trace::TraceNode> nodes;
  for (int64_t i = 0; i < std::max<int64_t>(1, options.processors / kGpusOfNode); ++i) {
    nodes.push_back({fmt::format("node-{:03}", i),
                     {{"cpu", kGpusOfNode * simulation::kCpusOfGpu * 1000},
                      {std::string(trace::kGpuMilli), kGpusOfNode * 1000}},
                     ""});
  }
  return simulation::MachineOfTrace(nodes);
}

absl::StatusOr<Workload> WorkloadOf(const GeneratorOptions& generator,
                                    const Machine& machine,
                                    bool gpus) {
  trace::Trace trace = simulation::Generate(generator);
  if (gpus) simulation::MakeGpuGangs(kGpusOfNode, &trace);
  return simulation::MakeWorkload(std::move(trace),
                                  machine,
                                  simulation::TooWide::kLeaveOut,
                                  fmt::format("seed {}", generator.seed));
}

// What one workload came to under adaptive beside easy.
struct Beside {
  double slowdown = 1;
  double p99_percent = 0;
  double class_max_percent = 0;  // the longest wait of the class of sizes that fares worst
  double share_points = 0;       // the queue whose share is farthest off
};

double PercentMore(double value, double beside) {
  return 100 * (std::max(value, 1.0) / std::max(beside, 1.0) - 1);
}

Beside Compare(const Result& adaptive, const Result& easy) {
  Beside beside;
  beside.slowdown =
      adaptive.summary.all.bounded_slowdown.mean / easy.summary.all.bounded_slowdown.mean;
  beside.p99_percent = PercentMore(adaptive.summary.all.wait_s.p99, easy.summary.all.wait_s.p99);
  beside.class_max_percent = -100;
  for (size_t i = 0; i < easy.summary.classes.size(); ++i) {
    beside.class_max_percent = std::max(beside.class_max_percent,
                                        PercentMore(adaptive.summary.classes[i].second.wait_s.max,
                                                    easy.summary.classes[i].second.wait_s.max));
  }
  for (size_t i = 0; i < easy.summary.queues.size(); ++i) {
    beside.share_points =
        std::max(beside.share_points,
                 100 * std::abs(adaptive.summary.queues[i].share - easy.summary.queues[i].share));
  }
  return beside;
}

class Table {
 public:
  explicit Table(const Options& options) : json_(options.output == "json") {}

  void Add(const Kind& kind, const std::vector<Beside>& all) {
    double logarithm = 0;
    double p99 = 0;
    Beside worst{.slowdown = 0, .p99_percent = -100, .class_max_percent = -100};
    size_t p99_held = 0;
    nlohmann::ordered_json each;
    for (const Beside& one : all) {
      logarithm += std::log(one.slowdown) / static_cast<double>(all.size());
      p99 += one.p99_percent / static_cast<double>(all.size());
      worst.slowdown = std::max(worst.slowdown, one.slowdown);
      worst.p99_percent = std::max(worst.p99_percent, one.p99_percent);
      worst.class_max_percent = std::max(worst.class_max_percent, one.class_max_percent);
      worst.share_points = std::max(worst.share_points, one.share_points);
      if (one.p99_percent <= kind.p99_percent) ++p99_held;
      each.push_back({{"slowdown", one.slowdown},
                      {"p99_percent", one.p99_percent},
                      {"class_max_percent", one.class_max_percent},
                      {"share_points", one.share_points}});
    }
    const double slowdown = std::exp(logarithm);
    rows_.push_back({{"kind", kind.name},
                     {"slowdown_beside_easy", slowdown},
                     {"slowdown_goal", kind.slowdown},
                     {"p99_goal_percent", kind.p99_percent},
                     {"p99_held", p99_held},
                     {"workloads", each}});
    if (json_) return;
    if (rows_.size() == 1) {
      fmt::print(
          "| workloads | slowdown beside easy | worst | goal | p99 wait, % more | worst | goal | "
          "held | longest of a class, worst % | share off, points |\n"
          "|---|---|---|---|---|---|---|---|---|---|\n");
    }
    fmt::print(
        "| {} | {:.2f} | {:.2f} | {:.2f} | {:+.1f} | {:+.1f} | {:+.0f} | {} of {} | {:+.1f} | {} "
        "|\n",
        kind.name,
        slowdown,
        worst.slowdown,
        kind.slowdown,
        p99,
        worst.p99_percent,
        kind.p99_percent,
        p99_held,
        all.size(),
        worst.class_max_percent,
        kind.queues.empty() ? "" : fmt::format("{:.2f}", worst.share_points));
    (void)std::fflush(stdout);
  }

  void AddLiar(const std::vector<double>& gains) {
    double logarithm = 0;
    for (const double gain : gains) logarithm += std::log(gain) / static_cast<double>(gains.size());
    const double mean = std::exp(logarithm);
    const double least = *std::min_element(gains.begin(), gains.end());
    rows_.push_back({{"kind", kLiarKind}, {"slowdown_beside_honest", mean}, {"each", gains}});
    if (json_) return;
    fmt::print(
        "\nWho says 1 s of each job has {:.2f} of the mean slowdown that he has when he is honest "
        "(geometric mean; least {:.2f}; goal: at least 1).\n",
        mean,
        least);
  }

  void Print() const {
    if (json_) fmt::print("{}\n", nlohmann::ordered_json({{"rows", rows_}}).dump(2));
  }

 private:
  const bool json_;
  std::vector<nlohmann::ordered_json> rows_;
};

GeneratorOptions GeneratorOf(const Options& options, uint64_t seed) {
  return {
      .seed = seed, .jobs = options.jobs, .processors = options.processors, .load = options.load};
}

absl::Status PlayKind(const Options& options, const Kind& kind, uint64_t first_seed, Table* table) {
  const Machine machine = MachineOf(options, kind.gpus);
  std::vector<Beside> all;
  for (uint64_t seed = first_seed; seed < first_seed + options.seeds; ++seed) {
    GeneratorOptions generator = GeneratorOf(options, seed);
    generator.requests = kind.requests;
    generator.liars = kind.liars;
    generator.failures = kind.failures;
    generator.drift = kind.drift;
    ASSIGN_OR_RETURN(const Workload workload, WorkloadOf(generator, machine, kind.gpus));
    Setting setting{.strategy = "easy",
                    .estimates = Estimates::kRequested,
                    .queues = kind.queues,
                    .rules = options.rules};
    if (!kind.queues.empty()) setting.order = "fair-share";
    ASSIGN_OR_RETURN(const Result easy,
                     simulation::RunSetting(workload, machine, setting, nullptr));
    setting.strategy = "adaptive";
    ASSIGN_OR_RETURN(const Result adaptive,
                     simulation::RunSetting(workload, machine, setting, nullptr));
    all.push_back(Compare(adaptive, easy));
  }
  table->Add(kind, all);
  return absl::OkStatus();
}

double SlowdownOf(const std::string& user, const Workload& workload, const Result& run) {
  double sum = 0;
  double jobs = 0;
  for (size_t i = 0; i < workload.jobs.size(); ++i) {
    if (workload.jobs[i].user != user || !simulation::Started(run.outcomes[i])) continue;
    sum += simulation::BoundedSlowdown(simulation::WaitOf(run.outcomes[i]), workload.jobs[i].run_s);
    ++jobs;
  }
  return sum / std::max(jobs, 1.0);
}

absl::Status PlayLiar(const Options& options, uint64_t first_seed, Table* table) {
  const Machine machine = MachineOf(options, false);
  const Setting setting{
      .strategy = "adaptive", .estimates = Estimates::kRequested, .rules = options.rules};
  std::vector<double> gains;
  for (uint64_t seed = first_seed; seed < first_seed + options.seeds; ++seed) {
    GeneratorOptions generator = GeneratorOf(options, seed);
    generator.requests = Requests::kExact;
    double slowdowns[2];
    for (const int64_t liar : {int64_t{0}, kLiar}) {
      generator.one_second_user = liar;
      ASSIGN_OR_RETURN(const Workload workload, WorkloadOf(generator, machine, false));
      ASSIGN_OR_RETURN(const Result run,
                       simulation::RunSetting(workload, machine, setting, nullptr));
      slowdowns[liar == 0 ? 0 : 1] = SlowdownOf(fmt::format("{}", kLiar), workload, run);
    }
    gains.push_back(slowdowns[1] / slowdowns[0]);
  }
  table->AddLiar(gains);
  return absl::OkStatus();
}

absl::Status PlayAll(const Options& options, Table* table) {
  const auto wanted = [&](const std::string& name) {
    return options.kinds.empty() ||
           std::find(options.kinds.begin(), options.kinds.end(), name) != options.kinds.end();
  };
  // No two kinds have a workload in common.
  uint64_t seed = options.first_seed;
  for (const Kind& kind : Kinds()) {
    if (wanted(kind.name)) RETURN_IF_ERROR(PlayKind(options, kind, seed, table));
    seed += options.seeds;
  }
  if (wanted(kLiarKind)) RETURN_IF_ERROR(PlayLiar(options, seed, table));
  return absl::OkStatus();
}

int Run(int argc, char** argv) {
  Options options;
  std::vector<std::string> names = {kLiarKind};
  for (const Kind& kind : Kinds()) names.emplace_back(kind.name);
  CLI::App app("What adaptive is worth beside easy, and what it costs.");
  app.add_option("--jobs", options.jobs)->check(CLI::Range(1, 1'000'000));
  app.add_option("--processors", options.processors)->check(CLI::Range(8, 1'000'000));
  app.add_option("--load", options.load)->check(CLI::Range(0.01, 2.0));
  app.add_option("--first-seed", options.first_seed);
  app.add_option("--seeds", options.seeds, "Workloads of each kind")->check(CLI::Range(1, 1000));
  app.add_option("--kinds", options.kinds)->delimiter(',')->check(CLI::IsMember(names));
  app.add_option("--rules", options.rules, "By which adaptive decides; 0: the latest")
      ->check(CLI::Range(0, 99));
  app.add_option("-o,--output", options.output)->check(CLI::IsMember({"table", "json"}));
  CLI11_PARSE(app, argc, argv);
  Table table(options);
  if (const absl::Status played = PlayAll(options, &table); !played.ok()) {
    fmt::print(stderr, "fluxqueue-bench-adaptive: {}\n", Message(played));
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
