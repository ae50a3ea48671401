#include "tools/fluxqueue/events_archive.h"

#include <memory>
#include <string>

#include <fmt/format.h>

#include "libs/base/status_macros.h"
#include "libs/postgres/connection.h"

#include "tools/fluxqueue/archive_snapshots.h"
#include "tools/fluxqueue/commands.h"
#include "tools/fluxqueue/event_archive.h"
#include "tools/fluxqueue/log_reader.h"
#include "tools/fluxqueue/snapshot_store.h"
#include "tools/fluxqueue/table.h"

namespace fluxqueue::cli {
namespace {

struct Options {
  std::string folder{};
  std::string pool{};
  std::string library{};
};

// Whether all that came since the last time was still there.
absl::StatusOr<bool> ArchivePool(const SystemConfig& config,
                                 const std::string& pool,
                                 const std::string& place,
                                 const std::string& library) {
  ASSIGN_OR_RETURN(const std::shared_ptr<ArchiveStore> store, OpenArchive(place));
  ASSIGN_OR_RETURN(const auto source, EventsOfPool(config, pool));
  ASSIGN_OR_RETURN(const Archived archived, AddToArchive(*source, *store));
  fmt::print("{} records of pool {}\n", Thousands(archived.records), pool);
  if (archived.hole) {
    fmt::print(
        "pool {}: retention has taken what came next after the last time: it is lost, and a replay "
        "needs a snapshot of behind it\n",
        pool);
  }
  if (archived.records == 0) return !archived.hole;
  ASSIGN_OR_RETURN(const SnapshotsKept kept, KeepSnapshots(store, library));
  if (kept.added > 0) fmt::print("{} snapshots of pool {}\n", Thousands(kept.added), pool);
  if (!kept.stopped.ok()) {
    fmt::print(stderr, "pool {}: no snapshot: {}\n", pool, Message(kept.stopped));
  }
  return !archived.hole;
}

absl::StatusOr<int> Run(const Context& context, const Options& options) {
  ASSIGN_OR_RETURN(const SystemConfig config, context.LoadConfig());
  const std::string& folder = options.folder.empty() ? config.archive : options.folder;
  if (folder.empty()) {
    return InvalidArgument("name a folder: as `events archive FOLDER`, or archive.folder in {}",
                           config.file);
  }
  postgres::Connection connection(PostgresOptions(config.dsn));
  ASSIGN_OR_RETURN(const auto pools, ReadPools(connection, options.pool));
  int code = 0;
  // One that fails keeps none of the others from being kept.
  absl::Status failed;
  for (const auto& [pool, partition] : pools) {
    const absl::StatusOr<bool> whole =
        ArchivePool(config, pool, fmt::format("{}/{}", folder, pool), options.library);
    if (!whole.ok()) {
      failed.Update(Annotate(whole.status(), "pool " + pool));
    } else if (!*whole) {
      code = 1;
    }
  }
  if (!failed.ok()) return failed;
  return code;
}

}  // namespace

void AddEventsArchive(CLI::App* events, Context& context) {
  CLI::App* sub = events->add_subcommand(
      "archive", "Add what came of the pools' logs since the last time to a folder");
  const auto options = std::make_shared<Options>();
  sub->add_option("FOLDER",
                  options->folder,
                  "With one for each pool, or s3://BUCKET/PREFIX; default: archive.folder of the "
                  "configuration")
      ->type_name("FILE");
  sub->add_option("--pool", options->pool, "Only this pool")->type_name("POOL");
  AddLibraryOption(sub, &options->library);
  sub->footer(
      "To be run from time to time, more often than retention takes something (30 days): what is "
      "in the archive\n"
      "can be replayed for as long as it is kept, from snapshots of each day's end that are kept "
      "with it. Exit status 1:\nsomething was lost in between.\n\n"
      "Examples:\n"
      "  fluxqueue events archive /srv/fluxqueue/events\n"
      "  AWS_ENDPOINT_URL=https://s3.example.com fluxqueue events archive s3://logs/fluxqueue\n"
      "  fluxqueue replay --file /srv/fluxqueue/events/default");
  sub->callback([&context, options] {
    context.command = [&context, options] { return Run(context, *options); };
  });
}

}  // namespace fluxqueue::cli
