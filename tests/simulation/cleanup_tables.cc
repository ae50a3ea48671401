// services/cleanup/adapters/cleanup_store.h over the database in memory.
#include <algorithm>

#include "services/cleanup/adapters/cleanup_store.h"
#include "tests/simulation/admission_tables.h"
#include "tests/simulation/binder_tables.h"
#include "tests/simulation/cluster_standins.h"
#include "tests/simulation/matcher_tables.h"
#include "tests/simulation/queue_tables.h"

namespace fluxqueue::cleanup {
namespace {

using model::JobState;
using simulation::BinderTables;
using simulation::MatcherTables;
using simulation::QueueTables;
using simulation::TablesOf;

bool IsHinted(std::span<const Hint> hints, const binder::SlotRow& slot) {
  return std::ranges::any_of(hints, [&](const Hint& hint) {
    return hint.job_id == slot.job_id && hint.pod_uid == slot.value.pod_uid;
  });
}

}  // namespace

std::vector<LiveJob> LoadLiveJobs(pqxx::transaction_base& tx) {
  std::vector<LiveJob> live;
  for (const auto& [id, row] : TablesOf<QueueTables>(tx).jobs.rows()) {
    const queue_core::JobChange& job = row.job;
    if (!row.live()) continue;
    live.push_back({.job_id = id,
                    .kind = job.kind,
                    .space = job.name_space,
                    .name = job.name,
                    .attempt = job.attempt,
                    .holding = row.holds(),
                    .running = job.state == JobState::kRunning});
  }
  return live;
}

bool HasTakenSlots(pqxx::transaction_base& tx, const std::string& job_id) {
  return std::ranges::any_of(TablesOf<BinderTables>(tx).slots.rows(), [&](const auto& slot) {
    return slot.second.job_id == job_id && slot.second.value.state == binder::SlotState::kTaken;
  });
}

std::vector<std::pair<std::string, events::v1::Node>> LoadGraphNodes(pqxx::transaction_base& tx) {
  std::vector<std::pair<std::string, events::v1::Node>> nodes;
  for (const auto& [key, row] : TablesOf<MatcherTables>(tx).nodes.rows()) {
    if (!row.present) continue;
    auto& [pool, node] = nodes.emplace_back();
    pool = key.first;
    if (!node.ParseFromString(row.node)) nodes.pop_back();
  }
  return nodes;
}

void LoadProofs(pqxx::transaction_base& tx, std::span<const Hint> hints, Proofs* proofs) {
  if (std::ranges::find(hints, simulation::kPoison, &Hint::job_id) != hints.end()) {
    throw pqxx::data_exception("invalid byte sequence", "", "22021");
  }
  for (const auto& [key, slot] : TablesOf<BinderTables>(tx).slots.rows()) {
    if (slot.value.state == binder::SlotState::kFenced || !IsHinted(hints, slot)) continue;
    const QueueTables::Job* job = TablesOf<QueueTables>(tx).jobs.Find(slot.job_id);
    if (job == nullptr) continue;
    (*proofs)[slot.value.pod_uid] = {.job_id = slot.job_id,
                                     .slot = {.attempt = slot.attempt,
                                              .part = 0,
                                              .slot = static_cast<uint32_t>(slot.slot),
                                              .slots = job->job.slots},
                                     .space = slot.space,
                                     .node = slot.value.node};
  }
}

std::vector<std::pair<std::string, std::string>> LoadPoolsOf(
    pqxx::transaction_base& tx, const std::vector<std::string>& job_ids) {
  std::vector<std::pair<std::string, std::string>> pools;
  for (const std::string& id : job_ids) {
    const QueueTables::Job* job = TablesOf<QueueTables>(tx).jobs.Find(id);
    if (job != nullptr) pools.emplace_back(id, job->pool);
  }
  return pools;
}

std::optional<int> LoadPartition(pqxx::transaction_base& tx, const std::string& pool) {
  const auto* row = TablesOf<simulation::AdmissionTables>(tx).pools.Find(pool);
  return row == nullptr ? std::nullopt : std::optional(row->partition);
}

}  // namespace fluxqueue::cleanup
