#include "libs/queue_core/queue_spec.h"

#include <algorithm>
#include <limits>
#include <string_view>

#include "libs/base/status_macros.h"
#include "libs/queue_core/job.h"
#include "libs/scheduling/candidate_window.h"
#include "libs/scheduling/strategy.h"

namespace fluxqueue::queue_core {
namespace {

using events::v1::QueueConfigured;

scheduling::Limits LimitsOf(const events::v1::Limits& from) {
  scheduling::Limits limits;
  if (from.has_running_jobs()) limits.running_jobs = from.running_jobs();
  if (from.has_queued_jobs()) limits.queued_jobs = from.queued_jobs();
  if (from.has_gpu_seconds()) limits.gpu_seconds = from.gpu_seconds();
  for (const events::v1::Amount& amount : from.amounts()) {
    limits.Limit(amount.resource(), amount.amount());
  }
  return limits;
}

absl::Status CheckNotBelowZero(const QueueConfigured& queue, std::string_view key, int64_t value) {
  if (value >= 0) return absl::OkStatus();
  return InvalidArgument("queue {}: {} is {}; it must not be below 0", queue.queue(), key, value);
}

absl::Status CheckAmounts(const QueueConfigured& queue,
                          std::string_view key,
                          const AmountList& amounts) {
  for (const events::v1::Amount& amount : amounts) {
    RETURN_IF_ERROR(
        CheckNotBelowZero(queue, fmt::format("{} of {}", key, amount.resource()), amount.amount()));
  }
  return absl::OkStatus();
}

absl::Status CheckBudgets(const QueueConfigured& queue) {
  for (const events::v1::Budget& budget : queue.budgets()) {
    const std::string key = fmt::format("budgets of {}", budget.resource());
    RETURN_IF_ERROR(CheckNotBelowZero(queue, key, budget.hours()));
    if (budget.resource().empty() || !events::v1::Budget::Period_IsValid(budget.period()) ||
        budget.period() == events::v1::Budget::PERIOD_UNSPECIFIED) {
      return InvalidArgument(
          "queue {}: {}: period {}; a resource and one of the periods 1 to 5 are allowed",
          queue.queue(),
          key,
          budget.period());
    }
  }
  return absl::OkStatus();
}

absl::Status CheckLimits(const QueueConfigured& queue,
                         std::string_view key,
                         const events::v1::Limits& limits) {
  RETURN_IF_ERROR(
      CheckNotBelowZero(queue, fmt::format("{}.gpu_seconds", key), limits.gpu_seconds()));
  return CheckAmounts(queue, key, limits.amounts());
}

}  // namespace

scheduling::Period PeriodOf(events::v1::Budget::Period period) {
  return static_cast<scheduling::Period>(period - events::v1::Budget::PERIOD_DAY);
}

events::v1::Budget::Period ToPeriod(scheduling::Period period) {
  return static_cast<events::v1::Budget::Period>(static_cast<int>(period) +
                                                 events::v1::Budget::PERIOD_DAY);
}

absl::Status CheckQueue(const QueueConfigured& configured) {
  const std::string& name = configured.queue();
  if (name.empty()) return InvalidArgument("QueueConfigured names no queue");
  if (configured.deleted()) return absl::OkStatus();
  if (scheduling::FindStrategy(configured.strategy()) == nullptr) {
    return InvalidArgument("queue {}: strategy \"{}\" does not exist; allowed: {}",
                           name,
                           configured.strategy(),
                           scheduling::StrategyNames());
  }
  if (!scheduling::FindJobOrder(configured.order()).has_value()) {
    return InvalidArgument("queue {}: order \"{}\" does not exist; allowed: {}",
                           name,
                           configured.order(),
                           scheduling::JobOrderNames());
  }
  RETURN_IF_ERROR(CheckNotBelowZero(configured, "weight", configured.weight()));
  RETURN_IF_ERROR(CheckNotBelowZero(configured, "half_life_ms", configured.half_life_ms()));
  RETURN_IF_ERROR(CheckNotBelowZero(configured, "aging_ms", configured.aging_ms()));
  RETURN_IF_ERROR(CheckNotBelowZero(configured, "reject_after_ms", configured.reject_after_ms()));
  RETURN_IF_ERROR(CheckNotBelowZero(configured, "reserve_after_ms", configured.reserve_after_ms()));
  RETURN_IF_ERROR(CheckNotBelowZero(configured, "enforce_grace_ms", configured.enforce_grace_ms()));
  RETURN_IF_ERROR(
      CheckNotBelowZero(configured, "preemption.grace_ms", configured.preemption().grace_ms()));
  RETURN_IF_ERROR(CheckAmounts(configured, "guarantee", configured.guarantee()));
  RETURN_IF_ERROR(CheckAmounts(configured, "most_per_job", configured.most_per_job()));
  RETURN_IF_ERROR(CheckAmounts(configured, "least_per_job", configured.least_per_job()));
  for (const events::v1::UserWeight& user : configured.user_weights()) {
    RETURN_IF_ERROR(CheckNotBelowZero(
        configured, fmt::format("user_weights of {}", user.user()), user.weight()));
  }
  RETURN_IF_ERROR(CheckBudgets(configured));
  RETURN_IF_ERROR(CheckLimits(configured, "limits", configured.limits()));
  RETURN_IF_ERROR(CheckLimits(configured, "namespace_limits", configured.namespace_limits()));
  return CheckLimits(configured, "user_limits", configured.user_limits());
}

uint32_t DepthOf(const QueueConfigured* configured) {
  const uint32_t depth = configured == nullptr ? 0 : configured->queue_depth();
  return depth == 0 ? scheduling::kDefaultDepth : depth;
}

int64_t PlannedBoundOf(const QueueConfigured& queue, std::optional<int64_t> declared_ms) {
  return PlannedBound(BoundOf(queue, declared_ms));
}

int64_t PlannedBound(int64_t bound_ms) {
  const bool fits = bound_ms <= std::numeric_limits<int64_t>::max() - kStopMs;
  return bound_ms == 0 || !fits ? bound_ms : bound_ms + kStopMs;
}

int64_t BoundOf(const QueueConfigured& queue, std::optional<int64_t> declared_ms) {
  if (queue.enforce_duration() == QueueConfigured::ENFORCEMENT_NEVER) return 0;
  const int64_t undeclared_ms = queue.bound_undeclared() ? queue.max_duration_ms() : 0;
  const int64_t bound_ms = declared_ms.value_or(undeclared_ms);
  if (bound_ms == 0) return 0;
  const int64_t last = std::numeric_limits<int64_t>::max();
  return bound_ms > last - queue.enforce_grace_ms() ? last : bound_ms + queue.enforce_grace_ms();
}

bool Binds(const QueueConfigured& queue) {
  // A promised job may be held back by a limit when its time comes.
  for (const events::v1::Limits* limits :
       {&queue.limits(), &queue.namespace_limits(), &queue.user_limits()}) {
    if (limits->has_running_jobs() || limits->has_gpu_seconds() || !limits->amounts().empty()) {
      return false;
    }
  }
  const bool expects_less = queue.default_duration_ms() != 0 &&
                            (!queue.bound_undeclared() || queue.max_duration_ms() == 0 ||
                             queue.default_duration_ms() < queue.max_duration_ms());
  const bool may_wait_for_a_period = std::any_of(queue.budgets().begin(),
                                                 queue.budgets().end(),
                                                 [](const auto& budget) { return budget.holds(); });
  return queue.enforce_duration() == QueueConfigured::ENFORCEMENT_END &&
         !queue.predict_durations() && !expects_less && !may_wait_for_a_period;
}

scheduling::QueueSpec SpecOf(const QueueConfigured& configured) {
  scheduling::QueueSpec spec;
  spec.parent = configured.parent();
  spec.priority = configured.priority();
  spec.weight = configured.weight();
  spec.order = *scheduling::FindJobOrder(configured.order());
  spec.guarantee = ToResources(configured.guarantee());
  spec.limits[static_cast<size_t>(scheduling::Level::kQueue)] = LimitsOf(configured.limits());
  spec.limits[static_cast<size_t>(scheduling::Level::kNamespace)] =
      LimitsOf(configured.namespace_limits());
  spec.limits[static_cast<size_t>(scheduling::Level::kUser)] = LimitsOf(configured.user_limits());
  for (const events::v1::Amount& amount : configured.most_per_job()) {
    spec.most_per_job.Limit(amount.resource(), amount.amount());
  }
  spec.least_per_job = ToResources(configured.least_per_job());
  for (const events::v1::UserWeight& user : configured.user_weights()) {
    spec.user_weights.emplace(user.user(), user.weight());
  }
  for (const events::v1::Budget& budget : configured.budgets()) {
    spec.budgets.push_back({.resource = budget.resource(),
                            .hours = budget.hours(),
                            .period = PeriodOf(budget.period()),
                            .holds = budget.holds()});
  }
  spec.half_life_ms = configured.half_life_ms();
  spec.aging_ms = configured.aging_ms();
  spec.depth = DepthOf(&configured);
  return spec;
}

}  // namespace fluxqueue::queue_core
