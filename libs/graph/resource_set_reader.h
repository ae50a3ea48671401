// R version 1 (RFC 20), which resource_set.h writes, as input: what a job holds, or a graph.
//
// With its `scheduling` key R names vertices, and exactly those are held. Without it R knows what
// `children` names (cores and gpus) by the rank of its node: memory and whole nodes do not come
// back. Pure.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "libs/graph/graph_state.h"
#include "libs/graph/resource_graph.h"

#include "absl/status/statusor.h"

namespace fluxqueue::graph {

inline constexpr size_t kMaxResourceSetBytes = size_t{256} * 1024 * 1024;

struct ResourceSet {
  Holding holding;
  // By their own names (the scheduling key, or JGF), so that nothing is missing.
  bool by_vertices = false;
};

// What a job with this R holds of `graph`, for GeneralEngine::Restore: from `starttime` to
// `expiration` (0: for as long as a graph lasts, as for a job without a duration); reserved when it
// begins after 0. JGF alone is held from 0 on, without an end.
//
// InvalidArgument with the place ("execution.R_lite[0].children.core: …"), the value and what is
// allowed; also when `graph` does not have what R names, or has it several times.
absl::StatusOr<ResourceSet> ReadResourceSet(std::string_view text, const ResourceGraph& graph);

// All that R names as a graph, as Fluxion's load format `rv1exec` makes it: cluster0 → a node for
// each rank, named by `nodelist`, with its properties → what `children` names. The `scheduling` key
// is not looked at. InvalidArgument as above.
absl::StatusOr<ResourceGraph> ReadResourceSetAsGraph(std::string_view text);

}  // namespace fluxqueue::graph
