// The gRPC service fluxqueue.queue.v1.Queue (protos/fluxqueue/queue/v1/queue.proto has its
// contract).
//
// Reads are answered from the tables. What only the holder of a pool can answer goes through its
// loop (command_api.h); a replica that does not hold the pool hands the call on to the one that
// does, once: should the pool have moved meanwhile, the answer is UNAVAILABLE. Who calls, and
// whether he may, is judged by the replica that he calls (call_judge.h).
#pragma once

#include <functional>
#include <memory>
#include <stop_token>
#include <string>

#include "fluxqueue/queue/v1/queue.grpc.pb.h"

#include "libs/job_store/fact_store.h"
#include "libs/job_store/job_store.h"
#include "libs/peers/peers.h"
#include "libs/rpc/worker_pool.h"
#include "services/queue/adapters/command_desk.h"
#include "services/queue/adapters/fact_feed.h"
#include "services/queue/adapters/rpc/command_api.h"
#include "services/queue/adapters/rpc/read_api.h"
#include "services/queue/adapters/rpc/unary_call.h"

namespace fluxqueue::queue {

class QueueService final : public v1::Queue::CallbackService {
 public:
  // References must outlive the service, and the service outlives its server, which has the same
  // `callers`. `authority`: says who they are and what they may do; null, where callers are not
  // asked for.
  QueueService(const postgres::Options& postgres,
               peers::PeerOptions peers,
               rpc::ServerConfig::Callers callers,
               access::Authority* authority,
               CommandDesk& desk,
               FactFeed& feed);
  ~QueueService() override;

  // Ends the streams, and whatever waits for a job.
  void Drain();

  grpc::ServerUnaryReactor* ListJobs(grpc::CallbackServerContext* context,
                                     const v1::ListJobsRequest* request,
                                     v1::ListJobsResponse* response) override;
  grpc::ServerUnaryReactor* FindJob(grpc::CallbackServerContext* context,
                                    const v1::FindJobRequest* request,
                                    v1::FindJobResponse* response) override;
  grpc::ServerUnaryReactor* GetJob(grpc::CallbackServerContext* context,
                                   const v1::GetJobRequest* request,
                                   v1::GetJobResponse* response) override;
  grpc::ServerUnaryReactor* ListQueues(grpc::CallbackServerContext* context,
                                       const v1::ListQueuesRequest* request,
                                       v1::ListQueuesResponse* response) override;
  grpc::ServerUnaryReactor* GetQueue(grpc::CallbackServerContext* context,
                                     const v1::GetQueueRequest* request,
                                     v1::GetQueueResponse* response) override;
  grpc::ServerWriteReactor<v1::WatchJobsResponse>* WatchJobs(
      grpc::CallbackServerContext* context, const v1::WatchJobsRequest* request) override;

  grpc::ServerUnaryReactor* CancelJob(grpc::CallbackServerContext* context,
                                      const v1::CancelJobRequest* request,
                                      v1::CancelJobResponse* response) override;
  grpc::ServerUnaryReactor* SetPriority(grpc::CallbackServerContext* context,
                                        const v1::SetPriorityRequest* request,
                                        v1::SetPriorityResponse* response) override;
  grpc::ServerUnaryReactor* Hold(grpc::CallbackServerContext* context,
                                 const v1::HoldRequest* request,
                                 v1::HoldResponse* response) override;
  grpc::ServerUnaryReactor* Release(grpc::CallbackServerContext* context,
                                    const v1::ReleaseRequest* request,
                                    v1::ReleaseResponse* response) override;
  grpc::ServerUnaryReactor* Move(grpc::CallbackServerContext* context,
                                 const v1::MoveRequest* request,
                                 v1::MoveResponse* response) override;
  grpc::ServerUnaryReactor* AbandonCycle(grpc::CallbackServerContext* context,
                                         const v1::AbandonCycleRequest* request,
                                         v1::AbandonCycleResponse* response) override;
  grpc::ServerUnaryReactor* Position(grpc::CallbackServerContext* context,
                                     const v1::PositionRequest* request,
                                     v1::PositionResponse* response) override;
  grpc::ServerUnaryReactor* Explain(grpc::CallbackServerContext* context,
                                    const v1::ExplainRequest* request,
                                    v1::ExplainResponse* response) override;
  grpc::ServerUnaryReactor* SubmitClaim(grpc::CallbackServerContext* context,
                                        const v1::SubmitClaimRequest* request,
                                        v1::SubmitClaimResponse* response) override;

 private:
  // The API's function for the call, on a worker's thread.
  using Begin = std::function<void(const Caller& caller, const CommandApi::Answer& answer)>;

  using Async = v1::Queue::StubInterface::async_interface;
  // The same method of another replica.
  template <typename Request, typename Response>
  using Hop = void (Async::*)(grpc::ClientContext*,
                              const Request*,
                              Response*,
                              std::function<void(grpc::Status)>);

  grpc::ServerUnaryReactor* Read(grpc::CallbackServerContext* context,
                                 std::function<absl::Status(const Caller& caller)> read);
  // Threads for the beginning of this call. Who comes with a token is a stranger, until the API
  // server has said who he is: however many wait for that, others do not wait for them. Few wait,
  // and the next one is told TooMany().
  rpc::WorkerPool& WorkersFor(const Caller& caller);
  // What it was answered with, as far as he may see it.
  template <typename Response>
  void Answer(const std::shared_ptr<UnaryCall>& call,
              std::shared_ptr<Response> answer,
              Response* response);
  // Begins the call here, and hands it on if the pool is elsewhere.
  template <typename Request, typename Response>
  grpc::ServerUnaryReactor* Run(const grpc::CallbackServerContext& context,
                                const Request& request,
                                Response* response,
                                Begin begin,
                                Hop<Request, Response> hop);
  template <typename Request, typename Response>
  grpc::ServerUnaryReactor* Command(const grpc::CallbackServerContext& context,
                                    const Request& request,
                                    Response* response,
                                    events::v1::CommandAccepted command,
                                    Hop<Request, Response> hop);
  template <typename Request, typename Response>
  void HandOn(const std::shared_ptr<UnaryCall>& call,
              const std::string& pool,
              const Request& request,
              Response* response,
              Hop<Request, Response> hop);

  const rpc::ServerConfig::Callers callers_;
  FactFeed& feed_;
  std::stop_source stop_;
  job_store::FactStore facts_;
  job_store::JobStore jobs_;
  const CallJudge judge_;
  ReadApi reads_;
  peers::Peers peers_;
  CommandApi commands_;
  rpc::WorkerPool workers_;  // the last two: their tasks use the others
  rpc::WorkerPool strangers_;
};

}  // namespace fluxqueue::queue
