// What FluxJobs are made of beyond the facts: rows of the matcher's and of our own tables. Statuses
// are those of libs/postgres. Thread-safe.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "libs/postgres/connection.h"
#include "services/queue/domain/flux_job_view.h"

#include "absl/status/statusor.h"

namespace fluxqueue::queue {

class FluxJobSource {
 public:
  explicit FluxJobSource(postgres::Options options);

  // Jobspec, transitions and slots (of part 0 of the attempt) of the jobs named by the facts, by
  // job id. A query each for all of them.
  absl::StatusOr<std::map<std::string, FluxJobDetails>> Details(
      const std::vector<events::v1::JobFact>& facts);

  // The last fact of each job that has not ended, or ended within the last hour.
  absl::StatusOr<std::vector<events::v1::JobFact>> RecentFacts();

 private:
  postgres::Pool pool_;
};

}  // namespace fluxqueue::queue
