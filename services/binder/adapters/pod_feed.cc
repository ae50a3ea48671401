#include "services/binder/adapters/pod_feed.h"

#include <optional>
#include <utility>

#include "libs/base/log.h"
#include "libs/base/status_macros.h"
#include "libs/kubernetes/labels.h"
#include "libs/kubernetes/resource.h"
#include "libs/kubernetes/views.h"

namespace fluxqueue::binder {
namespace {

constexpr const char* kListed = "listed";  // no uid

}  // namespace

absl::Status PodFeed::Start() {
  kubernetes::WatcherOptions options{.resource = kubernetes::kPods, .selector = {}};
  options.selector.labels = kubernetes::kHeldLabel;
  const std::lock_guard lock(mutex_);
  watcher_ = std::make_unique<kubernetes::Watcher>(
      client_, options, [this](const kubernetes::WatchEvent& event) { OnEvent(event); });
  return absl::OkStatus();
}

void PodFeed::Stop() {
  std::unique_ptr<kubernetes::Watcher> watcher;
  {
    const std::lock_guard lock(mutex_);
    watcher = std::move(watcher_);
  }
}

absl::Status PodFeed::Ready() const {
  const std::lock_guard lock(mutex_);
  if (watcher_ == nullptr) return Unavailable("not started");
  RETURN_IF_ERROR(watcher_->Health());
  if (!watcher_->synced()) return Unavailable("pods are being listed");
  return absl::OkStatus();
}

void PodFeed::OnEvent(const kubernetes::WatchEvent& event) {
  using Kind = kubernetes::WatchEvent::Kind;
  if (event.kind == Kind::kSynced) return inbox_.Post(kListed, PodsWereListed{});
  if (event.kind == Kind::kDeleted) {
    const std::string uid(event.uid);
    told_.erase(uid);
    // Beside what was told of it last: how it ended counts, too.
    return inbox_.Post("gone/" + uid, PodWasGone{uid});
  }
  const absl::StatusOr<kubernetes::Pod> pod = kubernetes::ParsePod(event.object);
  if (!pod.ok()) {
    LogError("pod cannot be read: it will not be started",
             {{"pod", event.name}, {"error", Message(pod.status())}});
    return;
  }
  std::optional<PodFacts> facts = ToFacts(*pod);
  if (!facts.has_value() || !IsNews(*facts)) return;
  const std::string uid = facts->uid;
  inbox_.Post(uid, *std::move(facts));
}

bool PodFeed::IsNews(const PodFacts& pod) {
  if (!pod.Bound()) return true;
  const Told now{pod.phase, pod.deleting};
  const auto [told, first] = told_.emplace(pod.uid, now);
  return first || std::exchange(told->second, now) != now;
}

}  // namespace fluxqueue::binder
