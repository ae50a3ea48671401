// The order in which a cycle looks at jobs of which some have been promised a start.
//
// The plan is made anew in each cycle. Made in the order of the line, a job that ends early could
// let one that stands ahead move forward, to where another was promised to start. Made in the order
// of the promises it cannot: each is planned beside those promised before it, which have moved
// forward or stayed, and so leave free from its own promised start on what they left free before.
// (Count only what is held at each time: a job that starts earlier ends earlier.)
//
// That is exact where only amounts count. Where it also counts which nodes are taken, the plan
// chooses them anew, too: a promise behind the first one can then slip because one before it is
// planned on other nodes than it was, and says so ("the plan was made anew").
//
// Jobs without a promise keep their place in line. Where one of them stands ahead of a promised job
// (it came with a higher priority, or its queue's order changed), the line decides from there on:
// it goes first, and the promises behind it may slip.
#pragma once

#include <algorithm>
#include <cstdint>

namespace fluxqueue::scheduling {

// `promised(job)`: when it is to start; 0: no promise. Stable.
template <typename Iterator, typename Promised>
void OrderByPromises(Iterator begin, Iterator end, const Promised& promised) {
  const Iterator first_without =
      std::find_if(begin, end, [&](const auto& job) { return promised(job) == 0; });
  std::stable_sort(begin, first_without, [&](const auto& a, const auto& b) {
    return promised(a) < promised(b);
  });
}

}  // namespace fluxqueue::scheduling
