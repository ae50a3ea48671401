#include "services/graph/rpc/strand.h"

#include <utility>

namespace fluxqueue::graph_service {

using Clock = std::chrono::steady_clock;

void Strand::Post(Length length, Task task) {
  bool here = false;
  {
    const std::lock_guard lock(mutex_);
    waiting_.push_back({length, std::move(task)});
    if (running_) return;
    running_ = true;
    here = length == Length::kShort && !slow_;
  }
  if (here) {
    Run(false);
  } else {
    RunInPool();
  }
}

void Strand::RunInPool() {
  pool_.Post([self = shared_from_this()] { self->Run(true); });
}

void Strand::Run(bool in_pool) {
  const Clock::time_point begun = Clock::now();
  Clock::time_point last = begun;
  while (true) {
    Waiting next;
    {
      const std::lock_guard lock(mutex_);
      if (waiting_.empty()) {
        running_ = false;
        return;
      }
      if (!in_pool && (waiting_.front().length == Length::kLong || last - begun > kMostHere)) break;
      next = std::move(waiting_.front());
      waiting_.pop_front();
    }
    next.task();
    const Clock::time_point now = Clock::now();
    if (next.length == Length::kShort) {
      const std::lock_guard lock(mutex_);
      slow_ = now - last > kMostHere;
    }
    last = now;
  }
  RunInPool();
}

}  // namespace fluxqueue::graph_service
