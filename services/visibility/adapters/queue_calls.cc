#include "services/visibility/adapters/queue_calls.h"

#include <optional>
#include <utility>

#include <grpcpp/grpcpp.h>

#include "libs/base/status_macros.h"
#include "libs/rpc/grpc_status.h"
#include "services/visibility/domain/objects.h"

namespace fluxqueue::visibility {
namespace {

namespace api = queue::v1;
using Async = api::Queue::StubInterface::async_interface;

// Less than the API server waits for us.
constexpr std::chrono::seconds kDeadline{20};

// What the queue has not said itself is said to be about it.
absl::Status OfTheQueue(const absl::Status& status) {
  // Who asks has been authenticated, and what is asked is known: that is a queue which does not
  // know us or the call yet, or ends.
  const bool away = absl::IsUnavailable(status) || absl::IsUnimplemented(status) ||
                    absl::IsUnauthenticated(status) || absl::IsCancelled(status);
  return away ? Unavailable("the queue: {}", Message(status)) : status;
}

}  // namespace

QueueCalls::QueueCalls(std::string address, rpc::ChannelFiles files, const Clock& clock)
    : address_(std::move(address)), clock_(clock), dialer_(std::move(files)) {}

absl::StatusOr<std::shared_ptr<api::Queue::Stub>> QueueCalls::Stub() {
  const std::lock_guard lock(mutex_);
  if (stub_ == nullptr) {
    ASSIGN_OR_RETURN(const auto channel, dialer_.Open(address_));
    stub_ = api::Queue::NewStub(channel);
  }
  return stub_;
}

// What is asked of the queue for one request: of a job first which one is meant.
struct QueueCalls::Call : std::enable_shared_from_this<QueueCalls::Call> {
  Ask ask;
  bool as_table = false;
  int64_t now_ms = 0;
  rpc::Caller caller;
  std::chrono::system_clock::time_point deadline;
  std::stop_token stop;
  std::shared_ptr<api::Queue::Stub> stub;
  Answer answer;

  template <typename Request, typename Response, typename Then>
  void Make(void (Async::*method)(
                grpc::ClientContext*, const Request*, Response*, std::function<void(grpc::Status)>),
            Request request,
            Then then) {
    struct Pending {
      grpc::ClientContext context;
      Request request;
      Response response;
      std::optional<std::stop_callback<std::function<void()>>> on_stop;
    };
    const auto pending = std::make_shared<Pending>();
    pending->request = std::move(request);
    pending->context.set_deadline(deadline);
    rpc::Forward(caller, &pending->context);
    pending->on_stop.emplace(stop, [context = &pending->context] { context->TryCancel(); });
    (stub->async()->*method)(
        &pending->context,
        &pending->request,
        &pending->response,
        [self = shared_from_this(), pending, then = std::move(then)](const grpc::Status& status) {
          pending->on_stop.reset();
          if (!status.ok()) return self->answer(OfTheQueue(rpc::FromGrpcStatus(status)));
          then(*self, pending->response);
        });
  }

  void ListJobs() {
    api::ListJobsRequest request;
    request.set_namespace_(ask.space);
    if (ask.resource == "claims") request.set_kind("Claim");
    request.set_queue(ask.queue);
    request.set_ended(ask.ended);
    request.set_page_size(ask.limit);
    request.set_page_token(ask.continue_token);
    Make(&Async::ListJobs, request, [](Call& call, const api::ListJobsResponse& response) {
      call.answer(JobListText(response, call.as_table, call.now_ms));
    });
  }

  void Queues() {
    Make(&Async::ListQueues,
         api::ListQueuesRequest(),
         [](Call& call, const api::ListQueuesResponse& response) {
           if (call.ask.verb == Verb::kList) {
             return call.answer(QueueListText(response, call.as_table));
           }
           for (const api::QueueInfo& queue : response.queues()) {
             if (queue.queue() == call.ask.name) {
               return call.answer(QueueText(queue, call.as_table));
             }
           }
           call.answer(
               MakeStatus(absl::StatusCode::kNotFound, "there is no queue {}", call.ask.name));
         });
  }

  void FindJob() {
    if (ask.resource == "claims") return FindClaim();
    api::FindJobRequest request;
    request.set_namespace_(ask.space);
    request.set_flux_job(ask.name);
    Make(&Async::FindJob, request, [](Call& call, const api::FindJobResponse& response) {
      call.OfJob(response.job().id());
    });
  }

  // A command is given to a claim only, as that is what RBAC allowed and the audit log says.
  void FindClaim() {
    if (ask.verb == Verb::kGet || ask.verb == Verb::kExplain) return OfJob(ask.name);
    Make(&Async::GetJob,
         Named<api::GetJobRequest>(ask.name),
         [](Call& call, const api::GetJobResponse& response) {
           if (call.Fits(response.job())) call.OfJob(response.job().id());
         });
  }

  void OfJob(const std::string& id) {
    switch (ask.verb) {
      case Verb::kGet:
        return Make(&Async::GetJob,
                    Named<api::GetJobRequest>(id),
                    [](Call& call, const api::GetJobResponse& response) {
                      if (call.Fits(response.job())) {
                        call.answer(JobText(response, call.as_table, call.now_ms));
                      }
                    });
      case Verb::kExplain:
        return Make(&Async::Explain,
                    Named<api::ExplainRequest>(id),
                    [](Call& call, const api::ExplainResponse& response) {
                      if (call.Fits(response.job())) call.answer(ExplanationText(response));
                    });
      case Verb::kCancel:
        return Command(&Async::CancelJob, Named<api::CancelJobRequest>(id));
      case Verb::kHold:
        return Command(&Async::Hold, Named<api::HoldRequest>(id));
      case Verb::kRelease:
        return Command(&Async::Release, Named<api::ReleaseRequest>(id));
      case Verb::kPriority: {
        auto request = Named<api::SetPriorityRequest>(id);
        request.set_priority(ask.priority);
        return Command(&Async::SetPriority, request);
      }
      case Verb::kMove: {
        auto request = Named<api::MoveRequest>(id);
        request.set_queue(ask.queue_wanted);
        return Command(&Async::Move, request);
      }
      case Verb::kList:
        break;
    }
    answer(Internal("{} is not asked of a job", VerbName(ask.verb)));
  }

  template <typename Request>
  static Request Named(const std::string& id) {
    Request request;
    request.set_job_id(id);
    return request;
  }

  // Whoever may read claims reads no other job by its id.
  bool Fits(const api::Job& job) {
    if (job.namespace_() == ask.space) return true;
    answer(MakeStatus(absl::StatusCode::kNotFound, "there is no claim {}", ask.name));
    return false;
  }

  template <typename Request, typename Response>
  void Command(void (Async::*method)(grpc::ClientContext*,
                                     const Request*,
                                     Response*,
                                     std::function<void(grpc::Status)>),
               Request request) {
    request.set_client_id(ask.client_id);
    Make(method, std::move(request), [](Call& call, const Response& response) {
      call.answer(CommandText(response.job(), response.repeated()));
    });
  }
};

void QueueCalls::Do(const Ask& ask, bool as_table, const rpc::Caller& caller, Answer answer) {
  auto stub = Stub();
  if (!stub.ok()) return answer(stub.status());
  const auto call = std::make_shared<Call>();
  call->ask = ask;
  call->as_table = as_table;
  call->now_ms = std::chrono::duration_cast<Millis>(clock_.Now().time_since_epoch()).count();
  call->caller = caller;
  call->deadline = std::chrono::system_clock::now() + kDeadline;
  call->stop = stop_.get_token();
  call->stub = *std::move(stub);
  call->answer = std::move(answer);
  if (ask.resource == "queues") return call->Queues();
  if (ask.verb == Verb::kList) return call->ListJobs();
  call->FindJob();
}

}  // namespace fluxqueue::visibility
