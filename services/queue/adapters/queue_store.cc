#include "services/queue/adapters/queue_store.h"

#include <set>

#include "libs/model/slip.h"
#include "libs/postgres/array.h"
#include "libs/postgres/statement.h"
#include "libs/scheduling/dependencies.h"
#include "services/queue/adapters/attempt_store.h"

namespace fluxqueue::queue {
namespace {

using postgres::BigintArray;
using postgres::ByteaArray;
using postgres::Exec;
using postgres::Statement;
using postgres::TextArray;
using queue_core::Changes;

constexpr Statement kLoadPools{"queue_load_pools",
                               "SELECT pool, row FROM pools WHERE partition = $1 ORDER BY pool"};
constexpr Statement kLoadQueues{"queue_load_queues", "SELECT row FROM queues WHERE pool = $1"};
constexpr Statement kLoadJobs{"queue_load_jobs",
                              "SELECT row FROM jobs "
                              "WHERE pool = $1 AND live"};
constexpr Statement kLoadCycles{"queue_load_cycles",
                                "SELECT requested FROM cycles WHERE pool = $1 AND NOT answered"};

constexpr Statement kLoadUsage{"queue_load_usage", "SELECT row FROM usage WHERE pool = $1"};
constexpr Statement kLoadEndings{
    "queue_load_endings",
    "SELECT row FROM jobs WHERE pool = $1 AND ending > 0 AND ending > "
    "  (SELECT max(ending) FROM jobs WHERE pool = $1 AND ending > 0) - $2 ORDER BY ending"};

constexpr Statement kUpsertPool{
    "queue_upsert_pool",
    "INSERT INTO pools (pool, partition, row) VALUES ($1, $2, $3) "
    "ON CONFLICT (pool) DO UPDATE SET partition = excluded.partition, row = excluded.row"};
constexpr Statement kDeleteQueues{"queue_delete_queues",
                                  "DELETE FROM queues WHERE pool = $1 AND queue = ANY($2::text[])"};
constexpr Statement kUpsertQueues{
    "queue_upsert_queues",
    "INSERT INTO queues (pool, queue, row) "
    "SELECT $1, queue, row FROM unnest($2::text[], $3::bytea[]) AS r(queue, row) "
    "ON CONFLICT (pool, queue) DO UPDATE SET row = excluded.row"};
constexpr Statement kUpsertJobs{
    "queue_upsert_jobs",
    "INSERT INTO jobs AS j (job_id, pool, queue, namespace, name, kind, state, version, attempt, "
    "  reason, message, slots, priority, created_ms, start_ms, updated_ms, placement_hash, row, "
    "  ending, most_slots, username, jobspec_bytes) "
    "SELECT job_id, $1, queue, namespace, name, kind, state, version, attempt, reason, message, "
    "  slots, priority, created_ms, start_ms, updated_ms, placement_hash, row, ending, "
    "  most_slots, username, jobspec_bytes "
    "FROM unnest($2::text[], $3::text[], $4::text[], $5::text[], $6::text[], $7::text[], "
    "  $8::bigint[], $9::bigint[], $10::text[], $11::text[], $12::bigint[], $13::bigint[], "
    "  $14::bigint[], $15::bigint[], $16::bigint[], $17::bigint[], $18::bytea[], "
    "  $19::bigint[], $20::bigint[], $21::text[], $22::bigint[]) "
    "  AS r(job_id, queue, namespace, name, kind, state, version, attempt, reason, message, "
    "       slots, priority, created_ms, start_ms, updated_ms, placement_hash, row, ending, "
    "       most_slots, username, jobspec_bytes) "
    "ON CONFLICT (job_id) DO UPDATE SET pool = excluded.pool, queue = excluded.queue, "
    "  state = excluded.state, version = excluded.version, attempt = excluded.attempt, "
    "  reason = excluded.reason, message = excluded.message, slots = excluded.slots, "
    "  priority = excluded.priority, start_ms = excluded.start_ms, "
    "  updated_ms = excluded.updated_ms, placement_hash = excluded.placement_hash, "
    "  row = excluded.row, ending = excluded.ending, most_slots = excluded.most_slots, "
    "  username = excluded.username, jobspec_bytes = excluded.jobspec_bytes "
    "WHERE j.version <= excluded.version AND (j.live OR j.state = 'Rejected')"};
constexpr Statement kDeleteLackNodes{
    "queue_delete_lack_nodes",
    "DELETE FROM lack_nodes WHERE pool = $1 AND job_id <> ALL($2::text[])"};
constexpr Statement kUpsertLackNodes{
    "queue_upsert_lack_nodes",
    "INSERT INTO lack_nodes (job_id, pool) SELECT id, $1 FROM unnest($2::text[]) AS r(id) "
    "ON CONFLICT (job_id) DO UPDATE SET pool = excluded.pool"};
constexpr Statement kInsertEvents{
    "queue_insert_events",
    "INSERT INTO job_events (job_id, version, time_ms, state, attempt, reason, message) "
    "SELECT * FROM unnest($1::text[], $2::bigint[], $3::bigint[], $4::text[], $5::bigint[], "
    "  $6::text[], $7::text[])"};
constexpr Statement kPruneHistory{
    "queue_prune_history",
    "WITH old AS (SELECT * FROM unnest($1::text[], $2::bigint[]) AS r(job_id, last)), "
    "told AS (DELETE FROM promises AS p USING old "
    "  WHERE p.job_id = old.job_id AND p.version <= old.last) "
    "DELETE FROM job_events AS e USING old WHERE e.job_id = old.job_id AND e.version <= old.last"};
constexpr Statement kInsertPromises{
    "queue_insert_promises",
    "INSERT INTO promises (job_id, version, queue, told_ms, start_ms, before_ms, firm, kept, "
    "cause, "
    "  cause_by) "
    "SELECT job_id, version, queue, told_ms, nullif(start_ms, 0), nullif(before_ms, 0), firm, "
    "kept, "
    "  cause, cause_by "
    "FROM unnest($1::text[], $2::bigint[], $3::text[], $4::bigint[], $5::bigint[], $6::bigint[], "
    "  $7::boolean[], $8::boolean[], $9::text[], $10::text[]) "
    "  AS r(job_id, version, queue, told_ms, start_ms, before_ms, firm, kept, cause, cause_by)"};
constexpr Statement kDeleteUsage{
    "queue_delete_usage",
    "DELETE FROM usage AS u USING unnest($2::text[], $3::text[]) AS r(kind, name) "
    "WHERE u.pool = $1 AND u.kind = r.kind AND u.name = r.name"};
constexpr Statement kUpsertUsage{
    "queue_upsert_usage",
    "INSERT INTO usage (pool, kind, name, row) "
    "SELECT $1, kind, name, row "
    "FROM unnest($2::text[], $3::text[], $4::bytea[]) AS r(kind, name, row) "
    "ON CONFLICT (pool, kind, name) DO UPDATE SET row = excluded.row"};
constexpr Statement kInsertCycles{
    "queue_insert_cycles",
    "INSERT INTO cycles (pool, cycle_id, requested) "
    "SELECT $1, cycle_id, requested FROM unnest($2::bigint[], $3::bytea[]) "
    "  AS r(cycle_id, requested) "
    "ON CONFLICT (pool, cycle_id) DO UPDATE SET requested = excluded.requested"};
constexpr Statement kAnswerCycles{
    "queue_answer_cycles",
    "UPDATE cycles SET answered = true WHERE pool = $1 AND cycle_id = ANY($2::bigint[])"};

constexpr Statement kFindJobs{"queue_find_jobs",
                              "SELECT job_id FROM jobs WHERE job_id = ANY($1::text[])"};
constexpr Statement kInsertCommands{
    "queue_insert_commands",
    "INSERT INTO commands (client_id, job_id) SELECT * FROM unnest($1::text[], $2::text[]) "
    "ON CONFLICT (client_id) DO NOTHING RETURNING client_id"};

std::string Bytes(const pqxx::field& field) {
  return pqxx::binarystring(field).str();
}

std::vector<std::string> LoadBlobs(pqxx::transaction_base& tx,
                                   const Statement& statement,
                                   const std::string& pool) {
  std::vector<std::string> blobs;
  for (const pqxx::row& row : Exec(tx, statement, pool)) blobs.push_back(Bytes(row[0]));
  return blobs;
}

size_t WriteQueues(pqxx::transaction_base& tx, const std::string& pool, const Changes& changes) {
  TextArray deleted;
  TextArray queues;
  ByteaArray rows;
  for (const queue_core::QueueChange& change : changes.queues) {
    if (change.deleted) {
      deleted.Add(change.queue);
    } else {
      queues.Add(change.queue);
      rows.Add(change.row);
    }
  }
  if (!deleted.empty()) Exec(tx, kDeleteQueues, pool, deleted.text());
  if (!queues.empty()) Exec(tx, kUpsertQueues, pool, queues.text(), rows.text());
  return changes.queues.size();
}

// A column array for each column of queue.jobs.
struct JobColumns {
  TextArray ids, queues, namespaces, names, kinds, states, reasons, messages, users;
  BigintArray versions, attempts, slots, priorities, created, starts, updated, hashes, endings;
  BigintArray most_slots, jobspec_bytes;
  ByteaArray rows;

  void Add(const queue_core::JobChange& job) {
    ids.Add(job.job_id);
    queues.Add(job.queue);
    namespaces.Add(job.name_space);
    names.Add(job.name);
    kinds.Add(job.kind);
    states.Add(model::Name(job.state));
    versions.Add(static_cast<int64_t>(job.version));
    attempts.Add(job.attempt);
    reasons.Add(job.reason);
    messages.Add(job.message);
    slots.Add(job.slots);
    priorities.Add(job.priority);
    created.Add(job.created_ms);
    starts.Add(job.start_ms);
    updated.Add(job.updated_ms);
    hashes.Add(static_cast<int64_t>(job.placement_hash));
    rows.Add(job.row);
    endings.Add(static_cast<int64_t>(job.ending));
    most_slots.Add(job.most_slots);
    users.Add(job.user);
    jobspec_bytes.Add(job.jobspec_bytes);
  }
};

size_t WriteJobs(pqxx::transaction_base& tx, const std::string& pool, const Changes& changes) {
  if (changes.jobs.empty()) return 0;
  JobColumns c;
  for (const queue_core::JobChange& job : changes.jobs) c.Add(job);
  Exec(tx,
       kUpsertJobs,
       pool,
       c.ids.text(),
       c.queues.text(),
       c.namespaces.text(),
       c.names.text(),
       c.kinds.text(),
       c.states.text(),
       c.versions.text(),
       c.attempts.text(),
       c.reasons.text(),
       c.messages.text(),
       c.slots.text(),
       c.priorities.text(),
       c.created.text(),
       c.starts.text(),
       c.updated.text(),
       c.hashes.text(),
       c.rows.text(),
       c.endings.text(),
       c.most_slots.text(),
       c.users.text(),
       c.jobspec_bytes.text());
  return changes.jobs.size();
}

size_t WriteUsage(pqxx::transaction_base& tx, const std::string& pool, const Changes& changes) {
  TextArray kinds, names, deleted_kinds, deleted_names;
  ByteaArray rows;
  for (const queue_core::UsageChange& change : changes.usage) {
    (change.deleted ? deleted_kinds : kinds).Add(change.kind);
    (change.deleted ? deleted_names : names).Add(change.name);
    if (!change.deleted) rows.Add(change.row);
  }
  if (!deleted_kinds.empty()) {
    Exec(tx, kDeleteUsage, pool, deleted_kinds.text(), deleted_names.text());
  }
  if (!kinds.empty()) Exec(tx, kUpsertUsage, pool, kinds.text(), names.text(), rows.text());
  return changes.usage.size();
}

// Of a job that has changed without end the last ones stay, so that the table does not grow so. Now
// and then, which is often enough.
void PruneHistory(pqxx::transaction_base& tx, const Changes& changes) {
  constexpr uint64_t kNowAndThen = 256;
  TextArray ids;
  BigintArray last;
  for (const queue_core::JobEvent& event : changes.events) {
    if (event.version % kNowAndThen != 0 || event.version <= model::kKeptEvents) continue;
    ids.Add(event.job_id);
    last.Add(static_cast<int64_t>(event.version - model::kKeptEvents));
  }
  if (!ids.empty()) Exec(tx, kPruneHistory, ids.text(), last.text());
}

size_t WriteEvents(pqxx::transaction_base& tx, const Changes& changes) {
  if (changes.events.empty()) return 0;
  TextArray ids, states, reasons, messages;
  BigintArray versions, times, attempts;
  for (const queue_core::JobEvent& event : changes.events) {
    ids.Add(event.job_id);
    versions.Add(static_cast<int64_t>(event.version));
    times.Add(event.time_ms);
    states.Add(model::Name(event.state));
    attempts.Add(event.attempt);
    reasons.Add(event.reason);
    messages.Add(event.message);
  }
  Exec(tx,
       kInsertEvents,
       ids.text(),
       versions.text(),
       times.text(),
       states.text(),
       attempts.text(),
       reasons.text(),
       messages.text());
  PruneHistory(tx, changes);
  return changes.events.size();
}

size_t WritePromises(pqxx::transaction_base& tx, const Changes& changes) {
  if (changes.promises.empty()) return 0;
  TextArray ids, queues, firm, kept, causes, causers;
  BigintArray versions, told, starts, before;
  for (const queue_core::PromiseRecord& promise : changes.promises) {
    ids.Add(promise.job_id);
    versions.Add(static_cast<int64_t>(promise.version));
    queues.Add(promise.queue);
    told.Add(promise.told_ms);
    starts.Add(promise.start_ms);
    before.Add(promise.before_ms);
    firm.Add(promise.firm ? "t" : "f");
    kept.Add(promise.kept ? "t" : "f");
    causes.Add(model::CauseName(promise.slip.cause()));
    causers.Add(promise.slip.by());
  }
  Exec(tx,
       kInsertPromises,
       ids.text(),
       versions.text(),
       queues.text(),
       told.text(),
       starts.text(),
       before.text(),
       firm.text(),
       kept.text(),
       causes.text(),
       causers.text());
  return changes.promises.size();
}

size_t WriteCycles(pqxx::transaction_base& tx, const std::string& pool, const Changes& changes) {
  if (!changes.cycles_requested.empty()) {
    BigintArray ids;
    ByteaArray requests;
    for (const queue_core::CycleRequest& cycle : changes.cycles_requested) {
      ids.Add(static_cast<int64_t>(cycle.cycle_id));
      requests.Add(cycle.requested);
    }
    Exec(tx, kInsertCycles, pool, ids.text(), requests.text());
  }
  if (!changes.cycles_answered.empty()) {
    BigintArray ids;
    for (const uint64_t id : changes.cycles_answered) ids.Add(static_cast<int64_t>(id));
    Exec(tx, kAnswerCycles, pool, ids.text());
  }
  return changes.cycles_requested.size() + changes.cycles_answered.size();
}

}  // namespace

std::vector<std::pair<std::string, queue_core::Rows>> LoadPools(pqxx::transaction_base& tx,
                                                                int partition) {
  std::vector<std::pair<std::string, queue_core::Rows>> pools;
  for (const pqxx::row& row : Exec(tx, kLoadPools, partition)) {
    auto& [pool, rows] = pools.emplace_back();
    pool = row[0].as<std::string>();
    rows.pool = Bytes(row[1]);
  }
  for (auto& [pool, rows] : pools) {
    rows.queues = LoadBlobs(tx, kLoadQueues, pool);
    rows.jobs = LoadBlobs(tx, kLoadJobs, pool);
    rows.cycles_unanswered = LoadBlobs(tx, kLoadCycles, pool);
    rows.usage = LoadBlobs(tx, kLoadUsage, pool);
    for (const pqxx::row& row :
         Exec(tx, kLoadEndings, pool, static_cast<int64_t>(scheduling::kEndingsKept))) {
      rows.endings.push_back(Bytes(row[0]));
    }
  }
  return pools;
}

size_t WriteChanges(pqxx::transaction_base& tx,
                    const std::string& pool,
                    int partition,
                    const Changes& changes) {
  Exec(tx, kUpsertPool, pool, partition, pqxx::binarystring(changes.pool));
  return 1 + WriteQueues(tx, pool, changes) + WriteJobs(tx, pool, changes) +
         WriteUsage(tx, pool, changes) + WriteEvents(tx, changes) + WriteCycles(tx, pool, changes) +
         WritePromises(tx, changes) + WriteAttempts(tx, pool, changes.attempts);
}

void WriteLackNodes(pqxx::transaction_base& tx,
                    const std::string& pool,
                    const std::vector<std::string>& job_ids) {
  TextArray ids;
  for (const std::string& id : job_ids) ids.Add(id);
  Exec(tx, kDeleteLackNodes, pool, ids.text());
  if (!job_ids.empty()) Exec(tx, kUpsertLackNodes, pool, ids.text());
}

std::vector<std::string> FindJobs(pqxx::transaction_base& tx,
                                  const std::vector<std::string>& job_ids) {
  TextArray ids;
  for (const std::string& job_id : job_ids) ids.Add(job_id);
  std::vector<std::string> found;
  for (const pqxx::row& row : Exec(tx, kFindJobs, ids.text())) {
    found.push_back(row[0].as<std::string>());
  }
  return found;
}

std::vector<std::string> InsertCommands(pqxx::transaction_base& tx,
                                        const std::vector<AcceptedCommand>& commands) {
  TextArray clients, jobs;
  for (const AcceptedCommand& command : commands) {
    clients.Add(command.client_id);
    jobs.Add(command.job_id);
  }
  std::set<std::string> inserted;
  for (const pqxx::row& row : Exec(tx, kInsertCommands, clients.text(), jobs.text())) {
    inserted.insert(row[0].as<std::string>());
  }
  std::vector<std::string> known;
  for (const AcceptedCommand& command : commands) {
    if (!inserted.contains(command.client_id)) known.push_back(command.client_id);
  }
  return known;
}

}  // namespace fluxqueue::queue
