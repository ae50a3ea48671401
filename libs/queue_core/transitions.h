// What becomes of a job that waits, is to stop for a failure, is requeued or has ended: the state,
// the reason and the sentence for people. Pure.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "fluxqueue/events/v1/events.pb.h"

#include "libs/model/job_state.h"
#include "libs/queue_core/view.h"

namespace fluxqueue::queue_core {

struct Waiting {
  model::JobState state = model::JobState::kPending;
  std::string reason;
  std::string message;
};
// Of a job that could be in line: Submitted where its queue does not exist; held, dependent or not
// due where it is; else Pending as is said.
Waiting WaitingOf(const View& view,
                  const std::string& pool,
                  const Job& job,
                  const char* reason,
                  std::string message);

struct FailureStop {
  events::v1::JobFact::AfterStop after = events::v1::JobFact::AFTER_STOP_REQUEUE;
  std::string message;
};
// It is tried again, unless no controller makes again what may have been bound, or it has been
// tried as often as the pool allows.
FailureStop AfterFailure(const events::v1::PoolConfigured& config,
                         const Job& job,
                         bool may_be_bound,
                         std::string message);

// The next attempt of a job whose last one has failed: later each time.
struct Retry {
  int64_t not_before_ms = 0;
  std::string message;
};
// `job`: in its next attempt, with its failures counted.
Retry RetryAfterFailure(const events::v1::PoolConfigured& config, const Job& job, int64_t now_ms);

struct Ending {
  model::JobState state = model::JobState::kSucceeded;
  const char* reason = nullptr;  // null: it keeps the one it was stopped for
  std::string message;
};
// How it was being stopped says what a bad end means.
Ending EndingBy(const Job& job, events::v1::JobEnded::Result result, const std::string& message);
// Of one that is stopped; nothing: it is requeued.
std::optional<Ending> EndingAfterStop(const Job& job);

}  // namespace fluxqueue::queue_core
