// The streams of MatcherService. Each owns itself and goes when its call has ended. A call that
// is not let in, or whose graph is not found, ends with the status that says so.
#pragma once

#include <memory>

#include <grpcpp/server_context.h>
#include <grpcpp/support/server_callback.h>

#include "services/graph/rpc/matcher_service.h"

#include "absl/status/status.h"

namespace fluxqueue::graph_service {

// What streams that have no end of their own end with, at stop.
absl::Status Stopping();

grpc::ServerBidiReactor<v1::MatchStreamRequest, v1::MatchStreamResponse>* NewMatchStream(
    GraphResolver& graphs, grpc::CallbackServerContext* context, OpenStreams& streams);

grpc::ServerWriteReactor<v1::GetGraphResponse>* NewGraphStream(GraphResolver& graphs,
                                                               grpc::CallbackServerContext* context,
                                                               const v1::GetGraphRequest& request);

grpc::ServerWriteReactor<v1::WatchAllocationsResponse>* NewWatchStream(
    GraphResolver& graphs,
    grpc::CallbackServerContext* context,
    const v1::WatchAllocationsRequest& request,
    OpenStreams& streams);

}  // namespace fluxqueue::graph_service
