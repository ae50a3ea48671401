#include "services/graph/rpc/create_graph.h"

#include <memory>
#include <utility>

#include "libs/base/status_macros.h"
#include "services/graph/rpc/private_graph_calls.h"

namespace fluxqueue::graph_service {

absl::StatusOr<CreatedGraph> CreateGraph(GraphDirectory& directory,
                                         rpc::WorkerPool& pool,
                                         const v1::CreateGraphRequest& request,
                                         const GraphOwner& owner) {
  RETURN_IF_ERROR(directory.Check(request.graph().size(), owner));
  ASSIGN_OR_RETURN(std::unique_ptr<PrivateGraph> graph,
                   PrivateGraph::Make(request, directory.limits().client_vertices));
  auto calls = std::make_shared<PrivateGraphCalls>(std::move(graph), pool, owner.Tenant());
  CreatedGraph created;
  created.vertices = calls->vertices();
  ASSIGN_OR_RETURN(created.key, directory.Add(std::move(calls), owner));
  return created;
}

}  // namespace fluxqueue::graph_service
