#include "services/queue/adapters/rpc/queue_service.h"

#include <utility>

#include "libs/base/status_macros.h"
#include "libs/rpc/error_details.h"
#include "libs/rpc/grpc_status.h"
#include "services/queue/adapters/rpc/job_stream.h"
#include "services/queue/adapters/rpc/remote_stream.h"
#include "services/queue/adapters/rpc/requests.h"
#include "services/queue/domain/job_message.h"

namespace fluxqueue::queue {
namespace {

constexpr int kWorkers = 8;

void Fill(const Reply& reply, v1::ExplainResponse* response) {
  *response->mutable_job() = ToMessage(reply.job);
  if (reply.explanation.has_value()) FillExplanation(*reply.explanation, response);
}

void Fill(const Reply& reply, v1::PositionResponse* response) {
  *response->mutable_job() = ToMessage(reply.job);
  response->set_position(reply.position);
  if (reply.job.state() == events::v1::JOB_STATE_PENDING && reply.job.start_ms() != 0) {
    *response->mutable_expected_start() = ToTimestamp(reply.job.start_ms());
  }
}

void Fill(const Reply& reply, v1::AbandonCycleResponse* response) {
  response->set_cycle_id(reply.cycle);
}

template <typename Response>
void Fill(const Reply& reply, Response* response) {
  *response->mutable_job() = ToMessage(reply.job);
  response->set_repeated(reply.repeated);
}

postgres::Options ForReads(postgres::Options options) {
  // An answer that takes longer is no use to anybody.
  options.statement_timeout = Millis(10'000);
  return options;
}

}  // namespace

QueueService::QueueService(const postgres::Options& postgres,
                           peers::PeerOptions peers,
                           rpc::ServerConfig::Callers callers,
                           CommandDesk& desk,
                           FactFeed& feed)
    : callers_(std::move(callers)),
      feed_(feed),
      facts_(ForReads(postgres), kWorkers),
      jobs_(ForReads(postgres), 2),
      reads_(facts_, jobs_),
      peers_(std::move(peers), facts_),
      commands_(facts_, desk, feed, workers_),
      workers_(kWorkers) {}

QueueService::~QueueService() {
  // What waits at the feed speaks to us.
  Drain();
}

void QueueService::Drain() {
  feed_.Close();
  stop_.request_stop();
}

// ---- reads

grpc::ServerUnaryReactor* QueueService::Read(grpc::CallbackServerContext* context,
                                             std::function<absl::Status()> read) {
  grpc::ServerUnaryReactor* reactor = context->DefaultReactor();
  workers_.Post([reactor, read = std::move(read)] { reactor->Finish(rpc::ToGrpcStatus(read())); });
  return reactor;
}

grpc::ServerUnaryReactor* QueueService::ListJobs(grpc::CallbackServerContext* context,
                                                 const v1::ListJobsRequest* request,
                                                 v1::ListJobsResponse* response) {
  return Read(context, [=, this] { return reads_.ListJobs(*request, response); });
}

grpc::ServerUnaryReactor* QueueService::GetJob(grpc::CallbackServerContext* context,
                                               const v1::GetJobRequest* request,
                                               v1::GetJobResponse* response) {
  return Read(context, [=, this] { return reads_.GetJob(*request, response); });
}

grpc::ServerUnaryReactor* QueueService::ListQueues(grpc::CallbackServerContext* context,
                                                   const v1::ListQueuesRequest* request,
                                                   v1::ListQueuesResponse* response) {
  return Read(context, [=, this] { return reads_.ListQueues(*request, response); });
}

grpc::ServerUnaryReactor* QueueService::GetQueue(grpc::CallbackServerContext* context,
                                                 const v1::GetQueueRequest* request,
                                                 v1::GetQueueResponse* response) {
  return Read(context, [=, this] { return reads_.GetQueue(*request, response); });
}

grpc::ServerWriteReactor<v1::WatchJobsResponse>* QueueService::WatchJobs(
    grpc::CallbackServerContext* context, const v1::WatchJobsRequest* request) {
  const Caller caller = ReadCall(*context, callers_);
  if (feed_.Holds(PoolOf(request->pool())) || caller.handed_on) {
    return JobStream::Start(*request, facts_, feed_, workers_).get();
  }
  return RemoteStream::Start(*request, caller, peers_, workers_, stop_.get_token()).get();
}

// ---- what the pool's holder answers

template <typename Request, typename Response>
void QueueService::HandOn(const std::shared_ptr<UnaryCall>& call,
                          const std::string& pool,
                          const Request& request,
                          Response* response,
                          Hop<Request, Response> hop) {
  struct Call {
    grpc::ClientContext context;
    Request request;
    Response response;
    std::shared_ptr<v1::Queue::Stub> stub;
  };
  const auto fail = [&call](const absl::Status& status) {
    call->End([&] { return rpc::ToGrpcStatus(status); });
  };
  if (call->caller().handed_on) {
    return fail(Unavailable("pool {} is on its way to another replica: call again", pool));
  }
  auto holder = peers_.HolderOf(pool);
  if (!holder.ok()) return fail(holder.status());
  const auto there = std::make_shared<Call>();
  there->request = request;
  there->stub = v1::Queue::NewStub(*holder);
  HandOnAs(call->caller(), &there->context);
  there->context.set_deadline(std::chrono::system_clock::now() +
                              (call->caller().deadline - std::chrono::steady_clock::now()));
  Async* async = there->stub->async();
  (async->*hop)(&there->context,
                &there->request,
                &there->response,
                [there, call, response](const grpc::Status& status) {
                  call->End([&] {
                    if (status.ok()) *response = std::move(there->response);
                    return status;
                  });
                });
}

template <typename Request, typename Response>
grpc::ServerUnaryReactor* QueueService::Run(const grpc::CallbackServerContext& context,
                                            const Request& request,
                                            Response* response,
                                            Begin begin,
                                            Hop<Request, Response> hop) {
  const std::shared_ptr<UnaryCall> call = UnaryCall::Make(context, callers_);
  workers_.Post([this, call, request, response, begin = std::move(begin), hop] {
    begin(call->caller(), [this, call, request, response, hop](const Reply& reply) {
      if (!reply.elsewhere.empty()) {
        workers_.Post([this, call, pool = reply.elsewhere, request, response, hop] {
          HandOn(call, pool, request, response, hop);
        });
        return;
      }
      call->End([&] {
        if (reply.status.ok()) Fill(reply, response);
        return rpc::ToGrpcStatus(reply.status);
      });
    });
  });
  return call.get();
}

template <typename Request, typename Response>
grpc::ServerUnaryReactor* QueueService::Command(const grpc::CallbackServerContext& context,
                                                const Request& request,
                                                Response* response,
                                                events::v1::CommandAccepted command,
                                                Hop<Request, Response> hop) {
  command.set_client_id(request.client_id());
  const Begin begin = [this, command = std::move(command), job_id = request.job_id()](
                          const Caller& caller, const CommandApi::Answer& answer) {
    commands_.Command(command, job_id, caller, answer);
  };
  return Run(context, request, response, begin, hop);
}

grpc::ServerUnaryReactor* QueueService::CancelJob(grpc::CallbackServerContext* context,
                                                  const v1::CancelJobRequest* request,
                                                  v1::CancelJobResponse* response) {
  events::v1::CommandAccepted command;
  command.mutable_cancel_job()->set_job_id(request->job_id());
  return Command(*context, *request, response, std::move(command), &Async::CancelJob);
}

grpc::ServerUnaryReactor* QueueService::SetPriority(grpc::CallbackServerContext* context,
                                                    const v1::SetPriorityRequest* request,
                                                    v1::SetPriorityResponse* response) {
  events::v1::CommandAccepted command;
  command.mutable_set_priority()->set_job_id(request->job_id());
  command.mutable_set_priority()->set_priority(request->priority());
  return Command(*context, *request, response, std::move(command), &Async::SetPriority);
}

grpc::ServerUnaryReactor* QueueService::Hold(grpc::CallbackServerContext* context,
                                             const v1::HoldRequest* request,
                                             v1::HoldResponse* response) {
  events::v1::CommandAccepted command;
  command.mutable_hold_job()->set_job_id(request->job_id());
  return Command(*context, *request, response, std::move(command), &Async::Hold);
}

grpc::ServerUnaryReactor* QueueService::Release(grpc::CallbackServerContext* context,
                                                const v1::ReleaseRequest* request,
                                                v1::ReleaseResponse* response) {
  events::v1::CommandAccepted command;
  command.mutable_release_job()->set_job_id(request->job_id());
  return Command(*context, *request, response, std::move(command), &Async::Release);
}

grpc::ServerUnaryReactor* QueueService::Move(grpc::CallbackServerContext* context,
                                             const v1::MoveRequest* request,
                                             v1::MoveResponse* response) {
  events::v1::CommandAccepted command;
  command.mutable_move_job()->set_job_id(request->job_id());
  command.mutable_move_job()->set_queue(request->queue());
  return Command(*context, *request, response, std::move(command), &Async::Move);
}

grpc::ServerUnaryReactor* QueueService::AbandonCycle(grpc::CallbackServerContext* context,
                                                     const v1::AbandonCycleRequest* request,
                                                     v1::AbandonCycleResponse* response) {
  const Begin begin = [this, pool = PoolOf(request->pool()), cycle = request->cycle_id()](
                          const Caller& caller, const CommandApi::Answer& answer) {
    commands_.AbandonCycle(pool, cycle, caller, answer);
  };
  return Run(*context, *request, response, begin, &Async::AbandonCycle);
}

grpc::ServerUnaryReactor* QueueService::Position(grpc::CallbackServerContext* context,
                                                 const v1::PositionRequest* request,
                                                 v1::PositionResponse* response) {
  const Begin begin = [this, job_id = request->job_id()](const Caller& caller,
                                                         const CommandApi::Answer& answer) {
    commands_.Position(job_id, /*explain=*/false, caller, answer);
  };
  return Run(*context, *request, response, begin, &Async::Position);
}

grpc::ServerUnaryReactor* QueueService::Explain(grpc::CallbackServerContext* context,
                                                const v1::ExplainRequest* request,
                                                v1::ExplainResponse* response) {
  const Begin begin = [this, job_id = request->job_id()](const Caller& caller,
                                                         const CommandApi::Answer& answer) {
    commands_.Position(job_id, /*explain=*/true, caller, answer);
  };
  return Run(*context, *request, response, begin, &Async::Explain);
}

grpc::ServerUnaryReactor* QueueService::SubmitClaim(grpc::CallbackServerContext* context,
                                                    const v1::SubmitClaimRequest* request,
                                                    v1::SubmitClaimResponse* response) {
  const Begin begin = [this, asked = *request](const Caller& caller,
                                               const CommandApi::Answer& answer) {
    commands_.SubmitClaim(asked, caller, answer);
  };
  return Run(*context, *request, response, begin, &Async::SubmitClaim);
}

}  // namespace fluxqueue::queue
