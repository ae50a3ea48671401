// What cleanup looks up of other services' tables (cleanup_store.h) while it handles what it has
// seen, outside of the batch's transaction.
#pragma once

#include <cstddef>
#include <map>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "libs/postgres/store.h"
#include "services/cleanup/domain/proof.h"

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace fluxqueue::cleanup {

// The binder's rows of those pods that have a slot of a job that they name. As many queries as it
// takes at kMostHints each. Unavailable: the binder has not made its tables yet.
absl::StatusOr<Proofs> FindProofs(postgres::Store& store, const std::vector<Hint>& hints);
inline constexpr size_t kMostHints = 10'000;

// Pools of jobs, and partitions of pools. Most jobs are asked for when they start and when they end
// only: once more than kMostJobs are known, all are looked up again. Confined to one thread.
class PoolDirectory {
 public:
  static constexpr size_t kMostJobs = 10'000;

  // `store` must outlive the directory.
  explicit PoolDirectory(postgres::Store& store) : store_(store) {}

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
  postgres::Store& store_;
  std::unordered_map<std::string, std::string> pools_;
  std::map<std::string, int> partitions_;
};

}  // namespace fluxqueue::cleanup
