#include "libs/queue_core/transitions.h"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "libs/base/backoff.h"
#include "libs/base/clock.h"
#include "libs/queue_core/dependencies.h"
#include "libs/queue_core/reasons.h"

namespace fluxqueue::queue_core {

using events::v1::JobEnded;
using events::v1::JobFact;
using model::JobState;

Waiting WaitingOf(const View& view,
                  const std::string& pool,
                  const Job& job,
                  const char* reason,
                  std::string message) {
  if (!view.book.Exists(job.queue)) {
    return {
        JobState::kSubmitted,
        reason::kNoQueue,
        fmt::format(
            "FluxQueue {} does not exist in pool {}: make it, or name another", job.queue, pool)};
  }
  if (job.hold) {
    return {
        JobState::kPending, reason::kHeld, "held by its user (fluxqueue.io/hold, or a command)"};
  }
  if (!job.depends_on.empty()) {
    return {JobState::kPending, reason::kDependency, DependencySentence(view, job)};
  }
  if (job.begin_ms > view.state.now_ms) {
    return {JobState::kPending,
            reason::kNotYet,
            fmt::format("not to be started before {}", FormatSeconds(Millis(job.begin_ms)))};
  }
  return {JobState::kPending, reason, std::move(message)};
}

FailureStop AfterFailure(const events::v1::PoolConfigured& config,
                         const Job& job,
                         bool may_be_bound,
                         std::string message) {
  const uint32_t next = job.failures + 2;  // the try that would follow, counting failures only
  if (may_be_bound && !job.workload->recreatable()) {
    message += fmt::format("; no controller makes the {} again", job.workload->kind());
    return {JobFact::AFTER_STOP_FAIL, std::move(message)};
  }
  if (config.max_attempts() != 0 && next > config.max_attempts()) {
    message += fmt::format("; that was attempt {} of {}", next - 1, config.max_attempts());
    return {JobFact::AFTER_STOP_FAIL, std::move(message)};
  }
  return {JobFact::AFTER_STOP_REQUEUE, std::move(message)};
}

Retry RetryAfterFailure(const events::v1::PoolConfigured& config, const Job& job, int64_t now_ms) {
  const Millis delay = BackoffDelay(Millis(config.retry_min_ms()),
                                    Millis(config.retry_max_ms()),
                                    static_cast<int>(std::min<uint32_t>(job.failures, 1000)));
  return {now_ms + delay.count(),
          fmt::format("attempt {} in {:.1f} s; {}: {}",
                      job.attempt,
                      static_cast<double>(delay.count()) / 1000,
                      job.reason,
                      job.message)};
}

Ending EndingBy(const Job& job, JobEnded::Result result, const std::string& message) {
  if (result == JobEnded::RESULT_SUCCEEDED) return {JobState::kSucceeded, "", message};
  if (job.after_stop == JobFact::AFTER_STOP_FAIL) return {JobState::kFailed, nullptr, job.message};
  if (job.after_stop == JobFact::AFTER_STOP_CANCEL) {
    return {JobState::kCancelled, nullptr, job.message};
  }
  return result == JobEnded::RESULT_DELETED
             ? Ending{JobState::kCancelled, reason::kDeleted, message}
             : Ending{JobState::kFailed, reason::kFailed, message};
}

std::optional<Ending> EndingAfterStop(const Job& job) {
  switch (job.after_stop) {
    case JobFact::AFTER_STOP_REQUEUE:
      return std::nullopt;
    case JobFact::AFTER_STOP_CANCEL:
      return Ending{JobState::kCancelled, nullptr, job.message};
    default:
      return Ending{JobState::kFailed, nullptr, job.message};
  }
}

}  // namespace fluxqueue::queue_core
