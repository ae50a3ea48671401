// `xor_slot`: of those that stand beside each other, one is made. RFC 14 does not know them;
// Fluxion's `flexible` traverser does.
#pragma once

#include <vector>

#include "libs/graph/request.h"

#include "absl/status/statusor.h"

namespace fluxqueue::graph {

inline constexpr std::string_view kXorSlotType = "xor_slot";
inline constexpr size_t kMaxAlternatives = 1'000;
// In all of them together.
inline constexpr size_t kMaxAlternativeResources = 100'000;

// The requests that `resources` stands for, in the order in which they are tried, with slots where
// an xor_slot was. One when there is none. InvalidArgument when there are more than these limits
// allow, which is known before the first is made.
absl::StatusOr<std::vector<std::vector<ResourceRequest>>> SplitAlternatives(
    const std::vector<ResourceRequest>& resources);

}  // namespace fluxqueue::graph
