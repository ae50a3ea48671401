// Times: how long a job is thought to run, and when it may begin.
#include <algorithm>
#include <chrono>

#include "libs/model/rules.h"
#include "libs/queue_core/core_impl.h"
#include "libs/queue_core/queue_spec.h"
#include "libs/queue_core/reasons.h"

namespace fluxqueue::queue_core {

using model::JobState;

int64_t QueueCore::Impl::EffectiveDuration(const Job& job) const {
  if (job.duration_ms.has_value()) return *job.duration_ms;
  const auto it = book_.queues().find(job.queue);
  if (it == book_.queues().end() || it->second->config == nullptr) return 0;
  return it->second->config->default_duration_ms();
}

bool QueueCore::Impl::Predicts(const Job& job) const {
  // A claim has the time that it was given, and ends with it.
  const auto it = book_.queues().find(job.queue);
  return it != book_.queues().end() && it->second->config != nullptr &&
         it->second->config->predict_durations() && !IsClaim(job);
}

void QueueCore::Impl::Learn(const Job& job) {
  if (job.state != JobState::kSucceeded || job.start_ms == 0 || !Predicts(job)) return;
  book_.predictor().Learn(
      *job.user, ShapeOf(job), state_.now_ms - job.start_ms, EffectiveDuration(job));
}

int64_t QueueCore::Impl::UpperBound(const Job& job) const {
  return EndsWithItsTime(job) ? PlannedBoundOf(*BindingQueue(job), job.duration_ms)
                              : job.duration_ms.value_or(0);
}

std::optional<int64_t> QueueCore::Impl::Predicted(const Job& job) const {
  if (!Predicts(job)) return std::nullopt;
  const auto prediction = book_.predictor().Predict(*job.user, ShapeOf(job));
  if (!prediction.has_value() || (CorrectsPlans() && !prediction->trusted)) return std::nullopt;
  return prediction->duration_ms;
}

int64_t QueueCore::Impl::PlannedDuration(const Job& job) const {
  const int64_t effective = EffectiveDuration(job);
  const int64_t bound = CorrectsPlans() ? UpperBound(job) : effective;
  // A promise rests on what its job may take, where that is known.
  if (CorrectsPlans() && job.duration_ms.has_value()) return bound;
  const int64_t expected = Predicted(job).value_or(effective);
  return bound == 0 || (expected != 0 && expected < bound) ? expected : bound;
}

int64_t QueueCore::Impl::ExpectedDuration(const Job& job) const {
  const int64_t planned = PlannedDuration(job);
  const int64_t expected = Predicted(job).value_or(planned);
  return planned == 0 ? expected : std::min(planned, expected);
}

bool QueueCore::Impl::CorrectsPlans() const {
  return model::HasRules(config().rules(), model::kCorrectedPlans);
}

void QueueCore::Impl::Place(Entry* entry) {
  if (!model::IsTerminal(entry->job.state)) book_.Place(entry);
  FollowAdaptive(*entry);
}

void QueueCore::Impl::FollowAdaptive(const Entry& entry) {
  if (adaptive_.empty()) return;
  adaptive_.Follow(entry, ExpectedDuration(entry.job), state_.now_ms);
}

void QueueCore::Impl::BeginWaiting(const std::vector<Entry*>& due) {
  for (Entry* entry : due) {
    FollowAdaptive(*entry);
    if (entry->job.reason != reason::kNotYet) continue;
    SetWaiting(book_.Edit(entry), reason::kQueued, "in line: its begin has come");
    Say(entry);
  }
}

std::string FormatTime(int64_t unix_ms) {
  using namespace std::chrono;
  const sys_seconds at{duration_cast<seconds>(milliseconds(unix_ms))};
  const auto day = floor<days>(at);
  const year_month_day date{day};
  const hh_mm_ss time{at - day};
  return fmt::format("{:04}-{:02}-{:02}T{:02}:{:02}:{:02}Z",
                     static_cast<int>(date.year()),
                     static_cast<unsigned>(date.month()),
                     static_cast<unsigned>(date.day()),
                     time.hours().count(),
                     time.minutes().count(),
                     time.seconds().count());
}

}  // namespace fluxqueue::queue_core
