#include "services/graph/rpc/ancestor_services.h"

#include <memory>
#include <utility>

#include "libs/base/status_macros.h"
#include "libs/rpc/error_details.h"
#include "libs/rpc/grpc_status.h"
#include "services/graph/domain/ancestors.h"
#include "services/graph/rpc/create_graph.h"

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
               std::function<void(const absl::Status&)> answer) {
  graphs.Resolve(context, true, [=](ResolvedOr resolved) {
    if (!resolved.ok()) return answer(resolved.status());
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
  auto* reactor = context->DefaultReactor();
  const auto answer = [=](const absl::Status& status) {
    std::string reason;
    *response = ToInitResponse(status, &reason);
    AddReason(context, reason);
    reactor->Finish(grpc::Status::OK);
  };
  graphs_.AdmitMaker(context, [=, this](const absl::StatusOr<CallInfo>& call) {
    if (!call.ok()) return answer(call.status());
    const auto created = CreateGraph(graphs_.directory(),
                                     pool_,
                                     ToCreateGraph(*request),
                                     {.client = call->caller.user, .peer = context->peer()});
    if (created.ok()) context->AddInitialMetadata(kGraphKey, created->key);
    answer(created.status());
  });
  return reactor;
}

grpc::ServerUnaryReactor* FluxionService::Match(grpc::CallbackServerContext* context,
                                                const ::fluxion::MatchRequest* request,
                                                ::fluxion::MatchResponse* response) {
  auto* reactor = context->DefaultReactor();
  const auto call = std::make_shared<MatchCall>();
  const auto answer = [=](const absl::Status& status) {
    std::string reason;
    *response = ToFluxionResponse(status, &call->response, &reason);
    AddReason(context, reason);
    reactor->Finish(grpc::Status::OK);
  };
  graphs_.Resolve(context, true, [=](ResolvedOr resolved) {
    auto match = ToMatch(*request);
    if (!resolved.ok() || !match.ok()) {
      return answer(resolved.ok() ? match.status() : resolved.status());
    }
    call->request = *std::move(match);
    call->request.set_pool(MetadataOf(*context, kPoolKey));
    resolved->graph->Match(std::move(resolved->call), &call->request, &call->response, answer);
  });
  return reactor;
}

grpc::ServerUnaryReactor* FluxionService::Cancel(grpc::CallbackServerContext* context,
                                                 const ::fluxion::CancelRequest* request,
                                                 ::fluxion::CancelResponse* response) {
  auto* reactor = context->DefaultReactor();
  CancelJob(graphs_, context, request->jobid(), [=](const absl::Status& status) {
    std::string reason;
    *response = ToFluxionCancel(request->jobid(), status, &reason);
    AddReason(context, reason);
    reactor->Finish(grpc::Status::OK);
  });
  return reactor;
}

grpc::ServerUnaryReactor* FluxcliService::Match(grpc::CallbackServerContext* context,
                                                const ::fluxcli::MatchRequest* request,
                                                ::fluxcli::MatchResponse* response) {
  auto* reactor = context->DefaultReactor();
  graphs_.Resolve(context, true, [=](ResolvedOr resolved) {
    if (!resolved.ok()) return reactor->Finish(rpc::ToGrpcStatus(resolved.status()));
    const auto call = std::make_shared<MatchCall>();
    const std::string pool = MetadataOf(*context, kPoolKey);
    call->units = resolved->graph->UnitsOf(pool);
    auto match = ToMatch(*request, call->units);
    if (!match.ok()) return reactor->Finish(rpc::ToGrpcStatus(match.status()));
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
                             reactor->Finish(rpc::ToGrpcStatus(status));
                           });
  });
  return reactor;
}

grpc::ServerUnaryReactor* FluxcliService::Cancel(grpc::CallbackServerContext* context,
                                                 const ::fluxcli::CancelRequest* request,
                                                 ::fluxcli::CancelResponse* response) {
  auto* reactor = context->DefaultReactor();
  CancelJob(graphs_, context, request->jobid(), [=](const absl::Status& status) {
    std::string reason;
    *response = ToFluxcliCancel(request->jobid(), status, &reason);
    AddReason(context, reason);
    reactor->Finish(grpc::Status::OK);
  });
  return reactor;
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
             grpc::ServerUnaryReactor* reactor)
      : context_(context),
        call_(std::move(call)),
        reader_(std::move(reader)),
        most_(most),
        response_(response),
        reactor_(reactor) {}

  void Next() {
    reader_->Next(&piece_, [self = shared_from_this()](const absl::StatusOr<bool>& more) {
      self->Add(more);
    });
  }

 private:
  void Add(const absl::StatusOr<bool>& more) {
    if (!more.ok() || !*more) {
      reactor_->Finish(rpc::ToGrpcStatus(more.status()));
      return;
    }
    response_->mutable_graph()->append(piece_.jgf());
    if (static_cast<int64_t>(response_->graph().size()) > most_) {
      reactor_->Finish(rpc::ToGrpcStatus(
          rpc::WithReason(MakeStatus(absl::StatusCode::kResourceExhausted,
                                     "the graph is larger than a message may be ({} bytes): "
                                     "fluxqueue.matcher.v1.Matcher/GetGraph gives it in pieces",
                                     most_),
                          "GRAPH_SIZE")));
      return;
    }
    if (context_->IsCancelled()) {
      reactor_->Finish(grpc::Status::CANCELLED);
      return;
    }
    Next();
  }

  grpc::CallbackServerContext* const context_;
  const CallInfo call_;
  const std::unique_ptr<GraphReader> reader_;
  const int64_t most_;
  ::service::ResourceResponse* const response_;
  grpc::ServerUnaryReactor* const reactor_;
  v1::GetGraphResponse piece_;
};

}  // namespace

grpc::ServerUnaryReactor* ExternalPluginService::GetResources(
    grpc::CallbackServerContext* context,
    const ::service::ResourceRequest* /*request*/,
    ::service::ResourceResponse* response) {
  auto* reactor = context->DefaultReactor();
  graphs_.Resolve(context, true, [=, this](ResolvedOr resolved) {
    if (!resolved.ok()) return reactor->Finish(rpc::ToGrpcStatus(resolved.status()));
    v1::GetGraphRequest request;
    request.set_pool(MetadataOf(*context, kPoolKey));
    // The length of a string of so many bytes, and the field's number.
    constexpr int64_t kFrame = 16;
    auto reader = resolved->graph->GetGraph(resolved->call, request);
    std::make_shared<WholeGraph>(context,
                                 std::move(resolved->call),
                                 std::move(reader),
                                 max_message_ - kFrame,
                                 response,
                                 reactor)
        ->Next();
  });
  return reactor;
}

grpc::ServerUnaryReactor* ExternalPluginService::ListGroups(grpc::CallbackServerContext* context,
                                                            const ::service::GroupRequest* request,
                                                            ::service::GroupResponse* response) {
  return Group(context, request->group(), true, response);
}

grpc::ServerUnaryReactor* ExternalPluginService::GetGroup(grpc::CallbackServerContext* context,
                                                          const ::service::GroupRequest* request,
                                                          ::service::GroupResponse* response) {
  return Group(context, request->group(), false, response);
}

grpc::ServerUnaryReactor* ExternalPluginService::Group(grpc::CallbackServerContext* context,
                                                       const std::string& name,
                                                       bool behind,
                                                       ::service::GroupResponse* response) {
  auto* reactor = context->DefaultReactor();
  graphs_.Resolve(context, true, [=](ResolvedOr resolved) {
    if (!resolved.ok()) return reactor->Finish(rpc::ToGrpcStatus(resolved.status()));
    resolved->graph->GetGroup(
        std::move(resolved->call),
        MetadataOf(*context, kPoolKey),
        name,
        behind,
        response,
        [reactor](const absl::Status& status) { reactor->Finish(rpc::ToGrpcStatus(status)); });
  });
  return reactor;
}

}  // namespace fluxqueue::graph_service
