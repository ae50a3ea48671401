// Elastic jobs: with how many slots they may start, and when they take more.
//
// Limits let an elastic job start as soon as its least fits. What they leave beside the least of
// all who are named is given to the elastic ones in their order, as what they may start with at
// most; and what is left then to those that run.
//
// These are named behind all who wait, and only when everybody in line is named or held back by a
// limit: so growth takes nothing that somebody who waits could have. Nor does it take of a limit
// for which somebody waits. A job takes no more slots than it has completions left, as far as its
// pods were seen to succeed.
//
// Nothing is asked in vain: who was tried and got nothing is not tried again before something was
// given back, or somebody left the line.
//
// They give slots back before any job is stopped (preemption.h), down to their least, once all
// their pods were bound: those of a Job that is not charged for pods that are deleted so. Which
// slots is the matcher's choice. The binder says when nothing runs in them any more
// (SlotsVacated); then they are released, and the job may grow again. Numbers of slots are not used
// twice in an attempt.
//
// Growth that is not wanted any more, as the job is being stopped, stays with it: it is under its
// key, and is released with the rest. The binder may have read it already.
//
// Pure.
#pragma once

#include <cstdint>
#include <functional>
#include <set>
#include <vector>

#include "fluxqueue/events/v1/events.pb.h"

#include "libs/queue_core/view.h"

namespace fluxqueue::queue_core {

// It has had more slots in this attempt than it may number: where it would need others, it is
// stopped whole.
bool HasHadTooManySlots(const Job& job);

// How many of its slots the job may give back for another, and goes on.
uint32_t SpareSlots(const Job& job);

class Elastic {
 public:
  explicit Elastic(View view) : view_(view) {}

  // Of the candidates that are elastic: up to how many slots they may start with.
  void SetMostSlots(const std::vector<const Entry*>& entries,
                    scheduling::Pass* pass,
                    events::v1::CycleRequested* cycle) const;
  // Those who hold some of their slots and would have more, behind all who wait. `cut`: queues of
  // which no more were named. `rule_of`: of a queue, in the cycle. Returns what growth is then.
  Growth AddGrowth(const std::set<const Queue*>& cut,
                   scheduling::Pass* pass,
                   events::v1::CycleRequested* cycle,
                   const std::function<uint32_t(const Queue*)>& rule_of) const;

  // The job that grows by the outcome; null: it is not wanted any more.
  const Entry* Grows(const events::v1::Outcome& outcome) const;
  // `tried`: how many that would grow. REQUIRES: this answers the cycle in flight.
  Growth AfterAnswer(const events::v1::CycleAnswered& answered, uint32_t tried) const;
  // There may be room to grow that was not there.
  Growth AfterMessage(bool somebody_left) const;
  // A cycle would come to those who may grow. REQUIRES: somebody is in line.
  bool IsDue() const;

 private:
  // Everybody in line is named, or a limit holds him back.
  bool AllAreTried(const std::set<const Queue*>& cut,
                   const events::v1::CycleRequested& cycle) const;

  View view_;
};

}  // namespace fluxqueue::queue_core
