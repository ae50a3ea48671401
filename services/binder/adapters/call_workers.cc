#include "services/binder/adapters/call_workers.h"

#include <utility>

namespace fluxqueue::binder {
namespace {

constexpr Millis kMaxSuspendAge{10'000};

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
  metrics_.CallMade(result, clock_.Monotonic() - begin);
  return result;
}

}  // namespace fluxqueue::binder
