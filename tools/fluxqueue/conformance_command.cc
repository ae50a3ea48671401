#include <fstream>
#include <sstream>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "libs/base/status_macros.h"
#include "libs/conformance/fluxion_target.h"
#include "libs/conformance/scenario.h"

#include "tools/fluxqueue/commands.h"
#include "tools/fluxqueue/transcripts_command.h"

namespace fluxqueue::cli {
namespace {

using conformance::ScenarioResult;
using nlohmann::json;

struct Set {
  std::string directory;
  size_t steps = 0;
  std::vector<ScenarioResult> scenarios;

  size_t Count(bool ScenarioResult::*same) const {
    size_t count = 0;
    for (const ScenarioResult& scenario : scenarios) count += scenario.*same ? 1 : 0;
    return count;
  }
};

absl::StatusOr<std::string> ReadFile(const std::string& name) {
  std::ifstream file(name, std::ios::binary);
  if (!file) {
    return InvalidArgument("{}: cannot be read; a set has scenarios.jsonl, graphs and jobspecs",
                           name);
  }
  std::ostringstream content;
  content << file.rdbuf();
  return content.str();
}

absl::StatusOr<Set> Play(const std::string& directory, const conformance::MakeTarget& make) {
  Set set;
  set.directory = directory;
  ASSIGN_OR_RETURN(const std::string lines, ReadFile(directory + "/scenarios.jsonl"));
  std::istringstream stream(lines);
  std::string line;
  while (std::getline(stream, line)) {
    const auto read = [&](const std::string& name) {
      return ReadFile(fmt::format("{}/{}", directory, name));
    };
    absl::StatusOr<ScenarioResult> result = conformance::PlayScenario(line, read, make);
    if (!result.ok()) {
      return Annotate(result.status(),
                      fmt::format("{}/scenarios.jsonl:{}", directory, set.scenarios.size() + 1));
    }
    set.steps += result->steps;
    set.scenarios.push_back(*std::move(result));
  }
  return set;
}

json ToJson(const Set& set) {
  json differences = json::array();
  for (size_t i = 0; i < set.scenarios.size(); ++i) {
    const ScenarioResult& scenario = set.scenarios[i];
    if (!scenario.first.has_value()) continue;
    differences.push_back({{"scenario", i + 1},
                           {"what", scenario.what},
                           {"step", scenario.first->step},
                           {"operation", scenario.first->operation},
                           {"expected", json::parse(scenario.first->expected)},
                           {"given", json::parse(scenario.first->given)}});
  }
  return {{"set", set.directory},
          {"scenarios", set.scenarios.size()},
          {"steps", set.steps},
          {"outcome", set.Count(&ScenarioResult::same_outcome)},
          {"placement", set.Count(&ScenarioResult::same_placement)},
          {"differences", std::move(differences)}};
}

void Print(const Set& set, bool verbose) {
  for (size_t i = 0; verbose && i < set.scenarios.size(); ++i) {
    const ScenarioResult& scenario = set.scenarios[i];
    if (!scenario.first.has_value()) continue;
    fmt::print("scenario {}, {}\n  step {}, {}\n    expected {}\n    given    {}\n",
               i + 1,
               scenario.what,
               scenario.first->step,
               scenario.first->operation,
               scenario.first->expected,
               scenario.first->given);
  }
  const size_t all = set.scenarios.size();
  fmt::print("{}: outcome {}/{} scenarios, placement {}/{} scenarios ({} steps)\n",
             set.directory,
             set.Count(&ScenarioResult::same_outcome),
             all,
             set.Count(&ScenarioResult::same_placement),
             all,
             set.steps);
}

absl::StatusOr<int> Run(const Context& context,
                        const conformance::MakeTarget& make,
                        const std::vector<std::string>& directories,
                        bool verbose) {
  bool equal = true;
  json report = json::array();
  for (const std::string& directory : directories) {
    ASSIGN_OR_RETURN(const Set set, Play(directory, make));
    equal = equal && set.Count(&ScenarioResult::same_placement) == set.scenarios.size();
    if (context.structured()) {
      report.push_back(ToJson(set));
    } else {
      Print(set, verbose);
    }
  }
  if (context.structured()) fmt::print("{}", context.Structured(report));
  return equal ? 0 : 1;
}

}  // namespace

void RegisterConformance(CLI::App& app, Context& context) {
  struct Options {
    std::vector<std::string> directories;
    std::string engine;
    std::string library;
    bool verbose = false;
  };
  const auto options = std::make_shared<Options>();
  CLI::App* sub = app.add_subcommand(
      "conformance", "Play recorded answers of Fluxion on an engine; exit 1 if one differs");
  sub->group("Planning");
  sub->add_option("DIR",
                  options->directories,
                  "A set: scenarios.jsonl, graphs and jobspecs; or, with only --library, "
                  "transcripts.jsonl.gz")
      ->required()
      ->check(CLI::ExistingDirectory);
  sub->add_option("--engine", options->engine, "Play scenarios on it (default: native)")
      ->check(CLI::IsMember({"native", "fluxion"}));
  sub->add_option(
      "--library",
      options->library,
      "A library with Fluxion's C interface: the engine fluxion's; without --engine, play "
      "recorded calls on it");
  sub->add_flag(
      "-v,--verbose", options->verbose, "Show where each scenario or sequence first differs");
  sub->callback([&context, options] {
    context.command = [&context, options]() -> absl::StatusOr<int> {
      if (options->engine == "fluxion") {
        if (options->library.empty()) {
          return InvalidArgument("--engine fluxion: --library must name libreapi_cli.so");
        }
        ASSIGN_OR_RETURN(auto library, fluxion::Library::Open(options->library));
        return Run(context,
                   conformance::MakeFluxionTargets(std::move(library)),
                   options->directories,
                   options->verbose);
      }
      if (options->engine.empty() && !options->library.empty()) {
        return PlayTranscripts(context, options->library, options->directories, options->verbose);
      }
      return Run(context, conformance::MakeNativeTarget, options->directories, options->verbose);
    };
  });
}

}  // namespace fluxqueue::cli
