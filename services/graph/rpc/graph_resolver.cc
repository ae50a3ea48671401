#include "services/graph/rpc/graph_resolver.h"

#include "libs/base/status_macros.h"
#include "libs/rpc/error_details.h"
#include "libs/tracing/trace_context.h"

namespace fluxqueue::graph_service {

namespace {

// All that is known of who shows a token, until somebody has looked whose it is.
std::string AddressOf(const grpc::CallbackServerContext& context) {
  const std::string peer = context.peer();  // "ipv4:127.0.0.1:40566"
  return peer.substr(0, peer.rfind(':'));
}

absl::Status TooManyStrangers() {
  return rpc::WithReason(MakeStatus(absl::StatusCode::kResourceExhausted,
                                    "as many calls with a token wait already as may: call again "
                                    "later, or another replica"),
                         "CALL_LIMIT");
}

absl::Status Gone() {
  return MakeStatus(absl::StatusCode::kCancelled, "the client has gone, or its deadline is over");
}

}  // namespace

std::string MetadataOf(const grpc::CallbackServerContext& context, const char* key) {
  const auto& metadata = context.client_metadata();
  const auto found = metadata.find(key);
  if (found == metadata.end()) return {};
  return {found->second.data(), found->second.size()};
}

absl::StatusOr<std::shared_ptr<ClientCalls::Place>> GraphResolver::PlaceOf(const std::string& user,
                                                                           size_t bytes) {
  ASSIGN_OR_RETURN(std::shared_ptr<ClientCalls::Place> place, calls_.Enter(user));
  RETURN_IF_ERROR(place->Hold(static_cast<int64_t>(bytes)));
  return place;
}

void GraphResolver::Admit(grpc::CallbackServerContext* context, size_t bytes, Admitted then) {
  rpc::Shown shown = rpc::ShownBy(*context, callers_);
  if (shown.token.empty()) return then(Enter(context, bytes, std::move(shown.caller)));
  const std::string stranger = AddressOf(*context);
  absl::StatusOr<std::shared_ptr<ClientCalls::Place>> place = PlaceOf(stranger, bytes);
  if (!place.ok()) return then(place.status());
  auto ask = [this,
              context,
              bytes,
              place = *std::move(place),
              token = std::move(shown.token),
              then]() mutable {
    absl::StatusOr<rpc::Caller> caller = deps_.judge.WhoseIs(token);
    place = nullptr;
    if (!caller.ok()) return then(caller.status());
    then(Enter(context, bytes, *std::move(caller)));
  };
  if (!deps_.strangers.TryPost(stranger, std::move(ask))) then(TooManyStrangers());
}

absl::StatusOr<CallInfo> GraphResolver::Enter(grpc::CallbackServerContext* context,
                                              size_t bytes,
                                              rpc::Caller caller) {
  ASSIGN_OR_RETURN(std::shared_ptr<ClientCalls::Place> place, PlaceOf(caller.user, bytes));
  return CallInfo{.deadline = context->deadline(),
                  .cancelled = [context] { return context->IsCancelled(); },
                  .traceparent = MetadataOf(*context, tracing::kTraceparent),
                  .caller = std::move(caller),
                  .place = std::move(place)};
}

void GraphResolver::Resolve(grpc::CallbackServerContext* context,
                            size_t bytes,
                            bool by_connection,
                            std::function<void(ResolvedOr)> then) {
  Admit(context, bytes, [=, this, then = std::move(then)](absl::StatusOr<CallInfo> call) {
    if (!call.ok()) return then(call.status());
    auto graph = GraphOf(*context, call->caller, by_connection);
    if (!graph.ok()) return then(graph.status());
    then(Resolved{*std::move(graph), *std::move(call)});
  });
}

void GraphResolver::AdmitMaker(grpc::CallbackServerContext* context, size_t bytes, Admitted then) {
  Admit(context, bytes, [this, then = std::move(then)](const absl::StatusOr<CallInfo>& call) {
    if (!call.ok()) return then(call);
    deps_.pool.Post(call->Tenant(), [this, call, then] {
      const absl::Status may = deps_.judge.MayMakeGraphs(call->caller);
      if (!may.ok()) return then(may);
      deps_.makers.Post(call->Tenant(), [call, then] {
        then(call->cancelled() ? absl::StatusOr<CallInfo>(Gone()) : call);
      });
    });
  });
}

absl::StatusOr<std::shared_ptr<GraphCalls>> GraphResolver::GraphOf(
    const grpc::CallbackServerContext& context,
    const rpc::Caller& caller,
    bool by_connection) const {
  const std::string key = MetadataOf(context, kGraphKey);
  if (!key.empty()) {
    if (auto graph = deps_.directory.Find(key)) return graph;
    return rpc::WithReason(
        MakeStatus(absl::StatusCode::kNotFound,
                   "there is no private graph with the key in {}: it was dropped, not used for "
                   "too long, or another replica has it",
                   kGraphKey),
        "GRAPH_UNKNOWN");
  }
  if (by_connection) {
    const GraphOwner owner{.user = caller.user, .peer = context.peer()};
    if (auto graph = deps_.directory.FindOf(owner)) return graph;
  }
  // The pools' graphs outlive all calls.
  if (deps_.cluster != nullptr) {
    return std::shared_ptr<GraphCalls>(std::shared_ptr<void>(), deps_.cluster);
  }
  return rpc::WithReason(
      MakeStatus(absl::StatusCode::kFailedPrecondition,
                 "no private graph is named, and this service has no other: make one "
                 "(fluxqueue.matcher.v1.Matcher/CreateGraph, or fluxion.FluxionService/Init) and "
                 "name its key in the metadata {}",
                 kGraphKey),
      "NO_CLUSTER_GRAPH");
}

}  // namespace fluxqueue::graph_service
