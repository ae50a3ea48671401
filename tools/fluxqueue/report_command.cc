#include <algorithm>
#include <chrono>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "libs/base/status_macros.h"
#include "libs/job_store/attempt_store.h"
#include "libs/job_store/job_store.h"

#include "tools/fluxqueue/commands.h"
#include "tools/fluxqueue/report_tables.h"
#include "tools/fluxqueue/snapshot_store.h"
#include "tools/fluxqueue/time_range.h"

namespace fluxqueue::cli {
namespace {

using job_store::ReportKey;
using job_store::ReportQuery;

constexpr ReportKey kKeys[] = {ReportKey::kUser,
                               ReportKey::kAccount,
                               ReportKey::kQueue,
                               ReportKey::kNamespace,
                               ReportKey::kMonth};
constexpr Millis kDefaultRange = std::chrono::hours(30 * 24);
// Years of a large system are read whole.
constexpr Millis kPatience = std::chrono::minutes(15);

struct Options {
  std::vector<std::string> by = {"user"};
  std::string since;
  std::string until;
  ReportQuery query;
};

absl::Status Complete(const Context& context, Options* options) {
  std::set<ReportKey> known;
  for (const std::string& name : options->by) {
    for (const ReportKey key : kKeys) {
      if (NameOf(key) != name) continue;
      if (!known.insert(key).second) return InvalidArgument("--by {}: named twice", name);
      options->query.by.push_back(key);
    }
  }
  const int64_t now_ms = context.Now().count();
  ASSIGN_OR_RETURN(
      const TimeRange range,
      ParseTimeRange(options->since,
                     options->until,
                     now_ms,
                     {.since_ms = now_ms - kDefaultRange.count(), .until_ms = now_ms}));
  options->query.since_ms = range.since_ms;
  options->query.until_ms = range.until_ms;
  return absl::OkStatus();
}

absl::StatusOr<int> Run(const Context& context, Options options) {
  RETURN_IF_ERROR(Complete(context, &options));
  ASSIGN_OR_RETURN(const SystemConfig config, context.LoadConfig());
  postgres::Options database = PostgresOptions(config.dsn);
  database.statement_timeout = kPatience;
  job_store::AttemptStore store(database);
  const auto& by = options.query.by;
  if (std::find(by.begin(), by.end(), ReportKey::kAccount) != by.end()) {
    job_store::JobStore jobs(database);
    ASSIGN_OR_RETURN(const auto queues, jobs.Queues(/*ended=*/false));
    options.query.accounts = job_store::AccountsOf(queues);
  }
  ASSIGN_OR_RETURN(const ReportRows rows, store.Report(options.query));
  if (context.output == Output::kCsv) {
    fmt::print("{}", ReportCsv(options.query, rows));
  } else if (context.structured()) {
    fmt::print("{}", context.Structured(ReportJson(options.query, rows)));
  } else if (rows.empty()) {
    fmt::print("no job has ended from {} to {}\n",
               FormatTime(Millis(options.query.since_ms)),
               FormatTime(Millis(options.query.until_ms)));
  } else {
    fmt::print("{}", ReportTable(options.query, rows, context.colour));
  }
  return 0;
}

}  // namespace

void RegisterReport(CLI::App& app, Context& context) {
  CLI::App* sub = app.add_subcommand("report", "What was used, and how jobs went, for years back");
  sub->group("Jobs");
  auto options = std::make_shared<Options>();
  sub->add_option(
         "--by", options->by, "A row for each of these, separated by commas; default: user")
      ->type_name("user|account|queue|namespace|month")
      ->delimiter(',')
      ->check(CLI::IsMember({"user", "account", "queue", "namespace", "month"}).description(""));
  sub->add_option("--since", options->since, fmt::format("From {}; default: 30d", kMoments))
      ->type_name("TIME");
  sub->add_option("--until", options->until, "Up to there, likewise; default: now")
      ->type_name("TIME");
  sub->add_option("--user", options->query.user, "Only of this user")->type_name("USER");
  sub->add_option("--queue", options->query.queue, "Only of this queue")->type_name("QUEUE");
  sub->add_option("-n,--namespace", options->query.space, "Only of this namespace")
      ->type_name("NAMESPACE");
  sub->footer(
      "Of jobs that ended in that time. CPU-, GPU- and GIB-HOURS are what they held, times the "
      "hours "
      "that they\nheld it, in attempts that were requeued too. SUCCESS is the share of those that "
      "succeeded among those that\nsucceeded or failed. WAIT is from the submission, or the end of "
      "the attempt before, to the start; P95 is\nwithin 3.3 %. Months are those of UTC. An ACCOUNT "
      "is the queue above a job's own, as "
      "the tree is now.\n\n"
      "Examples:\n"
      "  fluxqueue report --since 2026-11 --until 2026-12      November, by user\n"
      "  fluxqueue report --by month,queue --since 365d        a year, month by month\n"
      "  fluxqueue report --by month --user ann --since 365d   one user's year\n"
      "  fluxqueue report --since 2026-11 -o csv               for a spreadsheet");
  sub->callback([&context, options] {
    context.command = [&context, options] { return Run(context, *options); };
  });
}

}  // namespace fluxqueue::cli
