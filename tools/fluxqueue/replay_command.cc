#include <memory>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "libs/base/status_macros.h"

#include "tools/fluxqueue/commands.h"
#include "tools/fluxqueue/log_reader.h"
#include "tools/fluxqueue/snapshot_store.h"
#include "tools/fluxqueue/table.h"

namespace fluxqueue::cli {
namespace {

using nlohmann::json;
using verify::PoolReplay;
using verify::Tally;

struct Options {
  std::string pool;
  std::string library;
  bool verbose = false;
};

json ToJson(const Tally& tally) {
  return {{"decisions", tally.decisions},
          {"identical", tally.identical},
          {"inFlight", tally.in_flight}};
}

json ToJson(const PoolReplay& pool) {
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

Tally Sum(const std::vector<PoolReplay>& pools) {
  Tally sum;
  for (const PoolReplay& pool : pools) {
    sum.decisions += pool.total.decisions;
    sum.identical += pool.total.identical;
    sum.in_flight += pool.total.in_flight;
  }
  return sum;
}

void PrintKinds(const std::vector<PoolReplay>& pools, bool colour) {
  Table table({"POOL", "KIND", "DECISIONS", "IDENTICAL", "IN FLIGHT"});
  for (const PoolReplay& pool : pools) {
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

absl::StatusOr<int> Run(const Context& context, const Options& options) {
  ASSIGN_OR_RETURN(const SystemConfig config, context.LoadConfig());
  postgres::Connection connection(PostgresOptions(config.dsn));
  const LogReader reader(config.bootstrap, options.library);
  ASSIGN_OR_RETURN(const auto partitions, ReadPools(connection, options.pool));
  bool cut = false;
  ASSIGN_OR_RETURN(verify::FactLog facts, reader.ReadFacts(&cut));
  ASSIGN_OR_RETURN(const std::vector<PoolReplay> pools,
                   ReplayPools(connection, reader, partitions, facts));
  const Tally sum = Sum(pools);
  if (context.json()) {
    json result = ToJson(sum);
    result["pools"] = json::array();
    for (const PoolReplay& pool : pools) result["pools"].push_back(ToJson(pool));
    fmt::print("{}\n", result.dump(2, ' ', false, json::error_handler_t::replace));
    return sum.different() == 0 ? 0 : 1;
  }
  if (options.verbose) PrintKinds(pools, context.colour);
  fmt::print("{} decisions, {} identical", sum.decisions, sum.identical);
  if (sum.in_flight > 0) fmt::print(" ({} in flight)", sum.in_flight);
  fmt::print("\n");
  for (const PoolReplay& pool : pools) {
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
  sub->add_option("--pool", options->pool, "Only this pool")->type_name("POOL");
  AddLibraryOption(sub, &options->library);
  sub->add_flag("-v,--verbose", options->verbose, "Count by kind of decision");
  sub->callback([&context, options] {
    context.command = [&context, options] { return Run(context, *options); };
  });
}

}  // namespace fluxqueue::cli
