#include "services/binder/adapters/call_workers.h"

#include <iterator>
#include <utility>

namespace fluxqueue::binder {

CallWorkers::CallWorkers(
    int threads, ClusterCalls& calls, Inbox& inbox, BinderMetrics& metrics, const Clock& clock)
    : count_(threads), calls_(calls), inbox_(inbox), metrics_(metrics), clock_(clock) {}

void CallWorkers::Submit(std::vector<Call> calls) {
  if (calls.empty()) return;
  const bool one = calls.size() == 1;
  {
    const std::lock_guard lock(mutex_);
    waiting_.insert(waiting_.end(),
                    std::make_move_iterator(calls.begin()),
                    std::make_move_iterator(calls.end()));
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
  waiting_.clear();
}

void CallWorkers::Work(const std::stop_token& stop) {
  while (true) {
    Call call;
    {
      std::unique_lock lock(mutex_);
      submitted_.wait(lock, stop, [this] { return !waiting_.empty(); });
      if (stop.stop_requested()) return;
      call = std::move(waiting_.front());
      waiting_.pop_front();
      metrics_.CallsWaiting(waiting_.size());
    }
    const auto begin = clock_.Monotonic();
    CallResult result = calls_.Make(call);
    metrics_.CallMade(result, clock_.Monotonic() - begin);
    inbox_.Post(std::move(result));
  }
}

}  // namespace fluxqueue::binder
