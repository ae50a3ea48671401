// The streams of MatcherService. Each owns itself and goes when its call has ended. A graph that
// could not be found is the status that the call ends with.
#pragma once

#include <memory>

#include <grpcpp/server_context.h>
#include <grpcpp/support/server_callback.h>

#include "services/matcher/rpc/graph_calls.h"
#include "services/matcher/rpc/matcher_service.h"

#include "absl/status/statusor.h"

namespace fluxqueue::matcher {

// What streams that have no end of their own end with, at stop.
absl::Status StoppingMatcher();

using GraphOr = absl::StatusOr<std::shared_ptr<GraphCalls>>;

grpc::ServerBidiReactor<v1::MatchStreamRequest, v1::MatchStreamResponse>* NewMatchStream(
    CallInfo call, GraphOr graph, OpenStreams& streams);

grpc::ServerWriteReactor<v1::GetGraphResponse>* NewGraphStream(grpc::CallbackServerContext* context,
                                                               GraphOr graph,
                                                               const v1::GetGraphRequest& request);

grpc::ServerWriteReactor<v1::WatchAllocationsResponse>* NewWatchStream(
    GraphOr graph, const v1::WatchAllocationsRequest& request, OpenStreams& streams);

}  // namespace fluxqueue::matcher
