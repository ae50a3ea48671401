// A cycle: the line that CycleRequested names, candidate by candidate, and the answer.
//
// Candidates are tried in order (trial.h). By a rule that says stop_at_first_blocked no more of its
// queue are tried behind the first that cannot start; one that is unsatisfiable or invalid stops no
// line, as no wait would help it, and growth holds up no other. (By rules 1 of libs/model/rules.h
// that ends the cycle.) Where a rule's reservations are given, what is left of it goes by the order
// of its backfilling, if it has one. The answer keeps the order of the line.
//
// Made for one request, on the pool as it is then. What it changes is named in its constructor; all
// of that is part of the batch, and can be taken back.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <vector>

#include "fluxqueue/events/v1/events.pb.h"

#include "libs/graph/engine.h"
#include "libs/matcher_core/allocation_rows.h"
#include "libs/matcher_core/promise_book.h"
#include "libs/matcher_core/reservations.h"
#include "libs/matcher_core/view.h"

namespace fluxqueue::matcher_core {

class CycleRun {
 public:
  // Hears of each candidate as it has its outcome.
  using Tried = std::function<void(const events::v1::Outcome&)>;

  // `promises`, `engine`: the view's. All outlive it.
  CycleRun(const events::v1::CycleRequested& request,
           const View& view,
           PromiseBook* promises,
           AllocationRows* rows,
           graph::Engine* engine);

  // Once.
  events::v1::CycleAnswered Answer(const Tried& tried);
  // Afterwards: something came free that some reservations do not know of.
  bool left_room() const { return reservations_.room_came_late(); }

 private:
  using Outcomes = std::vector<std::optional<events::v1::Outcome>>;  // by candidate

  Outcomes TryAll(const Tried& tried);
  // The line of its queue has stopped: what it was promised it keeps, and that it has lost it is
  // said all the same.
  void PassOver(const events::v1::Candidate& candidate,
                std::optional<events::v1::Outcome>* outcome);
  bool IsStopped(const events::v1::Candidate& candidate) const;
  // The line ends behind this one.
  bool Stops(const events::v1::Candidate& candidate, const events::v1::Outcome& outcome) const;
  // Those of the rule in `order` from `tried` on change places with each other.
  void TakeTurns(uint32_t rule, size_t tried, std::vector<int>* order) const;

  const events::v1::CycleRequested& request_;
  const View& view_;
  PromiseBook& promises_;
  AllocationRows& rows_;
  graph::Engine& engine_;
  Reservations reservations_;
  std::vector<bool> stopped_;  // by rule
};

}  // namespace fluxqueue::matcher_core
