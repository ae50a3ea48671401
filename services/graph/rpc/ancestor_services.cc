#include "services/graph/rpc/ancestor_services.h"

#include <memory>
#include <utility>

#include "libs/base/status_macros.h"
#include "libs/rpc/error_details.h"
#include "libs/rpc/grpc_status.h"
#include "services/graph/domain/ancestors.h"
#include "services/graph/rpc/create_graph.h"
#include "services/graph/rpc/reply.h"

namespace fluxqueue::graph_service {
namespace {

// What a translated call is about, until it has been answered.
struct MatchCall {
  v1::MatchRequest request;
  v1::MatchResponse response;
  SlotUnits units;
};

struct CancelCall {
  v1::ReleaseRequest request;
  v1::ReleaseResponse response;
};

void AddReason(grpc::CallbackServerContext* context, const std::string& reason) {
  if (!reason.empty()) context->AddTrailingMetadata(kReasonKey, rpc::MetadataText(reason));
}

// `answer` is called with what came of it, once.
void CancelJob(GraphResolver& graphs,
               grpc::CallbackServerContext* context,
               int64_t job,
               size_t bytes,
               Reply* reply,
               std::function<void(const absl::Status&)> answer) {
  graphs.Resolve(context, bytes, true, [=](ResolvedOr resolved) {
    if (!resolved.ok()) return answer(resolved.status());
    reply->Keep(resolved->call.place);
    const auto call = std::make_shared<CancelCall>();
    call->request = ToRelease(job);
    call->request.set_pool(MetadataOf(*context, kPoolKey));
    resolved->graph->Release(std::move(resolved->call),
                             &call->request,
                             &call->response,
                             [call, answer](const absl::Status& status) { answer(status); });
  });
}

}  // namespace

grpc::ServerUnaryReactor* FluxionService::Init(grpc::CallbackServerContext* context,
                                               const ::fluxion::InitRequest* request,
                                               ::fluxion::InitResponse* response) {
  auto* reply = new Reply();
  const auto answer = [=](const absl::Status& status) {
    std::string reason;
    *response = ToInitResponse(status, &reason);
    AddReason(context, reason);
    reply->Finish(grpc::Status::OK);
  };
  graphs_.AdmitMaker(context, request->ByteSizeLong(), [=, this](const auto& call) {
    if (!call.ok()) return answer(call.status());
    reply->Keep(call->place);
    const auto created = CreateGraph(graphs_.directory(),
                                     pool_,
                                     ToCreateGraph(*request),
                                     {.user = call->caller.user, .peer = context->peer()});
    if (created.ok()) context->AddInitialMetadata(kGraphKey, created->key);
    answer(created.status());
  });
  return reply;
}

grpc::ServerUnaryReactor* FluxionService::Match(grpc::CallbackServerContext* context,
                                                const ::fluxion::MatchRequest* request,
                                                ::fluxion::MatchResponse* response) {
  auto* reply = new Reply();
  const auto call = std::make_shared<MatchCall>();
  const auto answer = [=](const absl::Status& status) {
    std::string reason;
    *response = ToFluxionResponse(status, &call->response, &reason);
    AddReason(context, reason);
    reply->Finish(grpc::Status::OK);
  };
  graphs_.Resolve(context, request->ByteSizeLong(), true, [=](ResolvedOr resolved) {
    if (!resolved.ok()) return answer(resolved.status());
    reply->Keep(resolved->call.place);
    auto match = ToMatch(*request);
    if (!match.ok()) return answer(match.status());
    call->request = *std::move(match);
    call->request.set_pool(MetadataOf(*context, kPoolKey));
    resolved->graph->Match(std::move(resolved->call), &call->request, &call->response, answer);
  });
  return reply;
}

grpc::ServerUnaryReactor* FluxionService::Cancel(grpc::CallbackServerContext* context,
                                                 const ::fluxion::CancelRequest* request,
                                                 ::fluxion::CancelResponse* response) {
  auto* reply = new Reply();
  const size_t bytes = request->ByteSizeLong();
  CancelJob(graphs_, context, request->jobid(), bytes, reply, [=](const absl::Status& status) {
    std::string reason;
    *response = ToFluxionCancel(request->jobid(), status, &reason);
    AddReason(context, reason);
    reply->Finish(grpc::Status::OK);
  });
  return reply;
}

grpc::ServerUnaryReactor* FluxcliService::Match(grpc::CallbackServerContext* context,
                                                const ::fluxcli::MatchRequest* request,
                                                ::fluxcli::MatchResponse* response) {
  auto* reply = new Reply();
  graphs_.Resolve(context, request->ByteSizeLong(), true, [=](ResolvedOr resolved) {
    if (!resolved.ok()) return reply->Finish(rpc::ToGrpcStatus(resolved.status()));
    reply->Keep(resolved->call.place);
    const auto call = std::make_shared<MatchCall>();
    const std::string pool = MetadataOf(*context, kPoolKey);
    call->units = resolved->graph->UnitsOf(pool);
    auto match = ToMatch(*request, call->units);
    if (!match.ok()) return reply->Finish(rpc::ToGrpcStatus(match.status()));
    call->request = *std::move(match);
    call->request.set_pool(pool);
    resolved->graph->Match(std::move(resolved->call),
                           &call->request,
                           &call->response,
                           [=](const absl::Status& status) {
                             if (status.ok()) {
                               std::string reason;
                               *response = ToFluxcliResponse(
                                   *request, call->units, call->response, &reason);
                               AddReason(context, reason);
                             }
                             reply->Finish(rpc::ToGrpcStatus(status));
                           });
  });
  return reply;
}

grpc::ServerUnaryReactor* FluxcliService::Cancel(grpc::CallbackServerContext* context,
                                                 const ::fluxcli::CancelRequest* request,
                                                 ::fluxcli::CancelResponse* response) {
  auto* reply = new Reply();
  const size_t bytes = request->ByteSizeLong();
  CancelJob(graphs_, context, request->jobid(), bytes, reply, [=](const absl::Status& status) {
    std::string reason;
    *response = ToFluxcliCancel(request->jobid(), status, &reason);
    AddReason(context, reason);
    reply->Finish(grpc::Status::OK);
  });
  return reply;
}

namespace {

// Reads a graph to its end into one answer.
class WholeGraph : public std::enable_shared_from_this<WholeGraph> {
 public:
  WholeGraph(grpc::CallbackServerContext* context,
             CallInfo call,
             std::unique_ptr<GraphReader> reader,
             int64_t most,
             ::service::ResourceResponse* response,
             Reply* reply)
      : context_(context),
        call_(std::move(call)),
        reader_(std::move(reader)),
        most_(most),
        response_(response),
        reply_(reply) {}

  void Next() {
    reader_->Next(&piece_, [self = shared_from_this()](const absl::StatusOr<bool>& more) {
      self->Add(more);
    });
  }

 private:
  void Add(const absl::StatusOr<bool>& more) {
    if (!more.ok() || !*more) {
      reply_->Finish(rpc::ToGrpcStatus(more.status()));
      return;
    }
    response_->mutable_graph()->append(piece_.jgf());
    const absl::Status held = call_.Hold(piece_.jgf().size() + response_->graph().size());
    if (!held.ok()) {
      response_->Clear();
      reply_->Finish(rpc::ToGrpcStatus(held));
      return;
    }
    if (static_cast<int64_t>(response_->graph().size()) > most_) {
      reply_->Finish(rpc::ToGrpcStatus(
          rpc::WithReason(MakeStatus(absl::StatusCode::kResourceExhausted,
                                     "the graph is larger than a message may be ({} bytes): "
                                     "fluxqueue.matcher.v1.Matcher/GetGraph gives it in pieces",
                                     most_),
                          "GRAPH_SIZE")));
      return;
    }
    if (context_->IsCancelled()) {
      reply_->Finish(grpc::Status::CANCELLED);
      return;
    }
    Next();
  }

  grpc::CallbackServerContext* const context_;
  const CallInfo call_;
  const std::unique_ptr<GraphReader> reader_;
  const int64_t most_;
  ::service::ResourceResponse* const response_;
  Reply* const reply_;
  v1::GetGraphResponse piece_;
};

}  // namespace

grpc::ServerUnaryReactor* ExternalPluginService::GetResources(
    grpc::CallbackServerContext* context,
    const ::service::ResourceRequest* request,
    ::service::ResourceResponse* response) {
  auto* reply = new Reply();
  graphs_.Resolve(context, request->ByteSizeLong(), true, [=, this](ResolvedOr resolved) {
    if (!resolved.ok()) return reply->Finish(rpc::ToGrpcStatus(resolved.status()));
    reply->Keep(resolved->call.place);
    v1::GetGraphRequest whole;
    whole.set_pool(MetadataOf(*context, kPoolKey));
    // The length of a string of so many bytes, and the field's number.
    constexpr int64_t kFrame = 16;
    auto reader = resolved->graph->GetGraph(resolved->call, whole);
    std::make_shared<WholeGraph>(context,
                                 std::move(resolved->call),
                                 std::move(reader),
                                 max_message_ - kFrame,
                                 response,
                                 reply)
        ->Next();
  });
  return reply;
}

grpc::ServerUnaryReactor* ExternalPluginService::ListGroups(grpc::CallbackServerContext* context,
                                                            const ::service::GroupRequest* request,
                                                            ::service::GroupResponse* response) {
  return Group(context, *request, true, response);
}

grpc::ServerUnaryReactor* ExternalPluginService::GetGroup(grpc::CallbackServerContext* context,
                                                          const ::service::GroupRequest* request,
                                                          ::service::GroupResponse* response) {
  return Group(context, *request, false, response);
}

grpc::ServerUnaryReactor* ExternalPluginService::Group(grpc::CallbackServerContext* context,
                                                       const ::service::GroupRequest& request,
                                                       bool behind,
                                                       ::service::GroupResponse* response) {
  auto* reply = new Reply();
  const std::string& name = request.group();
  graphs_.Resolve(context, request.ByteSizeLong(), true, [=](ResolvedOr resolved) {
    if (!resolved.ok()) return reply->Finish(rpc::ToGrpcStatus(resolved.status()));
    reply->Keep(resolved->call.place);
    resolved->graph->GetGroup(
        std::move(resolved->call),
        MetadataOf(*context, kPoolKey),
        name,
        behind,
        response,
        [reply](const absl::Status& status) { reply->Finish(rpc::ToGrpcStatus(status)); });
  });
  return reply;
}

}  // namespace fluxqueue::graph_service
