#include <initializer_list>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "libs/base/status_macros.h"
#include "libs/job_store/job_store.h"

#include "tools/fluxqueue/commands.h"
#include "tools/fluxqueue/snapshot_store.h"
#include "tools/fluxqueue/table.h"

namespace fluxqueue::cli {
namespace {

using job_store::QueueInfo;
using nlohmann::json;

std::string Count(const QueueInfo& queue, std::initializer_list<const char*> states) {
  int64_t count = 0;
  for (const char* state : states) {
    const auto found = queue.jobs.find(state);
    if (found != queue.jobs.end()) count += found->second;
  }
  return Thousands(static_cast<uint64_t>(count));
}

absl::StatusOr<int> Run(const Context& context) {
  ASSIGN_OR_RETURN(const SystemConfig config, context.LoadConfig());
  job_store::JobStore store(PostgresOptions(config.dsn));
  ASSIGN_OR_RETURN(const std::vector<QueueInfo> queues, store.Queues());
  if (context.json()) {
    json result = json::array();
    for (const QueueInfo& queue : queues) {
      result.push_back({{"queue", queue.queue},
                        {"pool", queue.pool},
                        {"strategy", queue.strategy},
                        {"priority", queue.priority},
                        {"weight", queue.weight},
                        {"queueDepth", queue.depth},
                        {"jobs", queue.jobs}});
    }
    fmt::print("{}\n", result.dump(2));
    return 0;
  }
  if (queues.empty()) {
    fmt::print("no queues: kubectl apply -f k8s/queues/default.yaml makes one\n");
    return 0;
  }
  Table table({"QUEUE",
               "POOL",
               "STRATEGY",
               "PRIORITY",
               "WEIGHT",
               "WAITING",
               "STARTING",
               "RUNNING",
               "STOPPING",
               "SUCCEEDED",
               "FAILED",
               "CANCELLED",
               "REJECTED"});
  for (const QueueInfo& queue : queues) {
    // A queue that jobs wait for and that does not exist has no strategy.
    table.Add({queue.queue,
               queue.pool,
               {queue.strategy.empty() ? "(missing)" : queue.strategy},
               fmt::format("{}", queue.priority),
               fmt::format("{}", queue.weight),
               Count(queue, {"Submitted", "Pending"}),
               Count(queue, {"Allocated", "Bound"}),
               Count(queue, {"Running"}),
               Count(queue, {"Stopping"}),
               Count(queue, {"Succeeded"}),
               Count(queue, {"Failed"}),
               Count(queue, {"Cancelled"}),
               Count(queue, {"Rejected"})});
  }
  fmt::print("{}", table.Render(context.colour));
  return 0;
}

}  // namespace

void RegisterQueues(CLI::App& app, Context& context) {
  CLI::App* sub =
      app.add_subcommand("queues", "List the queues and how many jobs each has, by state");
  sub->callback([&context] { context.command = [&context] { return Run(context); }; });
}

}  // namespace fluxqueue::cli
