// Nodes on which nothing is given out for a time: maintenance, or what is kept for others.
#pragma once

#include <cstdint>

#include "libs/graph/constraint.h"

namespace fluxqueue::graph {

// In [from_s, to_s). REQUIRES: 0 <= from_s < to_s.
struct Closure {
  Constraint nodes;
  int64_t from_s = 0;
  int64_t to_s = 0;
  // As rules before 15 have it (libs/model/rules.h): a node counts as taken once for each closure
  // of it, so that a job that asks for whole nodes can be refused although there are enough.
  bool counts_as_taken = false;

  // Some of [at_s, end_s) is in it.
  bool Meets(int64_t at_s, int64_t end_s) const { return from_s < end_s && at_s < to_s; }

  friend bool operator==(const Closure& a, const Closure& b) {
    return a.from_s == b.from_s && a.to_s == b.to_s && a.counts_as_taken == b.counts_as_taken &&
           a.nodes.ToString() == b.nodes.ToString();
  }
};

}  // namespace fluxqueue::graph
