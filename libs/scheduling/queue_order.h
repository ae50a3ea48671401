// The order of the queues of a pool: higher priority first, then greater weight, then by name, so
// that it is total. A cycle takes its candidates from the queues in this order.
#pragma once

#include <cstdint>
#include <string>

namespace fluxqueue::scheduling {

struct QueueOrder {
  int32_t priority = 0;
  int32_t weight = 0;
  std::string name;

  friend bool operator==(const QueueOrder&, const QueueOrder&) = default;
  // The one that is served first is the lesser.
  friend bool operator<(const QueueOrder& a, const QueueOrder& b) {
    if (a.priority != b.priority) return a.priority > b.priority;
    if (a.weight != b.weight) return a.weight > b.weight;
    return a.name < b.name;
  }
};

}  // namespace fluxqueue::scheduling
