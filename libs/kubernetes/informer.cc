#include "libs/kubernetes/informer.h"

#include <exception>

#include <fmt/format.h>

#include "libs/base/log.h"
#include "libs/base/text.h"
#include "libs/kubernetes/names.h"

namespace fluxqueue::kubernetes {

void InformerBase::Start() {
  watcher_ = std::make_unique<Watcher>(
      cluster_, options_.watch, [this](const WatchEvent& event) { OnEvent(event); });
}

void InformerBase::Stop() {
  // First: a callback that waits for room lets go.
  stop_.request_stop();
  if (watcher_ != nullptr) watcher_->Stop();
}

absl::Status InformerBase::Health() const {
  return watcher_ == nullptr ? Unavailable("watch of {} not started", resource())
                             : watcher_->Health();
}

bool InformerBase::synced() const {
  return watcher_ != nullptr && watcher_->synced();
}

// No uid has a slash.
std::string InformerBase::GoneKey(std::string_view uid) {
  return fmt::format("gone/{}", uid);
}
std::string InformerBase::UnreadKey(std::string_view uid) {
  return fmt::format("unread/{}", uid);
}
std::string InformerBase::SyncedKey(std::string_view resource) {
  return fmt::format("synced/{}", resource);
}

bool InformerBase::IsNews(std::string_view uid, uint64_t digest) {
  const auto [known, first] = digests_.emplace(uid, digest);
  return first || std::exchange(known->second, digest) != digest;
}

void InformerBase::OnEvent(const WatchEvent& event) {
  // What came before may not have been handed on.
  if (stop_.stop_requested()) return;
  switch (event.kind) {
    case WatchEvent::Kind::kSynced:
      if (!std::exchange(synced_said_, true)) {
        sink_.synced({.resource = resource(), .uids = std::exchange(listed_, {})});
      }
      return;
    case WatchEvent::Kind::kDeleted:
      if (!CheckNames(event).ok()) return;
      listed_.erase(std::string(event.uid));
      digests_.erase(std::string(event.uid));
      sink_.gone({.resource = resource(),
                  .space = std::string(event.space),
                  .name = std::string(event.name),
                  .uid = std::string(event.uid)});
      return;
    case WatchEvent::Kind::kAdded:
    case WatchEvent::Kind::kModified:
      OnSeen(event);
      return;
  }
}

void InformerBase::OnSeen(const WatchEvent& event) {
  if (const absl::Status names = CheckNames(event); !names.ok()) return Say(event, names);
  if (std::exchange(history_, event.history) != event.history) digests_.clear();
  if (!synced_said_) listed_.emplace(event.uid);
  absl::Status read;
  try {
    read = sink_.seen(event);
  } catch (const std::exception& error) {
    read = InvalidArgument("reading it threw: {}", error.what());
  }
  if (read.ok()) return;
  Say(event, read);
  sink_.unread({.resource = resource(),
                .space = std::string(event.space),
                .name = std::string(event.name),
                .uid = std::string(event.uid),
                .version = std::string(event.resource_version),
                .why = Clean(Message(read), kMostMessageBytes)});
}

absl::Status InformerBase::CheckNames(const WatchEvent& event) const {
  if (!IsUid(event.uid)) {
    return InvalidArgument("metadata.uid: '{}' is no uid: letters, digits and '-', 1 to 63",
                           event.uid);
  }
  if (!IsDnsSubdomain(event.name)) {
    return InvalidArgument(
        "metadata.name: '{}' is no name: labels of a-z, 0-9 and '-', joined by '.'", event.name);
  }
  if (options_.watch.resource.namespaced && !IsDnsLabel(event.space)) {
    return InvalidArgument(
        "metadata.namespace: '{}' is no name of a namespace: a-z, 0-9 and '-', 1 to 63",
        event.space);
  }
  return absl::OkStatus();
}

void InformerBase::Say(const WatchEvent& event, const absl::Status& why) {
  if (options_.unread) options_.unread();
  const auto now = std::chrono::steady_clock::now();
  if (said_at_.has_value() && now - *said_at_ < kSayInterval) {
    ++unsaid_;
    return;
  }
  said_at_ = now;
  LogWarning("watched object cannot be read",
             {{"resource", resource()},
              {"namespace", Clean(event.space, kMostMessageBytes)},
              {"name", Clean(event.name, kMostMessageBytes)},
              {"error", Clean(Message(why), kMostMessageBytes)},
              {"others_not_logged", fmt::format("{}", std::exchange(unsaid_, 0))}});
}

void Informers::Start(List informers) {
  Stop();
  const std::lock_guard lock(mutex_);
  informers_ = std::move(informers);
  for (const auto& informer : informers_) informer->Start();
}

void Informers::Stop() {
  List stopped;
  {
    const std::lock_guard lock(mutex_);
    stopped.swap(informers_);
  }
}

bool Informers::empty() const {
  const std::lock_guard lock(mutex_);
  return informers_.empty();
}

absl::Status Informers::Health() const {
  const std::lock_guard lock(mutex_);
  for (const auto& informer : informers_) RETURN_IF_ERROR(informer->Health());
  return absl::OkStatus();
}

absl::Status Informers::Ready() const {
  const std::lock_guard lock(mutex_);
  for (const auto& informer : informers_) {
    RETURN_IF_ERROR(informer->Health());
    if (!informer->synced()) {
      return Unavailable("the first list of {} is under way", informer->resource());
    }
  }
  return absl::OkStatus();
}

}  // namespace fluxqueue::kubernetes
