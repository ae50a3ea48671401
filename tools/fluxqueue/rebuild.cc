#include "tools/fluxqueue/rebuild.h"

#include <algorithm>
#include <iterator>
#include <tuple>
#include <utility>

#include <fmt/format.h>

#include "libs/base/status_macros.h"
#include "libs/matcher_rows/matcher_rows.h"
#include "libs/postgres/array.h"
#include "services/matcher/adapters/matcher_store.h"
#include "services/queue/adapters/queue_store.h"

namespace fluxqueue::cli {
namespace {

// The stores name their tables without a schema.
void Enter(pqxx::transaction_base& tx, const std::string& service) {
  tx.exec("SET LOCAL search_path = " + service);
}

absl::StatusOr<int64_t> ReadInbox(pqxx::transaction_base& tx,
                                  const std::string& service,
                                  int partition,
                                  bool locks) {
  const pqxx::result rows =
      tx.exec_params(fmt::format("SELECT next_offset FROM {}.inbox WHERE partition = $1{}",
                                 service,
                                 locks ? " FOR UPDATE" : ""),
                     partition);
  if (!rows.empty()) return rows[0][0].as<int64_t>();
  return MakeStatus(absl::StatusCode::kNotFound,
                    "the {} has handled nothing of partition {}: there is nothing to rebuild",
                    service,
                    partition);
}

std::string KeyText(const matcher_core::AllocationKey& key) {
  return fmt::format("{}/{}/{}", key.job_id, key.attempt, key.part);
}

void Sort(TableRows* rows) {
  for (auto& [table, texts] : *rows) std::sort(texts.begin(), texts.end());
}

}  // namespace

absl::Status CheckStopped(pqxx::transaction_base& tx, int partition) {
  const pqxx::result sessions = tx.exec_params(
      "SELECT s.service, coalesce(i.holder, ''), a.pid FROM (VALUES ('queue'), ('matcher')) AS s "
      "(service) JOIN pg_stat_activity a ON a.application_name = 'fluxqueue-' || s.service AND "
      "a.datname = current_database() LEFT JOIN (SELECT 'queue' AS service, * FROM queue.inbox "
      "UNION ALL SELECT 'matcher', * FROM matcher.inbox) AS i ON i.service = s.service AND "
      "i.partition = $1 ORDER BY a.pid LIMIT 1",
      partition);
  if (sessions.empty()) return absl::OkStatus();
  const auto service = sessions[0][0].as<std::string>();
  return MakeStatus(absl::StatusCode::kFailedPrecondition,
                    "the {0} still runs (it has session {2} of the database; the last to hold "
                    "partition {3} was {1}): stop every queue and matcher first. Of one that is "
                    "gone and cannot close it, SELECT pg_terminate_backend({2}) does",
                    service,
                    sessions[0][1].as<std::string>(),
                    sessions[0][2].as<int>(),
                    partition);
}

absl::StatusOr<Reached> ReadReached(pqxx::transaction_base& tx, int partition, bool locks) {
  if (!locks) tx.exec("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ READ ONLY");
  Reached reached;
  ASSIGN_OR_RETURN(reached.queue, ReadInbox(tx, "queue", partition, locks));
  ASSIGN_OR_RETURN(reached.matcher, ReadInbox(tx, "matcher", partition, locks));
  return reached;
}

TableRows RowsOf(const queue_core::Rows& rows) {
  TableRows texts;
  texts["queue.pools"] = {rows.pool};
  texts["queue.queues"] = rows.queues;
  texts["queue.jobs"] = rows.jobs;
  texts["queue.jobs (ended)"] = rows.endings;
  texts["queue.usage"] = rows.usage;
  texts["queue.cycles"] = rows.cycles_unanswered;
  Sort(&texts);
  return texts;
}

TableRows RowsOf(const matcher_core::Rows& rows) {
  TableRows texts;
  texts["matcher.pools"] = {rows.pool.value_or("") + "/" + rows.forecast.value_or("")};
  for (const matcher_core::AllocationRow& row : rows.allocations) {
    if (row.released) continue;
    texts["matcher.allocations"].push_back(
        fmt::format("{} {} {}", KeyText(row.key), row.placement_hash, row.placement));
  }
  for (const matcher_core::NodeRow& row : rows.nodes) {
    texts["matcher.graph_nodes"].push_back(
        fmt::format("{} {} {} {} {}", row.name, row.uid, row.ordinal, row.present, row.node));
  }
  for (const matcher_core::SpecRow& row : rows.specs) {
    texts["matcher.specs"].push_back(
        fmt::format("{} {} {} {} {}", row.job_id, row.part, row.revision, row.slots, row.jobspec));
  }
  for (const matcher_core::ReservationRow& row : rows.reservations) {
    texts["matcher.reservations"].push_back(fmt::format("{} {}", KeyText(row.key), row.placement));
  }
  for (const matcher_core::AnswerRow& row : rows.answers) {
    texts["matcher.answers"].push_back(fmt::format("{} {}", row.cycle_id, row.answer));
  }
  Sort(&texts);
  return texts;
}

TableRows ReadTables(pqxx::transaction_base& tx, const std::string& pool, int partition) {
  TableRows tables;
  Enter(tx, "queue");
  for (const auto& [name, rows] : queue::LoadPools(tx, partition)) {
    if (name == pool) tables.merge(RowsOf(rows));
  }
  Enter(tx, "matcher");
  for (const matcher_rows::PoolRows& rows : matcher_rows::LoadPools(tx, partition)) {
    if (rows.pool == pool) tables.merge(RowsOf(rows.rows));
  }
  return tables;
}

std::vector<TableDifference> Compare(const TableRows& tables, const TableRows& log) {
  std::map<std::string, TableDifference> differences;
  const auto without =
      [](const TableRows& these, const TableRows& those, const std::string& table) {
        static const std::vector<std::string> kNone;
        const auto a = these.find(table);
        const auto b = those.find(table);
        std::vector<std::string> left;
        const std::vector<std::string>& of = a == these.end() ? kNone : a->second;
        const std::vector<std::string>& but = b == those.end() ? kNone : b->second;
        std::set_difference(of.begin(), of.end(), but.begin(), but.end(), std::back_inserter(left));
        return std::pair(left.size(), of.size() - left.size());
      };
  for (const TableRows* side : {&tables, &log}) {
    for (const auto& [table, rows] : *side) differences[table].table = table;
  }
  std::vector<TableDifference> all;
  for (auto& [table, difference] : differences) {
    std::tie(difference.unknown, difference.equal) = without(tables, log, table);
    difference.missing = without(log, tables, table).first;
    all.push_back(std::move(difference));
  }
  return all;
}

void WriteTables(pqxx::transaction_base& tx,
                 const std::string& pool,
                 int partition,
                 const verify::QueueTables& queue,
                 const verify::MatcherTables& matcher) {
  constexpr char kFence[] = "UPDATE inbox SET epoch = epoch + 1 WHERE partition = $1";
  Enter(tx, "queue");
  const queue_core::Changes rows = queue.All();
  postgres::TextArray jobs;
  for (const queue_core::JobChange& job : rows.jobs) jobs.Add(job.job_id);
  tx.exec_params(
      "DELETE FROM jobs WHERE pool = $1 AND (live OR job_id = ANY($2::text[]))", pool, jobs.text());
  tx.exec_params("DELETE FROM cycles WHERE pool = $1 AND NOT answered", pool);
  for (const char* table : {"queues", "usage"}) {
    tx.exec_params(fmt::format("DELETE FROM {} WHERE pool = $1", table), pool);
  }
  queue::WriteChanges(tx, pool, partition, rows);
  tx.exec_params(kFence, partition);
  Enter(tx, "matcher");
  tx.exec_params("DELETE FROM allocations WHERE pool = $1 AND NOT released", pool);
  for (const char* table : {"graph_nodes", "specs", "reservations", "answers"}) {
    tx.exec_params(fmt::format("DELETE FROM {} WHERE pool = $1", table), pool);
  }
  matcher::WriteChanges(tx, pool, partition, matcher.All(), /*first=*/true);
  tx.exec_params(kFence, partition);
}

}  // namespace fluxqueue::cli
