// Which graph a call speaks of, by its metadata, by its connection, else the pools'; and who makes
// it, of whom so many calls may be under way.
//
// Thread-safe.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <utility>

#include <grpcpp/server_context.h>

#include "libs/rpc/server_config.h"
#include "libs/rpc/worker_pool.h"
#include "services/graph/rpc/client_calls.h"
#include "services/graph/rpc/graph_calls.h"
#include "services/graph/rpc/graph_directory.h"
#include "services/graph/rpc/graph_judge.h"

#include "absl/status/statusor.h"

namespace fluxqueue::graph_service {

inline constexpr const char* kGraphKey = "fluxqueue-graph";
inline constexpr const char* kPoolKey = "fluxqueue-pool";  // for services without a pool in them
inline constexpr const char* kReasonKey = "fluxqueue-reason";  // trailing

// The call, as long as it is under way, and its graph.
struct Resolved {
  std::shared_ptr<GraphCalls> graph;
  CallInfo call;
};

using ResolvedOr = absl::StatusOr<Resolved>;

class GraphResolver {
 public:
  struct Deps {
    GraphDirectory& directory;
    ClusterGraph* cluster;  // null: there are private graphs only
    const GraphJudge& judge;
    rpc::WorkerPool& pool;
    rpc::WorkerPool& makers;  // of one thread: one graph at a time is in memory twice
    // For whoever shows a token: until it is known whose it is, he takes no thread of others. Of a
    // limit.
    rpc::WorkerPool& strangers;
  };

  // What they refer to outlives the resolver. `callers` are those of the server; what is beyond
  // `limits` is refused.
  GraphResolver(const Deps& deps, rpc::ServerConfig::Callers callers, const CallLimits& limits)
      : deps_(deps), callers_(std::move(callers)), calls_(limits) {}

  using Admitted = std::function<void(absl::StatusOr<CallInfo>)>;

  // Who calls, and that there is a place for the call and for a request of so many bytes. Calls
  // `then` once: at once, or, of a call with a token, on a worker's thread. The context lives until
  // the call has ended. ResourceExhausted (ClientCalls). What GraphJudge says of a token.
  void Admit(grpc::CallbackServerContext* context, size_t bytes, Admitted then);

  // The same, and which graph. NotFound (reason GRAPH_UNKNOWN): the key names none.
  // FailedPrecondition (NO_CLUSTER_GRAPH): no private graph is named and there is no other.
  // `by_connection`: the caller's own Init on the same connection counts.
  void Resolve(grpc::CallbackServerContext* context,
               size_t bytes,
               bool by_connection,
               std::function<void(ResolvedOr)> then);

  // Of a call that makes a private graph: `then` is called on the makers' thread if it may. Errors
  // are those of Admit and GraphJudge.
  void AdmitMaker(grpc::CallbackServerContext* context, size_t bytes, Admitted then);

  GraphDirectory& directory() const { return deps_.directory; }

 private:
  absl::StatusOr<std::shared_ptr<GraphCalls>> GraphOf(const grpc::CallbackServerContext& context,
                                                      const rpc::Caller& caller,
                                                      bool by_connection) const;
  absl::StatusOr<std::shared_ptr<ClientCalls::Place>> PlaceOf(const std::string& user,
                                                              size_t bytes);
  absl::StatusOr<CallInfo> Enter(grpc::CallbackServerContext* context,
                                 size_t bytes,
                                 rpc::Caller caller);

  const Deps deps_;
  const rpc::ServerConfig::Callers callers_;
  ClientCalls calls_;
};

// Empty when the client sent none.
std::string MetadataOf(const grpc::CallbackServerContext& context, const char* key);

}  // namespace fluxqueue::graph_service
