// How a candidate of a cycle is tried, in its turn: what it is given on the graph, and the outcome
// that it is answered with.
//
// One whose key is held already is answered with the first answer. One that has a reservation is
// only matched where that is of use (reservations.h). Any other goes through these steps, until it
// is given something:
//
//   1. It starts now, beside all that others have reserved.
//   2. The same, as if those behind it had reserved nothing. Where this step or one of the next
//      two is of use, theirs are void.
//   3. Jobs are named without which it could start, and it waits for their room (preemption.h).
//   4. It is reserved from the earliest time on, if the rule of its queue has one left for it.
//   5. It is refused, with the reason (explain.h); and without a match all behind it that ask for
//      the same and may not reserve (refusals.h).
//
// An elastic one starts now with all that it may have, or goes through them with its least, and
// takes more when it starts (elastic.h). One that has lost slots while it runs is given others
// (replacement.h).
//
// One that waits for something without an end, so that no time can be named for it, holds up no
// other; once it is overdue, nodes are kept for it (keeping.h). (By rules 1 of libs/model/rules.h
// it ends the cycle.)
//
// Belongs to one cycle; while it lives the graph may hold room for those that wait for others to be
// stopped.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "fluxqueue/events/v1/events.pb.h"

#include "libs/graph/engine.h"
#include "libs/graph/jobspec.h"
#include "libs/matcher_core/allocation_rows.h"
#include "libs/matcher_core/closed_nodes.h"
#include "libs/matcher_core/elastic.h"
#include "libs/matcher_core/explain.h"
#include "libs/matcher_core/preemption.h"
#include "libs/matcher_core/refusals.h"
#include "libs/matcher_core/replacement.h"
#include "libs/matcher_core/reservations.h"
#include "libs/matcher_core/view.h"

namespace fluxqueue::matcher_core {

// Whose outcome it is.
void SayWho(const events::v1::Candidate& candidate, events::v1::Outcome* outcome);

class Trial {
 public:
  // All outlive it.
  Trial(const events::v1::CycleRequested& request,
        const View& view,
        Reservations* reservations,
        AllocationRows* rows,
        graph::Engine* engine);

  void Try(const events::v1::Candidate& candidate, events::v1::Outcome* outcome);
  // No other is to be tried behind the one that was tried last.
  bool ends_cycle() const { return ends_cycle_; }

 private:
  void TryElastic(const events::v1::Candidate& candidate,
                  const graph::Jobspec& jobspec,
                  bool promised,
                  events::v1::Outcome* outcome);
  // `jobspec` null: it has none, or a bad one.
  void TryGrowth(const events::v1::Candidate& candidate,
                 const graph::Jobspec* jobspec,
                 events::v1::Outcome* outcome);
  void TryReplacement(const events::v1::Candidate& candidate,
                      const graph::Jobspec* jobspec,
                      events::v1::Outcome* outcome);
  // `promised`: it came with a reservation.
  void Match(const events::v1::Candidate& candidate,
             const graph::Jobspec& jobspec,
             bool promised,
             events::v1::Outcome* outcome);
  // The same, with what its pods prefer of others now; nothing: they prefer nothing, or it is
  // refused anyway.
  std::optional<graph::Jobspec> Preferring(const events::v1::Candidate& candidate,
                                           const graph::Jobspec* jobspec);
  // What has started goes where its pods prefer to be among themselves. `promised`: others knew
  // where it would be.
  void Rearrange(const events::v1::Candidate& candidate,
                 const graph::Jobspec& jobspec,
                 bool promised,
                 events::v1::Outcome* outcome);
  // Of one whose pods have rules that they must keep among themselves: all of them now, or none.
  // Nothing is promised to it.
  void PlaceOneByOne(const events::v1::Candidate& candidate,
                     const graph::Jobspec& jobspec,
                     events::v1::Outcome* outcome);
  // False: it holds nothing. `avoided`: nodes that it is not given. `anywhere`: whatever it
  // prefers. `first`: where the first slot was, if there was one.
  bool PlaceAll(const events::v1::Candidate& candidate,
                const graph::Jobspec& jobspec,
                const std::vector<std::string>& avoided,
                bool anywhere,
                std::string* first);
  // As another that asked for the same.
  static void Answer(const Refusals::Refusal& refused,
                     const events::v1::Candidate& candidate,
                     events::v1::Outcome* outcome);
  // Of one without a reservation, beside all that there are.
  void MatchNew(const events::v1::Candidate& candidate,
                const graph::Jobspec& jobspec,
                events::v1::Outcome* outcome);
  // Of one with a reservation. False: it has none any more, and no answer.
  bool MatchPromised(const events::v1::Candidate& candidate,
                     const graph::Jobspec& jobspec,
                     events::v1::Outcome* outcome);
  // The same, where something has come free, or its time has come.
  void MatchAgain(const events::v1::Candidate& candidate,
                  const graph::Jobspec& jobspec,
                  const graph::Placement& promise,
                  events::v1::Outcome* outcome);
  // It starts, or waits for others to be stopped. False: neither, and it has no answer.
  bool StartOrStop(const events::v1::Candidate& candidate,
                   const graph::Jobspec& jobspec,
                   events::v1::Outcome* outcome);
  // The same, of one with a reservation, which it gives up for that.
  bool StartOrStopSooner(const events::v1::Candidate& candidate,
                         const graph::Jobspec& jobspec,
                         events::v1::Outcome* outcome);

  // Of one like it, which is its answer, too; null: it is to be matched.
  const Refusals::Refusal* RefusalOf(const events::v1::Candidate& candidate,
                                     const graph::Jobspec& jobspec) const;
  // The answer of one that waits, or that nothing could ever run.
  void Wait(const events::v1::Candidate& candidate,
            const graph::Jobspec& jobspec,
            const graph::Outcome& matched,
            events::v1::Outcome* outcome);
  void KeepNodesFor(const events::v1::Candidate& candidate,
                    const graph::Jobspec& jobspec,
                    events::v1::Outcome* outcome);
  // The answer of one that starts in this cycle.
  void SayStarts(const AllocationKey& key, events::v1::Outcome* outcome);
  // The answer of an elastic one, with all that it holds now.
  void SayHolds(const AllocationKey& key, events::v1::Outcome* outcome);

  const events::v1::CycleRequested& request_;
  const View& view_;
  Reservations& reservations_;
  AllocationRows& rows_;
  graph::Engine& engine_;
  ClosedNodes closed_;
  Refusals refusals_;
  Explainer explainer_;
  Elastic elastic_;
  Replacement replacement_;
  VictimSearch victims_;
  bool ends_cycle_ = false;
  uint32_t rearranged_ = 0;  // slots
};

}  // namespace fluxqueue::matcher_core
