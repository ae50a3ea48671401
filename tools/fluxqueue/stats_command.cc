// stats: what the scheduling cycles were.
#include <algorithm>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "libs/base/status_macros.h"
#include "libs/config/units.h"
#include "libs/kafka/topics.h"

#include "tools/fluxqueue/commands.h"
#include "tools/fluxqueue/cycle_stats.h"
#include "tools/fluxqueue/log_events.h"
#include "tools/fluxqueue/log_reader.h"
#include "tools/fluxqueue/snapshot_store.h"

namespace fluxqueue::cli {
namespace {

struct Options {
  std::string pool;
  std::string since = "1h";
};

absl::StatusOr<int> Run(const Context& context, const Options& options) {
  ASSIGN_OR_RETURN(const SystemConfig config, context.LoadConfig());
  const absl::StatusOr<Millis> since = config::ParseDuration(options.since);
  if (!since.ok()) return Annotate(since.status(), "--since");
  postgres::Connection connection(PostgresOptions(config.dsn));
  ASSIGN_OR_RETURN(const auto pools, ReadPools(connection, options.pool));
  std::map<std::string, CycleStats> stats;
  std::vector<kafka::TopicPartition> partitions;
  for (const auto& [pool, partition] : pools) {
    stats.try_emplace(pool);
    partitions.emplace_back(kafka::TopicNames().pool, partition);
  }
  // Several pools may share a partition.
  std::sort(partitions.begin(), partitions.end());
  partitions.erase(std::unique(partitions.begin(), partitions.end()), partitions.end());
  const auto take = [&stats](const LogRecord& record) {
    const auto of = stats.find(record.line.message.pool());
    if (of != stats.end()) of->second.Take(record.line);
    return absl::OkStatus();
  };
  RETURN_IF_ERROR(ReadLog(config.brokers, partitions, context.Now() - *since, take));
  if (context.structured()) {
    nlohmann::json result = nlohmann::json::object();
    for (const auto& [pool, of] : stats) result[pool] = of.Json();
    fmt::print("{}", context.Structured(result));
    return 0;
  }
  bool first = true;
  for (const auto& [pool, of] : stats) {
    if (!std::exchange(first, false)) fmt::print("\n");
    if (of.empty()) {
      fmt::print(
          "pool {}: no cycle in the last {}; --since looks further back\n", pool, options.since);
      continue;
    }
    fmt::print("{}", of.Text(pool, context.colour));
  }
  return 0;
}

}  // namespace

void RegisterStats(CLI::App& app, Context& context) {
  CLI::App* sub = app.add_subcommand("stats", "What the scheduling cycles took, tried and started");
  sub->group("Operation");
  const auto options = std::make_shared<Options>();
  sub->add_option("--pool", options->pool, "Only of this pool")->type_name("POOL");
  sub->add_option("--since", options->since, "How far back; default: 1h")->type_name("DURATION");
  sub->footer(
      "From the pools' logs. A cycle takes from its request to its answer, by the log's times. Its "
      "depth is how many\njobs it names; TRIED are those that the matcher came to. BACKFILLED jobs "
      "started behind one of their queue that\ncould not. RESERVED, BUSY and UNSATISFIABLE count a "
      "job once for each cycle. STOPS were asked for so that another\nmay start.\n\n"
      "Examples:\n"
      "  fluxqueue stats\n"
      "  fluxqueue stats --pool gpu --since 24h -o json");
  sub->callback([&context, options] {
    context.command = [&context, options] { return Run(context, *options); };
  });
}

}  // namespace fluxqueue::cli
