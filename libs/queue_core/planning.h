// Times: how long a job may run, how long it will, and when its time is over.
//
// Durations bind where the queue says so (QueueConfigured.enforce_duration); claims end with their
// time everywhere. Who is to be ended is told so when it is allocated (JobFact.ends_after_ms), and
// Kubernetes does it: a Job that is ended by its own activeDeadlineSeconds uses up no backoffLimit.
// What was said then stays, whatever its user or its queue says later, as promises rest on it.
// Where it is only said, what holds now counts.
//
// All in ms. Pure.
#pragma once

#include <cstdint>
#include <optional>

#include "libs/queue_core/view.h"

namespace fluxqueue::queue_core {

class Planning {
 public:
  explicit Planning(View view) : view_(view) {}

  // What the job declares, else its queue's default. 0: it has no end.
  int64_t EffectiveDuration(const Job& job) const;
  bool Predicts(const Job& job) const;
  // Where the queue predicts, and the prediction is trusted.
  std::optional<int64_t> Predicted(const Job& job) const;
  // What a plan counts with: what the job declares, as promises rest on it; of one that declares
  // nothing what is predicted, else the queue's default. 0: it has no end. (Rules 1 and 2: what is
  // predicted, and no more than both.)
  int64_t PlannedDuration(const Job& job) const;
  // What it will rather take: who is short goes first where one may pass another. No more than
  // planned.
  int64_t ExpectedDuration(const Job& job) const;
  // What a plan may count on at most: 0: nothing bounds it.
  int64_t UpperBound(const Job& job) const;

  // It has no end but its bound, or is ended there. `planned_ms`: PlannedDuration.
  bool IsEnforced(const Job& job, int64_t planned_ms) const;
  // As it is allocated: so long after its start Kubernetes ends it. 0: it does not.
  int64_t EndsAfter(const Job& job) const;
  // Of one that runs: when its time is over, and something is to be done. 0: never.
  int64_t ExpiryOf(const Job& job) const;

 private:
  // The queue that the job stands in; null: there is none, or durations do not bind.
  const events::v1::QueueConfigured* BindingQueue(const Job& job) const;
  // By its queue, at the latest when its bound is over; no claim, which the core ends itself.
  bool EndsWithItsTime(const Job& job) const;

  View view_;
};

}  // namespace fluxqueue::queue_core
