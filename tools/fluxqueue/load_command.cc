// fluxqueue load: a trace played on the cluster (tools/fluxqueue/load).
#include "tools/fluxqueue/load/load_command.h"

#include <memory>
#include <string>

#include "libs/base/status_macros.h"

#include "tools/fluxqueue/commands.h"

namespace fluxqueue::cli {
namespace {

struct Options {
  load::LoadOptions load{};
  std::string kubeconfig{};
};

absl::StatusOr<int> Run(const Options& options, const Context& context) {
  std::string kubeconfig = options.kubeconfig;
  if (kubeconfig.empty()) {
    ASSIGN_OR_RETURN(const SystemConfig config, context.LoadConfig());
    if (config.kubeconfig.empty()) {
      return InvalidArgument(
          "{}: kubernetes.kubeconfig is not set: set it, or name the cluster with --kubeconfig",
          config.file);
    }
    kubeconfig = config.kubeconfig;
  }
  ASSIGN_OR_RETURN(const bool good, load::RunLoad(options.load, kubeconfig, context.json()));
  return good ? 0 : 1;
}

}  // namespace

void RegisterLoad(CLI::App& app, Context& context) {
  CLI::App* sub =
      app.add_subcommand("load", "Play a workload trace as Kubernetes Jobs, and measure");
  const auto options = std::make_shared<Options>();
  load::AddLoadOptions(*sub, &options->load);
  sub->add_option(
         "--kubeconfig", options->kubeconfig, "The cluster, if not that of the configuration")
      ->check(CLI::ExistingFile);
  sub->callback([&context, options] {
    context.command = [&context, options] { return Run(*options, context); };
  });
}

}  // namespace fluxqueue::cli
