#include "services/admission/adapters/admission_store.h"

#include <string>
#include <string_view>

#include <nlohmann/json.hpp>

#include "libs/base/status_macros.h"
#include "libs/postgres/array.h"
#include "libs/postgres/statement.h"
#include "libs/postgres/table.h"

#include "absl/strings/str_split.h"
#include "fmt/format.h"
#include "fmt/ranges.h"

namespace fluxqueue::admission {
namespace {

using postgres::ArrayText;
using postgres::Blob;
using postgres::Column;
using postgres::Field;
using postgres::Statement;
using postgres::Table;

constexpr Statement kLoadUsage{"admission_load_usage",
                               "select namespace, queue, count(*), sum(jobspec_bytes)::bigint "
                               "from workloads group by namespace, queue"};
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

// A row that this version cannot read.
[[noreturn]] void Refuse(const std::string& what) {
  throw pqxx::conversion_error("admission.workloads: " + what);
}

WorkloadKind ParseKind(std::string_view name) {
  for (const auto kind : {WorkloadKind::kJob, WorkloadKind::kPod, WorkloadKind::kGroup}) {
    if (KindName(kind) == name) return kind;
  }
  Refuse(fmt::format("kind '{}' is not known to this version", name));
}

kubernetes::Amounts ParseRequests(std::string_view text) {
  const auto requests = nlohmann::json::parse(text, nullptr, /*allow_exceptions=*/false);
  kubernetes::Amounts amounts;
  for (const auto& [resource, amount] : requests.items()) {
    if (!amount.is_number_integer()) {
      Refuse(fmt::format("requests of {} are not a number", resource));
    }
    amounts.emplace(resource, amount.get<int64_t>());
  }
  return amounts;
}

kubernetes::Topology ParseTopology(const std::string& text) {
  if (text.empty()) return {};
  const auto topology = kubernetes::ParseTopology(text);
  if (!topology.ok()) Refuse(Message(topology.status()));
  return *topology;
}

const Table<PoolRow>& Pools() {
  static const Table<PoolRow> table("admission.pools",
                                    {},
                                    {Field<&PoolRow::pool>("pool").Key(),
                                     Field<&PoolRow::partition>("partition").Once(),
                                     Blob<&PoolRow::config>("config")});
  return table;
}

const Table<QueueRow>& Queues() {
  static const Table<QueueRow> table("admission.queues",
                                     {},
                                     {Field<&QueueRow::queue>("queue").Key(),
                                      Field<&QueueRow::pool>("pool"),
                                      Blob<&QueueRow::config>("config")});
  return table;
}

const Table<WindowRow>& Windows() {
  static const Table<WindowRow> table("admission.windows",
                                      {},
                                      {Field<&WindowRow::window>("name").Key(),
                                       Field<&WindowRow::pool>("pool"),
                                       Blob<&WindowRow::config>("config")});
  return table;
}

Column<WorkloadRow> KindColumn() {
  return {
      .spec = {.name = "kind"},
      .put = [](const WorkloadRow& row, ArrayText* values) { values->AddText(KindName(row.kind)); },
      .take = [](const pqxx::field& field,
                 WorkloadRow* row) { row->kind = ParseKind(field.c_str()); }};
}

Column<WorkloadRow> RequestsColumn() {
  return {.spec = {.name = "requests", .type = postgres::ColumnType::kJson},
          .put = [](const WorkloadRow& row,
                    ArrayText* values) { values->AddText(nlohmann::json(*row.requests).dump()); },
          .take = [](const pqxx::field& field,
                     WorkloadRow* row) { row->requests = ParseRequests(field.c_str()); }};
}

Column<WorkloadRow> TopologyColumn() {
  return {
      .spec = {.name = "topology"},
      .put = [](const WorkloadRow& row,
                ArrayText* values) { values->AddText(kubernetes::FormatTopology(row.topology)); },
      .take = [](const pqxx::field& field,
                 WorkloadRow* row) { row->topology = ParseTopology(field.c_str()); }};
}

Column<WorkloadRow> PodsColumn() {
  return {.spec = {.name = "pods"},
          .put =
              [](const WorkloadRow& row, ArrayText* values) {
                values->AddText(fmt::format("{}", fmt::join(row.pods, " ")));
              },
          .take =
              [](const pqxx::field& field, WorkloadRow* row) {
                row->pods = absl::StrSplit(field.c_str(), ' ', absl::SkipEmpty());
              }};
}

// The id of its job is the workload's.
const Table<WorkloadRow>& Workloads() {
  static const Table<WorkloadRow> table("admission.workloads",
                                        {},
                                        {Field<&WorkloadRow::uid>("uid").Key(),
                                         Field<&WorkloadRow::uid>("job_id").Once(),
                                         KindColumn().Once(),
                                         Field<&WorkloadRow::space>("namespace").Once(),
                                         Field<&WorkloadRow::name>("name").Once(),
                                         Field<&WorkloadRow::pool>("pool").Once(),
                                         Field<&WorkloadRow::queue>("queue"),
                                         Field<&WorkloadRow::resource_version>("resource_version"),
                                         Field<&WorkloadRow::revision>("revision"),
                                         Field<&WorkloadRow::slots>("slots"),
                                         Field<&WorkloadRow::priority>("priority"),
                                         Field<&WorkloadRow::hold>("hold"),
                                         Field<&WorkloadRow::cancelled>("cancelled"),
                                         Field<&WorkloadRow::duration_ms>("duration_ms"),
                                         RequestsColumn(),
                                         Field<&WorkloadRow::demand_hash>("demand_hash"),
                                         TopologyColumn(),
                                         Field<&WorkloadRow::begin_ms>("begin_ms"),
                                         Field<&WorkloadRow::min_slots>("min_slots"),
                                         Field<&WorkloadRow::asked>("asked"),
                                         Field<&WorkloadRow::retried>("retried"),
                                         Field<&WorkloadRow::jobspec_bytes>("jobspec_bytes"),
                                         PodsColumn().Once()});
  return table;
}

template <typename Row>
std::vector<Row> LoadAll(pqxx::transaction_base& tx, const Table<Row>& table, const char* name) {
  static const std::string sql = table.Select("");
  return table.Read(postgres::Exec(tx, Statement{name, sql.c_str()}));
}

}  // namespace

AdmissionRows LoadRows(pqxx::transaction_base& tx) {
  return {.pools = LoadAll(tx, Pools(), "admission_load_pools"),
          .queues = LoadAll(tx, Queues(), "admission_load_queues"),
          .windows = LoadAll(tx, Windows(), "admission_load_windows"),
          .workloads = LoadAll(tx, Workloads(), "admission_load_workloads")};
}

void WriteRows(pqxx::transaction_base& tx,
               const CatalogChanges& catalog,
               const TrackerChanges& workloads) {
  Pools().Write(tx, catalog.pools);
  Queues().Write(tx, catalog.queues);
  std::vector<QueueRow> queues;
  for (const std::string& queue : catalog.deleted_queues) queues.emplace_back().queue = queue;
  Queues().Delete(tx, queues);
  Windows().Write(tx, catalog.windows);
  std::vector<WindowRow> windows;
  for (const std::string& window : catalog.deleted_windows) windows.emplace_back().window = window;
  Windows().Delete(tx, windows);
  Workloads().Write(tx, workloads.upserts);
  std::vector<WorkloadRow> deleted;
  for (const std::string& uid : workloads.deletes) deleted.emplace_back().uid = uid;
  Workloads().Delete(tx, deleted);
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
