#include "services/queue/adapters/prune_store.h"

#include "libs/postgres/statement.h"
#include "libs/scheduling/dependencies.h"

namespace fluxqueue::queue {
namespace {

using postgres::Exec;
using postgres::Pruner;
using postgres::Statement;

constexpr Statement kPools{"queue_prune_pools", "SELECT pool FROM pools ORDER BY pool"};
constexpr Statement kLastEnding{
    "queue_last_ending",
    "SELECT coalesce(max(ending), 0) FROM jobs WHERE pool = $1 AND ending > 0"};
// The order of endings is the order of their times: of the first ones, those that are old. (With
// the time in the inner condition all that has ended would be read where too few are old. An index
// on the time would be worse: each update of a job would have to touch it.) Locked, and judged
// again as they are then: see prune_store.h.
constexpr Statement kPruneEnded{
    "queue_prune_ended",
    "WITH oldest AS ("
    "  SELECT job_id, updated_ms FROM jobs WHERE pool = $1 AND ending > 0 AND ending <= $2 "
    "  ORDER BY ending LIMIT $4), "
    "old AS ("
    "  SELECT job_id FROM jobs WHERE job_id = ANY(ARRAY("
    "    SELECT job_id FROM oldest WHERE updated_ms < extract(epoch FROM now()) * 1000 - $3)) "
    "  AND ending > 0 AND ending <= $2 FOR UPDATE SKIP LOCKED), "
    "events AS (DELETE FROM job_events WHERE job_id = ANY(ARRAY(SELECT job_id FROM old))), "
    "told AS (DELETE FROM promises WHERE job_id = ANY(ARRAY(SELECT job_id FROM old))) "
    "DELETE FROM jobs WHERE job_id = ANY(ARRAY(SELECT job_id FROM old))"};
constexpr Statement kPruneCycles{"queue_prune_cycles",
                                 "DELETE FROM cycles WHERE pool = $1 AND cycle_id = ANY(ARRAY("
                                 "  SELECT cycle_id FROM cycles WHERE pool = $1 AND cycle_id <= "
                                 "    (SELECT max(cycle_id) FROM cycles WHERE pool = $1) - 1000 "
                                 "  ORDER BY cycle_id LIMIT $2 FOR UPDATE SKIP LOCKED))"};
constexpr Statement kPruneCommands{
    "queue_prune_commands",
    "DELETE FROM commands WHERE client_id = ANY(ARRAY("
    "  SELECT client_id FROM commands WHERE accepted < now() - interval '1 day' "
    "  ORDER BY accepted LIMIT $1 FOR UPDATE SKIP LOCKED))"};

}  // namespace

size_t PruneEnded(pqxx::transaction_base& tx, const std::string& pool, Millis age, uint64_t kept) {
  const auto last = Exec(tx, kLastEnding, pool)[0][0].as<int64_t>();
  const int64_t through = last - static_cast<int64_t>(kept);
  if (through <= 0) return 0;
  return Exec(tx, kPruneEnded, pool, through, age.count(), Pruner::kMost).affected_rows();
}

size_t PruneCycles(pqxx::transaction_base& tx, const std::string& pool) {
  return Exec(tx, kPruneCycles, pool, Pruner::kMost).affected_rows();
}

size_t PruneCommands(pqxx::transaction_base& tx) {
  return Exec(tx, kPruneCommands, Pruner::kMost).affected_rows();
}

Pruner::Steps PruneSteps(pqxx::transaction_base& tx, Millis retention) {
  Pruner::Steps steps = {PruneCommands};
  for (const pqxx::row& row : Exec(tx, kPools)) {
    const auto pool = row[0].as<std::string>();
    steps.push_back([pool](pqxx::transaction_base& own) { return PruneCycles(own, pool); });
    steps.push_back([pool, retention](pqxx::transaction_base& own) {
      return PruneEnded(own, pool, retention, scheduling::kEndingsKept);
    });
  }
  return steps;
}

}  // namespace fluxqueue::queue
