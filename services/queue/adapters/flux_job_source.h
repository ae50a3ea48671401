// What FluxJobs are made of beyond the facts: rows of the matcher's and of our own tables. Statuses
// are those of libs/postgres. Thread-safe.
#pragma once

#include <map>
#include <string>
#include <vector>

#include <pqxx/pqxx>

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

  // The last fact of each job that has not ended.
  absl::StatusOr<std::vector<events::v1::JobFact>> LiveFacts();
  // The last fact of each of the jobs that has a row.
  absl::StatusOr<std::vector<events::v1::JobFact>> FactsOf(const std::vector<std::string>& job_ids);

 private:
  postgres::Pool pool_;
};

// As LiveFacts and FactsOf, in a transaction. They throw what libpqxx throws.
absl::StatusOr<std::vector<events::v1::JobFact>> ReadLiveFacts(pqxx::transaction_base& tx);
absl::StatusOr<std::vector<events::v1::JobFact>> ReadFactsOf(
    pqxx::transaction_base& tx, const std::vector<std::string>& job_ids);

}  // namespace fluxqueue::queue
