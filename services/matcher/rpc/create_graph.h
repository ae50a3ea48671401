// Making a private graph, for the services that do. Takes long for a large one.
#pragma once

#include <string>

#include "fluxqueue/matcher/v1/matcher.pb.h"

#include "libs/rpc/worker_pool.h"
#include "services/matcher/rpc/graph_directory.h"

#include "absl/status/statusor.h"

namespace fluxqueue::matcher {

struct CreatedGraph {
  std::string key;
  int64_t vertices = 0;
};

// Errors are those of GraphDirectory and PrivateGraph::Make.
absl::StatusOr<CreatedGraph> CreateGraph(GraphDirectory& directory,
                                         rpc::WorkerPool& pool,
                                         const v1::CreateGraphRequest& request,
                                         const std::string& peer);

}  // namespace fluxqueue::matcher
