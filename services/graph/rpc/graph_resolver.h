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
  };

  // What they refer to outlives the resolver. `callers` are those of the server;
  // `calls_per_client`: more at once are refused.
  GraphResolver(const Deps& deps, rpc::ServerConfig::Callers callers, int calls_per_client)
      : deps_(deps), callers_(std::move(callers)), calls_(calls_per_client) {}

  // Calls `then` once: at once, or, of a call with a token, on a worker's thread. The context lives
  // until the call has ended. NotFound (reason GRAPH_UNKNOWN): the key names none.
  // FailedPrecondition (NO_CLUSTER_GRAPH): no private graph is named and there is no other.
  // ResourceExhausted (CALL_LIMIT). What GraphJudge says of a token. `by_connection`: an Init on
  // the same connection counts.
  void Resolve(grpc::CallbackServerContext* context,
               bool by_connection,
               std::function<void(ResolvedOr)> then);

  // Of a call that makes a private graph: `then` is called on a worker's thread if it may. Errors
  // are those of Resolve and GraphJudge.
  void AdmitMaker(grpc::CallbackServerContext* context,
                  std::function<void(absl::StatusOr<CallInfo>)> then);

  GraphDirectory& directory() const { return deps_.directory; }

 private:
  absl::StatusOr<std::shared_ptr<GraphCalls>> GraphOf(const grpc::CallbackServerContext& context,
                                                      bool by_connection) const;

  // Who calls, and that there is a place for the call; as Resolve.
  void Admit(grpc::CallbackServerContext* context,
             std::function<void(absl::StatusOr<CallInfo>)> then);
  absl::StatusOr<CallInfo> Enter(grpc::CallbackServerContext* context, rpc::Caller caller);

  const Deps deps_;
  const rpc::ServerConfig::Callers callers_;
  ClientCalls calls_;
};

// Empty when the client sent none.
std::string MetadataOf(const grpc::CallbackServerContext& context, const char* key);

}  // namespace fluxqueue::graph_service
