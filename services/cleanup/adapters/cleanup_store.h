// What cleanup reads of other services' tables. It writes none of its own: what it has said shows
// in the tables of those who heard it, so a restart compares the cluster with them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include <pqxx/pqxx>

#include "fluxqueue/events/v1/events.pb.h"

#include "libs/postgres/connection.h"
#include "services/cleanup/domain/proof.h"
#include "services/cleanup/domain/sweep.h"

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace fluxqueue::cleanup {

// Jobs that have not ended. Throws what libpqxx throws.
std::vector<LiveJob> LoadLiveJobs(pqxx::transaction_base& tx);
// Some pod of the job has its slot, and is still to be bound.
bool HasTakenSlots(pqxx::transaction_base& tx, const std::string& job_id);
// The nodes of the matcher's graphs, with their pool. Throws what libpqxx throws.
std::vector<std::pair<std::string, events::v1::Node>> LoadGraphNodes(pqxx::transaction_base& tx);

// The binder's rows of those pods that have a slot of a job that they name. As many queries as it
// takes at kMostHints each. Unavailable: the binder has not made its tables yet.
absl::StatusOr<Proofs> FindProofs(postgres::Connection& connection, const std::vector<Hint>& hints);
inline constexpr size_t kMostHints = 10'000;

// Pools of jobs, and partitions of pools. Most jobs are asked for when they start and when they end
// only: once more than kMostJobs are known, all are looked up again. Confined to one thread.
class PoolDirectory {
 public:
  static constexpr size_t kMostJobs = 10'000;

  // `connection` must outlive the directory.
  explicit PoolDirectory(postgres::Connection& connection) : connection_(connection) {}

  // Looks up those of the jobs that are not known yet, in one query. However many they are, they
  // stay known until the next call.
  absl::Status Find(const std::vector<std::string>& job_ids);
  // Nullopt: the queue has no such job (yet).
  std::optional<std::string> PoolOf(const std::string& job_id) const;
  // The job is over.
  void Forget(const std::string& job_id) { pools_.erase(job_id); }

  // Unavailable: admission has not made the pool yet.
  absl::StatusOr<int> PartitionOf(const std::string& pool);

 private:
  postgres::Connection& connection_;
  std::unordered_map<std::string, std::string> pools_;
  std::map<std::string, int> partitions_;
};

}  // namespace fluxqueue::cleanup
