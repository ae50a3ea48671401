#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "libs/base/status_macros.h"

#include "tools/fluxqueue/commands.h"
#include "tools/fluxqueue/doctor.h"

namespace fluxqueue::cli {
namespace {

absl::StatusOr<int> Run(const Context& context) {
  ASSIGN_OR_RETURN(const SystemConfig config, context.LoadConfig("", Needs::kNothing));
  Findings findings;
  ExamineStores(config, context.clock, &findings);
  ExamineServices(config, context.cluster.space, &findings);
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
      "Versions, also of each service's replicas, and tables, topics and their settings, lag, "
      "outboxes, dead letters,\nclocks, our resources and policies, the webhook with its "
      "certificate and its answer to a Job that is not made (a\ndry run), and the rights of each "
      "service's account. It changes nothing. Exit "
      "status 1 when something fails; `fluxqueue verify` looks at the jobs.\n\n"
      "Examples:\n"
      "  fluxqueue doctor\n"
      "  fluxqueue doctor -o json | jq '.findings[] | select(.health != \"ok\")'");
  sub->callback([&context] { context.command = [&context] { return Run(context); }; });
}

}  // namespace fluxqueue::cli
