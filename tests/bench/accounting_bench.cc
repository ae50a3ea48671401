// Reports over years of accounting: fills queue.attempts with rows of 36 months, made by Postgres
// itself, and times the reports that `fluxqueue report` asks for.
//
// 500 users in 100 namespaces and 20 queues, evenly; waits up to ten days, most of them short; a
// tenth fails, a fiftieth was requeued. A month is vacuumed and analysed when it is full, as
// autovacuum does.
#include <algorithm>
#include <chrono>
#include <string>
#include <vector>

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include "libs/base/check.h"
#include "libs/base/log.h"
#include "libs/base/status_macros.h"
#include "libs/delivery/prepare.h"
#include "libs/job_store/attempt_store.h"
#include "libs/model/accounting_month.h"
#include "libs/postgres/connection.h"
#include "libs/postgres/migrations.h"
#include "services/queue/adapters/attempt_store.h"
#include "tests/bench/report.h"

#include "queue_migrations.h"

namespace fluxqueue::bench {
namespace {

using job_store::ReportKey;
using job_store::ReportQuery;
using model::Month;
using std::chrono::months;

constexpr int kMonths = 36;
const Month kFirst = std::chrono::year(2024) / 1;
constexpr Millis kPatience = std::chrono::hours(2);

struct Options {
  std::string dsn;
  int64_t rows = 10'000'000;
  std::string output = "table";
};

// `n` numbers the attempts of the month, from 1 to {3}.
constexpr char kFill[] =
    "INSERT INTO {0} (ended_ms, waited_ms, start_ms, cpu_milli_seconds, memory_mib_seconds, "
    "  gpu_milli_seconds, username, queue, namespace, outcome, submitted_ms, duration_ms, "
    "  cpu_millis, memory_bytes, gpu_millis, attempt, slots, job_id, pool, name, kind, reason, "
    "  message) "
    "SELECT {1} + n * {2} / {3}, waited, {1} + n * {2} / {3} - ran, cpu * ran / 1000, 4 * ran, "
    "  gpu * ran / 1000, 'user-' || n % 500, 'queue-' || n % 20, 'team-' || n % 100, "
    "  CASE WHEN n % 50 = 7 THEN 'Requeued' WHEN n % 10 = 3 THEN 'Failed' ELSE 'Succeeded' END, "
    "  {1} + n * {2} / {3} - ran - waited, 86400000, cpu, 4294967296, gpu, 1, 1, "
    "  md5(({1} + n)::text)::uuid::text, 'default', 'train-' || n, 'Job', "
    "  CASE WHEN n % 50 = 7 THEN 'Preempted' WHEN n % 10 = 3 THEN 'Failed' ELSE '' END, "
    "  CASE WHEN n % 10 = 3 THEN 'its pods have failed more often than backoffLimit' ELSE '' END "
    "FROM (SELECT n, (n * 7919 % 7200 + 1) * 1000 AS ran, 1000 * (n % 16 + 1) AS cpu, "
    "        1000 * (n % 3) AS gpu, floor(exp((n * 104729 % 1000003)::float8 / 1000003 * "
    "        20.6))::bigint AS waited FROM generate_series(1, {3}::bigint) AS n) AS made";

double SecondsSince(std::chrono::steady_clock::time_point begun) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - begun).count();
}

void Must(const absl::Status& status) {
  CHECK(status.ok(), "{}", Message(status));
}

class Bench {
 public:
  explicit Bench(const Options& options)
      : options_(options), connection_(DatabaseOf(options.dsn)), store_(DatabaseOf(options.dsn)) {
    Must(postgres::Migrate(connection_, "queue", {&delivery::Migrations(), &migrations::queue()}));
  }

  void Run(Report* report) {
    Fill(report);
    report->Section("reports, seconds", {"", "rows", "first", "best of 3"});
    const Month middle = kFirst + months(kMonths / 2);
    const auto of_month = [&](ReportKey by, const std::string& user) {
      return ReportQuery{.by = {by},
                         .since_ms = model::BeginOf(middle),
                         .until_ms = model::BeginOf(middle + months(1)),
                         .user = user};
    };
    const double first = Time("a month by user", of_month(ReportKey::kUser, ""), report);
    report->Target(
        fmt::format(
            "one month of {} out of {} rows", kMonths, Number(static_cast<double>(options_.rows))),
        first,
        false,
        2,
        "s");
    Time("a month by queue", of_month(ReportKey::kQueue, ""), report);
    Time("a month by namespace", of_month(ReportKey::kNamespace, ""), report);
    Time("a month of one user", of_month(ReportKey::kMonth, "user-7"), report);
    Time("a year by month",
         {.by = {ReportKey::kMonth},
          .since_ms = model::BeginOf(middle),
          .until_ms = model::BeginOf(middle + months(12))},
         report);
    TimeJobs(middle, report);
  }

 private:
  static postgres::Options DatabaseOf(const std::string& dsn) {
    return {.dsn = dsn,
            .application = "bench",
            .schema = "queue",
            .statement_timeout = kPatience,
            .idle_in_transaction_timeout = kPatience};
  }

  void Sql(const std::string& sql) {
    Must(connection_.Query([&](pqxx::transaction_base& tx) {
      tx.exec(sql);
      return absl::OkStatus();
    }));
  }

  double Figure(const std::string& sql) {
    double number = 0;
    Must(connection_.Query([&](pqxx::transaction_base& tx) {
      number = tx.exec(sql)[0][0].as<double>();
      return absl::OkStatus();
    }));
    return number;
  }

  void Fill(Report* report) {
    const auto begun = std::chrono::steady_clock::now();
    const int64_t each = options_.rows / kMonths;
    for (int i = 0; i < kMonths; ++i) {
      const Month month = kFirst + months(i);
      const std::string table = model::PartitionOf(month);
      const int64_t begin = model::BeginOf(month);
      const int64_t length = model::BeginOf(month + months(1)) - begin - 1;
      // Rows of a table that is made in the same transaction need no log.
      Must(connection_.Transact([&](pqxx::transaction_base& tx) {
        queue::MakeMonths(tx, {month});
        tx.exec(fmt::format(fmt::runtime(kFill), table, begin, length, each));
        return absl::OkStatus();
      }));
      Sql("VACUUM (ANALYZE) " + table);
    }
    const double seconds = SecondsSince(begun);
    const auto rows = static_cast<double>(each * kMonths);
    const char* const size =
        "SELECT sum({}(inhrelid)) FROM pg_inherits WHERE inhparent = 'attempts'::regclass";
    const double table = Figure(fmt::format(fmt::runtime(size), "pg_table_size")) / rows;
    const double indexes = Figure(fmt::format(fmt::runtime(size), "pg_indexes_size")) / rows;
    report->Section("the table", {"", "rows", "filled, s", "bytes a row", "its index"});
    report->Row({fmt::format("{} months", kMonths),
                 Number(rows),
                 Number(seconds),
                 Number(table),
                 Number(indexes)});
    report->json()["table"] = {{"rows", rows},
                               {"months", kMonths},
                               {"fill_seconds", seconds},
                               {"row_bytes", table},
                               {"index_bytes", indexes}};
  }

  // How long the first takes; it reads from the disk what is not in memory.
  double Time(const std::string& what, const ReportQuery& query, Report* report) {
    std::vector<double> took;
    size_t rows = 0;
    for (int i = 0; i < 4; ++i) {
      const auto begun = std::chrono::steady_clock::now();
      const auto answer = store_.Report(query);
      took.push_back(SecondsSince(begun));
      Must(answer.status());
      rows = answer->size();
    }
    return Add(what, rows, took, report);
  }

  void TimeJobs(Month month, Report* report) {
    const job_store::JobFilter filter{.user = "user-7",
                                      .ended = true,
                                      .since_ms = model::BeginOf(month),
                                      .until_ms = model::BeginOf(month + months(1)),
                                      .limit = 200};
    std::vector<double> took;
    size_t rows = 0;
    for (int i = 0; i < 4; ++i) {
      const auto begun = std::chrono::steady_clock::now();
      bool more = false;
      const auto jobs = store_.Ended(filter, &more);
      took.push_back(SecondsSince(begun));
      Must(jobs.status());
      rows = jobs->size();
    }
    Add("jobs of one user in a month, 200", rows, took, report);
  }

  static double Add(const std::string& what,
                    size_t rows,
                    const std::vector<double>& took,
                    Report* report) {
    const double best = *std::min_element(took.begin() + 1, took.end());
    report->Row({what, fmt::format("{}", rows), Number(took[0]), Number(best)});
    report->json()["reports"].push_back(
        {{"what", what}, {"rows", rows}, {"first_seconds", took[0]}, {"best_seconds", best}});
    if (rows == 0) report->Problem(what + ": nothing was found");
    return took[0];
  }

  const Options options_;
  postgres::Connection connection_;
  job_store::AttemptStore store_;
};

}  // namespace
}  // namespace fluxqueue::bench

int main(int argc, char** argv) {
  using namespace fluxqueue;
  using namespace fluxqueue::bench;
  InitLog("bench", LogLevel::kWarning, LogFormat::kText);
  bench::Options options;
  CLI::App app("Reports over years of accounting.", "fluxqueue-bench-accounting");
  app.add_option("--dsn", options.dsn, "An empty database")->required();
  app.add_option("--rows", options.rows)->check(CLI::Range(36'000, 1'000'000'000));
  app.add_option("-o,--output", options.output)->check(CLI::IsMember({"table", "json"}));
  CLI11_PARSE(app, argc, argv);
  Report report("accounting");
  Bench(options).Run(&report);
  fmt::print("{}\n", options.output == "json" ? report.JsonText() : report.Table());
  return report.sound() ? 0 : 1;
}
