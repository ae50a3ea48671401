#include "libs/job_store/attempt_store.h"

#include <algorithm>
#include <cmath>
#include <set>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "libs/base/status_macros.h"
#include "libs/model/accounting_month.h"
#include "libs/postgres/array.h"
#include "libs/postgres/statement.h"

namespace fluxqueue::job_store {
namespace {

using postgres::Exec;
using postgres::Statement;

constexpr double kMillicoreSecondsPerHour = 1000.0 * 3600;
constexpr double kMibSecondsPerGibHour = 1024.0 * 3600;

constexpr Statement kMonths{
    "attempts_months",
    "SELECT c.relname FROM pg_inherits i JOIN pg_class c ON c.oid = i.inhrelid "
    "WHERE i.inhparent = 'queue.attempts'::regclass ORDER BY c.relname"};
// {}: the table. The last to end come first.
constexpr char kEnded[] =
    "SELECT job_id, pool, queue, namespace, name, kind, outcome, attempt, reason, message, slots, "
    "  submitted_ms, coalesce(start_ms, 0), ended_ms, username "
    "FROM {} AS a "
    "WHERE ended_ms >= $1 AND submitted_ms < $2 AND outcome <> 'Requeued' "
    "  AND ($3 = '' OR username = $3) AND ($4 = '' OR queue = $4) AND ($5 = '' OR namespace = $5) "
    "  AND ($6 = '' OR outcome = $6) "
    "  AND NOT EXISTS (SELECT FROM queue.jobs j WHERE j.job_id = a.job_id) "
    "ORDER BY ended_ms DESC LIMIT $7::bigint";

std::string ColumnOf(ReportKey key, model::Month month) {
  switch (key) {
    case ReportKey::kUser:
      return "username";
    case ReportKey::kAccount:  // ReportSql makes accounts of them
    case ReportKey::kQueue:
      return "queue";
    case ReportKey::kNamespace:
      return "namespace";
    case ReportKey::kMonth:
      return fmt::format("'{}'::text", model::NameOf(month));
  }
  return "";
}

// "1, 2, 3"
std::string Ordinals(size_t count) {
  std::vector<size_t> numbers;
  for (size_t i = 1; i <= count; ++i) numbers.push_back(i);
  return fmt::format("{}", fmt::join(numbers, ", "));
}

// "k0, k1"
std::string KeyNames(const ReportQuery& query) {
  std::vector<std::string> names;
  for (size_t i = 0; i < query.by.size(); ++i) names.push_back(fmt::format("k{}", i));
  return fmt::format("{}", fmt::join(names, ", "));
}

// The attempts of one month, by keys and class of their wait. Each month is asked for by its own
// partition: Postgres then plans by that partition's statistics, in parallel.
std::string MonthSql(const ReportQuery& query, model::Month month) {
  std::string columns;
  for (size_t i = 0; i < query.by.size(); ++i) {
    columns += fmt::format("{} AS k{}, ", ColumnOf(query.by[i], month), i);
  }
  const int64_t begin = model::BeginOf(month);
  const int64_t end = model::BeginOf(month + std::chrono::months(1));
  std::string sql = fmt::format(
      "SELECT {}wait_class, count(*) AS attempts, "
      "count(*) FILTER (WHERE outcome <> 'Requeued') AS jobs, "
      "count(*) FILTER (WHERE outcome = 'Succeeded') AS succeeded, "
      "count(*) FILTER (WHERE outcome = 'Failed') AS failed, "
      "queue.total(cpu_milli_seconds) AS cpu, queue.total(gpu_milli_seconds) AS gpu, "
      "queue.total(memory_mib_seconds) AS memory, queue.total(waited_ms) AS waited "
      "FROM queue.{} WHERE ($1 = '' OR username = $1) AND ($2 = '' OR queue = $2) "
      "AND ($3 = '' OR namespace = $3)",
      columns,
      model::PartitionOf(month));
  if (query.since_ms > begin) sql += fmt::format(" AND ended_ms >= {}", query.since_ms);
  if (query.until_ms < end) sql += fmt::format(" AND ended_ms < {}", query.until_ms);
  return fmt::format("{} GROUP BY {}", sql, Ordinals(query.by.size() + 1));
}

// "k0, coalesce((SELECT …), k1)": queues are accounts, where these are asked for.
std::string KeysOfMonths(const ReportQuery& query) {
  std::vector<std::string> keys;
  for (size_t i = 0; i < query.by.size(); ++i) {
    keys.push_back(
        query.by[i] != ReportKey::kAccount
            ? fmt::format("k{}", i)
            : fmt::format("coalesce((SELECT a.account FROM accounts AS a WHERE a.queue = k{0}), "
                          "k{0}) AS k{0}",
                          i));
  }
  return fmt::format("{}", fmt::join(keys, ", "));
}

// `parts`: MonthSql of each. Sorting the waits would take longer than all the rest; their classes
// need no sort.
std::string ReportSql(const ReportQuery& query, const std::vector<std::string>& parts) {
  const std::string keys = KeyNames(query);
  return fmt::format(
      "WITH accounts AS (SELECT unnest($4::text[]) AS queue, unnest($5::text[]) AS account), "
      "classes AS (SELECT {2}, wait_class, sum(attempts) AS attempts, sum(jobs) AS jobs, "
      "    sum(succeeded) AS succeeded, sum(failed) AS failed, sum(cpu) AS cpu, sum(gpu) AS gpu, "
      "    sum(memory) AS memory, sum(waited) AS waited, "
      "    CASE WHEN wait_class IS NULL THEN 0 ELSE sum(attempts) END AS started "
      "  FROM ({1}) AS months GROUP BY {3}), "
      "ranked AS (SELECT *, sum(started) OVER (PARTITION BY {0}) AS all_started, "
      "    sum(started) OVER (PARTITION BY {0} ORDER BY wait_class NULLS FIRST) AS up_to "
      "  FROM classes) "
      "SELECT {0}, sum(jobs), sum(succeeded), sum(failed), sum(attempts), sum(started), sum(cpu), "
      "  sum(gpu), sum(memory), coalesce(sum(waited) FILTER (WHERE wait_class IS NOT NULL), 0), "
      "  coalesce(min(wait_class) FILTER (WHERE up_to * 20 >= all_started * 19), -1) "
      "FROM ranked GROUP BY {0} ORDER BY {0}",
      keys,
      fmt::format("{}", fmt::join(parts, " UNION ALL ")),
      KeysOfMonths(query),
      Ordinals(query.by.size() + 1));
}

// In the middle of a class of waits (0006_attempts.sql).
double SecondsOf(int wait_class) {
  return wait_class < 0 ? 0 : std::exp((wait_class + 0.5) / 16) - 1;
}

ReportRow ReadRow(const pqxx::row& row, size_t keys) {
  ReportRow read;
  for (size_t i = 0; i < keys; ++i) read.keys.push_back(row[static_cast<int>(i)].as<std::string>());
  auto at = static_cast<int>(keys);
  read.jobs = row[at++].as<int64_t>();
  read.succeeded = row[at++].as<int64_t>();
  read.failed = row[at++].as<int64_t>();
  read.attempts = row[at++].as<int64_t>();
  read.started = row[at++].as<int64_t>();
  read.cpu_hours = row[at++].as<double>() / kMillicoreSecondsPerHour;
  read.gpu_hours = row[at++].as<double>() / kMillicoreSecondsPerHour;
  read.memory_gib_hours = row[at++].as<double>() / kMibSecondsPerGibHour;
  const auto waited_ms = row[at++].as<double>();
  if (read.started > 0) read.wait_mean_s = waited_ms / 1000 / static_cast<double>(read.started);
  read.wait_p95_s = SecondsOf(row[at].as<int>());
  return read;
}

// Those that have a partition and did not end before `since_ms`, the oldest first. They stay until
// the transaction ends: who drops one has to lock the table, too.
std::vector<model::Month> MonthsSince(pqxx::transaction_base& tx, int64_t since_ms) {
  tx.exec("LOCK TABLE ONLY queue.attempts IN ACCESS SHARE MODE");
  std::vector<model::Month> months;
  for (const pqxx::row& row : Exec(tx, kMonths)) {
    const auto month = model::MonthOfPartition(row[0].as<std::string>());
    if (month.has_value() && model::BeginOf(*month + std::chrono::months(1)) > since_ms) {
      months.push_back(*month);
    }
  }
  return months;
}

std::vector<std::string> Parts(pqxx::transaction_base& tx, const ReportQuery& query) {
  std::vector<std::string> parts;
  for (const model::Month month : MonthsSince(tx, query.since_ms)) {
    if (model::BeginOf(month) < query.until_ms) parts.push_back(MonthSql(query, month));
  }
  return parts;
}

// Of the attempts that ended in a month after `until_ms`, few were submitted before it. The index
// on submitted_ms passes over the others. Without OFFSET 0 the planner would rather read the month
// from its end, as it expects to meet those few everywhere.
std::string EndedSql(model::Month month, int64_t until_ms) {
  const std::string table = "queue." + model::PartitionOf(month);
  if (model::BeginOf(month) < until_ms) return fmt::format(kEnded, table);
  return fmt::format(kEnded,
                     fmt::format("(SELECT * FROM {} WHERE submitted_ms < $2 OFFSET 0)", table));
}

Job ReadEnded(const pqxx::row& row) {
  return {.id = row[0].as<std::string>(),
          .pool = row[1].as<std::string>(),
          .queue = row[2].as<std::string>(),
          .space = row[3].as<std::string>(),
          .name = row[4].as<std::string>(),
          .kind = row[5].as<std::string>(),
          .user = row[14].as<std::string>(),
          .state = row[6].as<std::string>(),
          .attempt = row[7].as<int64_t>(),
          .reason = row[8].as<std::string>(),
          .message = row[9].as<std::string>(),
          .slots = row[10].as<int64_t>(),
          .created_ms = row[11].as<int64_t>(),
          .start_ms = row[12].as<int64_t>(),
          .updated_ms = row[13].as<int64_t>(),
          .ended = true};
}

}  // namespace

std::map<std::string, std::string> AccountsOf(const std::vector<QueueInfo>& queues) {
  std::map<std::string, std::string> parents;
  for (const QueueInfo& queue : queues) parents.emplace(queue.queue, queue.parent);
  std::map<std::string, std::string> accounts;
  for (const auto& [queue, parent] : parents) {
    std::string account;
    std::set<std::string> seen;
    for (auto at = parents.find(parent); at != parents.end() && seen.insert(at->first).second;
         at = parents.find(at->second)) {
      account = account.empty() ? at->first : at->first + "/" + account;
    }
    accounts.emplace(queue, account.empty() ? queue : account);
  }
  return accounts;
}

AttemptStore::AttemptStore(const postgres::Options& options) : connections_(options, 1) {}

absl::StatusOr<std::vector<ReportRow>> AttemptStore::Report(const ReportQuery& query) {
  std::vector<ReportRow> report;
  RETURN_IF_ERROR(connections_.Transact([&](pqxx::transaction_base& tx) {
    report.clear();
    // Groups stay in memory; and compiling the expressions takes longer than they do.
    tx.exec("SET LOCAL work_mem = '64MB'; SET LOCAL jit = off");
    const std::vector<std::string> parts = Parts(tx, query);
    if (parts.empty()) return absl::OkStatus();
    postgres::TextArray queues;
    postgres::TextArray accounts;
    for (const auto& [queue, account] : query.accounts) {
      queues.Add(queue);
      accounts.Add(account);
    }
    for (const pqxx::row& row : tx.exec_params(ReportSql(query, parts),
                                               query.user,
                                               query.queue,
                                               query.space,
                                               queues.text(),
                                               accounts.text())) {
      report.push_back(ReadRow(row, query.by.size()));
    }
    return absl::OkStatus();
  }));
  return report;
}

// Month by month, the newest first, until there are enough: older months are not read.
absl::StatusOr<std::vector<Job>> AttemptStore::Ended(const JobFilter& filter, bool* more) {
  std::vector<Job> jobs;
  RETURN_IF_ERROR(connections_.Transact([&](pqxx::transaction_base& tx) {
    jobs.clear();
    std::set<std::string> seen;
    int64_t left = filter.limit + 1;
    std::vector<model::Month> months = MonthsSince(tx, filter.since_ms);
    for (; left > 0 && !months.empty(); months.pop_back()) {
      for (const pqxx::row& row : tx.exec_params(EndedSql(months.back(), filter.until_ms),
                                                 filter.since_ms,
                                                 filter.until_ms,
                                                 filter.user,
                                                 filter.queue,
                                                 filter.space,
                                                 filter.state,
                                                 left)) {
        Job job = ReadEnded(row);
        if (seen.insert(job.id).second) jobs.push_back(std::move(job));
        --left;
      }
    }
    *more = left == 0;
    return absl::OkStatus();
  }));
  if (static_cast<int64_t>(jobs.size()) > filter.limit) jobs.pop_back();
  return jobs;
}

}  // namespace fluxqueue::job_store
