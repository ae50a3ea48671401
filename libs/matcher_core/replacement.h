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
// Where not all have room, as many as do; but where all slots are to be below one vertex, and it
// has lost all of them, all or none.
//
// Belongs to one cycle.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "fluxqueue/events/v1/events.pb.h"

#include "libs/graph/engine.h"
#include "libs/graph/jobspec.h"
#include "libs/matcher_core/closed_nodes.h"
#include "libs/matcher_core/reservations.h"
#include "libs/matcher_core/view.h"

namespace fluxqueue::matcher_core {

// What a job lacks of its slots, and where it may have others.
struct Lack {
  // Where: the jobspec, of nodes there alone, and nodes that it does not take.
  struct Place {
    graph::Jobspec jobspec;
    std::vector<std::string> closed;
  };

  uint32_t slots = 0;
  bool is_nowhere = false;    // it has no slot beside which others could be
  bool is_whole = false;      // all or none, as they are to be in one place, which is not known
  std::vector<Place> places;  // tried one after the other
};
// REQUIRES: its key holds something; its slots are alike.
Lack LackOf(const View& view,
            const events::v1::Candidate& candidate,
            const graph::Jobspec& jobspec);
// `take` is asked for all, then, unless they are taken as a whole alone, for half as many, and so
// on. How many were taken.
uint32_t TakeInParts(uint32_t all, bool is_whole, const std::function<bool(uint32_t slots)>& take);

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

  // Up to as many as the candidate says. False: there is room for none. One that only grows, as it
  // was resized, leaves what is reserved to those behind it, too.
  // REQUIRES: its key holds something; its slots are alike.
  bool Try(const events::v1::Candidate& candidate, const graph::Jobspec& jobspec);
  // The least that had no room, for people. REQUIRES: Try() was false.
  graph::Jobspec Refused() const;

 private:
  bool Grow(const events::v1::Candidate& candidate, uint32_t slots);

  const View& view_;
  const int64_t now_s_;
  Reservations& reservations_;
  ClosedNodes& closed_;
  graph::Engine& engine_;
  Lack lack_;  // of the one that was tried last
};

}  // namespace fluxqueue::matcher_core
