#include "services/binder/adapters/binder_store.h"

#include "fluxqueue/queue/v1/rows.pb.h"

#include "libs/base/log.h"
#include "libs/postgres/array.h"
#include "libs/postgres/statement.h"

namespace fluxqueue::binder {
namespace {

using events::v1::JobFact;
using postgres::BigintArray;
using postgres::BoolArray;
using postgres::ByteaArray;
using postgres::Exec;
using postgres::Statement;
using postgres::TextArray;

constexpr Statement kLoadJobs{
    "binder_load_jobs",
    "SELECT job_id, partition, pool, fact, version, attempt, failed, stopped, resumed "
    "FROM jobs WHERE partition = $1"};
constexpr Statement kLoadSlots{
    "binder_load_slots",
    "SELECT s.job_id, s.namespace, s.attempt, s.slot, s.node, s.pod_uid, s.pod_name, s.state, "
    "  s.bound_once, s.succeeded "
    "FROM slots s JOIN jobs j USING (job_id, attempt) WHERE j.partition = $1 AND s.part = 0"};
// LATERAL … OFFSET 0: the keys drive, also in a plan that is kept (postgres::Plans::kKept).
constexpr Statement kLoadPlacements{
    "binder_load_placements",
    "SELECT a.job_id, a.attempt, a.placement, a.released "
    "FROM unnest($1::text[], $2::bigint[]) AS wanted(job_id, attempt) "
    "CROSS JOIN LATERAL ("
    "  SELECT * FROM matcher.allocations x "
    "  WHERE x.job_id = wanted.job_id AND x.attempt = wanted.attempt AND x.part = 0 OFFSET 0) a"};
constexpr Statement kLoadPools{"binder_load_pools", "SELECT pool, partition FROM admission.pools"};

// A queue of an older release has no such table, and lets no binder read.
constexpr Statement kKnowsLackNodes{
    "binder_knows_lack_nodes",
    "SELECT count(*) = 2 FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace "
    "WHERE n.nspname = 'queue' AND c.relname IN ('lack_nodes', 'jobs') "
    "  AND has_schema_privilege(n.oid, 'USAGE') AND has_table_privilege(c.oid, 'SELECT')"};
constexpr Statement kLoadLackNodes{
    "binder_load_lack_nodes",
    "SELECT j.row, job_id FROM queue.lack_nodes l JOIN queue.jobs j USING (job_id) "
    "WHERE j.state = 'Pending' AND j.reason IN ('Busy', 'Reserved', 'Unsatisfiable') "
    "ORDER BY job_id"};

// `version` is that of an attempt's first fact, or of the one that stops it.
constexpr Statement kLoadMissed{
    "binder_load_missed",
    "(SELECT j.row, j.job_id, false FROM queue.jobs j LEFT JOIN jobs b USING (job_id) "
    " WHERE j.job_id > $1 AND j.live AND j.kind <> 'Claim' AND "
    "   j.state IN ('Allocated', 'Bound', 'Running', 'Stopping') AND "
    "   (b.job_id IS NULL OR b.attempt < j.attempt "
    "    OR (j.state = 'Stopping' AND b.version < j.version)) "
    " ORDER BY job_id LIMIT $2) "
    "UNION ALL "
    "(SELECT j.row, j.job_id, false FROM jobs b JOIN queue.jobs j USING (job_id) "
    " WHERE b.job_id > $1 AND j.version > b.version AND "
    "   j.state NOT IN ('Allocated', 'Bound', 'Running', 'Stopping') "
    " ORDER BY job_id LIMIT $2) "
    "UNION ALL "
    "(SELECT NULL, b.job_id, true FROM jobs b JOIN queue.jobs j USING (job_id, attempt) "
    " WHERE b.job_id > $1 AND b.stopped AND j.state = 'Stopping' "
    " ORDER BY job_id LIMIT $2) "
    "ORDER BY 2 LIMIT $2"};

constexpr Statement kForgetJobs{"binder_forget_jobs",
                                "DELETE FROM jobs WHERE job_id = ANY($1::text[])"};
constexpr Statement kForgetSlots{"binder_forget_slots",
                                 "DELETE FROM slots WHERE job_id = ANY($1::text[])"};
constexpr Statement kUpsertJobs{
    "binder_upsert_jobs",
    "INSERT INTO jobs (job_id, partition, pool, version, attempt, fact, failed, stopped, resumed) "
    "SELECT * FROM unnest($1::text[], $2::bigint[], $3::text[], $4::bigint[], $5::bigint[], "
    "  $6::bytea[], $7::boolean[], $8::boolean[], $9::boolean[]) "
    "ON CONFLICT (job_id) DO UPDATE SET partition = excluded.partition, pool = excluded.pool, "
    "  version = excluded.version, attempt = excluded.attempt, fact = excluded.fact, "
    "  failed = excluded.failed, stopped = excluded.stopped, resumed = excluded.resumed"};
constexpr Statement kUpsertSlots{
    "binder_upsert_slots",
    "INSERT INTO slots (job_id, attempt, part, slot, node, pod_uid, pod_name, namespace, state, "
    "  bound_once, succeeded) "
    "SELECT job_id, attempt, 0, slot, node, pod_uid, pod_name, namespace, state, bound_once, "
    "  succeeded "
    "FROM unnest($1::text[], $2::bigint[], $3::bigint[], $4::text[], $5::text[], $6::text[], "
    "  $7::text[], $8::text[], $9::boolean[], $10::boolean[]) "
    "  AS r(job_id, attempt, slot, node, pod_uid, pod_name, namespace, state, bound_once, "
    "succeeded) "
    "ON CONFLICT (job_id, attempt, part, slot) DO UPDATE SET node = excluded.node, "
    "  pod_uid = excluded.pod_uid, pod_name = excluded.pod_name, state = excluded.state, "
    "  bound_once = excluded.bound_once, succeeded = excluded.succeeded"};

std::string Bytes(const pqxx::field& field) {
  return pqxx::binarystring(field).str();
}

SlotRow ToSlot(const pqxx::row& row) {
  SlotRow slot;
  slot.job_id = row[0].as<std::string>();
  slot.space = row[1].as<std::string>();
  slot.attempt = row[2].as<uint32_t>();
  slot.slot = row[3].as<int>();
  slot.value.node = row[4].as<std::string>();
  slot.value.pod_uid = row[5].as<std::string>();
  slot.value.pod_name = row[6].as<std::string>();
  slot.value.state = ParseSlotState(row[7].c_str()).value_or(SlotState::kTaken);
  slot.value.bound_once = row[8].as<bool>();
  slot.value.succeeded = row[9].as<bool>();
  return slot;
}

void UpsertJobs(pqxx::transaction_base& tx, const std::vector<JobRow>& jobs) {
  if (jobs.empty()) return;
  TextArray ids, pools;
  BigintArray partitions, versions, attempts;
  ByteaArray facts;
  BoolArray failed, stopped, resumed;
  for (const JobRow& job : jobs) {
    ids.Add(job.job_id);
    partitions.Add(job.partition);
    pools.Add(job.pool);
    versions.Add(static_cast<int64_t>(job.version));
    attempts.Add(job.attempt);
    facts.Add(job.fact);
    failed.Add(job.failed);
    stopped.Add(job.stopped);
    resumed.Add(job.resumed);
  }
  Exec(tx,
       kUpsertJobs,
       ids.text(),
       partitions.text(),
       pools.text(),
       versions.text(),
       attempts.text(),
       facts.text(),
       failed.text(),
       stopped.text(),
       resumed.text());
}

void UpsertSlots(pqxx::transaction_base& tx, const std::vector<SlotRow>& slots) {
  if (slots.empty()) return;
  TextArray ids, nodes, uids, names, spaces, states;
  BigintArray attempts, indexes;
  BoolArray bound_once, succeeded;
  for (const SlotRow& slot : slots) {
    ids.Add(slot.job_id);
    attempts.Add(slot.attempt);
    indexes.Add(slot.slot);
    nodes.Add(slot.value.node);
    uids.Add(slot.value.pod_uid);
    names.Add(slot.value.pod_name);
    spaces.Add(slot.space);
    states.Add(Name(slot.value.state));
    bound_once.Add(slot.value.bound_once);
    succeeded.Add(slot.value.succeeded);
  }
  Exec(tx,
       kUpsertSlots,
       ids.text(),
       attempts.text(),
       indexes.text(),
       nodes.text(),
       uids.text(),
       names.text(),
       spaces.text(),
       states.text(),
       bound_once.text(),
       succeeded.text());
}

}  // namespace

std::vector<StoredJob> LoadJobs(pqxx::transaction_base& tx, int partition) {
  std::map<std::string, StoredJob> jobs;
  for (const pqxx::row& row : Exec(tx, kLoadJobs, partition)) {
    JobRow job;
    job.job_id = row[0].as<std::string>();
    job.partition = row[1].as<int>();
    job.pool = row[2].as<std::string>();
    job.fact = Bytes(row[3]);
    job.version = static_cast<uint64_t>(row[4].as<int64_t>());
    job.attempt = row[5].as<uint32_t>();
    job.failed = row[6].as<bool>();
    job.stopped = row[7].as<bool>();
    job.resumed = row[8].as<bool>();
    std::string job_id = job.job_id;
    jobs[std::move(job_id)].job = std::move(job);
  }
  for (const pqxx::row& row : Exec(tx, kLoadSlots, partition)) {
    SlotRow slot = ToSlot(row);
    jobs.at(slot.job_id).slots.push_back(std::move(slot));
  }
  std::vector<StoredJob> stored;
  stored.reserve(jobs.size());
  for (auto& [job_id, job] : jobs) stored.push_back(std::move(job));
  return stored;
}

void WriteRows(pqxx::transaction_base& tx, const Rows& rows) {
  TextArray jobs, slots;
  for (const std::string& job_id : rows.forgotten) {
    jobs.Add(job_id);
    slots.Add(job_id);
  }
  for (const std::string& job_id : rows.renewed) slots.Add(job_id);
  if (!jobs.empty()) Exec(tx, kForgetJobs, jobs.text());
  if (!slots.empty()) Exec(tx, kForgetSlots, slots.text());
  UpsertJobs(tx, rows.jobs);
  UpsertSlots(tx, rows.slots);
}

std::map<std::pair<std::string, uint32_t>, PlacementRow> LoadPlacements(
    pqxx::transaction_base& tx, const std::vector<PlacementKey>& keys) {
  std::map<std::pair<std::string, uint32_t>, PlacementRow> placements;
  if (keys.empty()) return placements;
  TextArray ids;
  BigintArray attempts;
  for (const PlacementKey& key : keys) {
    ids.Add(key.job_id);
    attempts.Add(key.attempt);
  }
  for (const pqxx::row& row : Exec(tx, kLoadPlacements, ids.text(), attempts.text())) {
    PlacementRow placement;
    const auto job_id = row[0].as<std::string>();
    if (!placement.placement.ParseFromString(Bytes(row[2]))) {
      LogError("placement in matcher.allocations does not decode", {{"job", job_id}});
      continue;
    }
    placement.released = row[3].as<bool>();
    placements.emplace(std::pair(job_id, row[1].as<uint32_t>()), std::move(placement));
  }
  return placements;
}

std::optional<std::vector<JobFact>> LoadLackNodes(pqxx::transaction_base& tx) {
  if (!Exec(tx, kKnowsLackNodes)[0][0].as<bool>()) return std::nullopt;
  std::vector<JobFact> facts;
  for (const pqxx::row& row : Exec(tx, kLoadLackNodes)) {
    fluxqueue::queue::v1::JobRow job;
    if (job.ParseFromString(Bytes(row[0]))) {
      facts.push_back(std::move(*job.mutable_fact()));
    } else {
      LogError("a row of queue.jobs does not decode", {{"job", row[1].as<std::string>()}});
    }
  }
  return facts;
}

Missed LoadMissed(pqxx::transaction_base& tx, const std::string& after) {
  Missed missed;
  if (!Exec(tx, kKnowsLackNodes)[0][0].as<bool>()) return missed;
  const pqxx::result rows = Exec(tx, kLoadMissed, after, kMostMissed);
  if (static_cast<int64_t>(rows.size()) == kMostMissed) {
    missed.next = rows.back()[1].as<std::string>();
  }
  for (const pqxx::row& row : rows) {
    const auto job_id = row[1].as<std::string>();
    fluxqueue::queue::v1::JobRow job;
    if (row[2].as<bool>()) {
      missed.stopped.push_back(job_id);
    } else if (job.ParseFromString(Bytes(row[0]))) {
      missed.facts.push_back(std::move(*job.mutable_fact()));
    } else {
      LogError("a row of queue.jobs does not decode", {{"job", job_id}});
    }
  }
  return missed;
}

std::map<std::string, int> LoadPools(pqxx::transaction_base& tx) {
  std::map<std::string, int> pools;
  for (const pqxx::row& row : Exec(tx, kLoadPools)) {
    pools[row[0].as<std::string>()] = row[1].as<int>();
  }
  return pools;
}

}  // namespace fluxqueue::binder
