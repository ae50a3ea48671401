#include "libs/graph/match_operation.h"

#include <algorithm>

#include "libs/base/status_macros.h"

namespace fluxqueue::graph {

absl::StatusOr<MatchOperation> ParseMatchOperation(std::string_view name) {
  const auto found = std::find(kMatchOperations.begin(), kMatchOperations.end(), name);
  if (found == kMatchOperations.end()) {
    return InvalidArgument(
        "operation: must be one of {}, is \"{}\"", fmt::join(kMatchOperations, ", "), name);
  }
  return static_cast<MatchOperation>(found - kMatchOperations.begin());
}

}  // namespace fluxqueue::graph
