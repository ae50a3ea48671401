// fluxqueue-bench: what tools/bench runs once everything stands. Exit status 1: the figures are
// worthless, as jobs are missing; 2: it could not do its work. A target that is missed is no error.
#include <cstdio>
#include <fstream>
#include <string>
#include <utility>
#include <vector>

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include "libs/base/log.h"
#include "libs/base/status_macros.h"
#include "tests/bench/e2e_bench.h"
#include "tests/bench/fake_cluster.h"
#include "tests/bench/pipeline_bench.h"

namespace fluxqueue::bench {
namespace {

using Json = nlohmann::ordered_json;

constexpr int kCannot = 2;

absl::StatusOr<Json> ReadJson(const std::string& path) {
  std::ifstream file(path);
  Json json = Json::parse(file, nullptr, /*allow_exceptions=*/false);
  if (json.is_object()) return json;
  return InvalidArgument("{}: is not what \"fluxqueue-bench play\" has written", path);
}

int Print(const absl::StatusOr<Report>& report, bool json) {
  if (!report.ok()) {
    fmt::print(stderr, "fluxqueue-bench: {}\n", Message(report.status()));
    return kCannot;
  }
  fmt::print("{}\n", json ? report->JsonText() : report->Table());
  return report->sound() ? 0 : 1;
}

int Play(const E2eOptions& options, const std::string& result) {
  const absl::StatusOr<Json> figures = PlayE2e(options);
  if (!figures.ok()) {
    fmt::print(stderr, "fluxqueue-bench: {}\n", Message(figures.status()));
    return kCannot;
  }
  std::ofstream(result) << figures->dump(2) << '\n';
  return 0;
}

absl::StatusOr<Report> Compare(const std::vector<std::string>& plain,
                               const std::vector<std::string>& managed) {
  std::vector<Json> sides[2];
  for (const auto& [paths, runs] : {std::pair(&plain, &sides[0]), std::pair(&managed, &sides[1])}) {
    for (const std::string& path : *paths) {
      ASSIGN_OR_RETURN(Json run, ReadJson(path));
      runs->push_back(std::move(run));
    }
  }
  return CompareE2e(sides[0], sides[1]);
}

}  // namespace
}  // namespace fluxqueue::bench

int main(int argc, char** argv) {
  using namespace fluxqueue;
  using namespace fluxqueue::bench;
  InitLog("bench", LogLevel::kWarning, LogFormat::kText);
  CLI::App app("Measures a running stack; tools/bench starts one and calls this.");
  app.require_subcommand(1);
  std::string output = "table";
  const auto add_output = [&](CLI::App* command) {
    command->add_option("-o,--output", output)->check(CLI::IsMember({"table", "json"}));
  };

  PipelineOptions pipeline;
  CLI::App* const run =
      app.add_subcommand("pipeline", "the services alone, with a fake API server");
  run->add_option("--stack", pipeline.stack)->required();
  run->add_option("--jobs", pipeline.jobs)->check(CLI::Range(1, 1'000'000));
  run->add_option("--nodes", pipeline.nodes)->check(CLI::Range(1, 100'000));
  run->add_option("--waiting", pipeline.waiting)->check(CLI::Range(0, 1'000'000));
  run->add_option("--per-node", pipeline.per_node)->check(CLI::Range(1, kNodeCpu));
  run->add_option("--running", pipeline.running)->check(CLI::Range(0, 1'000'000));
  run->add_option("--timeout", pipeline.timeout_s)->check(CLI::Range(1, 86'400));
  add_output(run);

  E2eOptions e2e;
  std::string result;
  CLI::App* const play = app.add_subcommand("play", "one side of e2e");
  play->add_option("--stack", e2e.stack)->required();
  play->add_option("--jobs", e2e.jobs)->check(CLI::Range(1, 1'000'000));
  play->add_option("--gangs", e2e.gangs)->check(CLI::Range(1, 1'000'000));
  play->add_option("--single", e2e.single)->check(CLI::Range(1, 100'000));
  play->add_option("--replicas", e2e.replicas)->check(CLI::Range(0, 100'000));
  play->add_option("--timeout", e2e.timeout_s)->check(CLI::Range(1, 86'400));
  play->add_flag("--managed", e2e.managed, "through Fluxqueue");
  play->add_option("--result", result, "where its figures go")->required();

  std::vector<std::string> plain, managed;
  CLI::App* const compare = app.add_subcommand("compare", "both sides of e2e, some runs of each");
  compare->add_option("--plain", plain)->required();
  compare->add_option("--fluxqueue", managed)->required();
  add_output(compare);

  CLI11_PARSE(app, argc, argv);
  if (play->parsed()) return Play(e2e, result);
  return Print(run->parsed() ? RunPipeline(pipeline) : Compare(plain, managed), output == "json");
}
