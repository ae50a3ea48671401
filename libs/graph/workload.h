// What the policy `packed` expects: slots by what they ask for and where they may go.
#pragma once

#include <cstdint>
#include <vector>

#include "libs/graph/constraint.h"
#include "libs/graph/types.h"

namespace fluxqueue::graph {

// Slots of one shape that are expected.
struct WorkloadShape {
  Amounts amounts;        // of one slot, by types of the graph
  Constraint constraint;  // of the nodes where it may go
  uint64_t count = 0;     // beside the counts of the other shapes

  friend bool operator==(const WorkloadShape& a, const WorkloadShape& b) {
    return a.count == b.count && a.amounts == b.amounts &&
           a.constraint.ToString() == b.constraint.ToString();
  }
};
using Workload = std::vector<WorkloadShape>;

}  // namespace fluxqueue::graph
