#include "services/matcher/adapters/matcher_store.h"

#include "libs/postgres/array.h"
#include "libs/postgres/pruner.h"
#include "libs/postgres/statement.h"

namespace fluxqueue::matcher {
namespace {

using matcher_core::Changes;
using postgres::BigintArray;
using postgres::BoolArray;
using postgres::ByteaArray;
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
constexpr Statement kAllocate{
    "matcher_allocate",
    "INSERT INTO allocations (job_id, attempt, part, pool, placement, placement_hash, released, "
    "released_at) "
    "SELECT job_id, attempt, part, $1, placement, hash, released, "
    "       CASE WHEN released THEN now() END "
    "FROM unnest($2::text[], $3::bigint[], $4::bigint[], $5::bytea[], $6::bigint[], "
    "$7::boolean[]) "
    "     AS r(job_id, attempt, part, placement, hash, released) "
    "ON CONFLICT (job_id, attempt, part) DO UPDATE "
    "SET placement = excluded.placement, placement_hash = excluded.placement_hash, "
    "    released = excluded.released, released_at = excluded.released_at"};
constexpr Statement kDropNodes{
    "matcher_drop_nodes", "DELETE FROM graph_nodes WHERE pool = $1 AND name = ANY($2::text[])"};
constexpr Statement kUpsertNodes{
    "matcher_upsert_nodes",
    "INSERT INTO graph_nodes (pool, name, uid, ordinal, node, present) "
    "SELECT $1, name, uid, ordinal, node, present "
    "FROM unnest($2::text[], $3::text[], $4::bigint[], $5::bytea[], $6::boolean[]) "
    "     AS r(name, uid, ordinal, node, present) "
    "ON CONFLICT (pool, name) DO UPDATE SET uid = excluded.uid, ordinal = excluded.ordinal, "
    "    node = excluded.node, present = excluded.present"};
constexpr Statement kDropSpecs{
    "matcher_drop_specs",
    "DELETE FROM specs WHERE ctid = ANY(ARRAY("
    "  SELECT s.ctid FROM unnest($1::text[], $2::bigint[]) AS r(job_id, part) "
    "  CROSS JOIN LATERAL ("
    "    SELECT ctid FROM specs x WHERE x.job_id = r.job_id AND x.part = r.part OFFSET 0) s))"};
constexpr Statement kUpsertSpecs{
    "matcher_upsert_specs",
    "INSERT INTO specs (job_id, part, revision, pool, slots, jobspec) "
    "SELECT job_id, part, revision, $1, slots, jobspec "
    "FROM unnest($2::text[], $3::bigint[], $4::bigint[], $5::bigint[], $6::text[]) "
    "     AS r(job_id, part, revision, slots, jobspec) "
    "ON CONFLICT (job_id, part) DO UPDATE SET revision = excluded.revision, "
    "    slots = excluded.slots, jobspec = excluded.jobspec"};
constexpr Statement kDropReservations{
    "matcher_drop_reservations",
    "DELETE FROM reservations WHERE ctid = ANY(ARRAY("
    "  SELECT s.ctid FROM unnest($1::text[], $2::bigint[], $3::bigint[]) "
    "    AS r(job_id, attempt, part) "
    "  CROSS JOIN LATERAL ("
    "    SELECT ctid FROM reservations x "
    "    WHERE x.job_id = r.job_id AND x.attempt = r.attempt AND x.part = r.part OFFSET 0) s))"};
constexpr Statement kUpsertReservations{
    "matcher_upsert_reservations",
    "INSERT INTO reservations (job_id, attempt, part, pool, placement) "
    "SELECT job_id, attempt, part, $1, placement "
    "FROM unnest($2::text[], $3::bigint[], $4::bigint[], $5::bytea[]) "
    "     AS r(job_id, attempt, part, placement) "
    "ON CONFLICT (job_id, attempt, part) DO UPDATE SET placement = excluded.placement"};
constexpr Statement kAnswer{
    "matcher_answer",
    "INSERT INTO answers (pool, cycle_id, answer) "
    "SELECT $1, cycle_id, answer FROM unnest($2::bigint[], $3::bytea[]) AS r(cycle_id, answer) "
    "ON CONFLICT (pool, cycle_id) DO UPDATE SET answer = excluded.answer"};
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

struct KeyArrays {
  TextArray jobs;
  BigintArray attempts;
  BigintArray parts;

  void Add(const matcher_core::AllocationKey& key) {
    jobs.Add(key.job_id);
    attempts.Add(key.attempt);
    parts.Add(key.part);
  }
};

size_t WriteAllocations(pqxx::transaction_base& tx,
                        const std::string& pool,
                        const Changes& changes) {
  if (!changes.released.empty()) {
    KeyArrays keys;
    for (const matcher_core::AllocationKey& key : changes.released) keys.Add(key);
    Exec(tx, kRelease, keys.jobs.text(), keys.attempts.text(), keys.parts.text());
  }
  if (!changes.allocations.empty()) {
    KeyArrays keys;
    ByteaArray placements;
    BigintArray hashes;
    BoolArray released;
    for (const matcher_core::AllocationRow& row : changes.allocations) {
      keys.Add(row.key);
      placements.Add(row.placement);
      hashes.Add(static_cast<int64_t>(row.placement_hash));
      released.Add(row.released);
    }
    Exec(tx,
         kAllocate,
         pool,
         keys.jobs.text(),
         keys.attempts.text(),
         keys.parts.text(),
         placements.text(),
         hashes.text(),
         released.text());
  }
  return changes.released.size() + changes.allocations.size();
}

size_t WriteNodes(pqxx::transaction_base& tx, const std::string& pool, const Changes& changes) {
  if (!changes.nodes_dropped.empty()) {
    TextArray names;
    for (const std::string& name : changes.nodes_dropped) names.Add(name);
    Exec(tx, kDropNodes, pool, names.text());
  }
  if (!changes.nodes.empty()) {
    TextArray names;
    TextArray uids;
    BigintArray ordinals;
    ByteaArray nodes;
    BoolArray present;
    for (const matcher_core::NodeRow& row : changes.nodes) {
      names.Add(row.name);
      uids.Add(row.uid);
      ordinals.Add(static_cast<int64_t>(row.ordinal));
      nodes.Add(row.node);
      present.Add(row.present);
    }
    Exec(tx,
         kUpsertNodes,
         pool,
         names.text(),
         uids.text(),
         ordinals.text(),
         nodes.text(),
         present.text());
  }
  return changes.nodes_dropped.size() + changes.nodes.size();
}

size_t WriteSpecs(pqxx::transaction_base& tx, const std::string& pool, const Changes& changes) {
  if (!changes.specs_dropped.empty()) {
    TextArray jobs;
    BigintArray parts;
    for (const auto& [job_id, part] : changes.specs_dropped) {
      jobs.Add(job_id);
      parts.Add(part);
    }
    Exec(tx, kDropSpecs, jobs.text(), parts.text());
  }
  if (!changes.specs.empty()) {
    TextArray jobs;
    BigintArray parts;
    BigintArray revisions;
    BigintArray slots;
    TextArray jobspecs;
    for (const matcher_core::SpecRow& row : changes.specs) {
      jobs.Add(row.job_id);
      parts.Add(row.part);
      revisions.Add(row.revision);
      slots.Add(row.slots);
      jobspecs.Add(row.jobspec);
    }
    Exec(tx,
         kUpsertSpecs,
         pool,
         jobs.text(),
         parts.text(),
         revisions.text(),
         slots.text(),
         jobspecs.text());
  }
  return changes.specs_dropped.size() + changes.specs.size();
}

size_t WriteReservations(pqxx::transaction_base& tx,
                         const std::string& pool,
                         const Changes& changes) {
  const auto& dropped = changes.reservations_dropped;
  if (!dropped.empty()) {
    KeyArrays keys;
    for (const matcher_core::AllocationKey& key : dropped) keys.Add(key);
    Exec(tx, kDropReservations, keys.jobs.text(), keys.attempts.text(), keys.parts.text());
  }
  if (!changes.reservations.empty()) {
    KeyArrays keys;
    ByteaArray placements;
    for (const matcher_core::ReservationRow& row : changes.reservations) {
      keys.Add(row.key);
      placements.Add(row.placement);
    }
    Exec(tx,
         kUpsertReservations,
         pool,
         keys.jobs.text(),
         keys.attempts.text(),
         keys.parts.text(),
         placements.text());
  }
  return dropped.size() + changes.reservations.size();
}

size_t WriteAnswers(pqxx::transaction_base& tx, const std::string& pool, const Changes& changes) {
  if (changes.answers.empty()) return 0;
  BigintArray ids;
  ByteaArray answers;
  for (const matcher_core::AnswerRow& row : changes.answers) {
    ids.Add(static_cast<int64_t>(row.cycle_id));
    answers.Add(row.answer);
  }
  Exec(tx, kAnswer, pool, ids.text(), answers.text());
  if (changes.answers_dropped_through != 0) {
    Exec(tx, kDropAnswers, pool, static_cast<int64_t>(changes.answers_dropped_through));
  }
  return changes.answers.size();
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
