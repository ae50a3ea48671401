// Promises: what a job is told of its start, and the ledger of it (queue.promises).
//
// A promise is firm when it rests on bounds: all that is to end on its nodes before it is ended in
// time (the matcher looks at these), and nothing that could be given room there meanwhile can stay
// for longer than planned (the queues' configurations). Else it is a forecast.
//
// Each version of a job that says another start than the one before, or none, is an entry: made,
// moved, withdrawn, or kept by an allocation. Why it is later or withdrawn is the matcher's reason,
// where it has one; by rules before 3 it never has, and what the queue knows is said.
//
// Pure.
#pragma once

#include <string>

#include "fluxqueue/events/v1/events.pb.h"

#include "libs/queue_core/view.h"

namespace fluxqueue::queue_core {

class Promises {
 public:
  explicit Promises(View view) : view_(view) {}

  bool IsFirm(const Entry& entry, const events::v1::Outcome& outcome) const;
  // Others are stopped for it, so that it starts sooner than it was promised.
  bool AwaitsVictims(const Job& job, const events::v1::Outcome& outcome) const;

  // Why a job starts later than it was told, or its promise is withdrawn: as the matcher says, else
  // as far as the core knows. REQUIRES: a cycle is in flight, and this is its answer.
  events::v1::Slip WhyLater(const Job& job,
                            const events::v1::Slip& said,
                            const events::v1::CycleAnswered& answered) const;
  // The same, of one that no cycle names any more.
  events::v1::Slip WhyNotNamed(const Entry& entry, const events::v1::CycleAnswered& answered) const;
  // No promise outlives a cycle that was abandoned, and none that is made before all that it named
  // have been tried is firm.
  static events::v1::Slip AfterAbandonedCycle();
  // For the job that it befell.
  std::string Sentence(const Job& told, const events::v1::Slip& slip) const;

 private:
  bool IsOfOneThatRuns(const events::v1::Candidate& candidate) const;

  View view_;
};

}  // namespace fluxqueue::queue_core
