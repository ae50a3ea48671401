// How large a graph an R version 1 makes, before it is made: ranges name many nodes in few bytes.
//
// Pure, thread-safe.
#pragma once

#include <cstdint>
#include <string_view>

#include "absl/status/status.h"

namespace fluxqueue::graph_service {

// ResourceExhausted, with the reason GRAPH_SIZE: it names more than so many resources, or as many
// properties of them. InvalidArgument: its nodes. OK also for what is no R: its reader says so.
absl::Status CheckResourceSetSize(std::string_view text, int64_t most);

}  // namespace fluxqueue::graph_service
