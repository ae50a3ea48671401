// How a subcommand asks the queue about one job: which job is meant, and who answers for it.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include <grpcpp/grpcpp.h>

#include "fluxqueue/queue/v1/queue.grpc.pb.h"

#include "libs/job_store/job_store.h"

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "tools/fluxqueue/context.h"

namespace fluxqueue::cli {

struct JobCommand {
  enum class Kind { kHold, kRelease, kCancel, kPriority, kMove };
  Kind kind = Kind::kHold;
  int32_t priority = 0;
  std::string queue{};
};

// Errors name the job.
class JobCall {
 public:
  virtual ~JobCall() = default;

  virtual const job_store::Job& job() const = 0;
  virtual absl::StatusOr<queue::v1::ExplainResponse> Explain() = 0;
  virtual absl::StatusOr<std::vector<job_store::Promise>> Promises() = 0;
  virtual absl::Status Do(const JobCommand& command) = 0;
};

// Of a cluster by its API server, where that serves the group visibility.fluxqueue.io; else by the
// tables and gRPC of the system, of the replica that holds the job's pool.
absl::StatusOr<std::unique_ptr<JobCall>> ReachJob(const Context& context,
                                                  const std::string& wanted);

// `wanted`: an id, a name, or namespace/name. Of several jobs of a name the last that lives.
// NotFound and InvalidArgument say what to do.
absl::StatusOr<job_store::Job> FindJob(const SystemConfig& config, const std::string& wanted);
// The queue's replica that holds the pool.
absl::StatusOr<std::unique_ptr<queue::v1::Queue::Stub>> ReachPool(const SystemConfig& config,
                                                                  const std::string& pool);
// Of a call: the deadline, and the job's trace.
void Prepare(grpc::ClientContext* call, const std::string& job_id);

}  // namespace fluxqueue::cli
