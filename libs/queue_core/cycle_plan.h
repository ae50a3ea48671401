// Who is tried in a cycle, in which order and how: one pass over all that wait
// (libs/scheduling/fair_share.h), each gone about by the rule of its queue's strategy; and when is
// looked again where nothing else happens. Pure.
#pragma once

#include <cstdint>
#include <optional>
#include <set>
#include <unordered_set>
#include <vector>

#include "fluxqueue/events/v1/events.pb.h"

#include "libs/queue_core/adaptive_queues.h"
#include "libs/queue_core/elastic.h"
#include "libs/queue_core/planning.h"
#include "libs/queue_core/preemption.h"
#include "libs/queue_core/replacement.h"
#include "libs/queue_core/view.h"

namespace fluxqueue::queue_core {

class CyclePlanner {
 public:
  // `adaptive` outlives it.
  CyclePlanner(View view, const AdaptiveQueues* adaptive)
      : view_(view),
        planning_(view),
        elastic_(view),
        preemption_(view),
        replacement_(view),
        adaptive_(*adaptive) {}

  // Candidates, rules, and who may be stopped. Returns what growth is then. `pass`: has named
  // no job yet. `passers`: may not reserve.
  Growth Plan(const std::unordered_set<const Entry*>& passers,
              scheduling::Pass* pass,
              events::v1::CycleRequested* cycle) const;

  // When the cycle's refused are looked at again, should no message have said that something could
  // help them; `due_ms`: what is due already, 0 for nothing.
  int64_t LookAgainAt(const events::v1::CycleRequested& cycle, int64_t due_ms) const;

 private:
  // `waits_since_ms`: of those that were first of their queues, when the last one came to be that;
  // 0: none was.
  int64_t LookAgainInterval(int64_t waits_since_ms) const;
  // When the first of the queue has a right to a reservation; nothing: never.
  std::optional<int64_t> OverdueAt(const Entry& entry) const;
  // The first of each queue that has waited as that for too long. They go before all that no
  // priority puts ahead of them.
  std::set<const Entry*> AdvanceOverdue(std::vector<const Entry*>* entries) const;
  void AddCandidate(const Entry& entry,
                    uint32_t rule,
                    bool may_reserve,
                    bool is_overdue,
                    events::v1::CycleRequested* cycle) const;
  void GiveBackfillTurns(const std::vector<const Entry*>& entries,
                         events::v1::CycleRequested* cycle) const;

  View view_;
  Planning planning_;
  Elastic elastic_;
  Preemption preemption_;
  Replacement replacement_;
  const AdaptiveQueues& adaptive_;
};

}  // namespace fluxqueue::queue_core
