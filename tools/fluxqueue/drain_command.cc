// drain, undrain: a node is closed, and emptied of our jobs.
#include <algorithm>
#include <map>
#include <memory>
#include <optional>
#include <thread>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "libs/base/status_macros.h"
#include "libs/config/units.h"
#include "libs/job_store/job_store.h"
#include "libs/kubernetes/client.h"
#include "libs/kubernetes/drain.h"

#include "tools/fluxqueue/cluster_view.h"
#include "tools/fluxqueue/commands.h"
#include "tools/fluxqueue/snapshot_store.h"
#include "tools/fluxqueue/table.h"

namespace fluxqueue::cli {
namespace {

using nlohmann::json;

constexpr Millis kLook{500};

struct Options {
  std::string node;
  std::string deadline;
  bool wait = false;
  bool requeue = false;
};

// `drain`: the annotation; null takes it away.
absl::Status Mark(kubernetes::Client& client,
                  const std::string& node,
                  bool closed,
                  const json& drain) {
  json patch = {{"spec", {{"unschedulable", closed}}}};
  patch["metadata"]["annotations"][std::string(kubernetes::kDrainAnnotation)] = drain;
  return client.Patch(kubernetes::kNodes, "", node, kubernetes::PatchType::kMerge, patch.dump())
      .status();
}

// The jobs that hold something on the node: name by id.
class Holders {
 public:
  explicit Holders(const SystemConfig& config)
      : connection_(PostgresOptions(config.dsn)), store_(PostgresOptions(config.dsn)) {}

  absl::StatusOr<std::map<std::string, std::string>> Of(const std::string& node) {
    std::map<std::string, std::string> names;
    ASSIGN_OR_RETURN(const std::vector<NodeView> nodes, ReadClusterView(connection_));
    for (const NodeView& view : nodes) {
      if (view.name != node) continue;
      for (const auto& [id, slots] : view.jobs) {
        ASSIGN_OR_RETURN(const std::vector<job_store::Job> found, store_.Find(id));
        names[id] = found.empty() ? id : found.front().FullName();
      }
    }
    return names;
  }

 private:
  postgres::Connection connection_;
  job_store::JobStore store_;
};

// Says who leaves, until nobody is left. After the deadline the rest is requeued.
absl::StatusOr<int> Wait(const Context& context,
                         const std::string& node,
                         kubernetes::Client& client,
                         Holders& holders,
                         std::map<std::string, std::string> there,
                         std::optional<Millis> deadline) {
  while (!there.empty()) {
    if (deadline.has_value() && context.Now() >= *deadline) {
      fmt::print("the deadline is over: {} of our jobs go back into line\n", there.size());
      RETURN_IF_ERROR(Mark(client, node, true, kubernetes::kDrainRequeue));
      deadline.reset();
    }
    std::this_thread::sleep_for(kLook);
    ASSIGN_OR_RETURN(auto now, holders.Of(node));
    for (const auto& [id, name] : there) {
      if (!now.contains(id)) fmt::print("{} has left; {} remain\n", name, now.size());
    }
    (void)std::fflush(stdout);
    there = std::move(now);
  }
  fmt::print("{} is empty of our jobs\n", node);
  return 0;
}

absl::StatusOr<int> Drain(const Context& context, const Options& options) {
  std::optional<Millis> deadline;
  if (!options.deadline.empty()) {
    ASSIGN_OR_RETURN(const Millis allowed, config::ParseDuration(options.deadline));
    deadline = context.Now() + allowed;
  }
  ASSIGN_OR_RETURN(const SystemConfig config, context.LoadConfig());
  ASSIGN_OR_RETURN(const auto client, ReachCluster(config));
  const json mark = options.requeue ? json(kubernetes::kDrainRequeue) : json();
  RETURN_IF_ERROR(Mark(*client, options.node, true, mark));
  Holders holders(config);
  ASSIGN_OR_RETURN(auto there, holders.Of(options.node));
  fmt::print("{} is cordoned; {} of our jobs are there{}\n",
             options.node,
             there.size(),
             options.requeue ? " and go back into line" : "");
  for (const auto& [id, name] : there) fmt::print("  {} ({})\n", name, id);
  (void)std::fflush(stdout);
  if (!options.wait) return 0;
  return Wait(context, options.node, *client, holders, std::move(there), deadline);
}

absl::StatusOr<int> Undrain(const Context& context, const Options& options) {
  ASSIGN_OR_RETURN(const SystemConfig config, context.LoadConfig());
  ASSIGN_OR_RETURN(const auto client, ReachCluster(config));
  RETURN_IF_ERROR(Mark(*client, options.node, false, nullptr));
  fmt::print("{} is open again\n", options.node);
  return 0;
}

}  // namespace

void RegisterDrain(CLI::App& app, Context& context) {
  CLI::App* drain = app.add_subcommand("drain", "Close a node, and empty it of our jobs");
  drain->group("Operation");
  const auto options = std::make_shared<Options>();
  drain->add_option("NODE", options->node, "Its name")->required()->type_name("NODE");
  CLI::Option* wait =
      drain->add_flag("--wait", options->wait, "Until none of our jobs holds anything there");
  CLI::Option* requeue = drain->add_flag(
      "--requeue", options->requeue, "Stop the jobs and put them back into line, now");
  drain->add_option("--deadline", options->deadline, "Of --wait: then requeue what is left")
      ->type_name("DURATION")
      ->needs(wait)
      ->excludes(requeue);
  drain->footer(
      "The node is cordoned: nothing new is placed there. Without an option its jobs go on to "
      "their ends. A job that is\n"
      "requeued is stopped as with a lost node: it counts as an attempt, and a pod that nobody "
      "would make again ends\n"
      "Failed. Pods that are not ours stay: kubectl drain is for these.\n\n"
      "Examples:\n"
      "  fluxqueue drain n17 --wait                  wait for the ends of its jobs\n"
      "  fluxqueue drain n17 --wait --deadline 2h    and not for longer than two hours\n"
      "  fluxqueue drain n17 --requeue --wait        empty it now\n"
      "  fluxqueue undrain n17");
  drain->callback([&context, options] {
    context.command = [&context, options] { return Drain(context, *options); };
  });
  CLI::App* undrain = app.add_subcommand("undrain", "Open a node again");
  undrain->group("Operation");
  undrain->add_option("NODE", options->node, "Its name")->required()->type_name("NODE");
  undrain->callback([&context, options] {
    context.command = [&context, options] { return Undrain(context, *options); };
  });
}

}  // namespace fluxqueue::cli
