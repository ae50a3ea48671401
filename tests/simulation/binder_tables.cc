// services/binder/adapters/binder_store.h over the database in memory.
#include "tests/simulation/binder_tables.h"

#include <algorithm>
#include <utility>

#include "fluxqueue/queue/v1/rows.pb.h"

#include "libs/base/check.h"
#include "services/binder/adapters/binder_store.h"
#include "tests/simulation/admission_tables.h"
#include "tests/simulation/matcher_tables.h"
#include "tests/simulation/queue_tables.h"

namespace fluxqueue::binder {
namespace {

using model::JobState;
using simulation::BinderTables;
using simulation::MatcherTables;
using simulation::QueueTables;
using simulation::TablesOf;

// What only memory knows is not in a row.
SlotRow AsRow(const SlotRow& slot) {
  SlotRow row = slot;
  row.value = Slot{.node = slot.value.node,
                   .pod_uid = slot.value.pod_uid,
                   .pod_name = slot.value.pod_name,
                   .state = slot.value.state,
                   .bound_once = slot.value.bound_once,
                   .succeeded = slot.value.succeeded,
                   .retry = {}};
  return row;
}

events::v1::JobFact FactOf(const QueueTables::Job& job) {
  queue::v1::JobRow row;
  CHECK(row.ParseFromString(job.job.row), "a row of queue.jobs does not decode");
  return std::move(*row.mutable_fact());
}

// The first two of kLoadMissed's.
bool IsMissed(const QueueTables::Job& job, const JobRow* known) {
  const queue_core::JobChange& row = job.job;
  if (!job.holds()) return known != nullptr && row.version > known->version;
  return known == nullptr || known->attempt < row.attempt ||
         (row.state == JobState::kStopping && known->version < row.version);
}

// The third.
bool IsUnheard(const queue_core::JobChange& job, const JobRow& known) {
  if (job.attempt != known.attempt) return false;
  if (job.state == JobState::kStopping) return known.stopped;
  return known.failed && (job.state == JobState::kAllocated || job.state == JobState::kBound ||
                          job.state == JobState::kRunning);
}

void EraseSlots(BinderTables& tables, const std::string& job_id) {
  tables.slots.EraseIf([&](const auto& key, const auto&) { return std::get<0>(key) == job_id; });
}

}  // namespace

std::vector<StoredJob> LoadJobs(pqxx::transaction_base& tx, int partition) {
  const BinderTables& tables = TablesOf<BinderTables>(tx);
  std::vector<StoredJob> jobs;
  for (const auto& [id, job] : tables.jobs.rows()) {
    if (job.partition != partition) continue;
    StoredJob& stored = jobs.emplace_back();
    stored.job = job;
    for (const auto& [key, slot] : tables.slots.rows()) {
      if (slot.job_id == id && slot.attempt == job.attempt) stored.slots.push_back(AsRow(slot));
    }
  }
  return jobs;
}

void WriteRows(pqxx::transaction_base& tx, const Rows& rows) {
  BinderTables& tables = TablesOf<BinderTables>(tx);
  for (const std::string& job_id : rows.forgotten) {
    tables.jobs.Erase(job_id);
    EraseSlots(tables, job_id);
  }
  for (const std::string& job_id : rows.renewed) EraseSlots(tables, job_id);
  for (const JobRow& job : rows.jobs) tables.jobs.Put(job.job_id, job);
  for (const SlotRow& slot : rows.slots) {
    if (tables.rows_late && slot.value.state == SlotState::kTaken) continue;
    tables.slots.Put({slot.job_id, slot.attempt, slot.slot}, AsRow(slot));
  }
}

std::map<std::pair<std::string, uint32_t>, PlacementRow> LoadPlacements(
    pqxx::transaction_base& tx, const std::vector<PlacementKey>& keys) {
  std::map<std::pair<std::string, uint32_t>, PlacementRow> placements;
  for (const PlacementKey& key : keys) {
    const auto* row = TablesOf<MatcherTables>(tx).allocations.Find({key.job_id, key.attempt, 0});
    if (row == nullptr) continue;
    PlacementRow& placement = placements[{key.job_id, key.attempt}];
    CHECK(placement.placement.ParseFromString(row->row.placement), "a placement does not decode");
    placement.released = row->row.released;
    for (const std::string& name : key.nodes) {
      const auto* node = TablesOf<MatcherTables>(tx).nodes.Find({key.pool, name});
      if (node != nullptr && node->present) placement.node_uids[name] = node->uid;
    }
  }
  return placements;
}

Missed LoadMissed(pqxx::transaction_base& tx, const std::string& after) {
  const BinderTables& tables = TablesOf<BinderTables>(tx);
  Missed missed;
  for (const auto& [id, job] : TablesOf<QueueTables>(tx).jobs.rows()) {
    if (id <= after) continue;
    const JobRow* known = tables.jobs.Find(id);
    if (IsMissed(job, known)) missed.facts.push_back(FactOf(job));
    if (known != nullptr && IsUnheard(job.job, *known)) missed.ends.push_back(id);
  }
  return missed;
}

std::optional<std::vector<events::v1::JobFact>> LoadLackNodes(pqxx::transaction_base& /*tx*/) {
  return std::nullopt;  // what waiting pods say of it is not simulated
}

std::map<std::string, int> LoadPools(pqxx::transaction_base& tx) {
  std::map<std::string, int> pools;
  for (const auto& [pool, row] : TablesOf<simulation::AdmissionTables>(tx).pools.rows()) {
    pools[pool] = row.partition;
  }
  return pools;
}

}  // namespace fluxqueue::binder
