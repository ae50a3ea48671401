#include <fstream>
#include <iostream>
#include <memory>
#include <sstream>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <unistd.h>

#include "libs/base/status_macros.h"

#include "tools/fluxqueue/commands.h"
#include "tools/fluxqueue/match/match_shell.h"

namespace fluxqueue::cli {
namespace {

absl::StatusOr<std::string> ReadFile(const std::string& name) {
  std::ifstream file(name, std::ios::binary);
  if (!file) return InvalidArgument("{}: cannot be read", name);
  std::ostringstream content;
  content << file.rdbuf();
  return content.str();
}

absl::StatusOr<int> Run(const MatchOptions& options,
                        const std::string& operation,
                        const std::vector<std::string>& jobspecs) {
  ASSIGN_OR_RETURN(MatchShell shell, MatchShell::Make(options, ReadFile));
  if (jobspecs == std::vector<std::string>{"-"}) {
    return shell.Run(std::cin, std::cout, isatty(STDIN_FILENO) != 0);
  }
  for (const std::string& jobspec : jobspecs) {
    ASSIGN_OR_RETURN(const std::string answer, shell.Do({"match", operation, jobspec}));
    fmt::print("{}", answer);
  }
  return shell.refused() ? 1 : 0;
}

}  // namespace

void RegisterMatch(CLI::App& app, Context& context) {
  struct Options {
    MatchOptions match;
    std::string engine = "native";
    std::string operation = "allocate_with_satisfiability";
    std::vector<std::string> jobspecs;
  };
  const auto options = std::make_shared<Options>();
  CLI::App* sub = app.add_subcommand(
      "match", "Match jobspecs on a graph, without any service; exit 1 if one finds no place");
  sub->group("Planning");
  sub->footer(
      "Needs no system.\n\n"
      "Examples:\n"
      "  fluxqueue match --graph tiny.json job.yaml\n"
      "  fluxqueue match --graph tiny.json --policy lonode - <commands");
  sub->add_option("--graph", options->match.graph, "JGF, or R version 1")
      ->type_name("FILE")
      ->required();
  sub->add_option("--policy", options->match.policy, "Which of the places that fit: first, low …")
      ->capture_default_str();
  sub->add_option("--engine", options->engine, "Which engine finds the places")
      ->check(CLI::IsMember({"native", "fluxion"}))
      ->capture_default_str();
  sub->add_option("--library", options->match.library, "The engine fluxion's: libreapi_cli.so")
      ->type_name("FILE");
  sub->add_option("--operation", options->operation, "As `match` has it among the commands")
      ->capture_default_str();
  sub->add_option("--format",
                  options->match.format,
                  "rv1, rv1_nosched, rlite, jgf or simple, instead of a drawing");
  sub->add_option("JOBSPEC", options->jobspecs, "YAML or JSON files; -: commands, see `help` there")
      ->required();
  sub->callback([&context, options] {
    context.command = [&context, options]() -> absl::StatusOr<int> {
      if ((options->engine == "fluxion") != !options->match.library.empty()) {
        return InvalidArgument("--engine fluxion and --library FILE go together");
      }
      options->match.json = context.structured();
      return Run(options->match, options->operation, options->jobspecs);
    };
  });
}

}  // namespace fluxqueue::cli
