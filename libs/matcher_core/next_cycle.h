// What those ahead of a candidate will take in the next cycle, when those that it has chosen are
// gone: tried on the graph, each by the rule of its queue. What is promised to them is planned
// again, as one that stands before them may take it.
//
// Takes back all that it did when it goes.
#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "fluxqueue/events/v1/events.pb.h"

#include "libs/graph/engine.h"
#include "libs/graph/jobspec.h"
#include "libs/matcher_core/candidate.h"
#include "libs/matcher_core/closed_nodes.h"
#include "libs/matcher_core/removal.h"
#include "libs/matcher_core/reservations.h"
#include "libs/matcher_core/view.h"

namespace fluxqueue::matcher_core {

// A cycle's line, as far as it has been gone through, and the graph on which it is.
struct Line {
  const events::v1::CycleRequested& request;
  const View& view;
  const Reservations& reservations;
  ClosedNodes& closed;
  graph::Engine& engine;
};

// Some of the slots that a key holds.
struct SlotsOf {
  AllocationKey key;
  std::vector<uint32_t> slots;  // rising
};

// Whose room a candidate waits for.
struct Victims {
  std::vector<AllocationKey> stopped;
  std::vector<SlotsOf> vacated;  // elastic jobs, which go on without these
};

// Those that wait for others, under whose keys the room is kept, and what they wait for.
struct Waiting {
  std::vector<AllocationKey> room_kept;
  std::vector<Victims> awaited;
};

class NextCycle {
 public:
  // `own`: the candidate's key. The line outlives it.
  NextCycle(const Line& line, const AllocationKey& own, const Waiting& waiting);
  ~NextCycle();
  NextCycle(const NextCycle&) = delete;
  NextCycle& operator=(const NextCycle&) = delete;

  // All that stand ahead of the candidate. Those that hold something by now are left out.
  void TryThoseAhead(const events::v1::Candidate& candidate);
  // One that waits for others to be stopped, or to give slots back, may take any room that comes
  // free before theirs does.
  void LetGoOfKeptRoom() { kept_.TakeOutAll(); }
  void StopThoseAwaited() { awaited_.TakeOutAll(); }

 private:
  struct Refusal {
    int64_t shortest_s = 0;
    graph::OutcomeKind kind = graph::OutcomeKind::kBusy;
  };

  void Try(const events::v1::Candidate& other);
  // What one that runs has in place of slots that it has lost, under keys of its own.
  void TakeInPlace(const events::v1::Candidate& other, const graph::Jobspec& jobspec);
  graph::OutcomeKind Match(const events::v1::Candidate& other, const graph::Jobspec& jobspec);
  // An elastic job takes all that there is.
  graph::OutcomeKind Take(const events::v1::Candidate& other,
                          const graph::Jobspec& jobspec,
                          bool reserves);

  const Line& line_;
  Removal kept_;
  Removal awaited_;
  std::vector<AllocationKey> put_away_;  // what is promised to those ahead
  std::vector<AllocationKey> taken_;
  std::map<AllocationKey, uint32_t> in_place_;  // slots that were taken for it
  ReservationQuota quota_;
  std::set<uint32_t> passed_over_;                    // rules
  std::unordered_map<std::string, Refusal> refused_;  // by shape and windows
};

}  // namespace fluxqueue::matcher_core
