#include "libs/matcher_rows/matcher_rows.h"

#include <fmt/format.h>

#include "libs/matcher_rows/tables.h"
#include "libs/postgres/array.h"
#include "libs/postgres/statement.h"

namespace fluxqueue::matcher_rows {
namespace {

using matcher_core::AllocationRow;
using matcher_core::AnswerRow;
using matcher_core::NodeRow;
using matcher_core::ReservationRow;
using matcher_core::SpecRow;
using postgres::Exec;
using postgres::Statement;

constexpr Statement kPools{
    "matcher_rows_pools",
    "SELECT pool, row, forecast FROM matcher.pools WHERE partition = $1 ORDER BY pool"};
constexpr Statement kHead{"matcher_rows_head",
                          "SELECT p.row, p.nodes_version, i.epoch, i.commits FROM matcher.pools p "
                          "JOIN matcher.inbox i USING (partition) WHERE p.pool = $1"};
constexpr Statement kHolders{
    "matcher_rows_holders",
    "SELECT job_id, md5(string_agg(concat_ws(' ', attempt, part, md5(placement)), ' ' "
    "                              ORDER BY attempt, part)) "
    "FROM matcher.allocations WHERE pool = $1 AND NOT released GROUP BY job_id"};
constexpr Statement kHolderBehind{"matcher_rows_holder_behind",
                                  "SELECT min(job_id COLLATE \"C\") FROM matcher.allocations "
                                  "WHERE pool = $1 AND NOT released AND job_id COLLATE \"C\" > $2"};
std::string Bytes(const pqxx::field& field) {
  return pqxx::binarystring(field).str();
}

// The rows of a pool.
template <typename Row>
std::vector<Row> LoadOf(pqxx::transaction_base& tx,
                        const postgres::Table<Row>& table,
                        const char* name,
                        const std::string& sql,
                        const std::string& pool) {
  return table.Read(Exec(tx, Statement{name, sql.c_str()}, pool));
}

std::vector<SpecRow> LoadSpecs(pqxx::transaction_base& tx, const std::string& pool) {
  static const std::string sql = Specs().Select("WHERE t.pool = $1");
  return LoadOf(tx, Specs(), "matcher_rows_specs", sql, pool);
}

// The last is enough.
std::vector<AnswerRow> LoadAnswer(pqxx::transaction_base& tx, const std::string& pool) {
  static const std::string sql =
      Answers().Select("WHERE t.pool = $1 ORDER BY t.cycle_id DESC LIMIT 1");
  return LoadOf(tx, Answers(), "matcher_rows_answer", sql, pool);
}

}  // namespace

std::vector<PoolRows> LoadPools(pqxx::transaction_base& tx, int partition) {
  std::vector<PoolRows> pools;
  for (const pqxx::row& row : Exec(tx, kPools, partition)) {
    PoolRows& pool = pools.emplace_back();
    pool.pool = row[0].as<std::string>();
    pool.rows.pool = Bytes(row[1]);
    pool.rows.forecast = Bytes(row[2]);
  }
  for (auto& [pool, rows] : pools) {
    rows.allocations = LoadAllocations(tx, pool);
    rows.nodes = LoadNodes(tx, pool);
    rows.specs = LoadSpecs(tx, pool);
    rows.reservations = LoadReservations(tx, pool);
    rows.answers = LoadAnswer(tx, pool);
  }
  return pools;
}

std::optional<PoolHead> LoadHead(pqxx::transaction_base& tx, const std::string& pool) {
  const pqxx::result rows = Exec(tx, kHead, pool);
  if (rows.empty()) return std::nullopt;
  return PoolHead{Bytes(rows[0][0]),
                  rows[0][1].as<int64_t>(),
                  rows[0][2].as<int64_t>(),
                  rows[0][3].as<int64_t>()};
}

std::vector<NodeRow> LoadNodes(pqxx::transaction_base& tx, const std::string& pool) {
  static const std::string sql = Nodes().Select("WHERE t.pool = $1");
  return LoadOf(tx, Nodes(), "matcher_rows_nodes", sql, pool);
}

std::vector<ReservationRow> LoadReservations(pqxx::transaction_base& tx, const std::string& pool) {
  static const std::string sql =
      Reservations().Select("WHERE t.pool = $1 ORDER BY t.job_id, t.attempt, t.part");
  return LoadOf(tx, Reservations(), "matcher_rows_reservations", sql, pool);
}

std::vector<AllocationRow> LoadAllocations(pqxx::transaction_base& tx, const std::string& pool) {
  static const std::string sql = Allocations().Select(
      "WHERE t.pool = $1 AND NOT t.released ORDER BY t.job_id, t.attempt, t.part");
  return LoadOf(tx, Allocations(), "matcher_rows_allocations", sql, pool);
}

// LATERAL … OFFSET 0: the jobs drive, also in a plan that is kept (postgres::Plans::kKept).
std::vector<AllocationRow> LoadAllocationsOf(pqxx::transaction_base& tx,
                                             const std::string& pool,
                                             const std::vector<std::string>& jobs) {
  static const std::string sql = fmt::format(
      "SELECT a.* FROM unnest($2::text[]) AS j(job_id) CROSS JOIN LATERAL ({} OFFSET 0) a "
      "ORDER BY a.job_id, a.attempt, a.part",
      Allocations().Select("WHERE t.job_id = j.job_id AND t.pool = $1 AND NOT t.released"));
  postgres::TextArray ids;
  for (const std::string& job : jobs) ids.Add(job);
  return Allocations().Read(
      Exec(tx, Statement{"matcher_rows_allocations_of", sql.c_str()}, pool, ids.text()));
}

std::map<std::string, std::string> LoadHolders(pqxx::transaction_base& tx,
                                               const std::string& pool) {
  std::map<std::string, std::string> holders;
  for (const pqxx::row& row : Exec(tx, kHolders, pool)) {
    holders.emplace(row[0].as<std::string>(), row[1].as<std::string>());
  }
  return holders;
}

std::optional<std::string> HolderBehind(pqxx::transaction_base& tx,
                                        const std::string& pool,
                                        const std::string& job_id) {
  const pqxx::field first = Exec(tx, kHolderBehind, pool, job_id)[0][0];
  if (first.is_null()) return std::nullopt;
  return first.as<std::string>();
}

}  // namespace fluxqueue::matcher_rows
