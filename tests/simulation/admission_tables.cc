// services/admission/adapters/admission_store.h over the database in memory.
#include "tests/simulation/admission_tables.h"

#include "libs/base/check.h"
#include "services/admission/adapters/admission_store.h"
#include "tests/simulation/matcher_tables.h"
#include "tests/simulation/queue_tables.h"

namespace fluxqueue::admission {
namespace {

using model::JobState;
using simulation::AdmissionTables;
using simulation::MatcherTables;
using simulation::QueueTables;
using simulation::SimTx;
using simulation::TablesOf;

template <typename Row>
std::vector<Row> RowsOf(const simulation::Table<std::string, Row>& table) {
  std::vector<Row> rows;
  for (const auto& [key, row] : table.rows()) rows.push_back(row);
  return rows;
}

std::map<int, int64_t> HandledBy(pqxx::transaction_base& tx, const char* service) {
  std::map<int, int64_t> handled;
  for (const auto& [partition, row] : SimTx::Of(tx).database().DeliveryOf(service).inbox.rows()) {
    handled[partition] = row.next_offset;
  }
  return handled;
}

bool HasSpec(const MatcherTables& tables, const std::string& job_id) {
  const auto first = tables.specs.rows().lower_bound({job_id, 0});
  return first != tables.specs.rows().end() && first->first.first == job_id;
}

}  // namespace

AdmissionRows LoadRows(pqxx::transaction_base& tx) {
  const AdmissionTables& tables = TablesOf<AdmissionTables>(tx);
  return {.pools = RowsOf(tables.pools),
          .queues = RowsOf(tables.queues),
          .windows = {},
          .workloads = RowsOf(tables.workloads)};
}

void WriteRows(pqxx::transaction_base& tx,
               const CatalogChanges& catalog,
               const TrackerChanges& workloads) {
  AdmissionTables& tables = TablesOf<AdmissionTables>(tx);
  CHECK(catalog.windows.empty() && catalog.deleted_windows.empty(), "no windows are simulated");
  for (const PoolRow& row : catalog.pools) tables.pools.Put(row.pool, row);
  for (const QueueRow& row : catalog.queues) tables.queues.Put(row.queue, row);
  for (const std::string& queue : catalog.deleted_queues) tables.queues.Erase(queue);
  for (const WorkloadRow& row : workloads.upserts) tables.workloads.Put(row.uid, row);
  for (const std::string& uid : workloads.deletes) {
    tables.workloads.Erase(uid);
    tables.heard.Erase(uid);
  }
}

std::map<std::string, UnplacedJob> FindUnplaced(pqxx::transaction_base& tx,
                                                const std::vector<std::string>& job_ids) {
  std::map<std::string, UnplacedJob> unplaced;
  for (const std::string& id : job_ids) {
    const QueueTables::Job* row = TablesOf<QueueTables>(tx).jobs.Find(id);
    if (row == nullptr) continue;
    const queue_core::JobChange& job = row->job;
    if (job.state != JobState::kRejected && job.state != JobState::kPending) continue;
    unplaced[id] = {
        .version = job.version, .attempt = job.attempt, .waits = job.state == JobState::kPending};
  }
  return unplaced;
}

std::optional<Neighbours> CompareNeighbours(pqxx::transaction_base& tx,
                                            const NeighbourPages& /*pages*/) {
  AdmissionTables& tables = TablesOf<AdmissionTables>(tx);
  const QueueTables& queue = TablesOf<QueueTables>(tx);
  Neighbours neighbours;
  neighbours.jobs.handled = HandledBy(tx, "queue");
  neighbours.jobspecs.handled = HandledBy(tx, "matcher");
  for (const auto& [uid, workload] : tables.workloads.rows()) {
    const QueueTables::Job* job = queue.jobs.Find(uid);
    if (job != nullptr && !tables.heard.Has(uid)) tables.heard.Put(uid, true);
    if (workload.cancelled) continue;
    const Lack lack = {uid, tables.pools.Find(workload.pool)->partition};
    if (job == nullptr && !tables.heard.Has(uid)) neighbours.jobs.lacks.push_back(lack);
    if (job != nullptr && job->job.state == JobState::kPending &&
        !HasSpec(TablesOf<MatcherTables>(tx), uid)) {
      neighbours.jobspecs.lacks.push_back(lack);
    }
  }
  return neighbours;
}

}  // namespace fluxqueue::admission
