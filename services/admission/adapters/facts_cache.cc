#include "services/admission/adapters/facts_cache.h"

#include <utility>

#include "libs/base/log.h"
#include "libs/base/status_macros.h"

namespace fluxqueue::admission {

using kubernetes::WatchEvent;

FactsCache::FactsCache(kubernetes::Client& client, std::function<void()> changed)
    : client_(client), changed_(std::move(changed)) {}

FactsCache::~FactsCache() {
  Stop();
}

template <typename Object>
void FactsCache::Upsert(absl::StatusOr<Object> object) {
  if (!object.ok()) {
    // What was known of it before stays.
    LogWarning("object cannot be read", {{"error", Message(object.status())}});
    return;
  }
  const std::unique_lock lock(mutex_);
  facts_.Upsert(*std::move(object));
}

void FactsCache::Watch(const kubernetes::Resource& resource,
                       std::function<void(const WatchEvent&)> apply) {
  kubernetes::WatcherOptions options;
  options.resource = resource;
  auto watcher = std::make_unique<kubernetes::Watcher>(
      client_,
      options,
      [this, apply = std::move(apply), listed = false](const WatchEvent& event) mutable {
        if (event.kind != WatchEvent::Kind::kSynced) return apply(event);
        if (!listed) ++lists_;
        listed = true;
        changed_();
      });
  watchers_.push_back({std::string(resource.plural), std::move(watcher)});
}

absl::Status FactsCache::Start() {
  const auto gone = [](const WatchEvent& event) {
    return event.kind == WatchEvent::Kind::kDeleted;
  };
  const std::lock_guard lock(watchers_mutex_);
  Watch(kubernetes::kNamespaces, [this, gone](const WatchEvent& event) {
    if (!gone(event)) return Upsert(kubernetes::ParseNamespace(event.object));
    const std::unique_lock facts_lock(mutex_);
    facts_.RemoveNamespace(event.name);
  });
  Watch(kubernetes::kFluxQueues, [this, gone](const WatchEvent& event) {
    if (!gone(event)) {
      Upsert(kubernetes::ParseFluxQueue(event.object));
    } else {
      const std::unique_lock facts_lock(mutex_);
      facts_.RemoveQueue(event.name);
    }
    changed_();
  });
  Watch(kubernetes::kFluxWindows, [this, gone](const WatchEvent& event) {
    if (!gone(event)) {
      Upsert(kubernetes::ParseFluxWindow(event.object));
    } else {
      const std::unique_lock facts_lock(mutex_);
      facts_.RemoveWindow(event.name);
    }
    changed_();
  });
  Watch(kubernetes::kLimitRanges, [this, gone](const WatchEvent& event) {
    if (!gone(event)) return Upsert(kubernetes::ParseLimitRange(event.object));
    const std::unique_lock facts_lock(mutex_);
    facts_.RemoveLimitRange(event.space, event.name);
  });
  Watch(kubernetes::kRuntimeClasses, [this, gone](const WatchEvent& event) {
    if (!gone(event)) return Upsert(kubernetes::ParseRuntimeClass(event.object));
    const std::unique_lock facts_lock(mutex_);
    facts_.RemoveRuntimeClass(event.name);
  });
  Watch(kubernetes::kPriorityClasses, [this, gone](const WatchEvent& event) {
    if (!gone(event)) return Upsert(kubernetes::ParsePriorityClass(event.object));
    const std::unique_lock facts_lock(mutex_);
    facts_.RemovePriorityClass(event.name);
  });
  return absl::OkStatus();
}

void FactsCache::Stop() {
  std::vector<NamedWatcher> watchers;
  {
    const std::lock_guard lock(watchers_mutex_);
    watchers.swap(watchers_);
  }
  for (NamedWatcher& named : watchers) named.watcher->Stop();
}

absl::Status FactsCache::Ready() const {
  const std::lock_guard lock(watchers_mutex_);
  for (const NamedWatcher& named : watchers_) {
    RETURN_IF_ERROR(Annotate(named.watcher->Health(), "watch of " + named.resource));
    if (!named.watcher->synced()) {
      return Unavailable("the first list of {} is under way", named.resource);
    }
  }
  return absl::OkStatus();
}

}  // namespace fluxqueue::admission
