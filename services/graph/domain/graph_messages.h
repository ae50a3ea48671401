// What a graph and what is held of it look like in the API's messages. Pure; thread-safe.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "libs/graph/graph_explanation.h"
#include "libs/graph/holding.h"
#include "libs/graph/resource_graph.h"
#include "libs/graph/resource_set.h"
#include "services/graph/domain/api.h"

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace fluxqueue::graph_service {

// What a message says of how allocations are to be written.
struct Wanted {
  v1::Format format = v1::FORMAT_UNSPECIFIED;
  bool nodes = false;
};

// Nothing: it is not to be written. InvalidArgument, with the field, for one that is not known.
absl::StatusOr<std::optional<graph::SetFormat>> FormatOf(v1::Format format);

// Of these formats, which say much of every vertex, and of vertices that are found: an answer names
// at most so many.
inline constexpr size_t kMostWritten = 100'000;
// ResourceExhausted, with the reason ANSWER_SIZE.
absl::Status CheckWritten(size_t vertices, v1::Format format);

// InvalidArgument, with the field: they are so long that a look at each vertex takes too long.
absl::Status CheckCriteria(const std::string& criteria);

// An event is a message that clients take by default (4 MiB): one that is larger, or whose
// allocation could not be written, says so in place of what is held.
inline constexpr size_t kMostEventBytes = size_t{3} << 20;
void FitEvent(const absl::Status& written, v1::WatchAllocationsResponse* event);

class GraphMessages {
 public:
  // `graph` outlives the object, and neither gets nor loses vertices.
  explicit GraphMessages(const graph::ResourceGraph& graph);

  // ResourceExhausted: it is more than is written (CheckWritten), and its times alone are there.
  absl::Status WriteAllocation(const graph::Holding& holding,
                               const Wanted& wanted,
                               v1::Allocation* allocation) const;
  int64_t NodesIn(const graph::Holding& holding) const;
  // Sums by type, in the order in which a walk from the top comes to the types. `held`: now.
  void Summarise(const std::map<graph::TypeId, int64_t>& held,
                 v1::GetGraphResponse* response) const;

 private:
  static constexpr graph::VertexId kNoNode = UINT32_MAX;

  void WriteNodes(const graph::Holding& holding, v1::Allocation* allocation) const;

  const graph::ResourceGraph& graph_;
  // By vertex: the node that it is or that contains it, or kNoNode.
  std::vector<graph::VertexId> node_of_;
};

// All but who holds what is missing.
void WriteExplanation(const graph::GraphExplanation& why, v1::ExplainResponse* response);

// The explanation knows less than the match: it may find nothing that is missing.
std::string ReasonOf(v1::Outcome outcome, const graph::GraphExplanation& why);

}  // namespace fluxqueue::graph_service
