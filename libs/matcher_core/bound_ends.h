// Whether what a promise rests on is bound to end in time.
//
// A promise of nodes from a time on rests on all that is planned to end on them until then. It is
// firm when each of these is ended in time (Placement::enforced), whatever it does: what is ended
// later than it is planned to end, or not at all, makes of the promise a forecast. What has no end,
// or is planned to end later, is not in its way and does not count.
//
// Made of what is held and reserved at one time. Pure.
#pragma once

#include <cstdint>
#include <map>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "libs/graph/engine.h"
#include "libs/graph/types.h"

namespace fluxqueue::matcher_core {

class BoundEnds {
 public:
  // O(slots). Engine and reservations must outlive it, unchanged.
  BoundEnds(const graph::Engine& engine,
            const std::map<graph::AllocationKey, graph::Placement>& reservations,
            int64_t now_s);

  // `promise`: one of the reservations.
  bool IsFirm(const graph::Placement& promise) const;

 private:
  // It is planned to end at the one time, and ended for sure at the other.
  struct Unsure {
    int64_t planned_s = 0;
    int64_t sure_s = 0;
  };

  void Add(const graph::Placement& placement, int64_t now_s);

  std::unordered_map<std::string_view, std::vector<Unsure>> unsure_;  // by node
};

}  // namespace fluxqueue::matcher_core
