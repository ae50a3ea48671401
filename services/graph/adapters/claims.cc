#include "services/graph/adapters/claims.h"

#include <algorithm>
#include <utility>

#include <grpcpp/client_context.h>

#include "libs/base/log.h"
#include "libs/base/status_macros.h"
#include "libs/rpc/grpc_status.h"
#include "libs/tracing/trace_context.h"

namespace fluxqueue::graph_service {
namespace {

using std::chrono::system_clock;

// That the holder of a pool is remembered.
constexpr std::chrono::seconds kRemembered{1};
// Of the client's deadline, for the way back.
constexpr std::chrono::milliseconds kWayBack{500};

absl::Status Stopping() {
  return Unavailable("the graph service stops");
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

// For calls under way at stop.
constexpr std::chrono::seconds kDrain{2};

// For a call on behalf of this one: for whom it is, the deadline, and the trace, which without one
// is that of the job that it is about.
void Continue(const CallInfo& call, grpc::ClientContext* context, const std::string& job_id = "") {
  rpc::Forward(call.caller, context);
  context->set_deadline(DeadlineOf(call));
  const std::string traceparent =
      call.traceparent.empty() ? tracing::Traceparent(job_id) : call.traceparent;
  if (!traceparent.empty()) context->AddMetadata(tracing::kTraceparent, traceparent);
}

// What the queue refuses it has not taken in; of the rest nobody knows.
bool MayBeTaken(const grpc::Status& status) {
  switch (status.error_code()) {
    case grpc::StatusCode::CANCELLED:
    case grpc::StatusCode::UNKNOWN:
    case grpc::StatusCode::DEADLINE_EXCEEDED:
    case grpc::StatusCode::ABORTED:
    case grpc::StatusCode::INTERNAL:
    case grpc::StatusCode::UNAVAILABLE:
    case grpc::StatusCode::DATA_LOSS:
      return true;
    default:
      return false;
  }
}

bool Decided(queue::v1::State state) {
  return state != queue::v1::STATE_SUBMITTED && state != queue::v1::STATE_PENDING;
}

}  // namespace

CallInfo Claims::Afterwards(const CallInfo& call) {
  return {.deadline = system_clock::now() + kPatience,
          .cancelled = [] { return false; },
          .caller = call.caller};
}

Claims::~Claims() {
  Drain();
}

void Claims::Drain() {
  std::unique_lock lock(mutex_);
  const auto idle = [this] { return under_way_.empty(); };
  ended_.wait_for(lock, kDrain, idle);
  draining_ = true;
  for (grpc::ClientContext* context : under_way_) context->TryCancel();
  ended_.wait(lock, idle);
}

bool Claims::draining() {
  const std::lock_guard lock(mutex_);
  return draining_;
}

void Claims::Begin(grpc::ClientContext* context) {
  const std::lock_guard lock(mutex_);
  under_way_.insert(context);
  if (draining_) context->TryCancel();
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

void Claims::Submit(const CallInfo& call, const Claim& claim, Submitted submitted) {
  const auto wait = std::chrono::duration_cast<std::chrono::milliseconds>(
      DeadlineOf(call) - system_clock::now() - kWayBack);
  if (wait < kWayBack) {
    return submitted(MakeStatus(absl::StatusCode::kDeadlineExceeded,
                                "a match goes through the pool's log: give it a deadline of at "
                                "least {} ms",
                                2 * kWayBack.count()));
  }
  Call(call,
       claim,
       wait,
       [this, call, claim, submitted = std::move(submitted)](const grpc::Status& status,
                                                             queue::v1::Job job) {
         if (!status.ok()) {
           if (!claim.named && MayBeTaken(status)) GiveBack(call, claim);
           return submitted(Annotate(rpc::FromGrpcStatus(status), "the queue"));
         }
         const bool gone = call.cancelled() || system_clock::now() >= call.deadline;
         const bool unwanted = gone && !claim.named;
         if (!unwanted && (Decided(job.state()) || claim.stays)) return submitted(std::move(job));
         // Now or not: it does not stay in line. Its place may have come meanwhile.
         const auto back = [job, submitted](const absl::Status& cancelled) {
           if (!cancelled.ok() && !absl::IsFailedPrecondition(cancelled)) {
             return submitted(cancelled);
           }
           submitted(job);
         };
         Cancel(Afterwards(call), claim.pool, job.id(), back);
       });
}

void Claims::Call(const CallInfo& call,
                  const Claim& claim,
                  std::chrono::milliseconds wait,
                  Answer answer) {
  if (draining()) return answer(rpc::ToGrpcStatus(Stopping()), {});
  workers_.Post(call.Tenant(), [this, call, claim, wait, answer = std::move(answer)] {
    auto stub = HolderOf(claim.pool);
    if (!stub.ok()) {
      return answer(rpc::ToGrpcStatus(stub.status()), {});
    }
    const auto there = std::make_shared<
        QueueCall<queue::v1::SubmitClaimRequest, queue::v1::SubmitClaimResponse>>();
    there->stub = *std::move(stub);
    Continue(call, &there->context);
    queue::v1::SubmitClaimRequest& request = there->request;
    request.set_client_id(claim.client_id);
    request.set_pool(claim.pool);
    request.set_jobspec(claim.jobspec);
    request.mutable_duration()->set_seconds(claim.duration_s);
    request.mutable_wait()->set_seconds(wait.count() / 1000);
    request.mutable_wait()->set_nanos(static_cast<int32_t>(wait.count() % 1000 * 1'000'000));
    const auto answered = [this, there, pool = claim.pool, answer](const grpc::Status& status) {
      if (!status.ok()) Forget(pool);
      answer(status, std::move(*there->response.mutable_job()));
      End(&there->context);
    };
    Begin(&there->context);
    there->stub->async()->SubmitClaim(&there->context, &there->request, &there->response, answered);
  });
}

void Claims::GiveBack(const CallInfo& call, const Claim& claim) {
  const CallInfo own = Afterwards(call);
  Call(own,
       claim,
       std::chrono::milliseconds(0),
       [this, call, claim](const grpc::Status& status, const queue::v1::Job& job) {
         const auto ignore = [](const absl::Status&) {};
         if (status.ok()) {
           Cancel(Afterwards(call), claim.pool, job.id(), ignore);
         } else {
           LogWarning("a claim that nobody knows of may be left in the queue",
                      {{"pool", claim.pool},
                       {"client_id", claim.client_id},
                       {"why", status.error_message()}});
         }
       });
}

void Claims::Cancel(const CallInfo& call,
                    const std::string& pool,
                    const std::string& job_id,
                    Done done) {
  if (draining()) return done(Stopping());
  workers_.Post(call.Tenant(), [this, call, pool, job_id, done = std::move(done)] {
    auto stub = HolderOf(pool);
    if (!stub.ok()) return done(stub.status());
    const auto there =
        std::make_shared<QueueCall<queue::v1::CancelJobRequest, queue::v1::CancelJobResponse>>();
    there->stub = *std::move(stub);
    Continue(call, &there->context, job_id);
    there->request.set_job_id(job_id);
    const auto answered = [this, there, pool, done](const grpc::Status& status) {
      if (!status.ok()) Forget(pool);
      done(status.ok() ? absl::OkStatus() : Annotate(rpc::FromGrpcStatus(status), "the queue"));
      End(&there->context);
    };
    Begin(&there->context);
    there->stub->async()->CancelJob(&there->context, &there->request, &there->response, answered);
  });
}

}  // namespace fluxqueue::graph_service
