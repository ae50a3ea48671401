// Slots that are lost while the job runs: their nodes are closed, or have put their pods out. Each
// is given back alone, and another is matched in its place; what runs in the other slots runs on.
//
// The naive way is to stop the whole job and to place it again, which throws away what the others
// have done. That is what is left where no other slot is found in time, as the binder says then.
//
// A job that has lost slots goes before the line: it has been given what it asks for, and those who
// wait would gain by its loss. It is charged for all of its slots meanwhile, so limits have no say
// in it. It is asked for when it loses some, when there may be room that was not there, and when a
// node may be taken again on which it lost one. Such a node is not taken for a moment, as the
// matcher may not know yet that it is closed, and then for a while only where no other has room.
// Where more lack slots than one cycle names, the next goes on behind the last that was named,
// until all have been.
//
// Jobs only whose pods are made again, and which are not elastic: those may go on with fewer, and
// grow.
//
// Pure.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "fluxqueue/events/v1/events.pb.h"

#include "libs/queue_core/view.h"

namespace fluxqueue::queue_core {

class Replacement {
 public:
  explicit Replacement(View view) : view_(view) {}

  // Another slot is looked for where the job loses one.
  bool Replaces(const Job& job) const;
  // Those of the message that the job holds, rising; none: it is to be told nothing.
  std::vector<LostSlot> NewlyLost(const Job& job, const events::v1::SlotsLost& lost) const;
  // Those who have lost slots, before all other candidates: as many as a cycle names, and none so
  // soon after an abandoned one. `rule_of`: of a queue, in the cycle.
  void NameFirst(events::v1::CycleRequested* cycle,
                 const std::function<uint32_t(const Queue*)>& rule_of) const;
  // They are a reason for a cycle.
  bool IsDue() const;
  // No cycle names any now: one that did was abandoned.
  bool IsPaused() const;
  // How many there are to be named.
  uint32_t Lacking() const;
  // When they are tried next, where nothing else happens once they have been named; 0: never.
  int64_t TryNextAt() const;
  // The job that has slots in place of lost ones by the outcome; null: they are not wanted any
  // more.
  const Entry* Replaced(const events::v1::Outcome& outcome) const;

 private:
  // By submission.
  std::vector<const Entry*> ThoseWhoLack() const;

  View view_;
};

}  // namespace fluxqueue::queue_core
