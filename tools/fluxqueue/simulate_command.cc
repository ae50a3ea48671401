// fluxqueue simulate: a trace in virtual time, through the cores of the live services.
#include <algorithm>
#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <unistd.h>

#include "libs/base/status_macros.h"
#include "libs/config/units.h"
#include "libs/scheduling/queue_tree.h"
#include "libs/scheduling/strategy.h"
#include "libs/simulation/fill.h"
#include "libs/simulation/history.h"
#include "libs/simulation/plots.h"
#include "libs/simulation/report.h"
#include "libs/simulation/run.h"
#include "libs/trace/openb.h"
#include "libs/trace/swf.h"

#include "tools/fluxqueue/commands.h"
#include "tools/fluxqueue/load/progress_line.h"
#include "tools/fluxqueue/load/trace_file.h"
#include "tools/fluxqueue/simulate_tables.h"
#include "tools/fluxqueue/table.h"
#include "tools/fluxqueue/text_file.h"

namespace fluxqueue::cli {
namespace {

using simulation::Machine;
using simulation::Setting;
using simulation::Workload;

constexpr int64_t kMostProcessors = 10'000'000;
constexpr Millis kLeastDuration = std::chrono::seconds(1);
constexpr Millis kMostDuration = std::chrono::hours(100 * 365 * 24);

struct Options {
  std::string jobs{};
  std::string format = "swf";
  std::string nodes{};
  int64_t processors = 0;
  // Empty: not given, which is fcfs, first and exact, and of events what the log has.
  std::vector<std::string> strategies{};
  std::vector<std::string> policies{};
  std::vector<std::string> estimates{};
  std::optional<double> arrival_scale{};
  std::string default_duration{};
  std::optional<uint32_t> depth{};
  std::optional<uint32_t> reservations{};
  std::vector<int32_t> queues{};
  std::string order{};
  std::string reserve_after{};
  bool skip_too_wide = false;
  bool fill = false;
  uint64_t seeds = 5;
  std::string svg{};
  std::string html{};
};

// How far a setting is, on a terminal; nothing elsewhere.
class Progress {
 public:
  Progress(std::string setting, size_t jobs) : setting_(std::move(setting)), jobs_(jobs) {}

  void Show(size_t over) {
    const auto now = std::chrono::steady_clock::now();
    if (now < next_) return;
    next_ = now + std::chrono::milliseconds(200);
    const std::chrono::duration<double> took = now - begun_;
    line_.Show(fmt::format("{}: {} of {} jobs ({} %), {} jobs/s",
                           setting_,
                           Thousands(over),
                           Thousands(jobs_),
                           100 * over / jobs_,
                           Thousands(static_cast<uint64_t>(static_cast<double>(over) /
                                                           std::max(took.count(), 1e-3)))));
  }

 private:
  const std::string setting_;
  const size_t jobs_;
  const std::chrono::steady_clock::time_point begun_ = std::chrono::steady_clock::now();
  std::chrono::steady_clock::time_point next_{};
  load::ProgressLine line_;
};

absl::StatusOr<Machine> ReadMachine(const Options& options) {
  if (options.nodes.empty() == (options.processors == 0)) {
    return InvalidArgument("the machine: give either --processors N or --nodes FILE");
  }
  if (options.processors > 0) return simulation::MachineOfProcessors(options.processors);
  ASSIGN_OR_RETURN(const std::string text, load::ReadTraceFile(options.nodes));
  if (!options.nodes.ends_with(".csv")) {
    return simulation::MachineOfKubernetes(text, options.nodes);
  }
  ASSIGN_OR_RETURN(const std::vector<trace::TraceNode> nodes,
                   trace::ParseOpenbNodes(text, {options.nodes}));
  if (nodes.empty()) return InvalidArgument("{}: it names no node", options.nodes);
  return simulation::MachineOfTrace(nodes);
}

absl::StatusOr<trace::Trace> ReadTrace(const Options& options) {
  ASSIGN_OR_RETURN(const std::string text, load::ReadTraceFile(options.jobs));
  if (options.format == "openb") return trace::ParseOpenbPods(text, {options.jobs});
  return trace::ParseSwf(text, {options.jobs});
}

std::vector<std::string> Or(const std::vector<std::string>& given, const char* otherwise) {
  return given.empty() ? std::vector<std::string>{otherwise} : given;
}

// 0: none was given.
absl::StatusOr<Millis> DefaultDuration(const Options& options) {
  if (options.default_duration.empty()) return Millis(0);
  const absl::StatusOr<Millis> duration = config::ParseDuration(options.default_duration);
  RETURN_IF_ERROR(Annotate(duration.status(), "--default-duration"));
  if (*duration < kLeastDuration || *duration > kMostDuration) {
    return InvalidArgument("--default-duration is {}; allowed: 1s to {}h",
                           options.default_duration,
                           std::chrono::duration_cast<std::chrono::hours>(kMostDuration).count());
  }
  return *duration;
}

// Every combination, each of which exists.
absl::StatusOr<std::vector<Setting>> SettingsOf(const Options& options) {
  ASSIGN_OR_RETURN(const Millis default_duration, DefaultDuration(options));
  std::optional<Millis> reserve_after;
  if (!options.reserve_after.empty()) {
    const absl::StatusOr<Millis> parsed = config::ParseDuration(options.reserve_after);
    RETURN_IF_ERROR(Annotate(parsed.status(), "--reserve-after"));
    reserve_after = *parsed;
  }
  std::vector<Setting> settings;
  for (const std::string& strategy : Or(options.strategies, "fcfs")) {
    for (const std::string& policy : Or(options.policies, "first")) {
      for (const std::string& name : Or(options.estimates, "exact")) {
        ASSIGN_OR_RETURN(const simulation::Estimates estimates, simulation::ParseEstimates(name));
        settings.push_back({.strategy = strategy,
                            .policy = policy,
                            .estimates = estimates,
                            .arrival_scale = options.arrival_scale.value_or(1),
                            .default_duration = default_duration,
                            .queue_depth = options.depth.value_or(0),
                            .reservation_depth = options.reservations.value_or(0),
                            .queues = options.queues,
                            .order = options.order,
                            .reserve_after = reserve_after});
        RETURN_IF_ERROR(simulation::CheckSetting(settings.back()));
      }
    }
  }
  return settings;
}

absl::StatusOr<int> Fill(const Options& options, const Machine& machine, const Context& context) {
  if (options.format != "openb" || machine.Total(trace::kGpuMilli) == 0) {
    return InvalidArgument("--fill is about GPUs: it wants --format openb, and nodes with some");
  }
  ASSIGN_OR_RETURN(const trace::Trace trace, ReadTrace(options));
  const std::vector<simulation::FillPod> pods = simulation::FillPods(trace.jobs);
  if (pods.empty()) return InvalidArgument("{}: it names no pod", options.jobs);
  ASSIGN_OR_RETURN(simulation::PodDraw draw, simulation::PodDraw::Make(pods, {}));
  const simulation::FillSetting setting{.pods = std::move(draw)};
  std::vector<simulation::FillResult> fills;
  for (const std::string& policy : Or(options.policies, "first")) {
    fills.push_back({.policy = policy});
    for (uint64_t seed = 1; seed <= options.seeds; ++seed) {
      RETURN_IF_ERROR(simulation::Fill(machine.offers, pods, setting, seed, &fills.back()));
    }
  }
  fmt::print("{}",
             context.structured() ? context.Structured(simulation::ToJson(fills))
                                  : FormatFills(fills, context.colour));
  return 0;
}

absl::Status Plot(const Options& options,
                  const std::vector<simulation::Result>& runs,
                  const Workload& workload,
                  const Machine& machine) {
  if (!options.svg.empty()) {
    RETURN_IF_ERROR(WriteTextFile(options.svg, simulation::PlotSvg(runs, workload, machine)));
  }
  if (options.html.empty()) return absl::OkStatus();
  const std::string file = options.jobs.substr(options.jobs.find_last_of('/') + 1);
  const std::string title = machine.homogeneous()
                                ? fmt::format("{} on {} processors", file, machine.processors)
                                : fmt::format("{} on {} nodes", file, machine.nodes.size());
  return WriteTextFile(options.html, simulation::PlotHtml(runs, workload, machine, title));
}

absl::StatusOr<simulation::Result> Play(
    const std::string& name,
    size_t jobs,
    const std::function<absl::StatusOr<simulation::Result>(const simulation::Simulator::Progress&)>&
        run) {
  if (isatty(STDERR_FILENO) != 1) return run(nullptr);
  Progress progress(name, jobs);
  return run([&progress](size_t over) { progress.Show(over); });
}

absl::StatusOr<int> Show(const Options& options,
                         const Context& context,
                         const std::vector<simulation::Result>& runs,
                         const Workload& workload,
                         const Machine& machine,
                         const verify::Tally* replayed) {
  RETURN_IF_ERROR(Plot(options, runs, workload, machine));
  if (context.structured()) {
    nlohmann::json report = simulation::ToJson(runs, workload);
    if (replayed != nullptr) {
      report["replay"] = {{"decisions", replayed->decisions},
                          {"identical", replayed->identical},
                          {"in_flight", replayed->in_flight}};
    }
    fmt::print("{}", context.Structured(report));
    return 0;
  }
  fmt::print("{}", FormatRuns(runs, workload, context.colour));
  if (replayed == nullptr) return 0;
  fmt::print("\nas recorded: {} decisions, {} identical{}\n",
             replayed->decisions,
             replayed->identical,
             replayed->in_flight > 0 ? fmt::format(" ({} in flight)", replayed->in_flight) : "");
  return 0;
}

absl::StatusOr<int> RunTrace(const Options& options, const Context& context) {
  // What is wrong with the settings is said before a large file is read.
  ASSIGN_OR_RETURN(const std::vector<Setting> settings, SettingsOf(options));
  ASSIGN_OR_RETURN(const Machine machine, ReadMachine(options));
  if (options.fill) return Fill(options, machine, context);
  ASSIGN_OR_RETURN(trace::Trace trace, ReadTrace(options));
  const auto too_wide =
      options.skip_too_wide ? simulation::TooWide::kLeaveOut : simulation::TooWide::kRefuse;
  ASSIGN_OR_RETURN(const Workload workload,
                   simulation::MakeWorkload(std::move(trace), machine, too_wide, options.jobs));
  std::vector<simulation::Result> runs;
  for (const Setting& setting : settings) {
    ASSIGN_OR_RETURN(runs.emplace_back(),
                     Play(setting.Name(), workload.jobs.size(), [&](const auto& progress) {
                       return simulation::RunSetting(workload, machine, setting, progress);
                     }));
  }
  return Show(options, context, runs, workload, machine, nullptr);
}

// What differs from the log; none: nothing was asked for.
absl::StatusOr<std::vector<simulation::Override>> OverridesOf(const Options& options) {
  std::vector<simulation::Override> overrides;
  const bool any = !options.strategies.empty() || !options.policies.empty() ||
                   options.depth.has_value() || options.reservations.has_value();
  if (!any) return overrides;
  for (const std::string& strategy : Or(options.strategies, "")) {
    for (const std::string& policy : Or(options.policies, "")) {
      simulation::Override& change = overrides.emplace_back();
      Setting check;
      if (!strategy.empty()) change.strategy = check.strategy = strategy;
      if (!policy.empty()) change.policy = check.policy = policy;
      change.queue_depth = options.depth;
      change.reservation_depth = options.reservations;
      RETURN_IF_ERROR(simulation::CheckSetting(check));
    }
  }
  return overrides;
}

absl::StatusOr<int> RunEvents(const Options& options, const Context& context) {
  if (options.processors > 0 || !options.nodes.empty() || !options.estimates.empty() ||
      options.arrival_scale.has_value() || !options.default_duration.empty() ||
      options.skip_too_wide || options.fill || !options.queues.empty() || !options.order.empty() ||
      !options.reserve_after.empty()) {
    return InvalidArgument(
        "--format events: the log has the nodes, the times, the durations and the queues; "
        "--processors, --nodes, --estimates, --arrival-scale, --default-duration, --skip-too-wide, "
        "--queues, --order, --reserve-after and --fill do not go with it");
  }
  ASSIGN_OR_RETURN(const std::vector<simulation::Override> overrides, OverridesOf(options));
  ASSIGN_OR_RETURN(const std::string text, load::ReadTraceFile(options.jobs));
  ASSIGN_OR_RETURN(const simulation::History history, simulation::ReadHistory(text, options.jobs));
  ASSIGN_OR_RETURN(simulation::Recorded recorded, simulation::ReplayHistory(history));
  const verify::Tally& tally = recorded.replay.total;
  std::vector<simulation::Result> runs = {std::move(recorded.result)};
  for (const simulation::Override& change : overrides) {
    ASSIGN_OR_RETURN(runs.emplace_back(),
                     Play(change.Name(), history.workload.jobs.size(), [&](const auto& progress) {
                       return simulation::WhatIf(history, change, progress);
                     }));
  }
  RETURN_IF_ERROR(Show(options, context, runs, history.workload, history.machine, &tally).status());
  if (tally.different() == 0) return 0;
  fmt::print(stderr,
             "the first difference ('-' recorded, '+' replayed): {}",
             verify::DiffText(recorded.replay.differences.front()));
  return 1;
}

void AddInput(CLI::App* sub, Options* options) {
  sub->add_option("--jobs", options->jobs, "The workload; may be gzipped")
      ->type_name("FILE")
      ->required()
      ->check(CLI::ExistingFile);
  sub->add_option(
         "--format",
         options->format,
         "swf: Standard Workload Format; openb: Alibaba's pod list (CSV); events: a pool's log, "
         "as `fluxqueue events dump` writes it")
      ->check(CLI::IsMember({"swf", "openb", "events"}))
      ->capture_default_str();
  sub->add_option("--processors",
                  options->processors,
                  "The machine is so many equal processors: a job fits if enough of them are free")
      ->check(CLI::Range(int64_t{1}, kMostProcessors));
  sub->add_option(
         "--nodes",
         options->nodes,
         "The machine is these nodes: openb's node list (.csv), or what `kubectl get nodes "
         "-o json` or `-o yaml` prints. A job of p processors is p slots of one cpu there")
      ->type_name("FILE")
      ->check(CLI::ExistingFile);
  sub->add_option("--arrival-scale",
                  options->arrival_scale,
                  "Submit times are multiplied by it: 0.6 makes the load higher; 1 if not given")
      ->check(CLI::PositiveNumber);
  sub->add_flag("--skip-too-wide",
                options->skip_too_wide,
                "Leave out jobs that the empty machine has no room for; else one is an error");
}

void AddSettings(CLI::App* sub, Options* options) {
  sub->add_option("--strategy",
                  options->strategies,
                  fmt::format("In which order jobs start: {}; fcfs if not given",
                              scheduling::StrategyNames()))
      ->delimiter(',');
  sub->add_option("--policy",
                  options->policies,
                  "Which of the places that fit: first (if not given), lonode, packed …")
      ->delimiter(',');
  sub->add_option(
         "--estimates",
         options->estimates,
         "What the queue is told of a job's duration: exact, its run time; requested, what "
         "its user asked for (SWF field 9); x2, twice the run time; modal, the next round value "
         "(15 min, 1 h, 4 h …); predicted, as requested, but planned with what the last two like "
         "jobs of the same user took, where that was nearer so far. A job that is told too short "
         "runs on")
      ->delimiter(',');
  sub->add_option("--default-duration",
                  options->default_duration,
                  "What the queue plans with where nothing was asked for, as defaultDuration of a "
                  "FluxQueue (1h); if not given, such jobs are told exactly")
      ->type_name("DURATION");
  sub->add_option(
      "--depth",
      options->depth,
      "Candidates of a cycle, as queueDepth of a FluxQueue; if not given, as one that does not "
      "say");
  sub->add_option("--reservations",
                  options->reservations,
                  "Jobs that may reserve, as reservationDepth of a FluxQueue");
  sub->add_option("--queues",
                  options->queues,
                  "Several queues side by side, by their weights, such as 3,1; each user's jobs "
                  "stand in one of them")
      ->delimiter(',')
      ->check(CLI::Range(1, 1000));
  sub->add_option("--order",
                  options->order,
                  fmt::format("Of the jobs of a queue: {}; priority if not given",
                              scheduling::JobOrderNames()));
  sub->add_option("--reserve-after",
                  options->reserve_after,
                  "When the first of a queue has a reservation whatever the strategy, as "
                  "reserveAfter of a FluxQueue; 0: never; 15m if not given")
      ->type_name("DURATION");
}

void AddOutput(CLI::App* sub, Options* options) {
  sub->add_option("--html", options->html, "Write table and plots as one page that needs no server")
      ->type_name("FILE");
  sub->add_option("--svg", options->svg, "Write the plots as one drawing")->type_name("FILE");
  sub->add_flag(
      "--fill",
      options->fill,
      "Another experiment, of GPUs (openb): pods drawn at random fill the empty machine "
      "and stay, until more GPUs were asked for than there are; those that do not fit are "
      "dropped. Says how many GPUs each --policy leaves unallocated");
  sub->add_option("--seeds", options->seeds, "--fill: the mean of so many draws")
      ->check(CLI::Range(1, 1000))
      ->capture_default_str();
}

constexpr const char* kShort =
    "Run a workload trace in virtual time through the cores of the live services, and compare "
    "strategies";
constexpr const char* kAbout =
    "Each combination of --strategy, --policy and --estimates is a setting: a line of the table "
    "and "
    "a colour of the plots. Wait is from submission to start; bounded slowdown is "
    "max(1, (wait + run) / max(run, 10 s)); utilisation is what jobs used over what there was from "
    "the first submission to the last end; a job is backfilled when it started while one that "
    "stood "
    "before it still waited. The same input gives the same bytes.\n\n"
    "With --format events the log is replayed first, and each decision compared with the recorded "
    "one (exit status 1 when one differs); each --strategy, --policy, --depth or --reservations "
    "then "
    "asks what would have become of the same submissions: jobs start when they are allocated and "
    "run as long as the log saw them run.\n\n"
    "  fluxqueue simulate --jobs NASA.swf.gz --processors 128 --arrival-scale 0.6 \\\n"
    "    --strategy fcfs,easy --html nasa.html\n"
    "  fluxqueue simulate --format openb --jobs pods.csv --nodes nodes.csv --fill \\\n"
    "    --policy first,lonode,packed\n"
    "  fluxqueue events dump default log.gz\n"
    "  fluxqueue simulate --format events --jobs log.gz --strategy fcfs";

}  // namespace

void RegisterSimulate(CLI::App& app, Context& context) {
  const auto options = std::make_shared<Options>();
  CLI::App* sub = app.add_subcommand("simulate", kShort);
  sub->group("Planning");
  sub->footer(kAbout);
  AddInput(sub, options.get());
  AddSettings(sub, options.get());
  AddOutput(sub, options.get());
  sub->callback([&context, options] {
    context.command = [&context, options] {
      return options->format == "events" ? RunEvents(*options, context)
                                         : RunTrace(*options, context);
    };
  });
}

}  // namespace fluxqueue::cli
