// fluxqueue.matcher.v1.Matcher on gRPC: finds the graph of each call and hands it on.
#pragma once

#include <atomic>
#include <memory>
#include <mutex>
#include <set>

#include "fluxqueue/matcher/v1/matcher.grpc.pb.h"

#include "libs/rpc/worker_pool.h"
#include "services/graph/rpc/graph_resolver.h"

namespace fluxqueue::graph_service {

// The streams of a service that have no end of their own. Thread-safe.
class OpenStreams {
 public:
  void Add(const std::shared_ptr<AllocationWatch>& watch);
  void Remove(const std::shared_ptr<AllocationWatch>& watch);
  // Ends all watches, and those that are added later.
  void EndAll();
  // Other streams end at their next step.
  bool ending() const { return ending_; }

 private:
  std::mutex mutex_;
  std::atomic<bool> ending_ = false;
  std::set<std::shared_ptr<AllocationWatch>> watches_;  // guarded by mutex_
};

class MatcherService final : public v1::Matcher::CallbackService {
 public:
  // All outlive the service.
  MatcherService(GraphResolver& graphs, rpc::WorkerPool& pool) : graphs_(graphs), pool_(pool) {}

  // At stop.
  void Drain() { streams_.EndAll(); }

  grpc::ServerUnaryReactor* CreateGraph(grpc::CallbackServerContext* context,
                                        const v1::CreateGraphRequest* request,
                                        v1::CreateGraphResponse* response) override;
  grpc::ServerUnaryReactor* DeleteGraph(grpc::CallbackServerContext* context,
                                        const v1::DeleteGraphRequest* request,
                                        v1::DeleteGraphResponse* response) override;
  grpc::ServerUnaryReactor* Match(grpc::CallbackServerContext* context,
                                  const v1::MatchRequest* request,
                                  v1::MatchResponse* response) override;
  grpc::ServerBidiReactor<v1::MatchStreamRequest, v1::MatchStreamResponse>* MatchStream(
      grpc::CallbackServerContext* context) override;
  grpc::ServerUnaryReactor* Release(grpc::CallbackServerContext* context,
                                    const v1::ReleaseRequest* request,
                                    v1::ReleaseResponse* response) override;
  grpc::ServerUnaryReactor* GetJob(grpc::CallbackServerContext* context,
                                   const v1::GetJobRequest* request,
                                   v1::GetJobResponse* response) override;
  grpc::ServerUnaryReactor* Explain(grpc::CallbackServerContext* context,
                                    const v1::ExplainRequest* request,
                                    v1::ExplainResponse* response) override;
  grpc::ServerUnaryReactor* Find(grpc::CallbackServerContext* context,
                                 const v1::FindRequest* request,
                                 v1::FindResponse* response) override;
  grpc::ServerUnaryReactor* WhatIf(grpc::CallbackServerContext* context,
                                   const v1::WhatIfRequest* request,
                                   v1::WhatIfResponse* response) override;
  grpc::ServerWriteReactor<v1::GetGraphResponse>* GetGraph(
      grpc::CallbackServerContext* context, const v1::GetGraphRequest* request) override;
  grpc::ServerWriteReactor<v1::WatchAllocationsResponse>* WatchAllocations(
      grpc::CallbackServerContext* context, const v1::WatchAllocationsRequest* request) override;

 private:
  template <typename Request, typename Response>
  grpc::ServerUnaryReactor* Unary(
      grpc::CallbackServerContext* context,
      const Request* request,
      Response* response,
      void (GraphCalls::*method)(CallInfo, const Request*, Response*, Done));

  GraphResolver& graphs_;
  rpc::WorkerPool& pool_;
  OpenStreams streams_;
};

}  // namespace fluxqueue::graph_service
