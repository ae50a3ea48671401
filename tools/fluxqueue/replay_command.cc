#include <memory>
#include <set>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "libs/base/status_macros.h"

#include "tools/fluxqueue/commands.h"
#include "tools/fluxqueue/event_source.h"
#include "tools/fluxqueue/log_reader.h"
#include "tools/fluxqueue/pool_replay.h"
#include "tools/fluxqueue/snapshot_store.h"
#include "tools/fluxqueue/table.h"

namespace fluxqueue::cli {
namespace {

using nlohmann::json;
using verify::Tally;

struct Options {
  std::string pool;
  std::string library;
  std::string file;
  bool verbose = false;
};

json ToJson(const Tally& tally) {
  return {{"decisions", tally.decisions},
          {"identical", tally.identical},
          {"inFlight", tally.in_flight}};
}

json ToJson(const verify::PoolReplay& pool) {
  json object = ToJson(pool.total);
  object["pool"] = pool.pool;
  object["records"] = pool.records;
  object["skipped"] = pool.skipped;
  object["kinds"] = json::object();
  for (const auto& [kind, tally] : pool.kinds) object["kinds"][kind] = ToJson(tally);
  object["differences"] = json::array();
  for (const verify::Difference& difference : pool.differences) {
    object["differences"].push_back({{"what", difference.what},
                                     {"recorded", difference.recorded},
                                     {"replayed", difference.replayed}});
  }
  return object;
}

Tally Sum(const std::vector<verify::PoolReplay>& pools) {
  Tally sum;
  for (const verify::PoolReplay& pool : pools) {
    sum.decisions += pool.total.decisions;
    sum.identical += pool.total.identical;
    sum.in_flight += pool.total.in_flight;
  }
  return sum;
}

void PrintKinds(const std::vector<verify::PoolReplay>& pools, bool colour) {
  Table table({"POOL", "KIND", "DECISIONS", "IDENTICAL", "IN FLIGHT"});
  for (const verify::PoolReplay& pool : pools) {
    for (const auto& [kind, tally] : pool.kinds) {
      table.Add({pool.pool,
                 kind,
                 Thousands(tally.decisions),
                 Thousands(tally.identical),
                 Thousands(tally.in_flight)});
    }
  }
  fmt::print("{}", table.Render(colour));
}

// One side only for what the other does not have.
void PrintDifference(const verify::Difference& difference) {
  fmt::print("\nthe first difference ('-' recorded, '+' replayed): {}",
             verify::DiffText(difference));
}

absl::StatusOr<std::vector<verify::PoolReplay>> CompareFile(const Options& options) {
  const std::unique_ptr<EventSource> source = EventsOfFile(options.file);
  PoolReplay replay(*source, {.library = options.library, .compares_facts = true});
  RETURN_IF_ERROR(replay.Run());
  return std::vector<verify::PoolReplay>{replay.Result()};
}

absl::StatusOr<std::vector<verify::PoolReplay>> CompareLogs(const Context& context,
                                                            const Options& options) {
  ASSIGN_OR_RETURN(const SystemConfig config, context.LoadConfig());
  postgres::Connection connection(PostgresOptions(config.dsn));
  const LogReader reader(config.brokers, options.library);
  ASSIGN_OR_RETURN(const auto partitions, ReadPools(connection, options.pool));
  bool cut = false;
  ASSIGN_OR_RETURN(const std::set<int> lost, ReadFactsLost(connection));
  ASSIGN_OR_RETURN(verify::FactLog facts,
                   reader.ReadFacts(verify::FactLog::Hold::kFacts, lost, &cut));
  return ReplayPools(connection, reader, partitions, facts);
}

absl::StatusOr<int> Run(const Context& context, const Options& options) {
  ASSIGN_OR_RETURN(const std::vector<verify::PoolReplay> pools,
                   options.file.empty() ? CompareLogs(context, options) : CompareFile(options));
  const Tally sum = Sum(pools);
  if (context.structured()) {
    json result = ToJson(sum);
    result["pools"] = json::array();
    for (const verify::PoolReplay& pool : pools) result["pools"].push_back(ToJson(pool));
    fmt::print("{}", context.Structured(result));
    return sum.different() == 0 ? 0 : 1;
  }
  if (options.verbose) PrintKinds(pools, context.colour);
  fmt::print("{} decisions, {} identical", sum.decisions, sum.identical);
  if (sum.in_flight > 0) fmt::print(" ({} in flight)", sum.in_flight);
  fmt::print("\n");
  for (const verify::PoolReplay& pool : pools) {
    if (!pool.differences.empty()) PrintDifference(pool.differences.front());
  }
  return sum.different() == 0 ? 0 : 1;
}

}  // namespace

void RegisterReplay(CLI::App& app, Context& context) {
  CLI::App* sub = app.add_subcommand("replay",
                                     "Run the pools' logs through the cores again and compare each "
                                     "decision with the recorded one");
  auto options = std::make_shared<Options>();
  sub->group("Operation");
  CLI::Option* pool = sub->add_option("--pool", options->pool, "Only this pool")->type_name("POOL");
  sub->add_option("--file",
                  options->file,
                  "A log that `events dump` has written, in place of the "
                  "system's; needs no system")
      ->type_name("FILE")
      ->check(CLI::ExistingFile)
      ->excludes(pool);
  AddLibraryOption(sub, &options->library);
  sub->add_flag("-v,--verbose", options->verbose, "Count by kind of decision");
  sub->footer(
      "Exit status 1 when a decision differs; the first one is shown.\n\n"
      "Examples:\n"
      "  fluxqueue replay -v\n"
      "  fluxqueue events dump default log.gz && fluxqueue replay --file log.gz");
  sub->callback([&context, options] {
    context.command = [&context, options] { return Run(context, *options); };
  });
}

}  // namespace fluxqueue::cli
