// What one client that watches allocations has not been told yet: a bounded queue between the graph
// that says it and the call that sends it.
//
//   graph ─► PushHeld, a piece of what is held ─► Take … Take ─► nothing waits: the next piece is
//                                                               asked for (AskForMore)
//         ─► Push, what happens ────────────────► Take
//
// The list of what is held at the beginning comes in pieces, each as soon as the one before it was
// taken, so that a slow client costs no more memory than a fast one. Of what happens so many bytes
// may wait; a queue that is full ends with RESOURCE_EXHAUSTED (reason SLOW_WATCHER): nothing is
// left out silently.
//
// Thread-safe. The graph pushes; the call takes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <mutex>

#include "services/graph/domain/api.h"

#include "absl/status/status.h"

namespace fluxqueue::graph_service {

class AllocationWatch {
 public:
  using Event = v1::WatchAllocationsResponse;

  // A piece has somewhat more than this part of the bytes that may wait.
  static constexpr size_t kPieces = 8;
  // What an event takes besides what it says.
  static constexpr size_t kEventBytes = 96;

  // How many bytes may wait to be sent; one event always may.
  AllocationWatch(const v1::WatchAllocationsRequest& request, size_t most_bytes)
      : request_(request), most_bytes_(most_bytes) {}

  // What it wants to be told.
  const v1::WatchAllocationsRequest& request() const { return request_; }

  // `hold` is told how many bytes wait or are being sent; an error ends the watch. It is called
  // with a lock held, and must be short.
  void CountBy(std::function<absl::Status(size_t bytes)> hold);

  // One of those that tell what was held. False: that is enough until more is asked for.
  [[nodiscard]] bool PushHeld(Event event);
  void Push(Event event);
  // `more` is called once, as soon as nothing waits any more, by whoever took the last event; at
  // once, when he waits already; never, when the watch ends before.
  void AskForMore(std::function<void()> more);
  // After what waits, the call ends with `status`. The first end counts.
  void End(absl::Status status);
  // Nothing more will come, or nobody wants it.
  bool ended() const;

  enum class Taken { kEvent, kNothing, kEnd };
  // The next event, or how the watch has ended. Nothing: `wake` is called once as soon as there is
  // one, by whoever pushes it. The event before it has been sent.
  Taken Take(Event* event, absl::Status* end, std::function<void()> wake);

 private:
  struct Waiting {
    Event event;
    size_t bytes = 0;
  };

  // True: it waits.
  bool Add(Event event, bool listed);
  // With mutex_ held.
  absl::Status Hold(size_t bytes) const;
  // Lets go of the call, which ends soon; the graph may keep the watch for longer.
  void EndWith(absl::Status status);

  const v1::WatchAllocationsRequest request_;
  const size_t most_bytes_;

  mutable std::mutex mutex_;
  std::function<absl::Status(size_t)> hold_;  // guarded by mutex_, as what follows
  std::deque<Waiting> events_;
  size_t bytes_ = 0;    // of them
  size_t sending_ = 0;  // of the event that was taken last
  bool ended_ = false;
  absl::Status end_;
  std::function<void()> wake_;
  std::function<void()> more_;
};

}  // namespace fluxqueue::graph_service
