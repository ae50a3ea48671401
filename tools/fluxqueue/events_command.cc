// events: what stands in the logs.
#include <algorithm>
#include <memory>

#include <fmt/format.h>

#include "libs/base/status_macros.h"
#include "libs/config/units.h"
#include "libs/job_store/job_store.h"
#include "libs/kafka/topics.h"

#include "tools/fluxqueue/commands.h"
#include "tools/fluxqueue/events_archive.h"
#include "tools/fluxqueue/events_dump.h"
#include "tools/fluxqueue/job_call.h"
#include "tools/fluxqueue/log_events.h"
#include "tools/fluxqueue/log_reader.h"
#include "tools/fluxqueue/snapshot_store.h"
#include "tools/fluxqueue/table.h"
#include "tools/fluxqueue/terminal.h"

namespace fluxqueue::cli {
namespace {

constexpr Millis kSince = std::chrono::hours(1);

struct Options {
  std::string job;
  std::string pool;
  std::vector<std::string> types;
  std::string since;
  bool follow = false;
};

struct Wanted {
  std::vector<kafka::TopicPartition> partitions;
  Millis since{0};
  std::string job_id;  // empty: of all
};

absl::StatusOr<Wanted> Find(const Context& context,
                            const SystemConfig& config,
                            const Options& options) {
  Wanted wanted;
  std::string pool = options.pool;
  wanted.since = context.Now() - kSince;
  if (!options.job.empty()) {
    ASSIGN_OR_RETURN(const job_store::Job job, FindJob(config, options.job));
    wanted.job_id = job.id;
    wanted.since = Millis(job.created_ms);
    pool = job.pool;
  }
  if (!options.since.empty()) {
    const absl::StatusOr<Millis> since = config::ParseDuration(options.since);
    if (!since.ok()) return Annotate(since.status(), "--since");
    wanted.since = context.Now() - *since;
  }
  postgres::Connection connection(PostgresOptions(config.dsn));
  ASSIGN_OR_RETURN(const auto pools, ReadPools(connection, pool));
  const kafka::TopicNames names;
  for (const auto& [name, partition] : pools) wanted.partitions.emplace_back(names.pool, partition);
  for (int i = 0; i < kafka::kJobsPartitions; ++i) {
    if (wanted.job_id.empty() || i == kafka::JobPartition(wanted.job_id)) {
      wanted.partitions.emplace_back(names.jobs, i);
    }
  }
  // Several pools may share a partition.
  std::sort(wanted.partitions.begin(), wanted.partitions.end());
  wanted.partitions.erase(std::unique(wanted.partitions.begin(), wanted.partitions.end()),
                          wanted.partitions.end());
  return wanted;
}

bool Matches(const verify::EventLine& line, const Options& options, const Wanted& wanted) {
  const events::v1::Envelope& message = line.message;
  if (!options.pool.empty() && message.pool() != options.pool) return false;
  if (!wanted.job_id.empty() && !IsAbout(message, wanted.job_id)) return false;
  return options.types.empty() ||
         std::find(options.types.begin(), options.types.end(), TypeOf(message)) !=
             options.types.end();
}

std::string Line(const LogRecord& record, const Context& context) {
  if (context.structured()) return verify::FormatEventLine(record.line);
  const events::v1::Envelope& message = record.line.message;
  const int64_t time = record.line.time.count();
  const std::string text = fmt::format("{}.{:03}  {:<10} {:<17} {}",
                                       ShortTime(time, context.Now().count()),
                                       time % 1000,
                                       message.stream().substr(0, message.stream().find('/')),
                                       TypeOf(message),
                                       EventText(message));
  return (context.wide() ? text : Clip(text, context.width)) + "\n";
}

absl::StatusOr<int> Run(const Context& context, const Options& options) {
  ASSIGN_OR_RETURN(const SystemConfig config, context.LoadConfig());
  ASSIGN_OR_RETURN(const Wanted wanted, Find(context, config, options));
  const auto print = [&](const LogRecord& record) {
    if (Matches(record.line, options, wanted)) fmt::print("{}", Line(record, context));
    if (options.follow) (void)std::fflush(stdout);
    return absl::OkStatus();
  };
  const auto read = options.follow ? FollowLog : ReadLog;
  RETURN_IF_ERROR(read(config.brokers, wanted.partitions, wanted.since, print));
  return 0;
}

}  // namespace

void RegisterEvents(CLI::App& app, Context& context) {
  CLI::App* sub = app.add_subcommand("events", "Read the logs: of a job, a pool, or all");
  sub->group("Operation");
  const auto options = std::make_shared<Options>();
  sub->add_option("JOB", options->job, "Only what is said of it")->type_name("JOB");
  sub->add_option("--pool", options->pool, "Only of this pool")->type_name("POOL");
  sub->add_option("--type", options->types, "Only of this type, such as cycle_answered; repeatable")
      ->type_name("TYPE");
  sub->add_option("--since", options->since, "How far back; default: 1h, of a job its whole life")
      ->type_name("DURATION");
  sub->add_flag("-f,--follow", options->follow, "And what is said from now on");
  sub->footer(
      "In the order in which they were appended: time, service, type, and what is said. Lines "
      "are cut at the\n"
      "terminal's width; -o wide cuts nothing. With -o json a line is a whole event, as `events "
      "dump` writes it.\n\n"
      "Examples:\n"
      "  fluxqueue events team/train\n"
      "  fluxqueue events --follow --type job_fact --type bind_failed\n"
      "  fluxqueue events --pool gpu --since 10m -o json\n"
      "  fluxqueue events dump gpu log.gz");
  AddEventsDump(sub, context);
  AddEventsArchive(sub, context);
  sub->callback([&context, options, sub] {
    if (!sub->get_subcommands().empty()) return;  // theirs is the command
    context.command = [&context, options] { return Run(context, *options); };
  });
}

}  // namespace fluxqueue::cli
