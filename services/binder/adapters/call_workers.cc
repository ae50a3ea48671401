#include "services/binder/adapters/call_workers.h"

#include <utility>

#include "libs/base/log.h"

namespace fluxqueue::binder {
namespace {

constexpr Millis kMaxSuspendAge{10'000};
constexpr std::chrono::seconds kLogInterval{10};

}  // namespace

CallWorkers::CallWorkers(
    int threads, ClusterCalls& calls, Inbox& inbox, BinderMetrics& metrics, const Clock& clock)
    : count_(threads),
      calls_(calls),
      inbox_(inbox),
      metrics_(metrics),
      clock_(clock),
      waiting_(threads) {}

void CallWorkers::Submit(std::vector<Call> calls) {
  if (calls.empty()) return;
  const bool one = calls.size() == 1;
  const auto now = clock_.Monotonic();
  {
    const std::lock_guard lock(mutex_);
    for (Call& call : calls) waiting_.Push({std::move(call), now});
    metrics_.CallsWaiting(waiting_.size());
  }
  if (one) {
    submitted_.notify_one();
  } else {
    submitted_.notify_all();
  }
}

absl::Status CallWorkers::Start() {
  for (int i = 0; i < count_; ++i) {
    threads_.emplace_back([this](const std::stop_token& stop) { Work(stop); });
  }
  return absl::OkStatus();
}

void CallWorkers::Stop() {
  for (std::jthread& thread : threads_) thread.request_stop();
  threads_.clear();  // joins
  const std::lock_guard lock(mutex_);
  waiting_.Clear();
}

void CallWorkers::Work(const std::stop_token& stop) {
  while (true) {
    CallQueue::Waiting next;
    {
      std::unique_lock lock(mutex_);
      submitted_.wait(lock, stop, [this] { return waiting_.HasNext(); });
      if (stop.stop_requested()) return;
      next = waiting_.Pop();
      metrics_.CallsWaiting(waiting_.size());
    }
    inbox_.Post(Make(next.call, next.since));
    const std::lock_guard lock(mutex_);
    waiting_.Done(next.call);
    // Another such call may be waiting for it.
    if (next.call.again) submitted_.notify_one();
  }
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
