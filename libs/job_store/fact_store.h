// The last fact of each job, and who holds a pool, as the queue's tables have them: what the
// queue's API reads. Any replica may ask. Reads only; throws nothing. Thread-safe.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "fluxqueue/events/v1/events.pb.h"
#include "fluxqueue/queue/v1/rows.pb.h"

#include "libs/postgres/connection.h"
#include "libs/postgres/statement.h"

#include "absl/status/statusor.h"

namespace fluxqueue::job_store {

// Empty: any.
struct FactFilter {
  std::string pool{};
  std::string queue{};
  std::string space{};
  std::string kind{};
  std::vector<std::string> states{};
  bool ended = false;  // also those that have
  bool claims = true;  // also those
};

// A replica of the queue.
struct Holder {
  std::string instance{};
  std::string address{};  // where it answers; empty: nowhere
};

// What a user's claims come to.
struct ClaimUse {
  int64_t claims = 0;
  int64_t bytes = 0;  // of their jobspecs
};

// What the jobs of a namespace that have not ended come to in a queue, and what is above it.
struct QueueUse {
  std::string parent{};
  int64_t jobs = 0;
  int64_t jobspec_bytes = 0;
};

class FactStore {
 public:
  // `connections`: calls at once.
  FactStore(postgres::Options options, size_t connections);

  // By job id, behind `after`: `limit` at most.
  absl::StatusOr<std::vector<events::v1::JobFact>> Page(const FactFilter& filter,
                                                        const std::string& after,
                                                        size_t limit);
  // Of a workload, the one that lives first, then the newest; ten at most.
  absl::StatusOr<std::vector<events::v1::JobFact>> Named(const std::string& space,
                                                         const std::string& name);
  // Nothing: there is no such job.
  absl::StatusOr<std::optional<events::v1::JobFact>> Find(const std::string& job_id);
  // All that is kept of it.
  absl::StatusOr<std::optional<queue::v1::JobRow>> FindRow(const std::string& job_id);
  // By queue: all of the pool.
  absl::StatusOr<std::map<std::string, QueueUse>> UseOf(const std::string& pool,
                                                        const std::string& space);
  // The job that a command of this client id was about; nothing: none was accepted.
  absl::StatusOr<std::optional<std::string>> Accepted(const std::string& client_id);
  // Claims that this user has made and that have not ended.
  absl::StatusOr<ClaimUse> ClaimsOf(const std::string& user);
  // The same of all users whose names begin so.
  absl::StatusOr<ClaimUse> ClaimsOfAll(const std::string& prefix);
  // Nothing: the queue knows no such pool.
  absl::StatusOr<std::optional<Holder>> HolderOf(const std::string& pool);

 private:
  absl::StatusOr<ClaimUse> ClaimsBy(const postgres::Statement& statement, const std::string& users);

  postgres::Pool connections_;
};

}  // namespace fluxqueue::job_store
