// What cleanup reads of other services' tables. It writes none of its own: what it has said shows
// in the tables of those who heard it, so a restart compares the cluster with them. Throws what
// libpqxx throws.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <pqxx/pqxx>

#include "fluxqueue/events/v1/events.pb.h"

#include "services/cleanup/domain/proof.h"
#include "services/cleanup/domain/sweep.h"

namespace fluxqueue::cleanup {

// Jobs that have not ended.
std::vector<LiveJob> LoadLiveJobs(pqxx::transaction_base& tx);
// Some pod of the job has its slot, and is still to be bound.
bool HasTakenSlots(pqxx::transaction_base& tx, const std::string& job_id);
// The nodes of the matcher's graphs, with their pool.
std::vector<std::pair<std::string, events::v1::Node>> LoadGraphNodes(pqxx::transaction_base& tx);

// The binder's rows of those pods that have a slot of a job that they name, into `proofs`.
void LoadProofs(pqxx::transaction_base& tx, std::span<const Hint> hints, Proofs* proofs);
// Pools of the jobs that the queue has.
std::vector<std::pair<std::string, std::string>> LoadPoolsOf(
    pqxx::transaction_base& tx, const std::vector<std::string>& job_ids);
// Nullopt: admission has not made the pool yet.
std::optional<int> LoadPartition(pqxx::transaction_base& tx, const std::string& pool);

}  // namespace fluxqueue::cleanup
