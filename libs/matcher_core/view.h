// What the parts of a cycle see of its pool. Nothing is changed through it: what a cycle changes is
// the graph, what is promised, and the rows of what is held; a part that changes one of these has a
// pointer to it.
//
//   cycle.h         the line: who is tried, in which order, and where a queue's line ends
//   trial.h         how a candidate is tried
//   reservations.h  what was promised, and what this cycle may promise
//   promises.h      whether a promise is firm, and why one was lost
//   elastic.h       with how many slots an elastic job starts, and how it grows
//   preemption.h    without whom a candidate could start
//   next_cycle.h    what those ahead of it will take in the next cycle
//   windows.h       nodes that are kept for a time
//   closed_nodes.h  which nodes are closed to a candidate
//   pod_book.h      which of them by rules between pods
//   refusals.h      what this cycle has refused
//   explain.h       why a candidate does not start
#pragma once

#include <string>
#include <vector>

#include "fluxqueue/matcher/v1/state.pb.h"

#include "libs/graph/engine.h"
#include "libs/matcher_core/node_book.h"
#include "libs/matcher_core/promise_book.h"
#include "libs/matcher_core/rows.h"
#include "libs/matcher_core/specs.h"

namespace fluxqueue::matcher_core {

struct View {
  const std::string& pool;              // its name
  const matcher::v1::PoolState& state;  // configuration, windows, when its time began
  const Specs& specs;                   // of live jobs
  const RuledSpecs& ruled;              // of these, whose pods have rules
  const NodeBook& nodes;                // as its log told of them
  const PromiseBook& promises;
  const std::vector<AllocationKey>& plan;  // what the last cycle reserved, in its order
  const graph::Engine& engine;             // the nodes, and what is held on them
};

}  // namespace fluxqueue::matcher_core
