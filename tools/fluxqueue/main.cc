// fluxqueue: the command line. What a subcommand is stands in context.h.
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <filesystem>
#include <iostream>
#include <memory>

#include <fmt/format.h>
#include <unistd.h>

#include "libs/base/log.h"
#include "libs/base/status_macros.h"

#include "tools/fluxqueue/commands.h"
#include "tools/fluxqueue/manual.h"
#include "tools/fluxqueue/rebuild_command.h"
#include "tools/fluxqueue/terminal.h"

namespace fluxqueue::cli {
namespace {

constexpr int kCannot = 2;

// In the order in which help lists them.
constexpr void (*kCommands[])(CLI::App&, Context&) = {
    RegisterJobs,        RegisterJob,         RegisterExplain,   RegisterReport,
    RegisterControl,     RegisterRetry,       RegisterQueues,    RegisterNodes,
    RegisterGraph,       RegisterTop,         RegisterDrain,     RegisterStats,
    RegisterEvents,      RegisterConfig,      RegisterDoctor,    RegisterSupportBundle,
    RegisterDeadLetters, RegisterCycle,       RegisterLog,       RegisterVerify,
    RegisterReplay,      RegisterMatch,       RegisterSimulate,  RegisterWorkload,
    RegisterLoad,        RegisterConformance, RegisterUninstall, RegisterCompletion,
    RegisterManual,      RegisterStay,        RegisterRebuild};

// What the whole program is asked.
struct Common {
  std::string colour = "auto";
  int utc_offset = 0;
};

void AddCommonOptions(CLI::App& app, Context& context, Common& common) {
  const std::map<std::string, Output> outputs = {{"table", Output::kTable},
                                                 {"wide", Output::kWide},
                                                 {"json", Output::kJson},
                                                 {"yaml", Output::kYaml},
                                                 {"csv", Output::kCsv}};
  app.add_option("--config",
                 context.config_file,
                 "Where the system is: a file that tools/up writes; default: see fluxqueue --help")
      ->type_name("FILE");
  app.add_option("-o,--output",
                 context.output,
                 "A table, a wide one, or text for programs; csv: of reports")
      ->type_name("table|wide|json|yaml|csv")
      ->transform(CLI::CheckedTransformer(outputs).description(""));
  app.add_option("--kubeconfig", context.cluster.kubeconfig, "The cluster, as kubectl takes it")
      ->type_name("FILE");
  app.add_option("--context", context.cluster.context, "The kubeconfig's context")
      ->type_name("NAME");
  app.add_option("--system-namespace", context.cluster.space, "Where Fluxqueue is installed")
      ->type_name("NAMESPACE")
      ->capture_default_str();
  app.add_option("--colour", common.colour, "Colours; auto: on a terminal, unless $NO_COLOR is set")
      ->type_name("auto|always|never")
      ->take_last()
      ->check(CLI::IsMember({"auto", "always", "never"}).description(""));
  app.add_option("--width", context.width, "Columns of what is drawn; default: the terminal's")
      ->type_name("COLUMNS")
      ->take_last()
      ->check(CLI::Range(20, 10'000));
  // Times are shown as they are where the user is.
  app.add_option("--utc-offset", common.utc_offset)->group("");
}

bool WantsColour(const std::string& colour) {
  if (colour != "auto") return colour == "always";
  const char* none = std::getenv("NO_COLOR");  // NOLINT(concurrency-mt-unsafe): before any thread
  return isatty(STDOUT_FILENO) != 0 && (none == nullptr || *none == '\0');
}

void SetTimeZone(int utc_offset) {
  // POSIX counts westward.
  const std::string zone = fmt::format("<local>{}{}:{:02}",
                                       utc_offset > 0 ? "-" : "",
                                       std::abs(utc_offset) / 3600,
                                       std::abs(utc_offset) / 60 % 60);
  setenv("TZ", zone.c_str(), 1);  // NOLINT(concurrency-mt-unsafe): before any thread
  tzset();
}

// A link decides: kubectl finds its plugins, and who completes them, by their names.
std::vector<std::string> Arguments(int argc, char** argv, std::string* name) {
  std::vector<std::string> arguments(argv + 1, argv + argc);
  const std::string link = std::filesystem::path(argv[0]).filename();
  if (link == "kubectl-fluxqueue") *name = "kubectl fluxqueue";
  if (link == "kubectl_complete-fluxqueue") arguments.insert(arguments.begin(), "__complete");
  return arguments;
}

int Run(int argc, char** argv) {
  InitLog("fluxqueue", LogLevel::kWarning, LogFormat::kText);
  std::string name = "fluxqueue";
  Context context;
  Common common;
  context.arguments = Arguments(argc, argv, &name);
  context.width = WindowSize().columns;

  CLI::App app("Looks into a Fluxqueue system, and operates it.", name);
  app.formatter(std::make_shared<HelpFormatter>());
  app.fallthrough();
  app.require_subcommand(1);
  app.set_version_flag("--version", FLUXQUEUE_VERSION, "Print the version, and end");
  app.footer(
      "The system is that of the first of these that there is: --config, the cluster of "
      "--kubeconfig or --context,\n$FLUXQUEUE_CONFIG, the cluster of $KUBECONFIG, the file of "
      "tools/up, the cluster that kubectl reaches. In a cluster a\ncommand runs in the Deployment "
      "fluxqueue-cli. Exit status: 0 fine, 1 something is wrong, 2 it could not do its\nwork.");
  AddCommonOptions(app, context, common);
  for (const auto& add : kCommands) add(app, context);
  try {
    // The line that a shell wants completed is not to be parsed.
    std::vector<std::string> parsed = context.arguments;
    if (const auto ask = std::find(parsed.begin(), parsed.end(), "__complete");
        ask != parsed.end()) {
      parsed.erase(ask + 1, parsed.end());
    }
    std::reverse(parsed.begin(), parsed.end());
    app.parse(std::move(parsed));
  } catch (const CLI::ParseError& error) {
    // CLI11 only says that a command is missing.
    const std::vector<std::string> left = app.remaining();
    if (app.get_subcommands().empty() && !left.empty() && !left[0].starts_with('-')) {
      fmt::print(stderr, "{}: {}\n", name, Message(FindCommand(app, {left[0]}).status()));
      return kCannot;
    }
    return app.exit(error) == 0 ? 0 : kCannot;
  }
  if (context.output == Output::kCsv && !app.got_subcommand("report")) {
    fmt::print(stderr, "{}: -o csv: only report has it; allowed: table, wide, json, yaml\n", name);
    return kCannot;
  }
  context.colour = WantsColour(common.colour);
  if (common.utc_offset != 0) SetTimeZone(common.utc_offset);

  const absl::StatusOr<int> result = context.command();
  if (result.ok()) return *result;
  fmt::print(stderr, "{}: {}\n", name, Message(result.status()));
  return kCannot;
}

}  // namespace
}  // namespace fluxqueue::cli

int main(int argc, char** argv) {
  try {
    return fluxqueue::cli::Run(argc, argv);
  } catch (const std::exception& error) {
    std::cerr << "fluxqueue: " << error.what() << '\n';
    return fluxqueue::cli::kCannot;
  }
}
