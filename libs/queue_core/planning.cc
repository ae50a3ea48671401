#include "libs/queue_core/planning.h"

#include <algorithm>
#include <limits>

#include "libs/queue_core/queue_spec.h"

namespace fluxqueue::queue_core {

using events::v1::QueueConfigured;
using model::JobState;

int64_t Planning::EffectiveDuration(const Job& job) const {
  if (job.duration_ms.has_value()) return *job.duration_ms;
  const QueueConfigured* queue = view_.ConfigOf(job.queue);
  return queue == nullptr ? 0 : queue->default_duration_ms();
}

bool Planning::Predicts(const Job& job) const {
  // A claim has the time that it was given, and ends with it.
  const QueueConfigured* queue = view_.ConfigOf(job.queue);
  if (queue == nullptr || !queue->predict_durations() || IsClaim(job)) return false;
  // Predictions make it worse (README.md of libs/scheduling).
  const bool is_adaptive = scheduling::FindStrategy(queue->strategy())->is_adaptive;
  return !(is_adaptive && view_.HasRules(model::kAdaptivePredictsNothing));
}

std::optional<int64_t> Planning::Predicted(const Job& job) const {
  if (!Predicts(job)) return std::nullopt;
  const auto prediction = view_.book.predictor().Predict(*job.user, ShapeOf(job));
  if (!prediction.has_value()) return std::nullopt;
  if (view_.CorrectsPlans() && !prediction->trusted) return std::nullopt;
  return prediction->duration_ms;
}

int64_t Planning::PlannedDuration(const Job& job) const {
  const int64_t effective = EffectiveDuration(job);
  const int64_t bound = view_.CorrectsPlans() ? UpperBound(job) : effective;
  // A promise rests on what its job may take, where that is known.
  if (view_.CorrectsPlans() && job.duration_ms.has_value()) return bound;
  const int64_t expected = Predicted(job).value_or(effective);
  return bound == 0 || (expected != 0 && expected < bound) ? expected : bound;
}

int64_t Planning::ExpectedDuration(const Job& job) const {
  const int64_t planned = PlannedDuration(job);
  const int64_t expected = Predicted(job).value_or(planned);
  return planned == 0 ? expected : std::min(planned, expected);
}

int64_t Planning::UpperBound(const Job& job) const {
  return EndsWithItsTime(job) ? PlannedBoundOf(*BindingQueue(job), job.duration_ms)
                              : job.duration_ms.value_or(0);
}

const QueueConfigured* Planning::BindingQueue(const Job& job) const {
  return view_.HasFirmPromises() ? view_.ConfigOf(job.queue) : nullptr;
}

bool Planning::EndsWithItsTime(const Job& job) const {
  const QueueConfigured* queue = BindingQueue(job);
  return queue != nullptr && !IsClaim(job) &&
         queue->enforce_duration() == QueueConfigured::ENFORCEMENT_END;
}

bool Planning::IsEnforced(const Job& job, int64_t planned_ms) const {
  const QueueConfigured* queue = BindingQueue(job);
  if (queue == nullptr) return false;
  if (IsClaim(job) || planned_ms == 0) return true;
  return EndsWithItsTime(job) && BoundOf(*queue, job.duration_ms) != 0;
}

int64_t Planning::EndsAfter(const Job& job) const {
  return EndsWithItsTime(job) ? BoundOf(*BindingQueue(job), job.duration_ms) : 0;
}

int64_t Planning::ExpiryOf(const Job& job) const {
  if (job.state != JobState::kRunning) return 0;
  int64_t lasts_ms = job.ends_after_ms;
  if (job.overran) {
    // That it is over has been said. What is still there once Kubernetes had its time is stopped.
    if (lasts_ms == 0 || !view_.HasAccounts()) return 0;
    lasts_ms = PlannedBound(lasts_ms);
  } else if (IsClaim(job)) {
    lasts_ms = job.effective_duration_ms;
  } else if (const QueueConfigured* queue = BindingQueue(job); queue != nullptr && lasts_ms == 0) {
    lasts_ms = BoundOf(*queue, job.duration_ms);
  }
  const int64_t last = std::numeric_limits<int64_t>::max();
  return lasts_ms == 0 || lasts_ms > last - job.start_ms ? 0 : job.start_ms + lasts_ms;
}

}  // namespace fluxqueue::queue_core
