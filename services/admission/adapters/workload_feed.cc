#include "services/admission/adapters/workload_feed.h"

#include <utility>

#include "libs/base/log.h"
#include "libs/base/status_macros.h"
#include "libs/kubernetes/labels.h"
#include "services/admission/adapters/sketch_reader.h"

namespace fluxqueue::admission {
namespace {

using kubernetes::WatchEvent;

// Of objects' texts that wait for the loop.
constexpr size_t kMaxBytes = 8 << 20;

}  // namespace

WorkloadFeed::WorkloadFeed(kubernetes::Client& client,
                           AdmissionMetrics& metrics,
                           std::function<void()> wake)
    : client_(client), metrics_(metrics), wake_(std::move(wake)) {}

WorkloadFeed::~WorkloadFeed() {
  Close();
}

void WorkloadFeed::Open() {
  Close();
  {
    const std::lock_guard lock(mutex_);
    open_ = true;
  }
  StartWatches();
}

void WorkloadFeed::Relist() {
  {
    const std::lock_guard lock(mutex_);
    if (!open_) return;
  }
  StopWatches();
  StartWatches();
}

void WorkloadFeed::Close() {
  {
    const std::lock_guard lock(mutex_);
    ++opening_;
    open_ = false;
  }
  StopWatches();
  const std::lock_guard lock(mutex_);
  queue_.clear();
  bytes_ = 0;
}

void WorkloadFeed::StartWatches() {
  const std::lock_guard lock(watchers_mutex_);
  uint64_t watches = 0;
  {
    const std::lock_guard queue_lock(mutex_);
    // Closed meanwhile, or opened again by another thread.
    if (!open_ || !watchers_.empty()) return;
    watches = watches_;
  }
  for (const WorkloadKind kind : {WorkloadKind::kJob, WorkloadKind::kPod}) {
    PushIf({FeedEvent::Kind::kListBegins, kind, {}},
           [this, watches] { return watches == watches_; });
    kubernetes::WatcherOptions options;
    options.resource = kind == WorkloadKind::kJob ? kubernetes::kJobs : kubernetes::kPods;
    options.selector.labels = std::string(kubernetes::kHeldLabel);
    watchers_.push_back(std::make_unique<kubernetes::Watcher>(
        client_, options, [this, watches, kind, listed = false](const WatchEvent& event) mutable {
          OnEvent(watches, kind, event, &listed);
        }));
  }
}

void WorkloadFeed::StopWatches() {
  {
    // First: a callback that waits for room lets go.
    const std::lock_guard lock(mutex_);
    ++watches_;
  }
  room_.notify_all();
  const std::lock_guard lock(watchers_mutex_);
  for (const auto& watcher : watchers_) watcher->Stop();
  watchers_.clear();
}

void WorkloadFeed::OnEvent(uint64_t watches,
                           WorkloadKind kind,
                           const WatchEvent& event,
                           bool* listed) {
  FeedEvent out;
  out.workload = kind;
  if (event.kind == WatchEvent::Kind::kSynced) {
    // Later ones tell that differences have been listed, not everything.
    if (std::exchange(*listed, true)) return;
    out.kind = FeedEvent::Kind::kListEnds;
  } else if (event.kind == WatchEvent::Kind::kDeleted) {
    out.kind = FeedEvent::Kind::kGone;
    out.seen.sketch.uid = std::string(event.uid);
  } else {
    absl::StatusOr<Sketch> sketch = ReadSketch(kind, event.object);
    if (!sketch.ok()) {
      metrics_.UnreadableObject();
      LogWarning("watched object cannot be read",
                 {{"name", event.name}, {"error", Message(sketch.status())}});
      return;
    }
    out.seen.sketch = *std::move(sketch);
    out.seen.object = std::string(event.object);
  }
  PushIf(std::move(out), [this, watches] { return watches == watches_; });
}

void WorkloadFeed::Push(uint64_t opening, FeedEvent event) {
  PushIf(std::move(event), [this, opening] { return opening == opening_; });
}

template <typename Wanted>
void WorkloadFeed::PushIf(FeedEvent event, Wanted wanted) {
  {
    std::unique_lock lock(mutex_);
    const bool small = event.seen.object.empty();
    room_.wait(lock, [&] { return !wanted() || small || bytes_ < kMaxBytes; });
    if (!wanted()) return;
    bytes_ += event.seen.object.size();
    queue_.push_back(std::move(event));
  }
  wake_();
}

uint64_t WorkloadFeed::opening() const {
  const std::lock_guard lock(mutex_);
  return opening_;
}

bool WorkloadFeed::HasEvents() const {
  const std::lock_guard lock(mutex_);
  return !queue_.empty();
}

void WorkloadFeed::Take(size_t max, std::vector<FeedEvent>* events) {
  {
    const std::lock_guard lock(mutex_);
    while (!queue_.empty() && events->size() < max) {
      bytes_ -= queue_.front().seen.object.size();
      events->push_back(std::move(queue_.front()));
      queue_.pop_front();
    }
  }
  room_.notify_all();
}

absl::Status WorkloadFeed::Health() const {
  const std::lock_guard lock(watchers_mutex_);
  for (const auto& watcher : watchers_) {
    RETURN_IF_ERROR(Annotate(watcher->Health(), "watch of held workloads"));
  }
  return absl::OkStatus();
}

}  // namespace fluxqueue::admission
