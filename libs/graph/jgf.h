// Resource graphs in the JSON Graph Format, as Fluxion reads and writes it (version 1).
//
//   {"graph": {"nodes": [{"id": "1", "metadata": {"type": "node", "id": 0, "rank": 0, "size": 1,
//                         "unit": "", "properties": {"ssd": ""},
//                         "paths": {"containment": "/cluster0/node0"}}}, …],
//              "edges": [{"source": "0", "target": "1",
//                         "metadata": {"subsystem": "containment"}}, …]}}
//
// Left out: `basename` is the type, `uniq_id` the vertex's id as a number, `id` the number at the
// end of a node's name or else `uniq_id`, `name` is basename and id, `size` 1, `unit` "", `rank`
// -1, an edge's subsystem `containment`.
//
// An extension: a vertex that several others contain has a list of paths in `containment`.
#pragma once

#include <cstddef>
#include <string_view>
#include <vector>

#include "libs/graph/resource_graph.h"

#include "absl/status/statusor.h"

namespace fluxqueue::graph {

inline constexpr size_t kMaxJgfBytes = size_t{2} * 1024 * 1024 * 1024;
inline constexpr size_t kMaxVertices = 5'000'000;
inline constexpr size_t kMaxEdges = 20'000'000;

// InvalidArgument with the place ("graph.nodes[3].metadata.size: …"), the value and what is
// allowed: a missing id, an edge to nowhere, a cycle, a path that stands twice, a negative size, a
// property that is no text, too many vertices or edges. These two are counted before anything is
// built; after that, memory is what the graph takes and one vertex or edge as JSON.
absl::StatusOr<ResourceGraph> ParseJgf(std::string_view text);

// The vertices of `graph` that the text names, which may be a part of it (what a job gives back).
// InvalidArgument also when one is not in the graph, or is there with another type, basename, name,
// id, rank or size (of what is divisible: with a lesser one).
absl::StatusOr<std::vector<VertexId>> FindJgfVertices(std::string_view text,
                                                      const ResourceGraph& graph);

}  // namespace fluxqueue::graph
