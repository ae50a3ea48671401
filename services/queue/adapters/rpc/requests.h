// What calls of the queue's API share: the names that requests leave out, and the job that they
// name.
#pragma once

#include <string>
#include <string_view>

#include "fluxqueue/events/v1/events.pb.h"

#include "libs/base/status_macros.h"
#include "libs/job_store/fact_store.h"
#include "libs/rpc/error_details.h"
#include "libs/rpc/name_check.h"

#include "absl/status/statusor.h"

namespace fluxqueue::queue {

inline std::string PoolOf(const std::string& pool) {
  return pool.empty() ? "default" : pool;
}

// A stranger whose call has to wait for the API server to say who he is.
inline absl::Status TooMany() {
  return MakeStatus(absl::StatusCode::kResourceExhausted,
                    "as many calls with a token wait already as may: call again later, or another "
                    "replica");
}

inline absl::Status NoSuchJob(const std::string& job_id) {
  return MakeStatus(absl::StatusCode::kNotFound,
                    "there is no job {}; ListJobs has those that are (with `ended`: that were)",
                    job_id);
}

// What is asked about by its name, in the cluster.
inline absl::Status CheckName(std::string_view field, const std::string& name) {
  constexpr size_t kMostName = 253;
  return rpc::CheckName(field, name, kMostName);
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
