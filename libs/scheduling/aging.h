// How a job that waits gains on those that came after it, without being touched while it waits.
//
// With aging A a job's priority rises by one for each A that it has waited:
//
//   priority(t) = p + (t − s) / A          s: since when it waits
//
// Of two jobs a and b of one queue at any time t, a goes first when
//
//   p(a) + (t − s(a)) / A  >  p(b) + (t − s(b)) / A      that is, when
//   p(a)·A − s(a)          >  p(b)·A − s(b)
//
// in which t does not stand: the order of two waiting jobs never changes by waiting. So the rank
// p·A − s is set once, and nothing is swept. (Whole steps, floor((t−s)/A), would let two jobs
// change places back and forth, and say no more.) A = 0: no aging, and the rank is p.
#pragma once

#include <algorithm>
#include <cstdint>

namespace fluxqueue::scheduling {

// 24 days. A rank then never leaves its 64 bits: 2^31 · 2^31 + 2^53.
inline constexpr int64_t kLongestAgingMs = int64_t{1} << 31;

constexpr int64_t RankOf(int32_t priority, int64_t since_ms, int64_t aging_ms) {
  if (aging_ms <= 0) return priority;
  constexpr int64_t kLastTime = int64_t{1} << 53;
  return priority * std::min(aging_ms, kLongestAgingMs) -
         std::clamp<int64_t>(since_ms, 0, kLastTime);
}

}  // namespace fluxqueue::scheduling
