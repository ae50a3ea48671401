#include "services/graph/rpc/matcher_service.h"

#include <utility>

#include "libs/base/status_macros.h"
#include "libs/rpc/error_details.h"
#include "libs/rpc/grpc_status.h"
#include "services/graph/rpc/create_graph.h"
#include "services/graph/rpc/reply.h"
#include "services/graph/rpc/streams.h"

namespace fluxqueue::graph_service {

template <typename Request, typename Response>
grpc::ServerUnaryReactor* MatcherService::Unary(
    grpc::CallbackServerContext* context,
    const Request* request,
    Response* response,
    void (GraphCalls::*method)(CallInfo, const Request*, Response*, Done)) {
  auto* reply = new Reply();
  graphs_.Resolve(context, request->ByteSizeLong(), false, [=](ResolvedOr resolved) {
    if (!resolved.ok()) return reply->Finish(rpc::ToGrpcStatus(resolved.status()));
    reply->Keep(resolved->call.place);
    const auto done = [call = resolved->call, request, response, reply](absl::Status status) {
      if (status.ok()) status = call.Hold(request->ByteSizeLong() + response->ByteSizeLong());
      if (!status.ok()) response->Clear();
      reply->Finish(rpc::ToGrpcStatus(status));
    };
    (resolved->graph.get()->*method)(std::move(resolved->call), request, response, done);
  });
  return reply;
}

grpc::ServerUnaryReactor* MatcherService::CreateGraph(grpc::CallbackServerContext* context,
                                                      const v1::CreateGraphRequest* request,
                                                      v1::CreateGraphResponse* response) {
  auto* reply = new Reply();
  graphs_.AdmitMaker(context, request->ByteSizeLong(), [=, this](const auto& call) {
    if (!call.ok()) return reply->Finish(rpc::ToGrpcStatus(call.status()));
    reply->Keep(call->place);
    const auto created = graph_service::CreateGraph(
        graphs_.directory(), pool_, *request, {.user = call->caller.user});
    if (created.ok()) {
      response->set_key(created->key);
      response->set_vertices(created->vertices);
      const auto idle = graphs_.directory().limits().idle;
      response->mutable_idle_limit()->set_seconds(idle.count() / 1000);
      response->mutable_idle_limit()->set_nanos(
          static_cast<int32_t>(idle.count() % 1000 * 1'000'000));
    }
    reply->Finish(rpc::ToGrpcStatus(created.status()));
  });
  return reply;
}

grpc::ServerUnaryReactor* MatcherService::DeleteGraph(grpc::CallbackServerContext* context,
                                                      const v1::DeleteGraphRequest* request,
                                                      v1::DeleteGraphResponse* /*response*/) {
  auto* reply = new Reply();
  graphs_.Admit(context, request->ByteSizeLong(), [=, this](const auto& call) {
    absl::Status status = call.status();
    const std::string key = MetadataOf(*context, kGraphKey);
    if (status.ok() && key.empty()) {
      status = InvalidArgument("the metadata {} must name the graph to be dropped", kGraphKey);
    } else if (status.ok() && !graphs_.directory().Drop(key)) {
      status = rpc::WithReason(
          MakeStatus(absl::StatusCode::kNotFound, "there is no private graph with this key"),
          "GRAPH_UNKNOWN");
    }
    reply->Finish(rpc::ToGrpcStatus(status));
  });
  return reply;
}

grpc::ServerUnaryReactor* MatcherService::Match(grpc::CallbackServerContext* context,
                                                const v1::MatchRequest* request,
                                                v1::MatchResponse* response) {
  return Unary(context, request, response, &GraphCalls::Match);
}

grpc::ServerUnaryReactor* MatcherService::Release(grpc::CallbackServerContext* context,
                                                  const v1::ReleaseRequest* request,
                                                  v1::ReleaseResponse* response) {
  return Unary(context, request, response, &GraphCalls::Release);
}

grpc::ServerUnaryReactor* MatcherService::GetJob(grpc::CallbackServerContext* context,
                                                 const v1::GetJobRequest* request,
                                                 v1::GetJobResponse* response) {
  return Unary(context, request, response, &GraphCalls::GetJob);
}

grpc::ServerUnaryReactor* MatcherService::Explain(grpc::CallbackServerContext* context,
                                                  const v1::ExplainRequest* request,
                                                  v1::ExplainResponse* response) {
  return Unary(context, request, response, &GraphCalls::Explain);
}

grpc::ServerUnaryReactor* MatcherService::Find(grpc::CallbackServerContext* context,
                                               const v1::FindRequest* request,
                                               v1::FindResponse* response) {
  return Unary(context, request, response, &GraphCalls::Find);
}

grpc::ServerUnaryReactor* MatcherService::WhatIf(grpc::CallbackServerContext* context,
                                                 const v1::WhatIfRequest* request,
                                                 v1::WhatIfResponse* response) {
  return Unary(context, request, response, &GraphCalls::WhatIf);
}

grpc::ServerBidiReactor<v1::MatchStreamRequest, v1::MatchStreamResponse>*
MatcherService::MatchStream(grpc::CallbackServerContext* context) {
  return NewMatchStream(graphs_, context, streams_);
}

grpc::ServerWriteReactor<v1::GetGraphResponse>* MatcherService::GetGraph(
    grpc::CallbackServerContext* context, const v1::GetGraphRequest* request) {
  return NewGraphStream(graphs_, context, *request);
}

grpc::ServerWriteReactor<v1::WatchAllocationsResponse>* MatcherService::WatchAllocations(
    grpc::CallbackServerContext* context, const v1::WatchAllocationsRequest* request) {
  return NewWatchStream(graphs_, context, *request, streams_);
}

void OpenStreams::Add(const std::shared_ptr<AllocationWatch>& watch) {
  {
    const std::lock_guard lock(mutex_);
    if (!ending_) {
      watches_.insert(watch);
      return;
    }
  }
  watch->End(Stopping());
}

void OpenStreams::Remove(const std::shared_ptr<AllocationWatch>& watch) {
  const std::lock_guard lock(mutex_);
  watches_.erase(watch);
}

void OpenStreams::EndAll() {
  std::set<std::shared_ptr<AllocationWatch>> watches;
  {
    const std::lock_guard lock(mutex_);
    ending_ = true;
    watches.swap(watches_);
  }
  for (const auto& watch : watches) watch->End(Stopping());
}

}  // namespace fluxqueue::graph_service
