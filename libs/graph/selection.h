// Where a request goes.
#pragma once

#include <vector>

#include "libs/graph/graph_state.h"

namespace fluxqueue::graph {

struct Selection {
  // Empty when nothing of it would be held. What is held below each vertex is not summed up yet.
  Holding holding;
  // The edges that lead to what is held.
  std::vector<EdgeId> used;
};

}  // namespace fluxqueue::graph
