#include "services/matcher/adapters/claims.h"

#include <algorithm>
#include <utility>

#include <grpcpp/client_context.h>

#include "libs/base/status_macros.h"
#include "libs/rpc/error_details.h"

namespace fluxqueue::matcher {
namespace {

using std::chrono::system_clock;

// That the holder of a pool is remembered.
constexpr std::chrono::seconds kRemembered{1};
// Of the client's deadline, for the way back.
constexpr std::chrono::milliseconds kWayBack{500};

absl::Status FromGrpc(const grpc::Status& status) {
  return MakeStatus(
      static_cast<absl::StatusCode>(status.error_code()), "the queue: {}", status.error_message());
}

system_clock::time_point DeadlineOf(const CallInfo& call) {
  return std::min(call.deadline, system_clock::now() + Claims::kPatience);
}

// A call of the queue, alive until it is answered.
template <typename Request, typename Response>
struct QueueCall {
  grpc::ClientContext context;
  Request request;
  Response response;
  std::shared_ptr<queue::v1::Queue::Stub> stub;
};

bool Decided(queue::v1::State state) {
  return state != queue::v1::STATE_SUBMITTED && state != queue::v1::STATE_PENDING;
}

}  // namespace

Claims::~Claims() {
  std::unique_lock lock(mutex_);
  for (grpc::ClientContext* context : under_way_) context->TryCancel();
  ended_.wait(lock, [this] { return under_way_.empty(); });
}

void Claims::Begin(grpc::ClientContext* context) {
  const std::lock_guard lock(mutex_);
  under_way_.insert(context);
}

void Claims::End(grpc::ClientContext* context) {
  const std::lock_guard lock(mutex_);
  under_way_.erase(context);
  ended_.notify_all();
}

absl::StatusOr<Claims::Stub> Claims::HolderOf(const std::string& pool) {
  const auto now = std::chrono::steady_clock::now();
  {
    const std::lock_guard lock(mutex_);
    const auto known = known_.find(pool);
    if (known != known_.end() && now < known->second.until) return known->second.stub;
  }
  ASSIGN_OR_RETURN(const std::shared_ptr<grpc::Channel> channel, queues_.HolderOf(pool));
  Stub stub = queue::v1::Queue::NewStub(channel);
  const std::lock_guard lock(mutex_);
  known_[pool] = {stub, now + kRemembered};
  return stub;
}

void Claims::Forget(const std::string& pool) {
  const std::lock_guard lock(mutex_);
  known_.erase(pool);
}

void Claims::Submit(const CallInfo& call, Claim claim, Submitted submitted) {
  workers_.Post([this, call, claim = std::move(claim), submitted = std::move(submitted)] {
    auto stub = HolderOf(claim.pool);
    if (!stub.ok()) return submitted(stub.status());
    const auto there = std::make_shared<
        QueueCall<queue::v1::SubmitClaimRequest, queue::v1::SubmitClaimResponse>>();
    there->stub = *std::move(stub);
    const auto deadline = DeadlineOf(call);
    there->context.set_deadline(deadline);
    queue::v1::SubmitClaimRequest& request = there->request;
    request.set_client_id(claim.client_id);
    request.set_pool(claim.pool);
    request.set_jobspec(claim.jobspec);
    request.mutable_duration()->set_seconds(claim.duration_s);
    const auto wait = std::chrono::duration_cast<std::chrono::milliseconds>(
        std::max<system_clock::duration>(deadline - system_clock::now() - kWayBack, kWayBack));
    request.mutable_wait()->set_seconds(wait.count() / 1000);
    request.mutable_wait()->set_nanos(static_cast<int32_t>(wait.count() % 1000 * 1'000'000));
    const auto answered = [this, there, call, claim, submitted](const grpc::Status& status) {
      queue::v1::Job& job = *there->response.mutable_job();
      if (!status.ok()) {
        Forget(claim.pool);
        submitted(FromGrpc(status));
      } else if (Decided(job.state()) || claim.stays) {
        submitted(std::move(job));
      } else {
        TakeBack(call, claim, std::move(job), submitted);
      }
      End(&there->context);
    };
    Begin(&there->context);
    there->stub->async()->SubmitClaim(&there->context, &there->request, &there->response, answered);
  });
}

// Now or not: it does not stay in line. Its place may have come meanwhile.
void Claims::TakeBack(const CallInfo& call,
                      const Claim& claim,
                      queue::v1::Job job,
                      Submitted submitted) {
  const auto back = [job, submitted = std::move(submitted)](const absl::Status& status) {
    if (!status.ok() && !absl::IsFailedPrecondition(status)) return submitted(status);
    submitted(job);
  };
  Cancel({system_clock::now() + kPatience, call.cancelled}, claim.pool, job.id(), back);
}

void Claims::Cancel(const CallInfo& call,
                    const std::string& pool,
                    const std::string& job_id,
                    Done done) {
  workers_.Post([this, call, pool, job_id, done = std::move(done)] {
    auto stub = HolderOf(pool);
    if (!stub.ok()) return done(stub.status());
    const auto there =
        std::make_shared<QueueCall<queue::v1::CancelJobRequest, queue::v1::CancelJobResponse>>();
    there->stub = *std::move(stub);
    there->context.set_deadline(DeadlineOf(call));
    there->request.set_job_id(job_id);
    const auto answered = [this, there, pool, done](const grpc::Status& status) {
      if (!status.ok()) Forget(pool);
      done(status.ok() ? absl::OkStatus() : FromGrpc(status));
      End(&there->context);
    };
    Begin(&there->context);
    there->stub->async()->CancelJob(&there->context, &there->request, &there->response, answered);
  });
}

}  // namespace fluxqueue::matcher
