// Elastic jobs: they start with what there is, from some number of slots on, and take more while
// they run.
//
// How many have room is not known before they are matched. The naive way is to match one slot after
// the other. Instead: all at once first; when that fails the least that it may start with, as a job
// that asks for no more (so it is refused, reserved and explained as such a one); then more by
// halving: a number that has no room has none in this cycle, so half of it is tried. 2 · log2(n)
// matches at most. Where one more slot was refused, others like it are not tried either.
//
// Growth is in place: what the key holds becomes more, and keeps its end.
//
// Belongs to one cycle. The order of these steps is the trial's (trial.h).
#pragma once

#include <cstdint>

#include "fluxqueue/events/v1/events.pb.h"

#include "libs/graph/engine.h"
#include "libs/graph/jobspec.h"
#include "libs/matcher_core/closed_nodes.h"
#include "libs/matcher_core/refusals.h"

namespace fluxqueue::matcher_core {

// Slots that were not given back.
uint32_t LiveSlots(const graph::Placement& placement);

// How many slots the candidate may hold at most. REQUIRES: it is elastic.
uint32_t MostSlots(const events::v1::Candidate& candidate, const graph::Jobspec& jobspec);

class Elastic {
 public:
  // `now_s`: the cycle's. All outlive it.
  Elastic(int64_t now_s, Refusals* refusals, ClosedNodes* closed, graph::Engine* engine)
      : now_s_(now_s), refusals_(*refusals), closed_(*closed), engine_(*engine) {}

  // Of one that has started with its least: as many more as there is room for.
  void TakeMore(const events::v1::Candidate& candidate, const graph::Jobspec& jobspec);
  // The same, of one that runs. False: there is room for none.
  bool Grow(const events::v1::Candidate& candidate, const graph::Jobspec& jobspec);

 private:
  // Up to `more` slots, `first` of them tried first. Whether there was room for any.
  bool Take(const events::v1::Candidate& candidate,
            const graph::Jobspec& jobspec,
            uint32_t more,
            uint32_t first);

  const int64_t now_s_;
  Refusals& refusals_;
  ClosedNodes& closed_;
  graph::Engine& engine_;
};

}  // namespace fluxqueue::matcher_core
