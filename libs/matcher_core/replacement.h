// Slots in place of those that a job has lost while it runs (Candidate.replace).
//
// They are added to what its key holds, as those of an elastic job that grows, but not everywhere:
// where its jobspec wants all slots below one vertex of a level, only there where the others are;
// where it prefers that, there first, then below each vertex above it, then anywhere. Nodes on
// which it lost slots and that may be closed it is not given; those that put its pods out only
// where no others have room.
//
// It stands before the line: where there is no room beside what others have reserved, it is tried
// as if they had reserved nothing, and theirs are void where that was of use.
//
// Where not all have room, as many as do.
//
// Belongs to one cycle.
#pragma once

#include <string>
#include <vector>

#include "fluxqueue/events/v1/events.pb.h"

#include "libs/graph/engine.h"
#include "libs/graph/jobspec.h"
#include "libs/matcher_core/closed_nodes.h"
#include "libs/matcher_core/reservations.h"
#include "libs/matcher_core/view.h"

namespace fluxqueue::matcher_core {

class Replacement {
 public:
  // `now_s`: the cycle's. All outlive it.
  Replacement(const View& view,
              int64_t now_s,
              Reservations* reservations,
              ClosedNodes* closed,
              graph::Engine* engine)
      : view_(view),
        now_s_(now_s),
        reservations_(*reservations),
        closed_(*closed),
        engine_(*engine) {}

  // Up to as many as the candidate says. False: it holds fewer, and there is room for none.
  // REQUIRES: its key holds something; its slots are alike.
  bool Try(const events::v1::Candidate& candidate, const graph::Jobspec& jobspec);

 private:
  // Nodes that it does not take. Tried one after the other.
  using Outside = std::vector<std::vector<std::string>>;

  Outside OutsideOf(const events::v1::Candidate& candidate, const graph::Jobspec& jobspec) const;
  // Those that are not below the vertex of the level where the job's slots are; empty: it has none.
  std::vector<std::string> NotBeside(const graph::Placement& placement,
                                     const std::string& level) const;
  bool Grow(const events::v1::Candidate& candidate,
            const graph::Jobspec& some,
            const Outside& outside);

  const View& view_;
  const int64_t now_s_;
  Reservations& reservations_;
  ClosedNodes& closed_;
  graph::Engine& engine_;
};

}  // namespace fluxqueue::matcher_core
