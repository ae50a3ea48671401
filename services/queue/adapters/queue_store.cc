#include "services/queue/adapters/queue_store.h"

#include <set>

#include "libs/model/slip.h"
#include "libs/postgres/array.h"
#include "libs/postgres/statement.h"
#include "libs/postgres/table.h"
#include "libs/scheduling/dependencies.h"
#include "services/queue/adapters/attempt_store.h"

namespace fluxqueue::queue {
namespace {

using postgres::ArrayText;
using postgres::BigintArray;
using postgres::Blob;
using postgres::Column;
using postgres::Conflict;
using postgres::Exec;
using postgres::Field;
using postgres::Shared;
using postgres::SharedKey;
using postgres::Statement;
using postgres::Table;
using postgres::TextArray;
using queue_core::Changes;
using queue_core::CycleRequest;
using queue_core::JobChange;
using queue_core::JobEvent;
using queue_core::PromiseRecord;
using queue_core::QueueChange;
using queue_core::UsageChange;

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

constexpr Statement kDeleteLackNodes{
    "queue_delete_lack_nodes",
    "DELETE FROM lack_nodes WHERE pool = $1 AND job_id <> ALL($2::text[])"};
constexpr Statement kUpsertLackNodes{
    "queue_upsert_lack_nodes",
    "INSERT INTO lack_nodes (job_id, pool) SELECT id, $1 FROM unnest($2::text[]) AS r(id) "
    "ON CONFLICT (job_id) DO UPDATE SET pool = excluded.pool"};
constexpr Statement kPruneHistory{
    "queue_prune_history",
    "WITH old AS (SELECT * FROM unnest($1::text[], $2::bigint[]) AS r(job_id, last)), "
    "told AS (DELETE FROM promises AS p USING old "
    "  WHERE p.job_id = old.job_id AND p.version <= old.last) "
    "DELETE FROM job_events AS e USING old WHERE e.job_id = old.job_id AND e.version <= old.last"};
constexpr Statement kUpsertPool{
    "queue_upsert_pool",
    "INSERT INTO pools (pool, partition, row) VALUES ($1, $2, $3) "
    "ON CONFLICT (pool) DO UPDATE SET partition = excluded.partition, row = excluded.row"};
constexpr Statement kAnswerCycles{
    "queue_answer_cycles",
    "UPDATE cycles SET answered = true WHERE pool = $1 AND cycle_id = ANY($2::bigint[])"};

constexpr Statement kFindJobs{"queue_find_jobs",
                              "SELECT job_id FROM jobs WHERE job_id = ANY($1::text[])"};
constexpr Statement kInsertCommands{
    "queue_insert_commands",
    "INSERT INTO commands (client_id, job_id) SELECT * FROM unnest($1::text[], $2::text[]) "
    "ON CONFLICT (client_id) DO NOTHING RETURNING client_id"};

const Table<QueueChange>& Queues() {
  static const Table<QueueChange> table(
      "queue.queues",
      {SharedKey("pool")},
      {Field<&QueueChange::queue>("queue").Key(), Blob<&QueueChange::row>("row")});
  return table;
}

template <typename Row>
Column<Row> StateColumn() {
  return {.spec = {.name = "state"}, .put = [](const Row& row, ArrayText* values) {
            values->AddText(model::Name(row.state));
          }};
}

// An older version does not replace a newer one; nor is a job that has ended changed, save one that
// was rejected, and is handed in again.
const Table<JobChange>& Jobs() {
  static const Table<JobChange> table(
      "queue.jobs",
      {Shared("pool")},
      {Field<&JobChange::job_id>("job_id").Key(),
       Field<&JobChange::queue>("queue"),
       Field<&JobChange::name_space>("namespace").Once(),
       Field<&JobChange::name>("name").Once(),
       Field<&JobChange::kind>("kind").Once(),
       StateColumn<JobChange>(),
       Field<&JobChange::version>("version"),
       Field<&JobChange::attempt>("attempt"),
       Field<&JobChange::reason>("reason"),
       Field<&JobChange::message>("message"),
       Field<&JobChange::slots>("slots"),
       Field<&JobChange::priority>("priority"),
       Field<&JobChange::created_ms>("created_ms").Once(),
       Field<&JobChange::start_ms>("start_ms"),
       Field<&JobChange::updated_ms>("updated_ms"),
       Field<&JobChange::placement_hash>("placement_hash"),
       Blob<&JobChange::row>("row"),
       Field<&JobChange::ending>("ending"),
       Field<&JobChange::most_slots>("most_slots"),
       Field<&JobChange::user>("username"),
       Field<&JobChange::jobspec_bytes>("jobspec_bytes")},
      Conflict::kUpdate,
      "t.version <= excluded.version AND (t.live OR t.state = 'Rejected')");
  return table;
}

const Table<JobEvent>& JobEvents() {
  static const Table<JobEvent> table("queue.job_events",
                                     {},
                                     {Field<&JobEvent::job_id>("job_id").Key(),
                                      Field<&JobEvent::version>("version").Key(),
                                      Field<&JobEvent::time_ms>("time_ms"),
                                      StateColumn<JobEvent>(),
                                      Field<&JobEvent::attempt>("attempt"),
                                      Field<&JobEvent::reason>("reason"),
                                      Field<&JobEvent::message>("message")},
                                     Conflict::kFail);
  return table;
}

const Table<PromiseRecord>& Promises() {
  static const Table<PromiseRecord> table(
      "queue.promises",
      {},
      {Field<&PromiseRecord::job_id>("job_id").Key(),
       Field<&PromiseRecord::version>("version").Key(),
       Field<&PromiseRecord::queue>("queue"),
       Field<&PromiseRecord::told_ms>("told_ms"),
       Field<&PromiseRecord::start_ms>("start_ms").As("nullif(r.start_ms, 0)"),
       Field<&PromiseRecord::before_ms>("before_ms").As("nullif(r.before_ms, 0)"),
       Field<&PromiseRecord::firm>("firm"),
       Field<&PromiseRecord::kept>("kept"),
       {.spec = {.name = "cause"},
        .put = [](const PromiseRecord& row,
                  ArrayText* values) { values->AddText(model::CauseName(row.slip.cause())); }},
       {.spec = {.name = "cause_by"},
        .put = [](const PromiseRecord& row,
                  ArrayText* values) { values->AddText(row.slip.by()); }}},
      Conflict::kFail);
  return table;
}

const Table<UsageChange>& Usage() {
  static const Table<UsageChange> table("queue.usage",
                                        {SharedKey("pool")},
                                        {Field<&UsageChange::kind>("kind").Key(),
                                         Field<&UsageChange::name>("name").Key(),
                                         Blob<&UsageChange::row>("row")});
  return table;
}

const Table<CycleRequest>& Cycles() {
  static const Table<CycleRequest> table("queue.cycles",
                                         {SharedKey("pool")},
                                         {Field<&CycleRequest::cycle_id>("cycle_id").Key(),
                                          Blob<&CycleRequest::requested>("requested")});
  return table;
}

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

// The same, of as many as there are.
template <typename... Args>
std::vector<std::string> LoadMany(pqxx::transaction_base& tx,
                                  const Statement& statement,
                                  const Args&... args) {
  std::vector<std::string> blobs;
  const auto keep = [&](const pqxx::row& row) {
    blobs.push_back(Bytes(row[0]));
    return absl::OkStatus();
  };
  postgres::ExecEach(tx, statement, keep, args...).IgnoreError();  // `keep` returns none
  return blobs;
}

// Upserts and deletions.
template <typename Change>
size_t Apply(pqxx::transaction_base& tx,
             const Table<Change>& table,
             const std::string& pool,
             const std::vector<Change>& changes) {
  std::vector<Change> deleted;
  std::vector<Change> written;
  for (const Change& change : changes) (change.deleted ? deleted : written).push_back(change);
  table.Delete(tx, deleted, pool);
  table.Write(tx, written, pool);
  return changes.size();
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

size_t WriteCycles(pqxx::transaction_base& tx, const std::string& pool, const Changes& changes) {
  const size_t requested = Cycles().Write(tx, changes.cycles_requested, pool);
  if (changes.cycles_answered.empty()) return requested;
  BigintArray ids;
  for (const uint64_t id : changes.cycles_answered) ids.Add(static_cast<int64_t>(id));
  Exec(tx, kAnswerCycles, pool, ids.text());
  return requested + changes.cycles_answered.size();
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
    rows.jobs = LoadMany(tx, kLoadJobs, pool);
    rows.cycles_unanswered = LoadBlobs(tx, kLoadCycles, pool);
    rows.usage = LoadBlobs(tx, kLoadUsage, pool);
    rows.endings = LoadMany(tx, kLoadEndings, pool, static_cast<int64_t>(scheduling::kEndingsKept));
  }
  return pools;
}

size_t WriteChanges(pqxx::transaction_base& tx,
                    const std::string& pool,
                    int partition,
                    const Changes& changes) {
  Exec(tx, kUpsertPool, pool, partition, pqxx::binarystring(changes.pool));
  size_t rows =
      1 + Apply(tx, Queues(), pool, changes.queues) + Jobs().Write(tx, changes.jobs, pool);
  rows += Apply(tx, Usage(), pool, changes.usage) + JobEvents().Write(tx, changes.events);
  PruneHistory(tx, changes);
  return rows + WriteCycles(tx, pool, changes) + Promises().Write(tx, changes.promises) +
         WriteAttempts(tx, pool, changes.attempts);
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
