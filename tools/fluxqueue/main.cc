// fluxqueue: the command line. What a subcommand is stands in context.h.
#include <cstdio>
#include <cstdlib>

#include <fmt/format.h>
#include <unistd.h>

#include "libs/base/log.h"
#include "libs/base/status_macros.h"

#include "tools/fluxqueue/commands.h"

int main(int argc, char** argv) {
  using namespace fluxqueue;
  constexpr int kCannot = 2;
  InitLog("fluxqueue", LogLevel::kWarning, LogFormat::kText);
  cli::Context context;
  context.colour = isatty(STDOUT_FILENO) != 0 && std::getenv("NO_COLOR") == nullptr;

  CLI::App app("Looks into a Fluxqueue system.", "fluxqueue");
  app.fallthrough();
  app.require_subcommand(1);
  app.add_option(
         "--config", context.config_file, "Where the system is: the YAML file that tools/up writes")
      ->type_name("FILE");
  app.add_option("-o,--output", context.output, "table, or json for programs")
      ->type_name("FORMAT")
      ->transform(CLI::CheckedTransformer(std::map<std::string, cli::Output>{
          {"table", cli::Output::kTable}, {"json", cli::Output::kJson}}));
  cli::RegisterJobs(app, context);
  cli::RegisterJob(app, context);
  cli::RegisterQueues(app, context);
  cli::RegisterControl(app, context);
  cli::RegisterExplain(app, context);
  cli::RegisterNodes(app, context);
  cli::RegisterVerify(app, context);
  cli::RegisterReplay(app, context);
  cli::RegisterLoad(app, context);
  cli::RegisterMatch(app, context);
  cli::RegisterSimulate(app, context);
  cli::RegisterConformance(app, context);
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? 0 : kCannot;
  }

  const absl::StatusOr<int> result = context.command();
  if (result.ok()) return *result;
  fmt::print(stderr, "fluxqueue: {}\n", Message(result.status()));
  return kCannot;
}
