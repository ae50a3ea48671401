#include "services/matcher/rpc/graph_resolver.h"

#include "libs/base/status_macros.h"
#include "libs/rpc/error_details.h"
#include "libs/tracing/trace_context.h"

namespace fluxqueue::matcher {

std::string MetadataOf(const grpc::CallbackServerContext& context, const char* key) {
  const auto& metadata = context.client_metadata();
  const auto found = metadata.find(key);
  if (found == metadata.end()) return {};
  return {found->second.data(), found->second.size()};
}

CallInfo GraphResolver::InfoOf(grpc::CallbackServerContext* context) const {
  return {context->deadline(),
          [context] { return context->IsCancelled(); },
          MetadataOf(*context, tracing::kTraceparent),
          rpc::CallerOf(*context, callers_)};
}

absl::StatusOr<std::shared_ptr<GraphCalls>> GraphResolver::Resolve(
    const grpc::CallbackServerContext& context, bool by_connection) const {
  const std::string key = MetadataOf(context, kGraphKey);
  if (!key.empty()) {
    if (auto graph = directory_.Find(key)) return graph;
    return rpc::WithReason(
        MakeStatus(absl::StatusCode::kNotFound,
                   "there is no private graph with the key in {}: it was dropped, not used for "
                   "too long, or another replica has it",
                   kGraphKey),
        "GRAPH_UNKNOWN");
  }
  if (by_connection) {
    if (auto graph = directory_.FindOfPeer(context.peer())) return graph;
  }
  // The pools' graphs outlive all calls.
  if (cluster_ != nullptr) return std::shared_ptr<GraphCalls>(std::shared_ptr<void>(), cluster_);
  return rpc::WithReason(
      MakeStatus(absl::StatusCode::kFailedPrecondition,
                 "no private graph is named, and this matcher serves no other: make one "
                 "(fluxqueue.matcher.v1.Matcher/CreateGraph, or fluxion.FluxionService/Init) and "
                 "name its key in the metadata {}",
                 kGraphKey),
      "NO_CLUSTER_GRAPH");
}

}  // namespace fluxqueue::matcher
