// The nodes of a pool as stop_search.h wants them: what is free where, with some of the holders
// still there, for a job that is to start now and to hold its slots until a time.
//
// A node's rooms are its times: now, and each time at which something that is reserved there
// begins. What is held ends as planned; nobody is given what is reserved. Only nodes on which
// something may be given out to the job are there: up, as its constraint says, with taints that it
// tolerates, and not closed before its end.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "libs/graph/closure.h"
#include "libs/graph/engine.h"
#include "libs/graph/jobspec.h"
#include "libs/graph/levels.h"
#include "libs/graph/types.h"
#include "libs/matcher_core/stop_search.h"

namespace fluxqueue::matcher_core {

struct JobToFit {
  const graph::Jobspec& jobspec;
  int64_t now_s = 0;
  int64_t until_s = 0;
  std::vector<graph::Closure> closures;
  std::vector<graph::Level> levels;               // of the pool
  std::vector<const graph::Placement*> reserved;  // for others
};

// The asks, nodes and domains. `holders`: who may be stopped; all of them hold what they hold on
// the engine's graph. Their shares are those of the problem's holders, in the same order; what is
// lost and who lends is the caller's to say. O(nodes + all that is held).
StopProblem DescribeRoom(const graph::Engine& engine,
                         const JobToFit& job,
                         std::span<const graph::Placement* const> holders);

}  // namespace fluxqueue::matcher_core
