// Reports over years of accounting: fills queue.attempts month by month with rows made by Postgres
// itself, and times the reports that `fluxqueue report` asks for and the lists of
// `fluxqueue jobs --since --until`.
//
// 500 users, of whom the first has a ninth of all attempts and the last a few in ten thousand; each
// is of one of 100 namespaces, and submits to one of 20 queues, mostly the same, in 5 accounts.
// Waits up to ten days, most of them short; a tenth fails, a fiftieth was requeued. A month is
// vacuumed and analysed when it is full, as autovacuum does.
#include <algorithm>
#include <chrono>
#include <functional>
#include <map>
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

const Month kFirst = std::chrono::year(2024) / 1;
constexpr int kQueues = 20;
constexpr int kAccounts = 5;
constexpr char kSomeUser[] = "user-25";  // 0.6 % of the attempts
constexpr char kRareUser[] = "user-500";
constexpr Millis kPatience = std::chrono::hours(2);

struct Options {
  std::string dsn;
  int64_t rows = 10'000'000;
  int months = 36;
  std::string output = "table";
};

// The month's attempts end at even distances, from {1} on for {2} ms; there are {3}.
constexpr char kFill[] =
    "INSERT INTO {0} (ended_ms, waited_ms, start_ms, cpu_milli_seconds, memory_mib_seconds, "
    "  gpu_milli_seconds, username, queue, namespace, outcome, submitted_ms, duration_ms, "
    "  cpu_millis, memory_bytes, gpu_millis, attempt, slots, job_id, pool, name, kind, reason, "
    "  message) "
    "SELECT ended, waited, ended - ran, cpu * ran / 1000, 4 * ran, gpu * ran / 1000, "
    "  'user-' || person, 'queue-' || CASE WHEN n % 8 = 0 THEN n / 8 ELSE person END % {4}, "
    "  'team-' || person % 100, "
    "  CASE WHEN n % 50 = 7 THEN 'Requeued' WHEN n % 10 = 3 THEN 'Failed' ELSE 'Succeeded' END, "
    "  ended - ran - waited, 86400000, cpu, 4294967296, gpu, 1, 1, "
    "  md5(ended::text || '/' || n)::uuid::text, 'default', 'train-' || n, 'Job', "
    "  CASE WHEN n % 50 = 7 THEN 'Preempted' WHEN n % 10 = 3 THEN 'Failed' ELSE '' END, "
    "  CASE WHEN n % 10 = 3 THEN 'its pods have failed more often than backoffLimit' ELSE '' END "
    "FROM (SELECT n, {1} + n * {2} / {3} AS ended, "
    "        floor(random() * 7200 + 1)::bigint * 1000 AS ran, "
    "        1000 * (n % 16 + 1) AS cpu, 1000 * (n % 3) AS gpu, "
    "        floor(power(501, random()))::int AS person, "
    "        floor(exp(random() * 20.6))::bigint AS waited "
    "      FROM generate_series(1, {3}::bigint) AS n) AS made";

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
    report->Section("reports and lists, seconds", {"", "rows", "first", "best of 3"});
    const Month middle = kFirst + months(options_.months / 2);
    TimeReports(middle, report);
    TimeLists(middle, report);
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
    const int64_t each = options_.rows / options_.months;
    Sql("SELECT setseed(0.5)");
    for (int i = 0; i < options_.months; ++i) {
      FillMonth(kFirst + months(i), each);
      if (options_.output == "table") {
        fmt::print(
            stderr, "{} of {} months, {:.0f} s …\n", i + 1, options_.months, SecondsSince(begun));
      }
    }
    AddTable(each * options_.months, SecondsSince(begun), report);
  }

  void FillMonth(Month month, int64_t rows) {
    const std::string table = model::PartitionOf(month);
    const int64_t begin = model::BeginOf(month);
    const int64_t length = model::BeginOf(month + months(1)) - begin - 1;
    // Rows of a table that is made in the same transaction need no log.
    Must(connection_.Transact([&](pqxx::transaction_base& tx) {
      queue::MakeMonths(tx, {month});
      tx.exec(fmt::format(fmt::runtime(kFill), table, begin, length, rows, kQueues));
      return absl::OkStatus();
    }));
    Sql("VACUUM (ANALYZE) " + table);
  }

  void AddTable(int64_t count, double seconds, Report* report) {
    const auto rows = static_cast<double>(count);
    const char* const size =
        "SELECT sum({}(inhrelid)) FROM pg_inherits WHERE inhparent = 'attempts'::regclass";
    const double table = Figure(fmt::format(fmt::runtime(size), "pg_table_size")) / rows;
    const double indexes = Figure(fmt::format(fmt::runtime(size), "pg_indexes_size")) / rows;
    report->Section("the table", {"", "rows", "filled, s", "bytes a row", "its indexes"});
    report->Row({fmt::format("{} months", options_.months),
                 Number(rows),
                 Number(seconds),
                 Number(table),
                 Number(indexes)});
    report->json()["table"] = {{"rows", rows},
                               {"months", options_.months},
                               {"fill_seconds", seconds},
                               {"row_bytes", table},
                               {"index_bytes", indexes}};
  }

  void TimeReports(Month month, Report* report) {
    const auto of_month = [&](ReportKey by, const std::string& user = "") {
      return ReportQuery{.by = {by},
                         .since_ms = model::BeginOf(month),
                         .until_ms = model::BeginOf(month + months(1)),
                         .user = user,
                         .accounts = Accounts()};
    };
    const double first = TimeReport("a month by user", of_month(ReportKey::kUser), report);
    report->Target(fmt::format("one month of {} out of {} rows",
                               options_.months,
                               Number(static_cast<double>(options_.rows))),
                   first,
                   false,
                   2,
                   "s");
    TimeReport("a month by account", of_month(ReportKey::kAccount), report);
    TimeReport("a month by queue", of_month(ReportKey::kQueue), report);
    TimeReport("a month by namespace", of_month(ReportKey::kNamespace), report);
    TimeReport("a month by month", of_month(ReportKey::kMonth), report);
    TimeReport("a month of one user", of_month(ReportKey::kMonth, kSomeUser), report);
    TimeReport("a year by month",
               {.by = {ReportKey::kMonth},
                .since_ms = model::BeginOf(month),
                .until_ms = model::BeginOf(month + months(12))},
               report);
  }

  static std::map<std::string, std::string> Accounts() {
    std::vector<job_store::QueueInfo> queues;
    queues.reserve(kAccounts + kQueues);
    for (int i = 0; i < kAccounts; ++i) queues.push_back({.queue = fmt::format("account-{}", i)});
    for (int i = 0; i < kQueues; ++i) {
      queues.push_back({.queue = fmt::format("queue-{}", i),
                        .parent = fmt::format("account-{}", i % kAccounts)});
    }
    return job_store::AccountsOf(queues);
  }

  void TimeLists(Month month, Report* report) {
    const auto of_month = [&](const std::string& user) {
      return job_store::JobFilter{.user = user,
                                  .ended = true,
                                  .since_ms = model::BeginOf(month),
                                  .until_ms = model::BeginOf(month + months(1)),
                                  .limit = 200};
    };
    TimeList("jobs in a month, 200", of_month(""), report);
    TimeList("jobs of one user in a month, 200", of_month(kSomeUser), report);
    TimeList("jobs of a rare user in a month, 200", of_month(kRareUser), report);
  }

  double TimeReport(const std::string& what, const ReportQuery& query, Report* report) {
    return Time(what, report, [&]() -> absl::StatusOr<size_t> {
      ASSIGN_OR_RETURN(const auto rows, store_.Report(query));
      return rows.size();
    });
  }

  void TimeList(const std::string& what, const job_store::JobFilter& filter, Report* report) {
    Time(what, report, [&]() -> absl::StatusOr<size_t> {
      bool more = false;
      ASSIGN_OR_RETURN(const auto jobs, store_.Ended(filter, &more));
      return jobs.size();
    });
  }

  // How long the first takes; it reads from the disk what is not in memory. `read` says how many
  // rows it was given.
  static double Time(const std::string& what,
                     Report* report,
                     const std::function<absl::StatusOr<size_t>()>& read) {
    std::vector<double> took;
    size_t rows = 0;
    for (int i = 0; i < 4; ++i) {
      const auto begun = std::chrono::steady_clock::now();
      const absl::StatusOr<size_t> count = read();
      took.push_back(SecondsSince(begun));
      Must(count.status());
      rows = *count;
    }
    const double best = *std::min_element(took.begin() + 1, took.end());
    report->Row({what, fmt::format("{}", rows), Number(took[0]), Number(best)});
    report->json()["queries"].push_back(
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
  app.add_option("--months", options.months)->check(CLI::Range(1, 120));
  app.add_option("-o,--output", options.output)->check(CLI::IsMember({"table", "json"}));
  CLI11_PARSE(app, argc, argv);
  Report report("accounting");
  Bench(options).Run(&report);
  fmt::print("{}\n", options.output == "json" ? report.JsonText() : report.Table());
  return report.sound() ? 0 : 1;
}
