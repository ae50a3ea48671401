// How many candidates the next cycle names.
//
// The naive answer is the queue depth, always. Where the pool is full and the strategy stops at the
// first that does not fit, that names hundreds to start one, in every cycle. So the window follows
// what the last cycle could use: it closes to twice what was allocated when a cycle was blocked,
// and opens fourfold, up to the depth, when a cycle that filled the window allocated all of it. The
// next cycle begins at once in that case, so a closed window costs a few round trips and never an
// allocation.
#pragma once

#include <algorithm>
#include <cstdint>

namespace fluxqueue::scheduling {

inline constexpr uint32_t kDefaultDepth = 512;
inline constexpr uint32_t kLeastWindow = 16;

// What became of a cycle.
struct CycleResult {
  uint32_t named = 0;      // candidates
  uint32_t allocated = 0;  // of them
  bool blocked = false;    // stopped at one that did not fit
};

// `window` 0: not known yet.
constexpr uint32_t CandidateLimit(uint32_t window, uint32_t depth) {
  return window == 0 ? depth : std::min(window, depth);
}

constexpr uint32_t NextWindow(uint32_t window, uint32_t depth, const CycleResult& result) {
  const uint32_t limit = CandidateLimit(window, depth);
  if (result.blocked) {
    return std::min(depth, std::max(kLeastWindow, 2 * result.allocated));
  }
  if (result.named >= limit) {
    return static_cast<uint32_t>(std::min<uint64_t>(depth, uint64_t{4} * limit));
  }
  return limit;
}

}  // namespace fluxqueue::scheduling
