#include "services/queue/adapters/rpc/queue_service.h"

#include <optional>
#include <type_traits>
#include <utility>

#include "libs/base/check.h"
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
constexpr int kStrangers = 4;
// Of strangers' calls.
constexpr size_t kMostWaiting = 256;

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

job_store::FactFilter FilterOf(const v1::WatchJobsRequest& request) {
  return {.pool = PoolOf(request.pool()),
          .queue = request.queue(),
          .space = request.namespace_(),
          .kind = request.kind()};
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
                           access::Authority* authority,
                           CommandDesk& desk,
                           FactFeed& feed)
    : callers_(std::move(callers)),
      feed_(feed),
      facts_(ForReads(postgres), kWorkers + kStrangers),
      jobs_(ForReads(postgres), 2),
      judge_(authority),
      reads_(judge_, facts_, jobs_),
      peers_(std::move(peers), facts_),
      commands_(judge_, facts_, desk, feed, workers_),
      workers_(kWorkers),
      strangers_(judge_.on() ? kStrangers : 0, kMostWaiting) {
  CHECK(judge_.on() || !callers_.wanted(), "callers are asked for, and nobody knows them");
}

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
                                             std::function<absl::Status(const Caller&)> read) {
  grpc::ServerUnaryReactor* reactor = context->DefaultReactor();
  Caller caller = ReadCall(*context, callers_);
  const bool taken =
      WorkersFor(caller).TryPost([this, reactor, caller, read = std::move(read)]() mutable {
        absl::Status status = judge_.Identify(&caller);
        if (status.ok()) status = read(caller);
        reactor->Finish(rpc::ToGrpcStatus(status));
      });
  if (!taken) reactor->Finish(rpc::ToGrpcStatus(TooMany()));
  return reactor;
}

rpc::WorkerPool& QueueService::WorkersFor(const Caller& caller) {
  return caller.token.empty() ? workers_ : strangers_;
}

grpc::ServerUnaryReactor* QueueService::ListJobs(grpc::CallbackServerContext* context,
                                                 const v1::ListJobsRequest* request,
                                                 v1::ListJobsResponse* response) {
  return Read(context, [=, this](const Caller& caller) {
    return reads_.ListJobs(caller, *request, response);
  });
}

grpc::ServerUnaryReactor* QueueService::FindJob(grpc::CallbackServerContext* context,
                                                const v1::FindJobRequest* request,
                                                v1::FindJobResponse* response) {
  return Read(context, [=, this](const Caller& caller) {
    return reads_.FindJob(caller, *request, response);
  });
}

grpc::ServerUnaryReactor* QueueService::GetJob(grpc::CallbackServerContext* context,
                                               const v1::GetJobRequest* request,
                                               v1::GetJobResponse* response) {
  return Read(context, [=, this](const Caller& caller) {
    return reads_.GetJob(caller, *request, response);
  });
}

grpc::ServerUnaryReactor* QueueService::ListQueues(grpc::CallbackServerContext* context,
                                                   const v1::ListQueuesRequest* request,
                                                   v1::ListQueuesResponse* response) {
  return Read(context, [=, this](const Caller& caller) {
    return reads_.ListQueues(caller, *request, response);
  });
}

grpc::ServerUnaryReactor* QueueService::GetQueue(grpc::CallbackServerContext* context,
                                                 const v1::GetQueueRequest* request,
                                                 v1::GetQueueResponse* response) {
  return Read(context, [=, this](const Caller& caller) {
    return reads_.GetQueue(caller, *request, response);
  });
}

grpc::ServerWriteReactor<v1::WatchJobsResponse>* QueueService::WatchJobs(
    grpc::CallbackServerContext* context, const v1::WatchJobsRequest* request) {
  const Caller caller = ReadCall(*context, callers_);
  const std::string pool = PoolOf(request->pool());
  const auto scope = [this, filter = FilterOf(*request)](Caller* who) -> absl::StatusOr<JobScope> {
    RETURN_IF_ERROR(judge_.Identify(who));
    return judge_.MayList(*who, "watch", filter);
  };
  rpc::WorkerPool& judges = WorkersFor(caller);
  if (feed_.Holds(pool) || caller.handed_on) {
    const auto admit = [scope, who = caller]() mutable { return scope(&who); };
    return JobStream::Start(pool, admit, judges, facts_, feed_, workers_).get();
  }
  const auto admit = [scope](Caller* who) { return scope(who).status(); };
  return RemoteStream::Start(*request, caller, admit, judges, peers_, stop_.get_token()).get();
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
    std::optional<std::stop_callback<std::function<void()>>> on_stop;
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
  there->on_stop.emplace(stop_.get_token(), [context = &there->context] { context->TryCancel(); });
  Async* async = there->stub->async();
  (async->*hop)(&there->context,
                &there->request,
                &there->response,
                [this, there, call, response](const grpc::Status& status) {
                  if (!status.ok()) return call->End([&] { return status; });
                  // Of one owner with the context, which it outlives.
                  Answer(call, std::shared_ptr<Response>(there, &there->response), response);
                });
}

template <typename Response>
void QueueService::Answer(const std::shared_ptr<UnaryCall>& call,
                          std::shared_ptr<Response> answer,
                          Response* response) {
  const auto end = [call, answer, response] {
    call->End([&] {
      *response = std::move(*answer);
      return grpc::Status::OK;
    });
  };
  if constexpr (std::is_same_v<Response, v1::ExplainResponse>) {
    workers_.Post([this, call, answer, end] {
      judge_.Redact(call->caller(), answer.get());
      end();
    });
  } else {
    end();
  }
}

template <typename Request, typename Response>
grpc::ServerUnaryReactor* QueueService::Run(const grpc::CallbackServerContext& context,
                                            const Request& request,
                                            Response* response,
                                            Begin begin,
                                            Hop<Request, Response> hop) {
  const std::shared_ptr<UnaryCall> call = UnaryCall::Make(context, callers_);
  const auto task = [this, call, request, response, begin = std::move(begin), hop] {
    const absl::Status known = judge_.Identify(call->mutable_caller());
    if (!known.ok()) return call->End([&] { return rpc::ToGrpcStatus(known); });
    begin(call->caller(), [this, call, request, response, hop](const Reply& reply) {
      if (!reply.elsewhere.empty()) {
        workers_.Post([this, call, pool = reply.elsewhere, request, response, hop] {
          HandOn(call, pool, request, response, hop);
        });
        return;
      }
      if (!reply.status.ok()) return call->End([&] { return rpc::ToGrpcStatus(reply.status); });
      const auto answer = std::make_shared<Response>();
      Fill(reply, answer.get());
      Answer(call, answer, response);
    });
  };
  if (!WorkersFor(call->caller()).TryPost(task)) {
    call->End([] { return rpc::ToGrpcStatus(TooMany()); });
  }
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
