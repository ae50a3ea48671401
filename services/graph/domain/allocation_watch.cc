#include "services/graph/domain/allocation_watch.h"

#include <utility>

#include "libs/base/status_macros.h"
#include "libs/rpc/error_details.h"

namespace fluxqueue::graph_service {
namespace {

absl::Status TooSlow(size_t limit) {
  return rpc::WithReason(
      MakeStatus(absl::StatusCode::kResourceExhausted,
                 "events of more than {} bytes wait to be read; watch again to be told what is "
                 "held now",
                 limit),
      "SLOW_WATCHER",
      {{"limit", fmt::format("{}", limit)}});
}

}  // namespace

void AllocationWatch::CountBy(std::function<absl::Status(size_t bytes)> hold) {
  const std::lock_guard lock(mutex_);
  hold_ = std::move(hold);
}

absl::Status AllocationWatch::Hold(size_t bytes) const {
  return hold_ ? hold_(bytes) : absl::OkStatus();
}

bool AllocationWatch::PushHeld(Event event) {
  const bool waits = Add(std::move(event), /*listed=*/true);
  const std::lock_guard lock(mutex_);
  return waits && bytes_ < most_bytes_ / kPieces;
}

void AllocationWatch::Push(Event event) {
  Add(std::move(event), /*listed=*/false);
}

bool AllocationWatch::Add(Event event, bool listed) {
  std::function<void()> wake;
  bool waits = false;
  {
    const std::lock_guard lock(mutex_);
    if (ended_) return false;
    const size_t bytes = event.ByteSizeLong() + kEventBytes;
    absl::Status status = !listed && !events_.empty() && bytes_ + bytes > most_bytes_
                              ? TooSlow(most_bytes_)
                              : Hold(bytes_ + bytes + sending_);
    if (status.ok()) {
      events_.push_back({std::move(event), bytes});
      bytes_ += bytes;
      waits = true;
    } else {
      // What waits is of no use any more: the client has to begin anew.
      events_.clear();
      bytes_ = 0;
      EndWith(std::move(status));
    }
    wake = std::exchange(wake_, nullptr);
  }
  if (wake) wake();
  return waits;
}

void AllocationWatch::AskForMore(std::function<void()> more) {
  {
    const std::lock_guard lock(mutex_);
    if (ended_) return;
    if (!wake_) {
      more_ = std::move(more);
      return;
    }
  }
  more();
}

void AllocationWatch::EndWith(absl::Status status) {
  ended_ = true;
  end_ = std::move(status);
  hold_ = nullptr;
  more_ = nullptr;
}

void AllocationWatch::End(absl::Status status) {
  std::function<void()> wake;
  {
    const std::lock_guard lock(mutex_);
    if (ended_) return;
    EndWith(std::move(status));
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
  std::function<void()> more;
  {
    const std::lock_guard lock(mutex_);
    sending_ = 0;
    if (!events_.empty()) {
      *event = std::move(events_.front().event);
      sending_ = events_.front().bytes;
      bytes_ -= sending_;
      events_.pop_front();
      // Less than before.
      Hold(bytes_ + sending_).IgnoreError();
      return Taken::kEvent;
    }
    Hold(0).IgnoreError();
    if (ended_) {
      *end = end_;
      return Taken::kEnd;
    }
    wake_ = std::move(wake);
    more = std::exchange(more_, nullptr);
  }
  if (more) more();
  return Taken::kNothing;
}

}  // namespace fluxqueue::graph_service
