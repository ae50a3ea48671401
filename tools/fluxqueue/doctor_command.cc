#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "libs/base/status_macros.h"

#include "tools/fluxqueue/commands.h"
#include "tools/fluxqueue/doctor.h"

namespace fluxqueue::cli {
namespace {

absl::StatusOr<int> Run(const Context& context) {
  ASSIGN_OR_RETURN(const SystemConfig config, context.LoadConfig());
  Findings findings;
  ExamineStores(config, context.clock, &findings);
  ExamineCluster(config, context.cluster.space, context.clock, &findings);
  fmt::print(
      "{}",
      context.structured() ? context.Structured(findings.ToJson()) : findings.Text(context.colour));
  return findings.healthy() ? 0 : 1;
}

}  // namespace

void RegisterDoctor(CLI::App& app, Context& context) {
  CLI::App* sub = app.add_subcommand("doctor", "Check an installation, and say what to do");
  sub->group("Operation");
  sub->footer(
      "Versions and tables, topics and their settings, lag, outboxes, dead letters, clocks, our "
      "resources and policies,\nthe webhook with its certificate and its answer to a pod that is "
      "not made (a dry run), and the rights of each\nservice's account. It changes nothing. Exit "
      "status 1 when something fails; `fluxqueue verify` looks at the jobs.\n\n"
      "Examples:\n"
      "  fluxqueue doctor\n"
      "  fluxqueue doctor -o json | jq '.findings[] | select(.health != \"ok\")'");
  sub->callback([&context] { context.command = [&context] { return Run(context); }; });
}

}  // namespace fluxqueue::cli
