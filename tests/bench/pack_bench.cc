// How many gpus a policy leaves unused on a full cluster: libs/simulation/fill.h, with the time
// that it takes.
#include <algorithm>
#include <chrono>
#include <cstdint>
#include <fstream>
#include <sstream>
#include <string>
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

absl::StatusOr<std::vector<Result>> Run(const std::string& nodes_path,
                                        const std::string& pods_path,
                                        const std::vector<std::string>& policies,
                                        uint64_t seeds) {
  ASSIGN_OR_RETURN(const std::vector<trace::TraceNode> nodes,
                   trace::ParseOpenbNodes(ReadText(nodes_path), {.file = nodes_path}));
  ASSIGN_OR_RETURN(const trace::Trace trace,
                   trace::ParseOpenbPods(ReadText(pods_path), {.file = pods_path}));
  if (nodes.empty() || trace.jobs.empty()) {
    return InvalidArgument("{} or {}: names nothing", nodes_path, pods_path);
  }
  const std::vector<simulation::FillPod> pods = simulation::FillPods(trace.jobs);
  std::vector<Result> results;
  for (const std::string& policy : policies) {
    Result& result = results.emplace_back();
    result.fill.policy = policy;
    const auto begun = Clock::now();
    for (uint64_t seed = 1; seed <= seeds; ++seed) {
      RETURN_IF_ERROR(simulation::Fill(nodes, pods, seed, &result.fill));
    }
    const std::chrono::duration<double> took = Clock::now() - begun;
    result.seconds = took.count() / static_cast<double>(seeds);
  }
  return results;
}

}  // namespace
}  // namespace fluxqueue::bench

int main(int argc, char** argv) {
  using namespace fluxqueue::bench;
  std::string nodes_path = "tests/data/openb_slice_nodes.csv";
  std::string pods_path = "tests/data/openb_slice_pods.csv";
  std::vector<std::string> policies = {"lonode", "packed"};
  uint64_t seeds = 5;
  std::string output = "table";
  CLI::App app("How many gpus a policy leaves unused.", "fluxqueue-bench-pack");
  app.add_option("--nodes", nodes_path, "A node list of openb; the default is below the repository")
      ->check(CLI::ExistingFile);
  app.add_option("--pods", pods_path, "A pod list of openb")->check(CLI::ExistingFile);
  app.add_option("--policies", policies, "lonode is first fit in the order of the nodes")
      ->delimiter(',');
  app.add_option("--seeds", seeds, "The mean of so many")->check(CLI::Range(1, 1000));
  app.add_option("-o,--output", output)->check(CLI::IsMember({"table", "json"}));
  CLI11_PARSE(app, argc, argv);
  const auto results = Run(nodes_path, pods_path, policies, seeds);
  if (!results.ok()) {
    fmt::print(stderr, "{}\n", fluxqueue::Message(results.status()));
    return 1;
  }
  Print(*results, output == "json");
  return 0;
}
