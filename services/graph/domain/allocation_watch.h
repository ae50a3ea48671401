// What one client that watches allocations has not been told yet: a bounded queue between the graph
// that says it and the call that sends it.
//
// Thread-safe. The graph pushes; the call takes. A queue that is full ends with RESOURCE_EXHAUSTED
// (reason SLOW_WATCHER): nothing is left out silently.
#pragma once

#include <cstddef>
#include <deque>
#include <functional>
#include <mutex>

#include "services/graph/domain/api.h"

#include "absl/status/status.h"

namespace fluxqueue::graph_service {

class AllocationWatch {
 public:
  using Event = v1::WatchAllocationsResponse;

  // How many events may wait to be sent, besides those that tell what was held at the beginning.
  AllocationWatch(const v1::WatchAllocationsRequest& request, size_t limit)
      : request_(request), limit_(limit) {}

  // What it wants to be told.
  const v1::WatchAllocationsRequest& request() const { return request_; }

  // One of those that tell what was held; always taken.
  void PushHeld(Event event);
  void Push(Event event);
  // After what waits, the call ends with `status`. The first end counts.
  void End(absl::Status status);
  // Nothing more will come, or nobody wants it.
  bool ended() const;

  enum class Taken { kEvent, kNothing, kEnd };
  // The next event, or how the watch has ended. Nothing: `wake` is called once as soon as there is
  // one, by whoever pushes it.
  Taken Take(Event* event, absl::Status* end, std::function<void()> wake);

 private:
  void Add(Event event, bool bounded);

  const v1::WatchAllocationsRequest request_;
  const size_t limit_;

  mutable std::mutex mutex_;
  std::deque<Event> events_;  // guarded by mutex_, as what follows
  size_t held_ = 0;           // of them, at the front: not counted
  bool ended_ = false;
  absl::Status end_;
  std::function<void()> wake_;
};

}  // namespace fluxqueue::graph_service
