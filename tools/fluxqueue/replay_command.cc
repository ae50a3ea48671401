#include <memory>
#include <set>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "libs/base/status_macros.h"

#include "tools/fluxqueue/commands.h"
#include "tools/fluxqueue/log_reader.h"
#include "tools/fluxqueue/replay_modes.h"
#include "tools/fluxqueue/replay_options.h"
#include "tools/fluxqueue/replay_what_if.h"
#include "tools/fluxqueue/snapshot_store.h"
#include "tools/fluxqueue/table.h"
#include "tools/fluxqueue/time_range.h"

namespace fluxqueue::cli {
namespace {

using nlohmann::json;
using verify::Tally;

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

absl::StatusOr<std::vector<verify::PoolReplay>> CompareOne(const Context& context,
                                                           const ReplayOptions& options) {
  ASSIGN_OR_RETURN(ReplayInput input, OpenReplay(context, options, {.facts = true}));
  PoolReplay replay(*input.source, std::move(input.bounds));
  RETURN_IF_ERROR(replay.Run());
  return std::vector<verify::PoolReplay>{replay.Result()};
}

absl::StatusOr<std::vector<verify::PoolReplay>> CompareLogs(const Context& context,
                                                            const ReplayOptions& options) {
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

absl::StatusOr<int> Compare(const Context& context, const ReplayOptions& options) {
  const bool one = !options.file.empty() || !options.to.empty();
  ASSIGN_OR_RETURN(const std::vector<verify::PoolReplay> pools,
                   one ? CompareOne(context, options) : CompareLogs(context, options));
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

absl::StatusOr<int> Run(const Context& context, const ReplayOptions& options) {
  if (options.inspect) return InspectPool(context, options);
  if (!options.save.empty()) return SaveSnapshot(context, options);
  if (!options.job.empty()) return TellStory(context, options);
  if (options.step) return StepThrough(context, options);
  if (!options.what_if.empty()) return PlayWhatIf(context, options);
  return Compare(context, options);
}

void AddInput(CLI::App* sub, ReplayOptions* options) {
  CLI::Option* pool = sub->add_option("--pool", options->pool, "Only this pool")->type_name("POOL");
  CLI::Option* file = sub->add_option("--file",
                                      options->file,
                                      "A log that `events dump` has written, or a pool's folder of "
                                      "`events archive`, in place of the system's; needs no system")
                          ->type_name("FILE")
                          ->check(CLI::ExistingPath | S3Url())
                          ->excludes(pool);
  CLI::Option* snapshot = sub->add_option("--from-snapshot",
                                          options->from_snapshot,
                                          "With --file: go on from what --save has written")
                              ->type_name("FILE")
                              ->check(CLI::ExistingFile)
                              ->needs(file);
  sub->add_option(
         "--from",
         options->from,
         fmt::format("Of an archive: from its last snapshot before then; an offset, {}", kMoments))
      ->type_name("TIME")
      ->needs(file)
      ->excludes(snapshot);
  sub->add_option(
         "--to",
         options->to,
         fmt::format("Of one pool: until then; the offset that it ends before, {}", kMoments))
      ->type_name("TIME");
  AddLibraryOption(sub, &options->library);
}

void AddModes(CLI::App* sub, ReplayOptions* options) {
  CLI::Option* inspect = sub->add_flag(
      "--inspect",
      options->inspect,
      "Show the pool as it was then: who waited and why, who held what, what was free");
  CLI::Option* save =
      sub->add_option(
             "--save", options->save, "Write what --from-snapshot reads; -: standard output")
          ->type_name("FILE")
          ->excludes(inspect);
  CLI::Option* job =
      sub->add_option(
             "--job",
             options->job,
             "Tell the story of a job, by its id or namespace/name: what was said of it, what "
             "became of it by that, and where")
          ->type_name("JOB")
          ->excludes(inspect)
          ->excludes(save);
  CLI::Option* step =
      sub->add_flag("--step",
                    options->step,
                    "Event by event: what it says, and what queue and matcher decide by it. At a "
                    "terminal it waits for Enter (the next), a number (that many), /TEXT (the next "
                    "one that names it) or q (the end)")
          ->excludes(inspect)
          ->excludes(save)
          ->excludes(job);
  CLI::Option* what_if =
      sub->add_option(
             "--what-if",
             options->what_if,
             "What would have started when: strategy=NAME, policy=NAME, nodes=+N, or several, "
             "with commas. The log is needed from its beginning")
          ->type_name("CHANGE")
          ->delimiter(',')
          ->excludes(inspect)
          ->excludes(save)
          ->excludes(job)
          ->excludes(step)
          ->excludes(sub->get_option("--from"))
          ->excludes(sub->get_option("--from-snapshot"));
  sub->add_option("--plot",
                  options->plot,
                  "Write both as a drawing (SVG): waits, and starts, waiting jobs and cpus over "
                  "time; -: to standard output, in place of the table")
      ->type_name("FILE")
      ->needs(what_if);
}

}  // namespace

void RegisterReplay(CLI::App& app, Context& context) {
  CLI::App* sub = app.add_subcommand("replay",
                                     "Run the pools' logs through the cores again and compare each "
                                     "decision with the recorded one");
  auto options = std::make_shared<ReplayOptions>();
  sub->group("Operation");
  AddInput(sub, options.get());
  AddModes(sub, options.get());
  sub->add_flag("-v,--verbose", options->verbose, "Count by kind of decision");
  sub->footer(
      "Exit status 1 when a decision differs; the first one is shown.\n\n"
      "Examples:\n"
      "  fluxqueue replay -v\n"
      "  fluxqueue replay --pool gpu --job team/train\n"
      "  fluxqueue replay --pool gpu --to 2026-11-02T14:00:00Z --inspect\n"
      "  fluxqueue events dump gpu log.gz && fluxqueue replay --file log.gz\n"
      "  fluxqueue replay --file log.gz --step\n"
      "  fluxqueue replay --file log.gz --to 2026-11-02 --save snapshot.gz\n"
      "  fluxqueue replay --file log.gz --from-snapshot snapshot.gz\n"
      "  fluxqueue replay --file /srv/fluxqueue/events/gpu --from 2026-11-02 --step\n"
      "  fluxqueue replay --file log.gz --what-if strategy=easy,nodes=+10 --plot easy.svg");
  sub->callback([&context, options] {
    context.command = [&context, options] { return Run(context, *options); };
  });
}

}  // namespace fluxqueue::cli
