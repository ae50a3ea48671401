#include <fstream>
#include <map>
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

constexpr std::string_view kStandardOutput = "-";

struct Options {
  std::string pool;
  std::string library;
  std::string dump;
  bool verbose = false;
};

// Writes what stands in the logs of some pools as lines.
class Dump {
 public:
  Dump(const std::string& path, const std::map<std::string, int>& pools)
      : path_(path), pools_(pools) {
    if (path_.empty()) return;
    file_.open(path_ == kStandardOutput ? "/dev/stdout" : path_,
               std::ios::binary | std::ios::trunc);
  }

  // Empty: there is nothing to write to.
  LogReader::Taken Taken() {
    if (path_.empty()) return nullptr;
    return [this](const verify::EventLine& line) {
      if (pools_.contains(line.message.pool())) file_ << verify::FormatEventLine(line);
    };
  }
  absl::Status Close() {
    if (path_.empty()) return absl::OkStatus();
    file_.close();
    if (!file_) return InvalidArgument("{}: cannot be written", path_);
    return absl::OkStatus();
  }

 private:
  const std::string path_;
  const std::map<std::string, int>& pools_;
  std::ofstream file_;
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

void PrintKinds(std::FILE* report, const std::vector<PoolReplay>& pools, bool colour) {
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
  fmt::print(report, "{}", table.Render(colour));
}

// One side only for what the other does not have.
void PrintDifference(std::FILE* report, const verify::Difference& difference) {
  fmt::print(report,
             "\nthe first difference ('-' recorded, '+' replayed): {}",
             verify::DiffText(difference));
}

absl::StatusOr<int> Run(const Context& context, const Options& options) {
  ASSIGN_OR_RETURN(const SystemConfig config, context.LoadConfig(options.dump));
  postgres::Connection connection(PostgresOptions(config.dsn));
  const LogReader reader(config.brokers, options.library);
  ASSIGN_OR_RETURN(const auto partitions, ReadPools(connection, options.pool));
  bool cut = false;
  Dump dump(options.dump, partitions);
  ASSIGN_OR_RETURN(const std::set<int> lost, ReadFactsLost(connection));
  ASSIGN_OR_RETURN(verify::FactLog facts,
                   reader.ReadFacts(verify::FactLog::Hold::kFacts, lost, &cut, dump.Taken()));
  ASSIGN_OR_RETURN(const std::vector<PoolReplay> pools,
                   ReplayPools(connection, reader, partitions, facts, dump.Taken()));
  RETURN_IF_ERROR(dump.Close());
  const Tally sum = Sum(pools);
  std::FILE* const report = options.dump == kStandardOutput ? stderr : stdout;
  if (context.structured()) {
    json result = ToJson(sum);
    result["pools"] = json::array();
    for (const PoolReplay& pool : pools) result["pools"].push_back(ToJson(pool));
    fmt::print(report, "{}", context.Structured(result));
    return sum.different() == 0 ? 0 : 1;
  }
  if (options.verbose) PrintKinds(report, pools, context.colour);
  fmt::print(report, "{} decisions, {} identical", sum.decisions, sum.identical);
  if (sum.in_flight > 0) fmt::print(report, " ({} in flight)", sum.in_flight);
  fmt::print(report, "\n");
  for (const PoolReplay& pool : pools) {
    if (!pool.differences.empty()) PrintDifference(report, pool.differences.front());
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
  sub->add_option("--pool", options->pool, "Only this pool")->type_name("POOL");
  AddLibraryOption(sub, &options->library);
  sub->add_option("--dump",
                  options->dump,
                  "Write the logs to it, a line of JSON for each record: what `simulate --format "
                  "events` reads, one pool at a time; -: standard output")
      ->type_name("FILE");
  sub->add_flag("-v,--verbose", options->verbose, "Count by kind of decision");
  sub->footer(
      "Exit status 1 when a decision differs; the first one is shown.\n\n"
      "Examples:\n"
      "  fluxqueue replay -v\n"
      "  fluxqueue replay --pool default --dump log.jsonl && fluxqueue simulate --format events "
      "--jobs log.jsonl");
  sub->callback([&context, options] {
    context.command = [&context, options] { return Run(context, *options); };
  });
}

}  // namespace fluxqueue::cli
