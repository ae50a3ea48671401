// Making a private graph, for the services that do. Takes long for a large one.
#pragma once

#include <string>

#include "libs/rpc/worker_pool.h"
#include "services/graph/domain/api.h"
#include "services/graph/rpc/graph_directory.h"

#include "absl/status/statusor.h"

namespace fluxqueue::graph_service {

struct CreatedGraph {
  std::string key;
  int64_t vertices = 0;
};

// Errors are those of GraphDirectory and PrivateGraph::Make.
absl::StatusOr<CreatedGraph> CreateGraph(GraphDirectory& directory,
                                         rpc::WorkerPool& pool,
                                         const v1::CreateGraphRequest& request,
                                         const GraphOwner& owner);

}  // namespace fluxqueue::graph_service
