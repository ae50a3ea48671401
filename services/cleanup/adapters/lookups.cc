#include "services/cleanup/adapters/lookups.h"

#include <algorithm>
#include <span>
#include <utility>

#include "libs/base/status_macros.h"
#include "services/cleanup/adapters/cleanup_store.h"

namespace fluxqueue::cleanup {

absl::StatusOr<Proofs> FindProofs(postgres::Store& store, const std::vector<Hint>& hints) {
  Proofs proofs;
  for (size_t first = 0; first < hints.size(); first += kMostHints) {
    const auto some = std::span(hints).subspan(first, std::min(kMostHints, hints.size() - first));
    RETURN_IF_ERROR(store.Query([&](pqxx::transaction_base& tx) {
      LoadProofs(tx, some, &proofs);
      return absl::OkStatus();
    }));
  }
  return proofs;
}

absl::Status PoolDirectory::Find(const std::vector<std::string>& job_ids) {
  if (pools_.size() > kMostJobs) pools_.clear();
  std::vector<std::string> unknown;
  for (const std::string& job_id : job_ids) {
    if (!pools_.contains(job_id)) unknown.push_back(job_id);
  }
  if (unknown.empty()) return absl::OkStatus();
  return store_.Query([&](pqxx::transaction_base& tx) {
    for (auto& [job_id, pool] : LoadPoolsOf(tx, unknown)) pools_[job_id] = std::move(pool);
    return absl::OkStatus();
  });
}

std::optional<std::string> PoolDirectory::PoolOf(const std::string& job_id) const {
  const auto it = pools_.find(job_id);
  if (it == pools_.end()) return std::nullopt;
  return it->second;
}

absl::StatusOr<int> PoolDirectory::PartitionOf(const std::string& pool) {
  if (const auto it = partitions_.find(pool); it != partitions_.end()) return it->second;
  std::optional<int> partition;
  RETURN_IF_ERROR(store_.Query([&](pqxx::transaction_base& tx) {
    partition = LoadPartition(tx, pool);
    return absl::OkStatus();
  }));
  if (!partition.has_value()) {
    return Unavailable("pool {} has no row in admission.pools yet: is admission running?", pool);
  }
  partitions_[pool] = *partition;
  return *partition;
}

}  // namespace fluxqueue::cleanup
