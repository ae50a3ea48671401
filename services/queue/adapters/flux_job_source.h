// What FluxJobs are made of: rows of our own tables and of the matcher's. Statuses are those of
// libs/postgres. Thread-safe.
#pragma once

#include <functional>
#include <map>
#include <string>
#include <vector>

#include <pqxx/pqxx>

#include "libs/postgres/connection.h"
#include "services/queue/domain/flux_job_view.h"

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace fluxqueue::queue {

using OnFact = std::function<void(const events::v1::JobFact& fact)>;

class FluxJobSource {
 public:
  explicit FluxJobSource(postgres::Options options);

  struct Job {
    events::v1::JobFact fact;  // the last
    FluxJobDetails details;    // slots: of part 0 of the attempt
  };
  // By job id; those that have a row. Two statements for all of them.
  absl::StatusOr<std::map<std::string, Job>> Jobs(const std::vector<std::string>& job_ids);

  // The last fact of each job that has not ended, a thousand in memory at a time.
  absl::Status LiveFacts(const OnFact& on_fact);
  // The last fact of each of the jobs that has a row, likewise.
  absl::Status FactsOf(const std::vector<std::string>& job_ids, const OnFact& on_fact);

 private:
  postgres::Pool pool_;
};

// As Jobs, LiveFacts and FactsOf, in a transaction. They throw what libpqxx throws.
absl::StatusOr<std::map<std::string, FluxJobSource::Job>> ReadFluxJobs(
    pqxx::transaction_base& tx, const std::vector<std::string>& job_ids);
absl::Status ReadLiveFacts(pqxx::transaction_base& tx, const OnFact& on_fact);
absl::Status ReadFactsOf(pqxx::transaction_base& tx,
                         const std::vector<std::string>& job_ids,
                         const OnFact& on_fact);

}  // namespace fluxqueue::queue
