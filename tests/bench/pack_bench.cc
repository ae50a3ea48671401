// How many gpus a policy leaves unused on a full cluster: libs/simulation/fill.h, with the time
// that it takes.
#include <algorithm>
#include <chrono>
#include <cstdint>
#include <fstream>
#include <optional>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include <CLI/CLI.hpp>
#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "libs/base/status_macros.h"
#include "libs/simulation/fill.h"
#include "libs/trace/openb.h"

namespace fluxqueue::bench {
namespace {

using nlohmann::json;
using simulation::kFillClasses;
using Clock = std::chrono::steady_clock;

std::string ReadText(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  std::ostringstream text;
  text << file.rdbuf();
  return text.str();
}

struct Result {
  simulation::FillResult fill;
  double seconds = 0;  // of each seed
};

void Print(const std::vector<Result>& results, bool as_json) {
  json report = json::array();
  if (!as_json) {
    fmt::print("{:<12}{:>10}{:>18}", "", "gpus left", "of each seed");
    for (const std::string_view name : kFillClasses) fmt::print("{:>12}", name);
    fmt::print("{:>10}\n", "s a seed");
  }
  for (const auto& [fill, seconds] : results) {
    const auto [least, most] = std::minmax_element(fill.left.begin(), fill.left.end());
    json dropped;
    std::string columns;
    for (size_t i = 0; i < kFillClasses.size(); ++i) {
      dropped[std::string(kFillClasses[i])] = fill.Dropped(i);
      columns += fmt::format("{:>10.1f} %", 100 * fill.Dropped(i));
    }
    report.push_back({{"policy", fill.policy},
                      {"gpusLeft", fill.MeanLeft()},
                      {"ofEachSeed", fill.left},
                      {"dropped", dropped},
                      {"seconds", seconds}});
    if (as_json) continue;
    const std::string range = fmt::format("{:.0f} to {:.0f}", *least, *most);
    fmt::print("{:<12}{:>10.0f}{:>18}{}{:>10.1f}\n",
               fill.policy,
               fill.MeanLeft(),
               range,
               columns,
               seconds);
  }
  if (as_json) fmt::print("{}\n", report.dump(2));
}

struct Options {
  std::string nodes = "tests/data/openb_slice_nodes.csv";
  std::string pods = "tests/data/openb_slice_pods.csv";
  std::vector<std::string> policies = {"lonode", "packed"};
  uint64_t seeds = 5;
  uint64_t first_seed = 1;
  std::string mix;
  std::string drift;
  std::optional<double> churn;
  bool forecast = false;
  std::string output = "table";
};

absl::StatusOr<simulation::FillSetting> SettingOf(const Options& options,
                                                  const std::vector<simulation::FillPod>& pods) {
  ASSIGN_OR_RETURN(const simulation::Mix mix, simulation::ParseMix(options.mix));
  ASSIGN_OR_RETURN(simulation::PodDraw draw, simulation::PodDraw::Make(pods, mix));
  simulation::FillSetting setting{
      .pods = std::move(draw), .load = options.churn, .forecasts = options.forecast};
  if (options.drift.empty()) return setting;
  ASSIGN_OR_RETURN(const simulation::Mix later, simulation::ParseMix(options.drift));
  ASSIGN_OR_RETURN(setting.later, simulation::PodDraw::Make(pods, later));
  return setting;
}

absl::StatusOr<std::vector<Result>> Run(const Options& options) {
  ASSIGN_OR_RETURN(const std::vector<trace::TraceNode> nodes,
                   trace::ParseOpenbNodes(ReadText(options.nodes), {.file = options.nodes}));
  ASSIGN_OR_RETURN(const trace::Trace trace,
                   trace::ParseOpenbPods(ReadText(options.pods), {.file = options.pods}));
  if (nodes.empty() || trace.jobs.empty()) {
    return InvalidArgument("{} or {}: names nothing", options.nodes, options.pods);
  }
  const std::vector<simulation::FillPod> pods = simulation::FillPods(trace.jobs);
  ASSIGN_OR_RETURN(const simulation::FillSetting setting, SettingOf(options, pods));
  std::vector<Result> results;
  for (const std::string& policy : options.policies) {
    Result& result = results.emplace_back();
    result.fill.policy = policy;
    const auto begun = Clock::now();
    for (uint64_t i = 0; i < options.seeds; ++i) {
      RETURN_IF_ERROR(simulation::Fill(nodes, pods, setting, options.first_seed + i, &result.fill));
    }
    const std::chrono::duration<double> took = Clock::now() - begun;
    result.seconds = took.count() / static_cast<double>(options.seeds);
  }
  return results;
}

}  // namespace
}  // namespace fluxqueue::bench

int main(int argc, char** argv) {
  using namespace fluxqueue::bench;
  Options options;
  CLI::App app("How many gpus a policy leaves unused.", "fluxqueue-bench-pack");
  app.add_option(
         "--nodes", options.nodes, "A node list of openb; the default is below the repository")
      ->check(CLI::ExistingFile);
  app.add_option("--pods", options.pods, "A pod list of openb")->check(CLI::ExistingFile);
  app.add_option("--policies", options.policies, "lonode is first fit in the order of the nodes")
      ->delimiter(',');
  app.add_option("--seeds", options.seeds, "The mean of so many")->check(CLI::Range(1, 1000));
  app.add_option("--first-seed", options.first_seed, "The others follow")
      ->check(CLI::Range(1, 1'000'000));
  app.add_option("--mix",
                 options.mix,
                 "CLASS=SHARE[,...]: so many of the pods are of a class, drawn from the list's "
                 "(share: part of a gpu; one, several; whole: a whole node; model: names a model)");
  app.add_option("--drift", options.drift, "The mix from the half on; packed is not told of it");
  app.add_option("--churn", options.churn, "Pods end, and ask for this part of all gpus together")
      ->check(CLI::Range(0.01, 2.0));
  app.add_flag(
      "--forecast", options.forecast, "packed goes by the pods that came, not by what it is told");
  app.add_option("-o,--output", options.output)->check(CLI::IsMember({"table", "json"}));
  CLI11_PARSE(app, argc, argv);
  const auto results = Run(options);
  if (!results.ok()) {
    fmt::print(stderr, "{}\n", fluxqueue::Message(results.status()));
    return 1;
  }
  Print(*results, options.output == "json");
  return 0;
}
