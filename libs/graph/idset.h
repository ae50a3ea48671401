// RFC 22 idsets: "0", "1-3,7", "[0-15]": sets of numbers, written as ranges.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/status/status.h"

namespace fluxqueue::graph {

// Both ends are in it.
using IdRange = std::pair<int64_t, int64_t>;

// Appends the ranges. InvalidArgument when the text does not parse, or `ranges` would hold more
// than `limit`.
absl::Status ParseIdset(std::string_view text, size_t limit, std::vector<IdRange>* ranges);

// The canonical text, "0-2,5". REQUIRES: `ids` is sorted, each once.
std::string FormatIdset(const std::vector<int64_t>& ids);

}  // namespace fluxqueue::graph
