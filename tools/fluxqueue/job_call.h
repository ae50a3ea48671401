// How a subcommand asks the queue about one job: which job is meant, and who holds its pool.
#pragma once

#include <memory>
#include <string>

#include <grpcpp/grpcpp.h>

#include "fluxqueue/queue/v1/queue.grpc.pb.h"

#include "libs/job_store/job_store.h"

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "tools/fluxqueue/context.h"

namespace fluxqueue::cli {

struct JobCall {
  job_store::Job job;
  std::unique_ptr<queue::v1::Queue::Stub> stub;  // of the replica that holds its pool
};

// `wanted`: an id, a name, or namespace/name. Of several jobs of a name the last that lives.
// NotFound and InvalidArgument say what to do.
absl::StatusOr<job_store::Job> FindJob(const SystemConfig& config, const std::string& wanted);
// The queue's replica that holds the pool.
absl::StatusOr<std::unique_ptr<queue::v1::Queue::Stub>> ReachPool(const SystemConfig& config,
                                                                  const std::string& pool);
absl::StatusOr<JobCall> ReachJob(const Context& context, const std::string& wanted);

// Of a call about this job: the deadline, and the job's trace.
void Prepare(grpc::ClientContext* call, const std::string& job_id);

// Names the job.
absl::Status ToStatus(const grpc::Status& status, const job_store::Job& job);

}  // namespace fluxqueue::cli
