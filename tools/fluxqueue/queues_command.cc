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

// "cpu 12, memory 3Gi, gpu 2"
std::string Use(const scheduling::Resources& held) {
  std::string text;
  for (size_t i = 0; i < scheduling::kShared; ++i) {
    if (held[i] == 0) continue;
    const std::string_view name = scheduling::SharedName(i);
    text += fmt::format(
        "{}{} {}", text.empty() ? "" : ", ", name, scheduling::FormatAmount(name, held[i]));
  }
  return text;
}

absl::StatusOr<int> Run(const Context& context) {
  ASSIGN_OR_RETURN(const SystemConfig config, context.LoadConfig());
  job_store::JobStore store(PostgresOptions(config.dsn));
  ASSIGN_OR_RETURN(const std::vector<QueueInfo> queues, store.Queues());
  ASSIGN_OR_RETURN(const auto held, store.Held());
  const auto use_of = [&held](const QueueInfo& queue) {
    const auto it = held.find({queue.pool, queue.queue});
    return it == held.end() ? std::string() : Use(it->second);
  };
  if (context.json()) {
    json result = json::array();
    for (const QueueInfo& queue : queues) {
      result.push_back({{"queue", queue.queue},
                        {"pool", queue.pool},
                        {"strategy", queue.strategy},
                        {"priority", queue.priority},
                        {"weight", queue.weight},
                        {"queueDepth", queue.depth},
                        {"parent", queue.parent},
                        {"order", queue.order},
                        {"limits", queue.limits},
                        {"use", use_of(queue)},
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
               "PARENT",
               "ORDER",
               "WAITING",
               "STARTING",
               "RUNNING",
               "STOPPING",
               "SUCCEEDED",
               "FAILED",
               "CANCELLED",
               "REJECTED",
               "USE",
               "LIMITS"});
  for (const QueueInfo& queue : queues) {
    // A queue that jobs wait for and that does not exist has no strategy.
    table.Add({queue.queue,
               queue.pool,
               {queue.strategy.empty() ? "(missing)" : queue.strategy},
               fmt::format("{}", queue.priority),
               fmt::format("{}", queue.weight),
               queue.parent,
               queue.order,
               Count(queue, {"Submitted", "Pending"}),
               Count(queue, {"Allocated", "Bound"}),
               Count(queue, {"Running"}),
               Count(queue, {"Stopping"}),
               Count(queue, {"Succeeded"}),
               Count(queue, {"Failed"}),
               Count(queue, {"Cancelled"}),
               Count(queue, {"Rejected"}),
               use_of(queue),
               queue.limits});
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
