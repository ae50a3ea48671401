// Held Jobs and Pods, as a queue of events for the loop: two watches (label fluxqueue.io/held) and
// the answers of errands go in, the watch shard takes them out.
//
// Each opening lists anew: kListBegins, everything there is, kListEnds, for each kind; then what
// changes. The queue is bounded: watches that are ahead of the loop wait, and so does the API
// server's stream.
//
// Thread-safe. When Open, Relist and Close meet, the last to stop the watches decides: after Close
// nothing comes, whatever a Relist was about to do.
#pragma once

#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "libs/kubernetes/client.h"
#include "libs/kubernetes/watch.h"
#include "services/admission/domain/sketch.h"
#include "services/admission/metrics.h"

#include "absl/status/status.h"

namespace fluxqueue::admission {

struct FeedEvent {
  enum class Kind { kListBegins, kSeen, kGone, kListEnds };
  Kind kind = Kind::kSeen;
  WorkloadKind workload = WorkloadKind::kJob;
  Observation seen;  // kSeen; kGone has only sketch.uid
};

class WorkloadFeed {
 public:
  // `wake` is called when there is something to take; it must not block. All must outlive the feed.
  WorkloadFeed(kubernetes::Client& client, AdmissionMetrics& metrics, std::function<void()> wake);
  ~WorkloadFeed();  // Close()

  // Forgets what was not taken and lists.
  void Open();
  // Lists again; events that are queued stay. Does nothing when closed.
  void Relist();
  // Returns when nothing comes any more. Safe to call twice.
  void Close();

  // An answer of an errand; dropped when `opening` is over. Waits while the queue is full.
  void Push(uint64_t opening, FeedEvent event);
  uint64_t opening() const;

  bool HasEvents() const;
  // Up to `max` events, oldest first, behind those in `events`.
  void Take(size_t max, std::vector<FeedEvent>* events);

  // OK when closed, or while both watches stand.
  absl::Status Health() const;

 private:
  void StartWatches();
  void StopWatches();
  void OnEvent(uint64_t watches,
               WorkloadKind kind,
               const kubernetes::WatchEvent& event,
               bool* listed);
  // Waits for room; false when `wanted` says no any more.
  template <typename Wanted>
  void PushIf(FeedEvent event, Wanted wanted);

  kubernetes::Client& client_;
  AdmissionMetrics& metrics_;
  const std::function<void()> wake_;

  mutable std::mutex mutex_;
  std::condition_variable room_;
  std::deque<FeedEvent> queue_;
  size_t bytes_ = 0;      // of the objects in the queue
  uint64_t opening_ = 0;  // rises with Open and Close
  uint64_t watches_ = 0;  // rises whenever the watches are stopped
  bool open_ = false;

  mutable std::mutex watchers_mutex_;
  std::vector<std::unique_ptr<kubernetes::Watcher>> watchers_;
};

}  // namespace fluxqueue::admission
