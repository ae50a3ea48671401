#include "libs/kubernetes/watch.h"

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <mutex>
#include <random>
#include <thread>
#include <unordered_map>
#include <utility>

#include <fmt/format.h>

#include "libs/base/backoff.h"
#include "libs/base/log.h"
#include "libs/base/status_macros.h"
#include "libs/kubernetes/json_reader.h"
#include "libs/kubernetes/list_reader.h"

namespace fluxqueue::kubernetes {
namespace {

using SteadyClock = std::chrono::steady_clock;
using Kind = WatchEvent::Kind;

// After so many failures in a row the resourceVersion itself is doubted (a restored etcd calls it
// "too large", for ever).
constexpr int kFailuresBeforeRelist = 3;
// A watch that ends in order but sooner than this is paced like a failure.
constexpr std::chrono::seconds kShortWatch{1};

}  // namespace

class Watcher::Impl {
 public:
  Impl(Client& client, WatcherOptions options, Callback callback)
      : client_(client),
        options_(std::move(options)),
        callback_(std::move(callback)),
        backoff_(options_.retry_min, options_.retry_max),
        thread_([this](std::stop_token stop) { Run(std::move(stop)); }) {}

  void Stop() {
    thread_.request_stop();
    const std::lock_guard lock(stop_mutex_);
    if (thread_.joinable()) thread_.join();
  }

  bool synced() const { return synced_.load(); }

  absl::Status Health() const {
    const std::lock_guard lock(health_mutex_);
    if (health_.ok()) return health_;
    const auto seconds =
        std::chrono::duration_cast<std::chrono::seconds>(SteadyClock::now() - unhealthy_since_);
    return Annotate(
        health_,
        fmt::format("watch of {} broken for {} s", options_.resource.plural, seconds.count()));
  }

 private:
  // What the callback has been told of one object.
  struct Known {
    std::string uid;
    std::string resource_version;
    uint64_t seen = 0;  // in which list
  };

  void Run(std::stop_token stop);
  // Lists and tells the differences; sets version_.
  absl::Status Relist(const std::stop_token& stop);
  absl::Status ListedItem(std::string_view object);
  void TellGone();
  // Watches from version_ until the watch ends.
  absl::Status WatchOnce(const std::stop_token& stop);
  bool Take(std::string_view piece);
  absl::Status TakeLine(simdjson::padded_string_view line);
  absl::Status TakeChange(std::string_view type, simdjson::padded_string_view object);
  void Tell(Kind kind, std::string_view object, const internal::ObjectIdentity& identity);
  void TellDeleted(const std::string& key, const Known& known);
  void SetHealth(const absl::Status& status);
  void Pause(const absl::Status& status, const std::stop_token& stop);

  static std::string KeyOf(std::string_view space, std::string_view name) {
    return fmt::format("{}/{}", space, name);
  }

  Client& client_;
  const WatcherOptions options_;
  const Callback callback_;

  // The watcher's thread only.
  internal::ListReader reader_;
  std::string item_;    // a listed object with room behind it
  std::string buffer_;  // what has come of the stream and is not told yet
  std::string version_;
  absl::Status line_error_;
  std::unordered_map<std::string, Known> known_;  // by namespace/name
  uint64_t lists_ = 0;
  int failures_ = 0;
  bool told_in_watch_ = false;
  Backoff backoff_;
  std::minstd_rand random_{std::random_device()()};

  std::atomic<bool> synced_ = false;
  mutable std::mutex health_mutex_;
  absl::Status health_ = absl::UnavailableError("not listed yet");
  SteadyClock::time_point unhealthy_since_ = SteadyClock::now();
  bool broken_said_ = false;
  std::mutex pause_mutex_;
  std::condition_variable_any pause_;
  std::mutex stop_mutex_;
  std::jthread thread_;  // last: it uses all of the above
};

void Watcher::Impl::Run(std::stop_token stop) {
  while (!stop.stop_requested()) {
    absl::Status status;
    if (version_.empty()) status = Relist(stop);
    if (status.ok()) status = WatchOnce(stop);
    if (stop.stop_requested()) return;
    if (status.ok()) {
      failures_ = 0;
      backoff_.Reset();
      continue;
    }
    ++failures_;
    if (absl::IsOutOfRange(status) || failures_ % kFailuresBeforeRelist == 0) version_.clear();
    if (absl::IsOutOfRange(status) && failures_ == 1) continue;  // expired: nothing is wrong
    SetHealth(status);
    Pause(status, stop);
  }
}

absl::Status Watcher::Impl::Relist(const std::stop_token& stop) {
  ++lists_;
  const auto item = [&](std::string_view object) {
    return stop.stop_requested() ? absl::CancelledError("stop requested") : ListedItem(object);
  };
  ASSIGN_OR_RETURN(std::string version,
                   client_.List(options_.resource, options_.selector, item, options_.page));
  TellGone();
  version_ = std::move(version);
  callback_(WatchEvent());
  synced_.store(true);
  return absl::OkStatus();
}

absl::Status Watcher::Impl::ListedItem(std::string_view object) {
  item_.assign(object);
  ASSIGN_OR_RETURN(const auto identity, reader_.ReadIdentity(internal::Padded(item_)));
  const std::string key = KeyOf(identity.space, identity.name);
  auto found = known_.find(key);
  if (found != known_.end() && found->second.uid != identity.uid) {
    TellDeleted(key, found->second);
    known_.erase(found);
    found = known_.end();
  }
  const bool added = found == known_.end();
  const bool news = added || found->second.resource_version != identity.resource_version;
  known_.insert_or_assign(
      key, Known{std::string(identity.uid), std::string(identity.resource_version), lists_});
  if (news) Tell(added ? Kind::kAdded : Kind::kModified, object, identity);
  return absl::OkStatus();
}

void Watcher::Impl::TellGone() {
  for (auto it = known_.begin(); it != known_.end();) {
    if (it->second.seen == lists_) {
      ++it;
      continue;
    }
    TellDeleted(it->first, it->second);
    it = known_.erase(it);
  }
}

absl::Status Watcher::Impl::WatchOnce(const std::stop_token& stop) {
  buffer_.clear();
  line_error_ = absl::OkStatus();
  told_in_watch_ = false;
  const auto spread = std::uniform_int_distribution<int64_t>(
      0, std::max<int64_t>(1, options_.server_timeout.count() / 2))(random_);
  const auto begin = SteadyClock::now();
  const absl::Status status = client_.Watch(
      options_.resource,
      options_.selector,
      version_,
      options_.server_timeout + Millis(spread),
      [this](std::string_view piece) { return Take(piece); },
      stop);
  if (!line_error_.ok()) return line_error_;
  RETURN_IF_ERROR(status);
  if (told_in_watch_ || SteadyClock::now() - begin > kShortWatch) return absl::OkStatus();
  return Unavailable("watch {}: the server ended it at once", options_.resource.plural);
}

bool Watcher::Impl::Take(std::string_view piece) {
  if (piece.empty()) SetHealth(absl::OkStatus());  // the watch stands
  buffer_ += piece;
  internal::Padded(buffer_);  // room behind the last line
  size_t begin = 0;
  for (size_t end = buffer_.find('\n'); end != std::string::npos; end = buffer_.find('\n', begin)) {
    if (end > begin) {
      line_error_ = TakeLine(simdjson::padded_string_view(
          buffer_.data() + begin, end - begin, buffer_.capacity() - begin));
      if (!line_error_.ok()) return false;
    }
    begin = end + 1;
  }
  buffer_.erase(0, begin);
  return true;
}

absl::Status Watcher::Impl::TakeLine(simdjson::padded_string_view line) {
  ASSIGN_OR_RETURN(const internal::WatchLine read, reader_.ReadLine(line));
  if (read.type == "ERROR") {
    internal::Document document("watch error", read.object);
    const int64_t code = document.root()["code"].Int(0);
    const std::string message = document.root()["message"].String();
    return MakeStatus(code == 410 ? absl::StatusCode::kOutOfRange : absl::StatusCode::kUnavailable,
                      "watch {}: {} ({})",
                      options_.resource.plural,
                      message,
                      code);
  }
  if (read.object.empty()) {
    return Unavailable("watch {}: an event without an object", options_.resource.plural);
  }
  const auto past = static_cast<size_t>(read.object.data() - line.data());
  RETURN_IF_ERROR(TakeChange(read.type,
                             simdjson::padded_string_view(
                                 read.object.data(), read.object.size(), line.capacity() - past)));
  told_in_watch_ = true;
  failures_ = 0;
  backoff_.Reset();
  return absl::OkStatus();
}

absl::Status Watcher::Impl::TakeChange(std::string_view type, simdjson::padded_string_view object) {
  ASSIGN_OR_RETURN(const auto identity, reader_.ReadIdentity(object));
  if (identity.resource_version.empty()) {
    return Unavailable("watch {}: an event without resourceVersion", options_.resource.plural);
  }
  const std::string next(identity.resource_version);
  if (type != "BOOKMARK") {
    const std::string key = KeyOf(identity.space, identity.name);
    if (type == "DELETED") {
      known_.erase(key);
      Tell(Kind::kDeleted, object, identity);
    } else {
      const Known known{std::string(identity.uid), next, lists_};
      const bool added = known_.insert_or_assign(key, known).second;
      Tell(added ? Kind::kAdded : Kind::kModified, object, identity);
    }
  }
  version_ = next;
  return absl::OkStatus();
}

void Watcher::Impl::Tell(Kind kind,
                         std::string_view object,
                         const internal::ObjectIdentity& identity) {
  callback_({.kind = kind,
             .object = object,
             .space = identity.space,
             .name = identity.name,
             .uid = identity.uid,
             .resource_version = identity.resource_version});
}

void Watcher::Impl::TellDeleted(const std::string& key, const Known& known) {
  const std::string_view whole = key;
  const size_t slash = whole.find('/');
  Tell(Kind::kDeleted,
       {},
       {whole.substr(0, slash), whole.substr(slash + 1), known.uid, known.resource_version});
}

void Watcher::Impl::SetHealth(const absl::Status& status) {
  const std::lock_guard lock(health_mutex_);
  const bool was = health_.ok();
  if (was && !status.ok()) unhealthy_since_ = SteadyClock::now();
  if (!status.ok() && !broken_said_) {
    broken_said_ = true;
    LogWarning("watch broken, trying again",
               {{"resource", options_.resource.plural}, {"error", Message(status)}});
  } else if (status.ok() && broken_said_) {
    broken_said_ = false;
    LogInfo("watch stands again", {{"resource", options_.resource.plural}});
  }
  health_ = status;
}

void Watcher::Impl::Pause(const absl::Status& status, const std::stop_token& stop) {
  const Millis wait = std::max(backoff_.Next(), RetryAfter(status).value_or(Millis(0)));
  std::unique_lock lock(pause_mutex_);
  pause_.wait_for(lock, stop, wait, [] { return false; });
}

Watcher::Watcher(Client& client, WatcherOptions options, Callback callback)
    : impl_(std::make_unique<Impl>(client, std::move(options), std::move(callback))) {}
Watcher::~Watcher() {
  Stop();
}

void Watcher::Stop() {
  impl_->Stop();
}
bool Watcher::synced() const {
  return impl_->synced();
}
absl::Status Watcher::Health() const {
  return impl_->Health();
}

}  // namespace fluxqueue::kubernetes
