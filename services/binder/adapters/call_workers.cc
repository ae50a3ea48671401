#include "services/binder/adapters/call_workers.h"

#include <utility>

#include "libs/base/log.h"

namespace fluxqueue::binder {
namespace {

constexpr Millis kMaxSuspendAge{10'000};
constexpr std::chrono::seconds kLogInterval{10};
// For a bell.
constexpr std::chrono::hours kLongWait{1};

}  // namespace

CallWorkers::CallWorkers(int count,
                         Threads& threads,
                         ClusterCalls& calls,
                         Inbox& inbox,
                         BinderMetrics& metrics,
                         const Clock& clock)
    : count_(count),
      threads_(threads),
      calls_(calls),
      inbox_(inbox),
      metrics_(metrics),
      clock_(clock),
      waiting_(count) {}

void CallWorkers::Submit(std::vector<Call> calls) {
  if (calls.empty()) return;
  const auto now = clock_.Monotonic();
  const std::lock_guard lock(mutex_);
  for (Call& call : calls) {
    waiting_.Push({std::move(call), now});
    WakeOne();
  }
  metrics_.CallsWaiting(waiting_.size());
}

absl::Status CallWorkers::Start() {
  for (int i = 0; i < count_; ++i) {
    Worker& worker = *workers_.emplace_back(std::make_unique<Worker>());
    worker.thread = threads_.Start(
        [this, &bell = worker.bell](const std::stop_token& stop) { Work(bell, stop); });
  }
  return absl::OkStatus();
}

void CallWorkers::Stop() {
  for (const auto& worker : workers_) worker->thread->RequestStop();
  for (const auto& worker : workers_) worker->thread->Stop();
  const std::lock_guard lock(mutex_);
  idle_.clear();
  workers_.clear();
  waiting_.Clear();
}

void CallWorkers::Work(Bell& bell, const std::stop_token& stop) {
  while (!stop.stop_requested()) {
    const std::optional<CallQueue::Waiting> next = Take(bell);
    if (!next.has_value()) {
      clock_.Wait(bell, clock_.Monotonic() + kLongWait, stop);
      continue;
    }
    inbox_.Post(Make(next->call, next->since));
    Done(next->call);
  }
}

std::optional<CallQueue::Waiting> CallWorkers::Take(Bell& bell) {
  const std::lock_guard lock(mutex_);
  std::erase(idle_, &bell);
  if (!waiting_.HasNext()) {
    bell.Silence();
    idle_.push_back(&bell);
    return std::nullopt;
  }
  CallQueue::Waiting next = waiting_.Pop();
  metrics_.CallsWaiting(waiting_.size());
  return next;
}

void CallWorkers::Done(const Call& call) {
  const std::lock_guard lock(mutex_);
  waiting_.Done(call);
  // Another such call may be waiting for it.
  if (call.again) WakeOne();
}

void CallWorkers::WakeOne() {
  if (idle_.empty()) return;
  idle_.back()->Ring();
  idle_.pop_back();
}

CallResult CallWorkers::Make(const Call& call, std::chrono::steady_clock::time_point since) {
  const auto begin = clock_.Monotonic();
  CallResult result{.call = call,
                    .outcome = CallResult::Outcome::kRetry,
                    .pod = {},
                    .unmade = true,
                    .message = "waited too long to be made"};
  const bool stale = call.kind == Call::Kind::kSuspend && begin - since > kMaxSuspendAge;
  if (!stale) result = calls_.Make(call);
  const auto end = clock_.Monotonic();
  metrics_.CallMade(result, end - begin);
  LogFailure(result, end);
  return result;
}

void CallWorkers::LogFailure(const CallResult& result, std::chrono::steady_clock::time_point now) {
  using Outcome = CallResult::Outcome;
  if (result.unmade) return;
  if (result.outcome != Outcome::kRetry && result.outcome != Outcome::kRefused) return;
  {
    const std::lock_guard lock(mutex_);
    if (now < log_again_) return;
    log_again_ = now + kLogInterval;
  }
  LogWarning("an API call failed; others that fail are not logged for 10 s",
             {{"call", Name(result.call.kind)},
              {"namespace", result.call.space},
              {"name", result.call.name},
              {"job", result.call.job_id},
              {"error", result.message}});
}

}  // namespace fluxqueue::binder
