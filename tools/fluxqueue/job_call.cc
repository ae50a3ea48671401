#include "tools/fluxqueue/job_call.h"

#include <chrono>
#include <utility>
#include <vector>

#include "libs/base/status_macros.h"
#include "libs/job_store/fact_store.h"
#include "libs/peers/peers.h"
#include "libs/tracing/trace_context.h"

#include "tools/fluxqueue/snapshot_store.h"

namespace fluxqueue::cli {
namespace {

constexpr std::chrono::seconds kDeadline{30};

}  // namespace

absl::StatusOr<job_store::Job> FindJob(const SystemConfig& config, const std::string& wanted) {
  job_store::JobStore store(PostgresOptions(config.dsn));
  ASSIGN_OR_RETURN(const std::vector<job_store::Job> found, store.Find(wanted));
  if (found.empty()) {
    return MakeStatus(absl::StatusCode::kNotFound,
                      "there is no job {}; fluxqueue jobs lists those that live",
                      wanted);
  }
  const job_store::Job& job = found.front();
  for (const job_store::Job& other : found) {
    if (job.id != wanted && other.FullName() != job.FullName()) {
      return InvalidArgument(
          "{} may be {} or {}: give the namespace too", wanted, job.FullName(), other.FullName());
    }
  }
  return job;
}

absl::StatusOr<std::unique_ptr<queue::v1::Queue::Stub>> ReachPool(const SystemConfig& config,
                                                                  const std::string& pool) {
  job_store::FactStore facts(PostgresOptions(config.dsn), /*connections=*/1);
  peers::Peers peers(
      {.service = job_store::Service::kQueue, .own_address = "", .files = config.grpc}, facts);
  const auto channel = peers.HolderOf(pool);
  if (!channel.ok()) return Annotate(channel.status(), "the queue");
  return queue::v1::Queue::NewStub(*channel);
}

absl::StatusOr<JobCall> ReachJob(const Context& context, const std::string& wanted) {
  ASSIGN_OR_RETURN(const SystemConfig config, context.LoadConfig());
  ASSIGN_OR_RETURN(job_store::Job job, FindJob(config, wanted));
  ASSIGN_OR_RETURN(auto stub, ReachPool(config, job.pool));
  return JobCall{std::move(job), std::move(stub)};
}

void Prepare(grpc::ClientContext* call, const std::string& job_id) {
  call->set_deadline(std::chrono::system_clock::now() + kDeadline);
  const std::string traceparent = tracing::Traceparent(job_id);
  if (!traceparent.empty()) call->AddMetadata(tracing::kTraceparent, traceparent);
}

absl::Status ToStatus(const grpc::Status& status, const job_store::Job& job) {
  if (status.ok()) return absl::OkStatus();
  return MakeStatus(absl::StatusCode::kFailedPrecondition,
                    "{} ({}): {}",
                    job.FullName(),
                    job.id,
                    status.error_message());
}

}  // namespace fluxqueue::cli
