// What the workloads of a namespace that have not ended come to, by the queue that they stand in.
// Pure.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <utility>

#include "libs/access/queue_limits.h"

namespace fluxqueue::admission {

using Usage = access::JobUse;
using UsageBySpace = std::map<std::pair<std::string, std::string>, Usage>;  // namespace, queue

// Of the queues of which `counts` says so.
template <typename Counts>
Usage UsageOf(const UsageBySpace& usage, std::string_view space, Counts counts) {
  Usage sum;
  for (auto it = usage.lower_bound({std::string(space), ""});
       it != usage.end() && it->first.first == space;
       ++it) {
    if (counts(it->first.second)) sum.Add(it->second);
  }
  return sum;
}

}  // namespace fluxqueue::admission
