// What calls of the queue's API share: the names that requests leave out, and the job that they
// name.
#pragma once

#include <string>

#include "fluxqueue/events/v1/events.pb.h"

#include "libs/base/status_macros.h"
#include "libs/job_store/fact_store.h"
#include "libs/rpc/error_details.h"

#include "absl/status/statusor.h"

namespace fluxqueue::queue {

inline std::string PoolOf(const std::string& pool) {
  return pool.empty() ? "default" : pool;
}

inline absl::Status NoSuchJob(const std::string& job_id) {
  return MakeStatus(absl::StatusCode::kNotFound,
                    "there is no job {}; ListJobs has those that are (with `ended`: that were)",
                    job_id);
}

// Blocks.
inline absl::StatusOr<events::v1::JobFact> FindJob(job_store::FactStore& facts,
                                                   const std::string& job_id) {
  if (job_id.empty()) {
    return rpc::InField(InvalidArgument("job_id: name a job; ListJobs has them"), "job_id");
  }
  ASSIGN_OR_RETURN(std::optional<events::v1::JobFact> fact, facts.Find(job_id));
  if (!fact.has_value()) return NoSuchJob(job_id);
  return *std::move(fact);
}

}  // namespace fluxqueue::queue
