// Durations that bind (QueueConfigured.enforce_duration), and claims, which end with their time.
//
// Who is to be ended is told so when it is allocated (JobFact.ends_after_ms), and Kubernetes does
// it: a Job that is ended by its own activeDeadlineSeconds uses up no backoffLimit. What was said
// then stays, whatever its user or its queue says later, as promises rest on it. Where it is only
// said, what holds now counts. A job that still runs when its time is over says so once (Overran).
// One that Kubernetes was to end and did not, as somebody has raised its deadline, is stopped
// (rules 4).
#include <limits>

#include "libs/queue_core/core_impl.h"
#include "libs/queue_core/queue_spec.h"
#include "libs/queue_core/reasons.h"

namespace fluxqueue::queue_core {

using events::v1::QueueConfigured;
using model::JobState;

const QueueConfigured* QueueCore::Impl::BindingQueue(const Job& job) const {
  if (!HasFirmPromises()) return nullptr;
  const auto queue = book_.queues().find(job.queue);
  return queue == book_.queues().end() ? nullptr : queue->second->config.get();
}

bool QueueCore::Impl::EndsWithItsTime(const Job& job) const {
  const QueueConfigured* queue = BindingQueue(job);
  return queue != nullptr && !IsClaim(job) &&
         queue->enforce_duration() == QueueConfigured::ENFORCEMENT_END;
}

bool QueueCore::Impl::IsEnforced(const Job& job, int64_t planned_ms) const {
  const QueueConfigured* queue = BindingQueue(job);
  if (queue == nullptr) return false;
  if (IsClaim(job) || planned_ms == 0) return true;
  return EndsWithItsTime(job) && BoundOf(*queue, job.duration_ms) != 0;
}

int64_t QueueCore::Impl::EndsAfter(const Job& job) const {
  return EndsWithItsTime(job) ? BoundOf(*BindingQueue(job), job.duration_ms) : 0;
}

int64_t QueueCore::Impl::ExpiryOf(const Job& job) const {
  if (job.state != JobState::kRunning) return 0;
  int64_t lasts_ms = job.ends_after_ms;
  if (job.overran) {
    // That it is over has been said. What is still there once Kubernetes had its time is stopped.
    if (lasts_ms == 0 || !HasAccounts()) return 0;
    lasts_ms = PlannedBound(lasts_ms);
  } else if (IsClaim(job)) {
    lasts_ms = job.effective_duration_ms;
  } else if (const QueueConfigured* queue = BindingQueue(job); queue != nullptr && lasts_ms == 0) {
    lasts_ms = BoundOf(*queue, job.duration_ms);
  }
  const int64_t last = std::numeric_limits<int64_t>::max();
  return lasts_ms == 0 || lasts_ms > last - job.start_ms ? 0 : job.start_ms + lasts_ms;
}

void QueueCore::Impl::HandleExpired() {
  for (Entry* entry : book_.Expired()) {
    if (IsClaim(entry->job)) {
      End(entry, JobState::kSucceeded, reason::kExpired, "its time is over");
      continue;
    }
    Job& job = book_.Edit(entry);
    if (job.overran) {
      Stop(entry,
           events::v1::JobFact::AFTER_STOP_FAIL,
           reason::kOverran,
           fmt::format("it ran for {} s, may for {}, and was not ended: was its "
                       "activeDeadlineSeconds raised?",
                       (state_.now_ms - job.start_ms) / 1000,
                       job.ends_after_ms / 1000));
      continue;
    }
    job.overran = true;
    job.reason = reason::kOverran;
    job.message = fmt::format("it has run for {} s, which is all that it may",
                              (state_.now_ms - job.start_ms) / 1000);
    Say(entry);
  }
}

void QueueCore::Impl::PlaceRunning(const std::string& queue) {
  for (Entry* entry : book_.JobsOf(queue, JobState::kRunning)) {
    const int64_t expires_ms = ExpiryOf(entry->job);
    if (expires_ms == entry->job.expires_ms) continue;
    book_.Edit(entry).expires_ms = expires_ms;
    book_.Place(entry);
  }
}

}  // namespace fluxqueue::queue_core
