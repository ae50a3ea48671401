#include "services/graph/rpc/graph_resolver.h"

#include "libs/base/status_macros.h"
#include "libs/rpc/error_details.h"
#include "libs/tracing/trace_context.h"

namespace fluxqueue::graph_service {

std::string MetadataOf(const grpc::CallbackServerContext& context, const char* key) {
  const auto& metadata = context.client_metadata();
  const auto found = metadata.find(key);
  if (found == metadata.end()) return {};
  return {found->second.data(), found->second.size()};
}

void GraphResolver::Admit(grpc::CallbackServerContext* context,
                          std::function<void(absl::StatusOr<CallInfo>)> then) {
  rpc::Shown shown = rpc::ShownBy(*context, callers_);
  if (shown.token.empty()) return then(Enter(context, std::move(shown.caller)));
  deps_.pool.Post([this, context, token = std::move(shown.token), then = std::move(then)] {
    absl::StatusOr<rpc::Caller> caller = deps_.judge.WhoseIs(token);
    if (!caller.ok()) return then(caller.status());
    then(Enter(context, *std::move(caller)));
  });
}

absl::StatusOr<CallInfo> GraphResolver::Enter(grpc::CallbackServerContext* context,
                                              rpc::Caller caller) {
  ASSIGN_OR_RETURN(std::shared_ptr<void> place, calls_.Enter(caller.user));
  return CallInfo{.deadline = context->deadline(),
                  .cancelled = [context] { return context->IsCancelled(); },
                  .traceparent = MetadataOf(*context, tracing::kTraceparent),
                  .caller = std::move(caller),
                  .place = std::move(place)};
}

void GraphResolver::Resolve(grpc::CallbackServerContext* context,
                            bool by_connection,
                            std::function<void(ResolvedOr)> then) {
  Admit(context, [=, this, then = std::move(then)](absl::StatusOr<CallInfo> call) {
    if (!call.ok()) return then(call.status());
    absl::StatusOr<std::shared_ptr<GraphCalls>> graph = GraphOf(*context, by_connection);
    if (!graph.ok()) return then(graph.status());
    then(Resolved{*std::move(graph), *std::move(call)});
  });
}

void GraphResolver::AdmitMaker(grpc::CallbackServerContext* context,
                               std::function<void(absl::StatusOr<CallInfo>)> then) {
  Admit(context, [this, then = std::move(then)](const absl::StatusOr<CallInfo>& call) {
    if (!call.ok()) return then(call);
    deps_.pool.Post([this, call, then] {
      const absl::Status may = deps_.judge.MayMakeGraphs(call->caller);
      then(may.ok() ? call : may);
    });
  });
}

absl::StatusOr<std::shared_ptr<GraphCalls>> GraphResolver::GraphOf(
    const grpc::CallbackServerContext& context, bool by_connection) const {
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
    if (auto graph = deps_.directory.FindOfPeer(context.peer())) return graph;
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
