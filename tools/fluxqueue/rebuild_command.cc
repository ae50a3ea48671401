#include "tools/fluxqueue/rebuild_command.h"

#include <algorithm>
#include <chrono>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "libs/base/status_macros.h"
#include "libs/postgres/connection.h"

#include "tools/fluxqueue/archive_snapshots.h"
#include "tools/fluxqueue/commands.h"
#include "tools/fluxqueue/event_archive.h"
#include "tools/fluxqueue/log_reader.h"
#include "tools/fluxqueue/pool_replay.h"
#include "tools/fluxqueue/rebuild.h"
#include "tools/fluxqueue/replay_options.h"
#include "tools/fluxqueue/snapshot_file.h"
#include "tools/fluxqueue/snapshot_store.h"
#include "tools/fluxqueue/table.h"

namespace fluxqueue::cli {
namespace {

using nlohmann::json;

// The log is replayed within the transaction.
constexpr postgres::Limits kLimits{.statement_timeout = std::chrono::hours(1),
                                   .idle_in_transaction_timeout = std::chrono::hours(24)};

struct Options {
  std::string pool{};
  std::string file{};
  std::string from_snapshot{};
  std::string library{};
  bool yes = false;
};

// A pool's log, as often as it is wanted.
class Logs {
 public:
  using Snapshot = std::optional<replay::v1::Snapshot>;

  // `from`: the log before it is not wanted.
  Logs(const SystemConfig& config,
       const Options& options,
       std::shared_ptr<ArchiveStore> archive,
       Snapshot from)
      : config_(config), options_(options), archive_(std::move(archive)), from_(std::move(from)) {}

  // Of an archive, if no snapshot was named: from its last one that is not behind `offset`.
  absl::Status BeginBefore(int64_t offset) {
    if (archive_ == nullptr || !options_.from_snapshot.empty()) return absl::OkStatus();
    ASSIGN_OR_RETURN(from_, NearestSnapshot(archive_, {.offset = offset}));
    return absl::OkStatus();
  }

  // The rows behind what was before `offset`.
  absl::StatusOr<std::unique_ptr<PoolReplay>> ReplayTo(int64_t offset) {
    if (from_.has_value() && from_->next_offset() > offset) {
      return InvalidArgument(
          "{}: the snapshot stands behind offset {}, to which the services have read: take an "
          "earlier one",
          options_.from_snapshot,
          offset);
    }
    ASSIGN_OR_RETURN(auto source, Open());
    sources_.push_back(std::move(source));
    auto replay = std::make_unique<PoolReplay>(
        *sources_.back(),
        PoolReplay::Options{
            .library = options_.library, .from = from_, .to_offset = offset, .keeps_rows = true});
    RETURN_IF_ERROR(replay->Run());
    RETURN_IF_ERROR(CheckReaches(*replay, sources_.back()->header(), offset));
    return replay;
  }

 private:
  absl::StatusOr<std::unique_ptr<EventSource>> Open() const {
    const int64_t first = from_.has_value() ? from_->next_offset() : 0;
    if (archive_ != nullptr) return EventsOfArchive(archive_, first, /*facts=*/false);
    return EventsOfPool(config_, options_.pool);
  }

  absl::Status CheckReaches(const PoolReplay& replay,
                            const verify::EventFileHeader& header,
                            int64_t offset) const {
    if (header.pool != options_.pool || replay.replayer().Queue(options_.pool) == nullptr) {
      return InvalidArgument("the log is of pool {}, and not of {}", header.pool, options_.pool);
    }
    if (header.archived && header.to.log >= offset) return absl::OkStatus();
    if (!options_.file.empty()) {
      return InvalidArgument(
          "{}: it does not reach to offset {}, to which the services have read: call `fluxqueue "
          "events archive` first",
          options_.file,
          offset);
    }
    return MakeStatus(absl::StatusCode::kFailedPrecondition,
                      "Kafka's log ends at offset {}, and the services have read to {}: its end "
                      "was lost; name an archive that has it with --file",
                      header.to.log,
                      offset);
  }

  const SystemConfig& config_;
  const Options& options_;
  const std::shared_ptr<ArchiveStore> archive_;  // unset: none was named
  Snapshot from_;
  std::vector<std::unique_ptr<EventSource>> sources_;
};

struct Report {
  std::vector<TableDifference> tables{};
  bool written = false;

  bool equal() const {
    return std::all_of(tables.begin(), tables.end(), [](const TableDifference& table) {
      return table.unknown == 0 && table.missing == 0;
    });
  }
};

absl::Status Rebuild(
    pqxx::transaction_base& tx, Logs& logs, const Options& options, int partition, Report* report) {
  if (options.yes) RETURN_IF_ERROR(CheckStopped(tx, partition));
  ASSIGN_OR_RETURN(const Reached reached, ReadReached(tx, partition, options.yes));
  RETURN_IF_ERROR(logs.BeginBefore(std::min(reached.queue, reached.matcher)));
  const TableRows tables = ReadTables(tx, options.pool, partition);
  ASSIGN_OR_RETURN(const auto of_queue, logs.ReplayTo(reached.queue));
  ASSIGN_OR_RETURN(const auto of_matcher, logs.ReplayTo(reached.matcher));
  const verify::QueueTables& queue = of_queue->replayer().queue_tables(options.pool);
  const verify::MatcherTables& matcher = of_matcher->replayer().matcher_tables(options.pool);
  TableRows log = RowsOf(queue.Rows());
  log.merge(RowsOf(matcher.Rows()));
  report->tables = Compare(tables, log);
  report->written = options.yes && !report->equal();
  if (report->written) WriteTables(tx, options.pool, partition, queue, matcher);
  return absl::OkStatus();
}

json ToJson(const Report& report) {
  json tables = json::array();
  for (const TableDifference& table : report.tables) {
    tables.push_back({{"table", table.table},
                      {"equal", table.equal},
                      {"unknown", table.unknown},
                      {"missing", table.missing}});
  }
  return {{"equal", report.equal()}, {"written", report.written}, {"tables", std::move(tables)}};
}

void Print(const Report& report, bool colour) {
  Table table({"TABLE", "AS IN THE LOG", "NOT IN THE LOG", "MISSING"});
  for (const TableDifference& one : report.tables) {
    table.Add({one.table, Thousands(one.equal), Thousands(one.unknown), Thousands(one.missing)});
  }
  fmt::print("{}\n", table.Render(colour));
  if (report.equal()) {
    fmt::print("the tables are as the log says\n");
  } else if (report.written) {
    fmt::print("the tables were written by the log: start the services\n");
  } else {
    fmt::print("with the services stopped, --yes writes them by the log\n");
  }
}

absl::StatusOr<int> Run(const Context& context, const Options& options) {
  ASSIGN_OR_RETURN(const SystemConfig config, context.LoadConfig());
  postgres::Connection connection(PostgresOptions(config.dsn));
  ASSIGN_OR_RETURN(const auto pools, ReadPools(connection, options.pool));
  Logs::Snapshot from;
  if (!options.from_snapshot.empty()) {
    ASSIGN_OR_RETURN(from, ReadSnapshot(options.from_snapshot, options.from_snapshot));
  }
  ASSIGN_OR_RETURN(std::shared_ptr<ArchiveStore> archive, ArchiveAt(options.file));
  Logs logs(config, options, std::move(archive), std::move(from));
  Report report;
  RETURN_IF_ERROR(connection.Transact(kLimits, [&](pqxx::transaction_base& tx) {
    report = {};
    return Rebuild(tx, logs, options, pools.at(options.pool), &report);
  }));
  if (context.structured()) {
    fmt::print("{}", context.Structured(ToJson(report)));
  } else {
    Print(report, context.colour);
  }
  return report.equal() || report.written ? 0 : 1;
}

}  // namespace

void RegisterRebuild(CLI::App& app, Context& context) {
  CLI::App* sub = app.add_subcommand(
      "rebuild", "Compare the tables of queue and matcher with a pool's log, and write them by it");
  sub->group("Operation");
  const auto options = std::make_shared<Options>();
  sub->add_option("POOL", options->pool, "Whose rows")->type_name("POOL")->required();
  sub->add_option("--file",
                  options->file,
                  "The pool's folder of `events archive`, in place of its log in Kafka")
      ->type_name("FILE")
      ->check(CLI::ExistingDirectory | S3Url());
  sub->add_option("--from-snapshot",
                  options->from_snapshot,
                  "What `replay --save` has written: of the log only what came since is needed")
      ->type_name("FILE")
      ->check(CLI::ExistingFile);
  AddLibraryOption(sub, &options->library);
  sub->add_flag("--yes", options->yes, "Do it; without this it says what differs");
  sub->footer(
      "To where each service has read its log, which has to be there from the beginning, or from "
      "a snapshot on; an archive\nhas some. What the services decide by is written; history and "
      "accounting stay as they are. --yes refuses while a queue\nor a matcher runs; "
      "$FLUXQUEUE_POSTGRES_DSN is to be of a role that may write their tables. Exit status 1: "
      "something\ndiffers.\n\n"
      "Examples:\n"
      "  fluxqueue rebuild default\n"
      "  fluxqueue rebuild default --yes\n"
      "  fluxqueue rebuild default --file /srv/fluxqueue/events/default");
  sub->callback([&context, options] {
    context.command = [&context, options] { return Run(context, *options); };
  });
}

}  // namespace fluxqueue::cli
