// completion, and what the shells ask: __complete.
#include <algorithm>
#include <iterator>
#include <memory>

#include <fmt/format.h>

#include "libs/base/status_macros.h"
#include "libs/job_store/job_store.h"

#include "tools/fluxqueue/commands.h"
#include "tools/fluxqueue/completion.h"
#include "tools/fluxqueue/log_reader.h"
#include "tools/fluxqueue/snapshot_store.h"

namespace fluxqueue::cli {
namespace {

absl::StatusOr<std::vector<std::string>> LiveNames(const SystemConfig& config,
                                                   const std::string& kind) {
  std::vector<std::string> names;
  if (kind == "JOB") return job_store::JobStore(PostgresOptions(config.dsn)).Names();
  if (kind == "QUEUE") {
    job_store::JobStore store(PostgresOptions(config.dsn));
    ASSIGN_OR_RETURN(const auto queues, store.Queues(/*ended=*/false));
    for (const job_store::QueueInfo& queue : queues) names.push_back(queue.queue);
    return names;
  }
  postgres::Connection connection(PostgresOptions(config.dsn));
  if (kind == "POOL") {
    ASSIGN_OR_RETURN(const auto pools, ReadPools(connection, ""));
    for (const auto& [pool, partition] : pools) names.push_back(pool);
    return names;
  }
  verify::Snapshot snapshot;
  RETURN_IF_ERROR(ReadGraph(connection, &snapshot));
  for (const verify::NodeRow& row : snapshot.nodes) {
    if (row.present) names.push_back(row.node.name());
  }
  return names;
}

absl::StatusOr<int> RunComplete(const Context& context, const CLI::App& app) {
  const std::vector<std::string> words = BehindComplete(context.arguments);
  Completion completion = Complete(app, words);
  if (!completion.live.empty()) {
    ASSIGN_OR_RETURN(const SystemConfig config, context.LoadConfig());
    ASSIGN_OR_RETURN(const auto names, LiveNames(config, completion.live));
    for (const std::string& name : names) {
      if (words.empty() || name.starts_with(words.back())) completion.words.push_back({name, ""});
    }
  }
  fmt::print("{}", CompletionText(completion));
  return 0;
}

}  // namespace

void RegisterCompletion(CLI::App& app, Context& context) {
  CLI::App* sub = app.add_subcommand("completion", "Print what makes a shell complete its words");
  sub->group("Help");
  sub->footer(
      "Names of jobs, queues, nodes and pools are asked of the live system. kubectl completes "
      "`kubectl fluxqueue`\nwhen kubectl_complete-fluxqueue, a link to this program, is on the "
      "PATH.\n\n"
      "Examples:\n"
      "  source <(fluxqueue completion bash)\n"
      "  fluxqueue completion zsh >\"${fpath[1]}/_fluxqueue\"\n"
      "  fluxqueue completion fish | source");
  const auto shell = std::make_shared<std::string>();
  sub->add_option("SHELL", *shell, "bash, zsh or fish")
      ->required()
      ->type_name("bash|zsh|fish")
      ->check(CLI::IsMember({"bash", "zsh", "fish"}).description(""));
  sub->callback([&context, shell] {
    context.command = [shell]() -> absl::StatusOr<int> {
      fmt::print("{}", CompletionScript(*shell));
      return 0;
    };
  });

  CLI::App* complete = app.add_subcommand("__complete", "What may follow");
  complete->group("");
  complete->callback([&context, &app] {
    context.command = [&context, &app] { return RunComplete(context, app); };
  });
}

}  // namespace fluxqueue::cli
