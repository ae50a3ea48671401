// Accounting: the attempts that have ended, as queue.attempts has them for years. For people and
// their tools. Reads only; throws nothing. Thread-safe.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "libs/job_store/job_store.h"
#include "libs/postgres/connection.h"

#include "absl/status/statusor.h"

namespace fluxqueue::job_store {

// What a report has a row for each of.
enum class ReportKey { kUser, kAccount, kQueue, kNamespace, kMonth };

// Attempts that ended from `since_ms` on and before `until_ms`; of the user, queue and namespace
// that are not empty.
struct ReportQuery {
  std::vector<ReportKey> by{};  // at least one, each once
  int64_t since_ms = 0;
  int64_t until_ms = 0;
  std::string user{};
  std::string queue{};
  std::string space{};
  // By account: that of each queue. Of a queue that is not here: itself.
  std::map<std::string, std::string> accounts{};
};

// Of each queue the way from the root down to the queue above it, such as "physics/lab"; of a root
// itself.
std::map<std::string, std::string> AccountsOf(const std::vector<QueueInfo>& queues);

struct ReportRow {
  std::vector<std::string> keys{};  // in the order of `by`; months as "2026-11", in UTC
  int64_t jobs = 0;                 // that ended; a requeue is no end
  int64_t succeeded = 0;
  int64_t failed = 0;
  int64_t attempts = 0;
  int64_t started = 0;  // of the attempts
  // Amounts times the hours for which they were held.
  double cpu_hours = 0;
  double gpu_hours = 0;
  double memory_gib_hours = 0;
  // Of attempts that started; 0 where none did. The percentile is within 3.3 %.
  double wait_mean_s = 0;
  double wait_p95_s = 0;
};

class AttemptStore {
 public:
  explicit AttemptStore(const postgres::Options& options);

  // By their keys. O(attempts of the months in question); of part of a month, those alone.
  absl::StatusOr<std::vector<ReportRow>> Report(const ReportQuery& query);
  // Jobs that were there between since_ms and until_ms, have ended, and are no longer in
  // queue.jobs; each by its last end, without version and priority. The newest `filter.limit`;
  // `*more`: there are others. REQUIRES: filter.limit > 0.
  absl::StatusOr<std::vector<Job>> Ended(const JobFilter& filter, bool* more);

 private:
  postgres::Pool connections_;
};

}  // namespace fluxqueue::job_store
