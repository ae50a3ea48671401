// The tables of the schema `binder`, and what is read of other services' tables. Set-based: a batch
// costs a statement for each table it changes, however many rows. Throws what libpqxx throws; the
// delivery loop turns that into a status.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <pqxx/pqxx>

#include "services/binder/domain/bind_job.h"
#include "services/binder/domain/bind_planner.h"

namespace fluxqueue::binder {

struct StoredJob {
  JobRow job;
  std::vector<SlotRow> slots;
};

// The jobs of a partition of fluxqueue.jobs.
std::vector<StoredJob> LoadJobs(pqxx::transaction_base& tx, int partition);

void WriteRows(pqxx::transaction_base& tx, const Rows& rows);

// From matcher.allocations; keys without a row are absent. So is a placement that does not decode,
// a defect of the matcher's: it is logged. The uids of nodes are from matcher.graph_nodes, of which
// a matcher of an older release lets no binder read: there are none then.
std::map<std::pair<std::string, uint32_t>, PlacementRow> LoadPlacements(
    pqxx::transaction_base& tx, const std::vector<PlacementKey>& keys);

// What the jobs topic may have lost: facts of jobs, as queue.jobs has them, that hold an allocation
// and are not followed, or are followed and hold none, or are to be stopped; and jobs that are
// stopped, or could not be bound, as far as the queue has not heard of it. Empty where the queue
// lets no binder read.
struct Missed {
  std::vector<events::v1::JobFact> facts;
  std::vector<std::string> ends;  // job ids
  std::string next{};             // job id behind which the next page begins; empty: none follows
};
inline constexpr int64_t kMostMissed = 1000;
// A page of at most kMostMissed, of job ids greater than `after`.
Missed LoadMissed(pqxx::transaction_base& tx, const std::string& after);

// From queue.lack_nodes: the jobs that lack nothing but nodes, as far as queue.jobs says so still.
// Unset: the queue is of an older release, which has no such table or lets no binder read it.
std::optional<std::vector<events::v1::JobFact>> LoadLackNodes(pqxx::transaction_base& tx);

// From admission.pools: each pool's partition of fluxqueue.pool.
std::map<std::string, int> LoadPools(pqxx::transaction_base& tx);

}  // namespace fluxqueue::binder
