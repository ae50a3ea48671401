#include "services/matcher/adapters/matcher_store.h"

#include <vector>

#include "libs/matcher_rows/tables.h"
#include "libs/postgres/array.h"
#include "libs/postgres/pruner.h"
#include "libs/postgres/statement.h"

namespace fluxqueue::matcher {
namespace {

using matcher_core::AllocationKey;
using matcher_core::Changes;
using matcher_core::NodeRow;
using matcher_core::ReservationRow;
using matcher_core::SpecRow;
using matcher_rows::Allocations;
using matcher_rows::Answers;
using matcher_rows::Nodes;
using matcher_rows::Reservations;
using matcher_rows::Specs;
using postgres::BigintArray;
using postgres::Exec;
using postgres::Statement;
using postgres::TextArray;

// LATERAL … OFFSET 0: the keys drive, also in a plan that is kept (postgres::Plans::kKept).
constexpr Statement kRelease{
    "matcher_release",
    "UPDATE allocations SET released = true, released_at = now() WHERE ctid = ANY(ARRAY("
    "  SELECT a.ctid FROM unnest($1::text[], $2::bigint[], $3::bigint[]) AS r(job_id, attempt, "
    "part) "
    "  CROSS JOIN LATERAL ("
    "    SELECT ctid FROM allocations x "
    "    WHERE x.job_id = r.job_id AND x.attempt = r.attempt AND x.part = r.part OFFSET 0) a))"};
constexpr Statement kDropAnswers{"matcher_drop_answers",
                                 "DELETE FROM answers WHERE pool = $1 AND cycle_id <= $2"};
constexpr Statement kUpsertPool{
    "matcher_upsert_pool",
    "INSERT INTO pools (pool, partition, row) VALUES ($1, $2, $3) "
    "ON CONFLICT (pool) DO UPDATE SET partition = excluded.partition, row = excluded.row"};
constexpr Statement kSetForecast{"matcher_set_forecast",
                                 "UPDATE pools SET forecast = $2 WHERE pool = $1"};
constexpr Statement kCountNodeChange{
    "matcher_count_node_change",
    "UPDATE pools SET nodes_version = nodes_version + 1 WHERE pool = $1"};
// They are locked when they are deleted, and so are where they were found (ctid).
constexpr Statement kPrune{
    "matcher_prune",
    "DELETE FROM allocations WHERE ctid = ANY(ARRAY("
    "  SELECT ctid FROM allocations "
    "  WHERE released AND released_at < now() - $1 * interval '1 millisecond' "
    "  ORDER BY released_at LIMIT $2 FOR UPDATE SKIP LOCKED))"};

void Release(pqxx::transaction_base& tx, const std::vector<AllocationKey>& released) {
  if (released.empty()) return;
  TextArray jobs;
  BigintArray attempts, parts;
  for (const AllocationKey& key : released) {
    jobs.Add(key.job_id);
    attempts.Add(key.attempt);
    parts.Add(key.part);
  }
  Exec(tx, kRelease, jobs.text(), attempts.text(), parts.text());
}

size_t WriteAllocations(pqxx::transaction_base& tx,
                        const std::string& pool,
                        const Changes& changes) {
  Release(tx, changes.released);
  return changes.released.size() + Allocations().Write(tx, changes.allocations, pool);
}

template <typename Row>
size_t DropAndWrite(pqxx::transaction_base& tx,
                    const postgres::Table<Row>& table,
                    const std::string& pool,
                    const std::vector<Row>& dropped,
                    const std::vector<Row>& rows) {
  table.Delete(tx, dropped, pool);
  table.Write(tx, rows, pool);
  return dropped.size() + rows.size();
}

size_t WriteNodes(pqxx::transaction_base& tx, const std::string& pool, const Changes& changes) {
  std::vector<NodeRow> dropped;
  for (const std::string& name : changes.nodes_dropped) dropped.emplace_back().name = name;
  return DropAndWrite(tx, Nodes(), pool, dropped, changes.nodes);
}

size_t WriteSpecs(pqxx::transaction_base& tx, const std::string& pool, const Changes& changes) {
  std::vector<SpecRow> dropped;
  for (const auto& [job_id, part] : changes.specs_dropped) {
    SpecRow& spec = dropped.emplace_back();
    spec.job_id = job_id;
    spec.part = part;
  }
  return DropAndWrite(tx, Specs(), pool, dropped, changes.specs);
}

size_t WriteReservations(pqxx::transaction_base& tx,
                         const std::string& pool,
                         const Changes& changes) {
  std::vector<ReservationRow> dropped;
  for (const AllocationKey& key : changes.reservations_dropped) dropped.emplace_back().key = key;
  return DropAndWrite(tx, Reservations(), pool, dropped, changes.reservations);
}

size_t WriteAnswers(pqxx::transaction_base& tx, const std::string& pool, const Changes& changes) {
  const size_t written = Answers().Write(tx, changes.answers, pool);
  if (written > 0 && changes.answers_dropped_through != 0) {
    Exec(tx, kDropAnswers, pool, static_cast<int64_t>(changes.answers_dropped_through));
  }
  return written;
}

}  // namespace

size_t WriteChanges(pqxx::transaction_base& tx,
                    const std::string& pool,
                    int partition,
                    const Changes& changes,
                    bool first) {
  size_t rows = WriteAllocations(tx, pool, changes) + WriteNodes(tx, pool, changes) +
                WriteSpecs(tx, pool, changes) + WriteReservations(tx, pool, changes) +
                WriteAnswers(tx, pool, changes);
  if (changes.pool.has_value() || first) {
    Exec(tx, kUpsertPool, pool, partition, pqxx::binarystring(changes.pool.value_or("")));
    ++rows;
  }
  if (!changes.nodes.empty() || !changes.nodes_dropped.empty()) Exec(tx, kCountNodeChange, pool);
  if (changes.forecast.has_value()) {
    Exec(tx, kSetForecast, pool, pqxx::binarystring(*changes.forecast));
  }
  return rows;
}

size_t PruneReleased(pqxx::transaction_base& tx, Millis age) {
  return Exec(tx, kPrune, age.count(), postgres::Pruner::kMost).affected_rows();
}

}  // namespace fluxqueue::matcher
