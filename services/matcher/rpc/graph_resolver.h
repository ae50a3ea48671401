// Which graph a call speaks of, by its metadata, by its connection, else the pools'; and who makes
// it.
//
// Thread-safe.
#pragma once

#include <memory>
#include <string>
#include <utility>

#include <grpcpp/server_context.h>

#include "libs/rpc/server_config.h"
#include "services/matcher/rpc/graph_calls.h"
#include "services/matcher/rpc/graph_directory.h"

#include "absl/status/statusor.h"

namespace fluxqueue::matcher {

inline constexpr const char* kGraphKey = "fluxqueue-graph";
inline constexpr const char* kPoolKey = "fluxqueue-pool";  // for services without a pool in them
inline constexpr const char* kReasonKey = "fluxqueue-reason";  // trailing

class GraphResolver {
 public:
  // `cluster` may be null: then there are private graphs only. Both outlive the resolver. `callers`
  // are those of the server.
  GraphResolver(GraphDirectory& directory,
                ClusterGraph* cluster,
                rpc::ServerConfig::Callers callers)
      : directory_(directory), cluster_(cluster), callers_(std::move(callers)) {}

  // NotFound (reason GRAPH_UNKNOWN): the key names none. FailedPrecondition (NO_CLUSTER_GRAPH): no
  // private graph is named and there is no other. `by_connection`: an Init on the same connection
  // counts.
  absl::StatusOr<std::shared_ptr<GraphCalls>> Resolve(const grpc::CallbackServerContext& context,
                                                      bool by_connection) const;

  // The context lives until the call has ended.
  CallInfo InfoOf(grpc::CallbackServerContext* context) const;

  GraphDirectory& directory() const { return directory_; }

 private:
  GraphDirectory& directory_;
  ClusterGraph* const cluster_;
  const rpc::ServerConfig::Callers callers_;
};

// Empty when the client sent none.
std::string MetadataOf(const grpc::CallbackServerContext& context, const char* key);

}  // namespace fluxqueue::matcher
