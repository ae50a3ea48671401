// fluxqueue load: a trace played on the cluster (tools/fluxqueue/load).
#include "tools/fluxqueue/load/load_command.h"

#include <memory>
#include <string>

#include "libs/base/status_macros.h"

#include "tools/fluxqueue/commands.h"

namespace fluxqueue::cli {
namespace {

absl::StatusOr<int> Run(const load::LoadOptions& options, const Context& context) {
  std::string kubeconfig = context.cluster.kubeconfig;
  if (kubeconfig.empty()) {
    ASSIGN_OR_RETURN(const SystemConfig config, context.LoadConfig());
    if (config.kubeconfig.empty()) {
      return InvalidArgument(
          "{}: kubernetes.kubeconfig is not set: set it, or name the cluster with --kubeconfig",
          config.file);
    }
    kubeconfig = config.kubeconfig;
  }
  ASSIGN_OR_RETURN(const bool good, load::RunLoad(options, kubeconfig, context.structured()));
  return good ? 0 : 1;
}

}  // namespace

void RegisterLoad(CLI::App& app, Context& context) {
  CLI::App* sub =
      app.add_subcommand("load", "Play a workload trace as Kubernetes Jobs, and measure");
  sub->group("Planning");
  const auto options = std::make_shared<load::LoadOptions>();
  load::AddLoadOptions(*sub, options.get());
  sub->footer(
      "The cluster is that of --kubeconfig, or of the configuration.\n\n"
      "Examples:\n"
      "  fluxqueue load --trace lublin_256.swf.gz --kubeconfig ~/.kube/config");
  sub->callback([&context, options] {
    context.command = [&context, options] { return Run(*options, context); };
  });
}

}  // namespace fluxqueue::cli
