#include "services/graph/rpc/strand.h"

namespace fluxqueue::graph_service {

using Clock = std::chrono::steady_clock;

void Strand::Post(Task task) {
  {
    const std::lock_guard lock(mutex_);
    waiting_.push_back(std::move(task));
    if (running_) return;
    running_ = true;
  }
  RunInPool();
}

void Strand::RunInPool() {
  pool_.Post(client_, [self = shared_from_this()] { self->Run(); });
}

void Strand::Run() {
  const Clock::time_point end = Clock::now() + kMostAtOnce;
  do {
    Task next;
    {
      const std::lock_guard lock(mutex_);
      if (waiting_.empty()) {
        running_ = false;
        return;
      }
      next = std::move(waiting_.front());
      waiting_.pop_front();
    }
    next();
  } while (Clock::now() < end);
  RunInPool();
}

}  // namespace fluxqueue::graph_service
