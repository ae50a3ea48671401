// Held Jobs and Pods, as a line of events for the loop: two informers (label fluxqueue.io/held) and
// the answers of errands go in, the watch shard takes them out.
//
// Each opening lists anew: for each kind ListBegins, everything there is, Synced, which says what
// the list has shown; then what changes. Of each object the last state waits
// (kubernetes/informer.h): who is behind reads less, and never waits for more than the mailbox
// holds.
//
// Thread-safe. When Open, Relist and Close meet, the last of them decides: after Close nothing
// comes, whatever a Relist was about to do.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <mutex>
#include <stop_token>
#include <string>
#include <variant>
#include <vector>

#include "libs/base/mailbox.h"
#include "libs/kubernetes/cluster.h"
#include "libs/kubernetes/informer.h"
#include "services/admission/domain/sketch.h"
#include "services/admission/domain/tracker.h"
#include "services/admission/metrics.h"

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace fluxqueue::admission {

struct ListBegins {
  WorkloadKind workload = WorkloadKind::kJob;
};

using FeedEvent = std::variant<ListBegins,
                               kubernetes::Seen<Observation>,
                               kubernetes::Gone,
                               kubernetes::Synced,
                               kubernetes::Unread>;

const kubernetes::Resource& ResourceOf(WorkloadKind kind);
// REQUIRES: `resource` is that of a workload.
WorkloadKind KindOf(std::string_view resource);

class WorkloadFeed {
 public:
  // `wake` is called when there is something to take; it must not block. All must outlive the feed.
  WorkloadFeed(kubernetes::Cluster& cluster, AdmissionMetrics& metrics, std::function<void()> wake);
  ~WorkloadFeed();  // Close()

  // Forgets what was not taken and lists.
  void Open();
  // Lists again; events that wait stay. Does nothing when closed.
  void Relist();
  // Returns when nothing comes any more. Safe to call twice.
  void Close();

  // What a GET for `fetch` has found: an object or NotFound. Dropped when `opening` is over. Waits
  // for room, or `stop`.
  void Answer(uint64_t opening,
              const Fetch& fetch,
              const absl::StatusOr<std::string>& object,
              const std::stop_token& stop);
  uint64_t opening() const { return opening_; }

  // For metrics.
  const auto& mailbox() const { return events_; }
  bool HasEvents() const { return !events_.empty(); }
  // Up to `most` events, oldest first.
  std::vector<FeedEvent> Take(size_t most) { return events_.Take(most); }

  // OK when closed, or while both watches stand.
  absl::Status Health() const;

 private:
  // Called with mutex_ held.
  void StartWatches();

  kubernetes::Cluster& cluster_;
  AdmissionMetrics& metrics_;
  Mailbox<FeedEvent> events_;

  std::mutex mutex_;
  bool open_ = false;                  // guarded by mutex_
  std::atomic<uint64_t> opening_ = 0;  // rises with Open and Close; written with mutex_ held
  kubernetes::Informers informers_;    // started and stopped with mutex_ held
};

}  // namespace fluxqueue::admission
