#include <initializer_list>
#include <map>
#include <memory>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "libs/base/status_macros.h"
#include "libs/job_store/job_store.h"

#include "tools/fluxqueue/commands.h"
#include "tools/fluxqueue/snapshot_store.h"
#include "tools/fluxqueue/table.h"
#include "tools/fluxqueue/watch.h"

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

using Held = std::map<std::pair<std::string, std::string>, scheduling::Resources>;

std::string UseOf(const QueueInfo& queue, const Held& held) {
  const auto it = held.find({queue.pool, queue.queue});
  return it == held.end() ? std::string() : Use(it->second);
}

// "gpu 812 of 1000 h/month"
std::string BudgetsText(const QueueInfo& queue) {
  std::string text;
  for (const job_store::BudgetUse& use : queue.budgets) {
    text += fmt::format("{}{} {:.0f} of {} h/{}",
                        text.empty() ? "" : ", ",
                        use.budget.resource,
                        use.used_hours,
                        use.budget.hours,
                        scheduling::PeriodName(use.budget.period));
  }
  return text;
}

json BudgetsJson(const QueueInfo& queue) {
  json budgets = json::array();
  for (const job_store::BudgetUse& use : queue.budgets) {
    budgets.push_back({{"resource", use.budget.resource},
                       {"period", scheduling::PeriodName(use.budget.period)},
                       {"hours", use.budget.hours},
                       {"usedHours", use.used_hours},
                       {"holds", use.budget.holds}});
  }
  return budgets;
}

json ToJson(const QueueInfo& queue, const Held& held) {
  return {{"queue", queue.queue},
          {"pool", queue.pool},
          {"strategy", queue.strategy},
          {"priority", queue.priority},
          {"weight", queue.weight},
          {"queueDepth", queue.depth},
          {"parent", queue.parent},
          {"order", queue.order},
          {"limits", queue.limits},
          {"budgets", BudgetsJson(queue)},
          {"use", UseOf(queue, held)},
          {"jobs", queue.jobs}};
}

std::string QueueTable(const std::vector<QueueInfo>& queues,
                       const Held& held,
                       const Context& context) {
  std::vector<std::string> header = {"QUEUE",
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
                                     "LIMITS",
                                     "BUDGETS"};
  if (context.wide()) header.insert(header.end(), {"DEPTH", "DEFAULT DURATION", "MOST DURATION"});
  Table table(std::move(header));
  const auto duration = [](int64_t ms) { return ms == 0 ? "-" : ShortDuration(Millis(ms)); };
  for (const QueueInfo& queue : queues) {
    // A queue that jobs wait for and that does not exist has no strategy.
    std::vector<Cell> row = {queue.queue,
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
                             UseOf(queue, held),
                             queue.limits,
                             BudgetsText(queue)};
    if (context.wide()) {
      row.emplace_back(fmt::format("{}", queue.depth));
      row.emplace_back(duration(queue.default_duration_ms));
      row.emplace_back(duration(queue.max_duration_ms));
    }
    table.Add(std::move(row));
  }
  return table.Render(context.colour);
}

absl::StatusOr<std::string> Text(const Context& context, job_store::JobStore& store) {
  ASSIGN_OR_RETURN(const std::vector<QueueInfo> queues, store.Queues());
  ASSIGN_OR_RETURN(const Held held, store.Held());
  if (context.structured()) {
    json result = json::array();
    for (const QueueInfo& queue : queues) result.push_back(ToJson(queue, held));
    return context.Structured(result);
  }
  if (queues.empty()) return "no queues: kubectl apply -f k8s/queues/default.yaml makes one\n";
  return QueueTable(queues, held, context);
}

absl::StatusOr<int> Run(const Context& context, const WatchOptions& watch) {
  ASSIGN_OR_RETURN(const SystemConfig config, context.LoadConfig());
  job_store::JobStore store(PostgresOptions(config.dsn));
  return Present(context, watch, [&](const Context& view) { return Text(view, store); });
}

}  // namespace

void RegisterQueues(CLI::App& app, Context& context) {
  CLI::App* sub =
      app.add_subcommand("queues", "List the queues and how many jobs each has, by state");
  sub->group("Cluster");
  const auto watch = std::make_shared<WatchOptions>();
  AddWatchOptions(sub, watch.get());
  sub->footer(
      "STARTING is Allocated or Bound. USE is what its jobs hold, LIMITS what they may. BUDGETS "
      "are "
      "what it and\nthe queues below it have used in this period of the calendar (UTC), and "
      "may.\n\n"
      "Examples:\n"
      "  fluxqueue queues --watch\n"
      "  fluxqueue queues -o yaml");
  sub->callback(
      [&context, watch] { context.command = [&context, watch] { return Run(context, *watch); }; });
}

}  // namespace fluxqueue::cli
