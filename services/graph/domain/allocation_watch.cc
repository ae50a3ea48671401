#include "services/graph/domain/allocation_watch.h"

#include <utility>

#include "libs/base/status_macros.h"
#include "libs/rpc/error_details.h"

namespace fluxqueue::graph_service {

void AllocationWatch::PushHeld(Event event) {
  Add(std::move(event), false);
}

void AllocationWatch::Push(Event event) {
  Add(std::move(event), true);
}

void AllocationWatch::Add(Event event, bool bounded) {
  std::function<void()> wake;
  {
    const std::lock_guard lock(mutex_);
    if (ended_) return;
    if (bounded && events_.size() - held_ >= limit_) {
      // What waits is of no use any more: the client has to begin anew.
      events_.clear();
      held_ = 0;
      ended_ = true;
      end_ = rpc::WithReason(
          MakeStatus(absl::StatusCode::kResourceExhausted,
                     "more than {} events wait to be read; watch again to be told what is held now",
                     limit_),
          "SLOW_WATCHER",
          {{"limit", fmt::format("{}", limit_)}});
    } else {
      events_.push_back(std::move(event));
      if (!bounded) ++held_;
    }
    wake = std::exchange(wake_, nullptr);
  }
  if (wake) wake();
}

void AllocationWatch::End(absl::Status status) {
  std::function<void()> wake;
  {
    const std::lock_guard lock(mutex_);
    if (ended_) return;
    ended_ = true;
    end_ = std::move(status);
    wake = std::exchange(wake_, nullptr);
  }
  if (wake) wake();
}

bool AllocationWatch::ended() const {
  const std::lock_guard lock(mutex_);
  return ended_;
}

AllocationWatch::Taken AllocationWatch::Take(Event* event,
                                             absl::Status* end,
                                             std::function<void()> wake) {
  const std::lock_guard lock(mutex_);
  if (!events_.empty()) {
    *event = std::move(events_.front());
    events_.pop_front();
    if (held_ > 0) --held_;
    return Taken::kEvent;
  }
  if (ended_) {
    *end = end_;
    return Taken::kEnd;
  }
  wake_ = std::move(wake);
  return Taken::kNothing;
}

}  // namespace fluxqueue::graph_service
