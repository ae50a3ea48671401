#include "services/admission/adapters/admission_store.h"

#include <string>
#include <string_view>

#include <nlohmann/json.hpp>

#include "libs/base/status_macros.h"
#include "libs/postgres/array.h"
#include "libs/postgres/statement.h"

#include "absl/strings/str_split.h"
#include "fmt/format.h"
#include "fmt/ranges.h"

namespace fluxqueue::admission {
namespace {

using postgres::Statement;

constexpr Statement kLoadPools{"admission_load_pools", "select pool, partition, config from pools"};
constexpr Statement kLoadQueues{"admission_load_queues", "select queue, pool, config from queues"};
constexpr Statement kLoadWindows{"admission_load_windows",
                                 "select name, pool, config from windows"};
constexpr Statement kLoadWorkloads{
    "admission_load_workloads",
    "select uid, kind, namespace, name, pool, queue, resource_version, revision, slots, priority, "
    "       hold, cancelled, duration_ms, requests::text, demand_hash, topology, "
    "       begin_ms, min_slots, asked, retried, jobspec_bytes, pods from workloads"};

constexpr Statement kWritePools{"admission_write_pools",
                                "insert into pools (pool, partition, config) "
                                "select * from unnest($1::text[], $2::integer[], $3::bytea[]) "
                                "on conflict (pool) do update set config = excluded.config"};
constexpr Statement kWriteQueues{
    "admission_write_queues",
    "insert into queues (queue, pool, config) "
    "select * from unnest($1::text[], $2::text[], $3::bytea[]) "
    "on conflict (queue) do update set pool = excluded.pool, config = excluded.config"};
constexpr Statement kDeleteQueues{"admission_delete_queues",
                                  "delete from queues where queue = any($1::text[])"};
constexpr Statement kWriteWindows{
    "admission_write_windows",
    "insert into windows (name, pool, config) "
    "select * from unnest($1::text[], $2::text[], $3::bytea[]) "
    "on conflict (name) do update set pool = excluded.pool, config = excluded.config"};
constexpr Statement kDeleteWindows{"admission_delete_windows",
                                   "delete from windows where name = any($1::text[])"};
constexpr Statement kWriteWorkloads{
    "admission_write_workloads",
    "insert into workloads (uid, job_id, kind, namespace, name, pool, queue, resource_version, "
    "  revision, slots, priority, hold, cancelled, duration_ms, requests, demand_hash, topology, "
    "  begin_ms, min_slots, asked, retried, jobspec_bytes, pods) "
    "select uid, uid, kind, space, name, pool, queue, version, revision, slots, priority, hold, "
    "  cancelled, duration, requests::jsonb, hash, topology, start, least, asked, retried, bytes, "
    "  pods "
    "from unnest($1::text[], $2::text[], $3::text[], $4::text[], $5::text[], $6::text[], "
    "  $7::text[], $8::integer[], $9::integer[], $10::integer[], $11::boolean[], $12::boolean[], "
    "  $13::bigint[], $14::text[], $15::bigint[], $16::text[], $17::bigint[], $18::integer[], "
    "  $19::bigint[], $20::bigint[], $21::bigint[], $22::text[]) "
    "  as w(uid, kind, space, name, pool, queue, version, revision, slots, priority, hold, "
    "       cancelled, duration, requests, hash, topology, start, least, asked, retried, "
    "       bytes, pods) "
    "on conflict (uid) do update set queue = excluded.queue, "
    "  resource_version = excluded.resource_version, revision = excluded.revision, "
    "  slots = excluded.slots, priority = excluded.priority, hold = excluded.hold, "
    "  cancelled = excluded.cancelled, duration_ms = excluded.duration_ms, "
    "  requests = excluded.requests, demand_hash = excluded.demand_hash, "
    "  topology = excluded.topology, begin_ms = excluded.begin_ms, "
    "  min_slots = excluded.min_slots, asked = excluded.asked, retried = excluded.retried, "
    "  jobspec_bytes = excluded.jobspec_bytes"};
constexpr Statement kLoadUsage{"admission_load_usage",
                               "select namespace, queue, count(*), sum(jobspec_bytes)::bigint "
                               "from workloads group by namespace, queue"};
constexpr Statement kDeleteWorkloads{"admission_delete_workloads",
                                     "delete from workloads where uid = any($1::text[])"};

// The queue may not have made its tables yet, or not have let us read them. By the catalog: the
// name of a table in a schema that we may not use is an error.
constexpr Statement kHasJobs{
    "admission_has_jobs",
    "select exists (select from pg_class c join pg_namespace n on n.oid = c.relnamespace "
    "  where n.nspname = 'queue' and c.relname = 'jobs' and has_schema_privilege(n.oid, 'USAGE') "
    "  and has_table_privilege(c.oid, 'SELECT'))"};
constexpr Statement kFindUnplaced{
    "admission_find_unplaced",
    "select job_id, version, attempt, state = 'Pending' from queue.jobs "
    "where job_id = any($1::text[]) and state in ('Rejected', 'Pending')"};

constexpr Statement kSeesNeighbours{
    "admission_sees_neighbours",
    "select count(*) = 4 from pg_class c join pg_namespace n on n.oid = c.relnamespace "
    "where (n.nspname, c.relname) in (('queue', 'jobs'), ('queue', 'inbox'), "
    "  ('matcher', 'specs'), ('matcher', 'inbox')) "
    "  and has_schema_privilege(n.oid, 'USAGE') and has_table_privilege(c.oid, 'SELECT')"};
constexpr Statement kNoteHeard{
    "admission_note_heard",
    "update workloads w set heard = true from queue.jobs j where not w.heard and j.job_id = w.uid"};
// A page of workloads each, in the order of their uids: so a comparison takes as long with a
// hundred thousand jobs as with two. The row without a partition is the page's end, where another
// follows.
constexpr Statement kLackingJobs{
    "admission_lacking_jobs",
    "with page as materialized (select uid, pool, cancelled from workloads "
    "  where uid > $1 and not heard order by uid limit 2000) "
    "select uid, p.partition from page join pools p using (pool) where not cancelled "
    "  and not exists (select from queue.jobs j where j.job_id = uid) "
    "union all select max(uid), null from page having count(*) = 2000"};
constexpr Statement kLackingJobspecs{
    "admission_lacking_jobspecs",
    "with page as materialized (select uid, pool, cancelled from workloads "
    "  where uid > $1 order by uid limit 2000) "
    "select uid, p.partition from page join pools p using (pool) "
    "  join queue.jobs j on j.job_id = uid "
    "where not cancelled and j.live and j.state = 'Pending' "
    "  and not exists (select from matcher.specs s where s.job_id = uid) "
    "union all select max(uid), null from page having count(*) = 2000"};
constexpr Statement kHandledByQueue{"admission_handled_by_queue",
                                    "select partition, next_offset from queue.inbox"};
constexpr Statement kHandledByMatcher{"admission_handled_by_matcher",
                                      "select partition, next_offset from matcher.inbox"};

// What is handled is read first: what is lacked then was not in it.
Comparison Compare(pqxx::transaction_base& tx,
                   const Statement& handled,
                   const Statement& lacks,
                   const std::string& after) {
  Comparison seen;
  seen.after = after;
  for (const auto& columns : postgres::Exec(tx, handled)) {
    seen.handled[columns[0].as<int>()] = columns[1].as<int64_t>();
  }
  for (const auto& columns : postgres::Exec(tx, lacks, after)) {
    auto uid = columns[0].as<std::string>();
    if (columns[1].is_null()) {
      seen.until = std::move(uid);
    } else {
      seen.lacks.push_back({std::move(uid), columns[1].as<int>()});
    }
  }
  return seen;
}

std::string Bytes(const pqxx::field& field) {
  return pqxx::binarystring(field).str();
}

absl::StatusOr<WorkloadKind> ParseKind(std::string_view name) {
  for (const auto kind : {WorkloadKind::kJob, WorkloadKind::kPod, WorkloadKind::kGroup}) {
    if (KindName(kind) == name) return kind;
  }
  return Internal("admission.workloads: kind '{}' is not known to this version", name);
}

absl::StatusOr<WorkloadRow> ReadWorkload(const pqxx::row& columns) {
  WorkloadRow row;
  row.uid = columns[0].as<std::string>();
  ASSIGN_OR_RETURN(row.kind, ParseKind(columns[1].as<std::string>()));
  row.space = columns[2].as<std::string>();
  row.name = columns[3].as<std::string>();
  row.pool = columns[4].as<std::string>();
  row.queue = columns[5].as<std::string>();
  row.resource_version = columns[6].as<std::string>();
  row.revision = columns[7].as<uint32_t>();
  row.slots = columns[8].as<uint32_t>();
  row.priority = columns[9].as<int32_t>();
  row.hold = columns[10].as<bool>();
  row.cancelled = columns[11].as<bool>();
  if (!columns[12].is_null()) row.duration_ms = columns[12].as<int64_t>();
  const auto requests = nlohmann::json::parse(columns[13].as<std::string>(),
                                              nullptr,
                                              /*allow_exceptions=*/false);
  kubernetes::Amounts amounts;
  for (const auto& [resource, amount] : requests.items()) {
    if (!amount.is_number_integer()) {
      return Internal("admission.workloads {}: requests of {} are not a number", row.uid, resource);
    }
    amounts.emplace(resource, amount.get<int64_t>());
  }
  row.requests = std::move(amounts);
  row.demand_hash = static_cast<uint64_t>(columns[14].as<int64_t>());
  if (const auto topology = columns[15].as<std::string>(); !topology.empty()) {
    ASSIGN_OR_RETURN(row.topology, kubernetes::ParseTopology(topology));
  }
  row.begin_ms = columns[16].as<int64_t>();
  row.min_slots = columns[17].as<uint32_t>();
  if (!columns[18].is_null()) row.asked = static_cast<uint64_t>(columns[18].as<int64_t>());
  row.retried = columns[19].as<uint64_t>();
  row.jobspec_bytes = columns[20].as<int64_t>();
  row.pods = absl::StrSplit(columns[21].as<std::string>(), ' ', absl::SkipEmpty());
  return row;
}

void WriteCatalog(pqxx::transaction_base& tx, const CatalogChanges& changes) {
  if (!changes.pools.empty()) {
    postgres::TextArray pools;
    postgres::BigintArray partitions;
    postgres::ByteaArray configs;
    for (const PoolRow& row : changes.pools) {
      pools.Add(row.pool);
      partitions.Add(row.partition);
      configs.Add(row.config);
    }
    postgres::Exec(tx, kWritePools, pools.text(), partitions.text(), configs.text());
  }
  if (!changes.queues.empty()) {
    postgres::TextArray queues;
    postgres::TextArray pools;
    postgres::ByteaArray configs;
    for (const QueueRow& row : changes.queues) {
      queues.Add(row.queue);
      pools.Add(row.pool);
      configs.Add(row.config);
    }
    postgres::Exec(tx, kWriteQueues, queues.text(), pools.text(), configs.text());
  }
  if (!changes.deleted_queues.empty()) {
    postgres::TextArray queues;
    for (const std::string& queue : changes.deleted_queues) queues.Add(queue);
    postgres::Exec(tx, kDeleteQueues, queues.text());
  }
}

void WriteWindows(pqxx::transaction_base& tx, const CatalogChanges& changes) {
  if (!changes.windows.empty()) {
    postgres::TextArray windows;
    postgres::TextArray pools;
    postgres::ByteaArray configs;
    for (const WindowRow& row : changes.windows) {
      windows.Add(row.window);
      pools.Add(row.pool);
      configs.Add(row.config);
    }
    postgres::Exec(tx, kWriteWindows, windows.text(), pools.text(), configs.text());
  }
  if (!changes.deleted_windows.empty()) {
    postgres::TextArray windows;
    for (const std::string& window : changes.deleted_windows) windows.Add(window);
    postgres::Exec(tx, kDeleteWindows, windows.text());
  }
}

void WriteWorkloads(pqxx::transaction_base& tx, const std::vector<WorkloadRow>& rows) {
  postgres::TextArray uids, kinds, spaces, names, pools, queues, versions, requests, topologies,
      pods;
  postgres::BigintArray revisions, slots, priorities, durations, hashes, begins, least, asked,
      retried, bytes;
  postgres::BoolArray holds, cancelled;
  for (const WorkloadRow& row : rows) {
    uids.Add(row.uid);
    kinds.Add(KindName(row.kind));
    spaces.Add(row.space);
    names.Add(row.name);
    pools.Add(row.pool);
    queues.Add(row.queue);
    versions.Add(row.resource_version);
    revisions.Add(row.revision);
    slots.Add(row.slots);
    priorities.Add(row.priority);
    holds.Add(row.hold);
    cancelled.Add(row.cancelled);
    if (row.duration_ms) {
      durations.Add(*row.duration_ms);
    } else {
      durations.AddNull();
    }
    requests.Add(nlohmann::json(*row.requests).dump());
    hashes.Add(static_cast<int64_t>(row.demand_hash));
    topologies.Add(kubernetes::FormatTopology(row.topology));
    begins.Add(row.begin_ms);
    least.Add(row.min_slots);
    if (row.asked) {
      asked.Add(static_cast<int64_t>(*row.asked));
    } else {
      asked.AddNull();
    }
    retried.Add(static_cast<int64_t>(row.retried));
    bytes.Add(row.jobspec_bytes);
    pods.Add(fmt::format("{}", fmt::join(row.pods, " ")));
  }
  postgres::Exec(tx,
                 kWriteWorkloads,
                 uids.text(),
                 kinds.text(),
                 spaces.text(),
                 names.text(),
                 pools.text(),
                 queues.text(),
                 versions.text(),
                 revisions.text(),
                 slots.text(),
                 priorities.text(),
                 holds.text(),
                 cancelled.text(),
                 durations.text(),
                 requests.text(),
                 hashes.text(),
                 topologies.text(),
                 begins.text(),
                 least.text(),
                 asked.text(),
                 retried.text(),
                 bytes.text(),
                 pods.text());
}

}  // namespace

absl::StatusOr<AdmissionRows> LoadRows(pqxx::transaction_base& tx) {
  AdmissionRows rows;
  for (const auto& columns : postgres::Exec(tx, kLoadPools)) {
    rows.pools.push_back({columns[0].as<std::string>(), columns[1].as<int>(), Bytes(columns[2])});
  }
  for (const auto& columns : postgres::Exec(tx, kLoadQueues)) {
    rows.queues.push_back(
        {columns[0].as<std::string>(), columns[1].as<std::string>(), Bytes(columns[2])});
  }
  for (const auto& columns : postgres::Exec(tx, kLoadWindows)) {
    rows.windows.push_back(
        {columns[0].as<std::string>(), columns[1].as<std::string>(), Bytes(columns[2])});
  }
  for (const auto& columns : postgres::Exec(tx, kLoadWorkloads)) {
    ASSIGN_OR_RETURN(WorkloadRow row, ReadWorkload(columns));
    rows.workloads.push_back(std::move(row));
  }
  return rows;
}

void WriteRows(pqxx::transaction_base& tx,
               const CatalogChanges& catalog,
               const TrackerChanges& workloads) {
  WriteCatalog(tx, catalog);
  WriteWindows(tx, catalog);
  if (!workloads.upserts.empty()) WriteWorkloads(tx, workloads.upserts);
  if (!workloads.deletes.empty()) {
    postgres::TextArray uids;
    for (const std::string& uid : workloads.deletes) uids.Add(uid);
    postgres::Exec(tx, kDeleteWorkloads, uids.text());
  }
}

UsageBySpace LoadUsage(pqxx::transaction_base& tx) {
  UsageBySpace usage;
  for (const auto& columns : postgres::Exec(tx, kLoadUsage)) {
    usage[{columns[0].as<std::string>(), columns[1].as<std::string>()}] = {
        .jobs = columns[2].as<int64_t>(), .jobspec_bytes = columns[3].as<int64_t>()};
  }
  return usage;
}

std::map<std::string, UnplacedJob> FindUnplaced(pqxx::transaction_base& tx,
                                                const std::vector<std::string>& job_ids) {
  std::map<std::string, UnplacedJob> unplaced;
  if (!postgres::Exec(tx, kHasJobs)[0][0].as<bool>()) return unplaced;
  postgres::TextArray ids;
  for (const std::string& id : job_ids) ids.Add(id);
  for (const auto& columns : postgres::Exec(tx, kFindUnplaced, ids.text())) {
    unplaced[columns[0].as<std::string>()] = {.version = columns[1].as<uint64_t>(),
                                              .attempt = columns[2].as<uint32_t>(),
                                              .waits = columns[3].as<bool>()};
  }
  return unplaced;
}

std::optional<Neighbours> CompareNeighbours(pqxx::transaction_base& tx,
                                            const NeighbourPages& pages) {
  if (!postgres::Exec(tx, kSeesNeighbours)[0][0].as<bool>()) return std::nullopt;
  postgres::Exec(tx, kNoteHeard);
  Neighbours neighbours;
  neighbours.jobs = Compare(tx, kHandledByQueue, kLackingJobs, pages.jobs);
  neighbours.jobspecs = Compare(tx, kHandledByMatcher, kLackingJobspecs, pages.jobspecs);
  return neighbours;
}

}  // namespace fluxqueue::admission
