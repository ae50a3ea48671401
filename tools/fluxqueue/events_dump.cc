#include "tools/fluxqueue/events_dump.h"

#include <cstdint>
#include <limits>
#include <memory>
#include <string>

#include <fmt/format.h>

#include "libs/base/status_macros.h"

#include "tools/fluxqueue/event_source.h"
#include "tools/fluxqueue/gzip_file.h"
#include "tools/fluxqueue/table.h"
#include "tools/fluxqueue/time_range.h"

namespace fluxqueue::cli {
namespace {

struct Options {
  std::string pool{};
  std::string file{};
  std::string from{};
  std::string to{};
};

struct Times {
  int64_t from_ms = 0;
  int64_t to_ms = std::numeric_limits<int64_t>::max();
};

absl::StatusOr<Times> TimesOf(const Context& context, const Options& options) {
  Times times;
  const int64_t now_ms = context.Now().count();
  if (!options.from.empty()) {
    ASSIGN_OR_RETURN(times.from_ms, ParseMoment("--from", options.from, now_ms));
  }
  if (!options.to.empty()) {
    ASSIGN_OR_RETURN(times.to_ms, ParseMoment("--to", options.to, now_ms));
  }
  if (times.from_ms <= times.to_ms) return times;
  return InvalidArgument("--from {} is behind --to {}", options.from, options.to);
}

absl::StatusOr<int> Run(const Context& context, const Options& options) {
  ASSIGN_OR_RETURN(const Times times, TimesOf(context, options));
  ASSIGN_OR_RETURN(const SystemConfig config, context.LoadConfig(options.file));
  ASSIGN_OR_RETURN(const auto source, EventsOfPool(config, options.pool));
  ASSIGN_OR_RETURN(GzipWriter file, GzipWriter::Open(options.file));
  verify::EventFileHeader header = source->header();
  header.whole = header.whole && options.from.empty();
  header.archived = false;
  file.Write(FormatEventFileHeader(header));
  uint64_t records = 0;
  RETURN_IF_ERROR(source->Read([&](const verify::EventLine& line) {
    const int64_t time = line.time.count();
    if (time < times.from_ms || time > times.to_ms) return absl::OkStatus();
    file.Write(FormatEventLine(line));
    ++records;
    return absl::OkStatus();
  }));
  RETURN_IF_ERROR(file.Close());
  fmt::print(stderr,
             "{} records of pool {}{}\n",
             Thousands(records),
             header.pool,
             header.whole ? "" : ", not from its beginning: a replay of them needs a snapshot");
  return 0;
}

}  // namespace

void AddEventsDump(CLI::App* events, Context& context) {
  CLI::App* sub = events->add_subcommand(
      "dump", "Write a pool's log, and what was said of its jobs, to a file");
  const auto options = std::make_shared<Options>();
  sub->add_option("POOL", options->pool, "Whose log")->type_name("POOL")->required();
  sub->add_option("FILE", options->file, "Gzipped; -: standard output")
      ->type_name("FILE")
      ->required();
  sub->add_option("--from", options->from, fmt::format("Only what came since {}", kMoments))
      ->type_name("TIME");
  sub->add_option("--to", options->to, "Only what came until then")->type_name("TIME");
  sub->footer(
      "A header, then a line of JSON for each record that the pool's services have taken: what "
      "`replay --file` and\n`simulate --format events` read, on any machine. The header says which "
      "release wrote it.\n\n"
      "Examples:\n"
      "  fluxqueue events dump default log.gz\n"
      "  fluxqueue replay --file log.gz -v\n"
      "  fluxqueue events dump gpu today.gz --from 12h");
  sub->callback([&context, options] {
    context.command = [&context, options] { return Run(context, *options); };
  });
}

}  // namespace fluxqueue::cli
