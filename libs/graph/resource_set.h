// What a job holds, in the forms that others read: R version 1 (RFC 20), its R_lite alone, JGF.
//
//   {"version": 1,
//    "execution": {"R_lite": [{"rank": "0-1", "children": {"core": "0-3", "gpu": "0"}}],
//                  "nodelist": ["node[0-1]"], "properties": {"ssd": "1"},
//                  "starttime": 0, "expiration": 3600},
//    "scheduling": {"graph": …}}                            (in `rv1` only)
//
// R_lite knows cores and gpus by the rank of their node; only the graph tells the rest. `simple` is
// for people: a line for each vertex, deeper ones with more dashes.
//
//         ------core0[1:x]          1 of it, held (x) or on the way to what is held (s)
//         ---node0[1:s]
#pragma once

#include <array>
#include <string>
#include <string_view>

#include "libs/graph/graph_state.h"
#include "libs/graph/resource_graph.h"

#include "absl/status/statusor.h"

namespace fluxqueue::graph {

// The types that R_lite knows, in the order in which it names them.
inline constexpr std::array<std::string_view, 2> kRliteTypes = {"core", "gpu"};

enum class SetFormat { kRv1, kRv1NoSched, kRlite, kJgf, kSimple };

// Fluxion's names: rv1, rv1_nosched, rlite, jgf, simple. InvalidArgument names them.
absl::StatusOr<SetFormat> ParseSetFormat(std::string_view name);

// JSON, or text when it is `simple`. Times are `holding`'s own.
std::string WriteResourceSet(const ResourceGraph& graph, const Holding& holding, SetFormat format);

}  // namespace fluxqueue::graph
