#include "libs/matcher_rows/matcher_rows.h"

#include "libs/postgres/array.h"
#include "libs/postgres/statement.h"

namespace fluxqueue::matcher_rows {
namespace {

using matcher_core::AllocationRow;
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
constexpr Statement kAllocations{
    "matcher_rows_allocations",
    "SELECT job_id, attempt, part, placement, placement_hash FROM matcher.allocations "
    "WHERE pool = $1 AND NOT released ORDER BY job_id, attempt, part"};
// LATERAL … OFFSET 0: the jobs drive, also in a plan that is kept (postgres::Plans::kKept).
constexpr Statement kAllocationsOf{
    "matcher_rows_allocations_of",
    "SELECT a.job_id, a.attempt, a.part, a.placement, a.placement_hash "
    "FROM unnest($2::text[]) AS j(job_id) CROSS JOIN LATERAL ("
    "  SELECT * FROM matcher.allocations x WHERE x.job_id = j.job_id AND x.pool = $1 AND NOT "
    "x.released "
    "  OFFSET 0) a ORDER BY a.job_id, a.attempt, a.part"};
constexpr Statement kHolders{
    "matcher_rows_holders",
    "SELECT job_id, md5(string_agg(concat_ws(' ', attempt, part, md5(placement)), ' ' "
    "                              ORDER BY attempt, part)) "
    "FROM matcher.allocations WHERE pool = $1 AND NOT released GROUP BY job_id"};
constexpr Statement kHolderBehind{"matcher_rows_holder_behind",
                                  "SELECT min(job_id COLLATE \"C\") FROM matcher.allocations "
                                  "WHERE pool = $1 AND NOT released AND job_id COLLATE \"C\" > $2"};
constexpr Statement kNodes{
    "matcher_rows_nodes",
    "SELECT name, uid, ordinal, node, present FROM matcher.graph_nodes WHERE pool = $1"};
constexpr Statement kSpecs{
    "matcher_rows_specs",
    "SELECT job_id, part, revision, slots, jobspec FROM matcher.specs WHERE pool = $1"};
constexpr Statement kReservations{
    "matcher_rows_reservations",
    "SELECT job_id, attempt, part, placement FROM matcher.reservations WHERE pool = $1 "
    "ORDER BY job_id, attempt, part"};
constexpr Statement kAnswer{
    "matcher_rows_answer",
    "SELECT cycle_id, answer FROM matcher.answers WHERE pool = $1 ORDER BY cycle_id DESC LIMIT 1"};

std::string Bytes(const pqxx::field& field) {
  return pqxx::binarystring(field).str();
}

matcher_core::AllocationKey KeyOf(const pqxx::row& row) {
  return {row[0].as<std::string>(), row[1].as<uint32_t>(), row[2].as<uint32_t>()};
}

std::vector<AllocationRow> ToAllocations(const pqxx::result& rows) {
  std::vector<AllocationRow> allocations;
  for (const pqxx::row& row : rows) {
    AllocationRow& allocation = allocations.emplace_back();
    allocation.key = KeyOf(row);
    allocation.placement = Bytes(row[3]);
    allocation.placement_hash = static_cast<uint64_t>(row[4].as<int64_t>());
  }
  return allocations;
}

std::vector<SpecRow> LoadSpecs(pqxx::transaction_base& tx, const std::string& pool) {
  std::vector<SpecRow> specs;
  for (const pqxx::row& row : Exec(tx, kSpecs, pool)) {
    specs.push_back({row[0].as<std::string>(),
                     row[1].as<uint32_t>(),
                     row[2].as<uint32_t>(),
                     row[3].as<uint32_t>(),
                     row[4].as<std::string>()});
  }
  return specs;
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
    for (const pqxx::row& row : Exec(tx, kAnswer, pool)) {
      rows.answers.push_back({static_cast<uint64_t>(row[0].as<int64_t>()), Bytes(row[1])});
    }
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
  std::vector<NodeRow> nodes;
  for (const pqxx::row& row : Exec(tx, kNodes, pool)) {
    nodes.push_back({row[0].as<std::string>(),
                     row[1].as<std::string>(),
                     static_cast<uint64_t>(row[2].as<int64_t>()),
                     Bytes(row[3]),
                     row[4].as<bool>()});
  }
  return nodes;
}

std::vector<ReservationRow> LoadReservations(pqxx::transaction_base& tx, const std::string& pool) {
  std::vector<ReservationRow> reservations;
  for (const pqxx::row& row : Exec(tx, kReservations, pool)) {
    reservations.push_back({KeyOf(row), Bytes(row[3])});
  }
  return reservations;
}

std::vector<AllocationRow> LoadAllocations(pqxx::transaction_base& tx, const std::string& pool) {
  return ToAllocations(Exec(tx, kAllocations, pool));
}

std::vector<AllocationRow> LoadAllocationsOf(pqxx::transaction_base& tx,
                                             const std::string& pool,
                                             const std::vector<std::string>& jobs) {
  postgres::TextArray ids;
  for (const std::string& job : jobs) ids.Add(job);
  return ToAllocations(Exec(tx, kAllocationsOf, pool, ids.text()));
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
