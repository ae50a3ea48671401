// A first pass over a JSON text that comes from outside, before it becomes a tree: syntax, depth
// and keys that stand twice. So the tree's size is bounded by the text's, and its depth by
// `max_depth`.
#pragma once

#include <string_view>

#include "absl/status/status.h"

namespace fluxqueue::graph {

// InvalidArgument says what is wrong and at which byte.
absl::Status CheckJson(std::string_view text, int max_depth);

}  // namespace fluxqueue::graph
