#include "libs/kubernetes/watch.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <mutex>
#include <random>
#include <unordered_set>
#include <utility>

#include <fmt/format.h>

#include "libs/base/backoff.h"
#include "libs/base/log.h"
#include "libs/base/status_macros.h"
#include "libs/base/threads.h"
#include "libs/kubernetes/json_reader.h"
#include "libs/kubernetes/list_reader.h"
#include "libs/kubernetes/resource_version.h"

namespace fluxqueue::kubernetes {
namespace {

using Kind = WatchEvent::Kind;

// After so many failures in a row the resourceVersion itself is doubted (a restored etcd calls it
// "too large", for ever).
constexpr int kFailuresBeforeRelist = 3;
// A watch that ends in order but sooner than this is paced like a failure.
constexpr std::chrono::seconds kShortWatch{1};

size_t Hash(std::string_view text) {
  return std::hash<std::string_view>()(text);
}

// Marks what is the hash of a resourceVersion that is no number.
constexpr uint64_t kNoNumber = uint64_t{1} << 63;
// It is to be told, whatever it is: no object has this one.
constexpr uint64_t kNoVersion = 0;

uint64_t VersionOf(std::string_view text) {
  return VersionNumber(text).value_or(kNoNumber | Hash(text));
}

bool IsOlder(uint64_t version, uint64_t known) {
  return version < known && known < kNoNumber;
}

// What the callback has been told of one object. There is one for each that exists: small.
class Known {
 public:
  explicit Known(const internal::ObjectIdentity& identity)
      : text_(fmt::format("{}/{}{}", identity.space, identity.name, identity.uid)),
        uid_bytes_(static_cast<uint32_t>(identity.uid.size())) {}

  std::string_view key() const { return text().substr(0, text_.size() - uid_bytes_); }
  std::string_view space() const { return key().substr(0, key().find('/')); }
  std::string_view name() const { return key().substr(space().size() + 1); }
  std::string_view uid() const { return text().substr(text_.size() - uid_bytes_); }

  // Not of the key.
  mutable uint64_t version = kNoVersion;
  mutable uint32_t list = 0;  // that has shown it last

 private:
  std::string_view text() const { return text_; }

  std::string text_;  // "namespace/name", and the uid right behind it
  uint32_t uid_bytes_;
};

std::string_view KeyOf(const Known& known) {
  return known.key();
}
std::string_view KeyOf(std::string_view key) {
  return key;
}
struct HashKey {
  using is_transparent = void;
  size_t operator()(const auto& known) const { return Hash(KeyOf(known)); }
};
struct SameKey {
  using is_transparent = void;
  bool operator()(const auto& a, const auto& b) const { return KeyOf(a) == KeyOf(b); }
};
using KnownSet = std::unordered_set<Known, HashKey, SameKey>;  // by "namespace/name"

}  // namespace

class Watcher::Impl {
 public:
  Impl(Cluster& cluster, WatcherOptions options, Callback callback)
      : cluster_(cluster),
        options_(std::move(options)),
        callback_(std::move(callback)),
        backoff_(options_.retry_min, options_.retry_max, cluster_.NewSeed()),
        random_(static_cast<std::minstd_rand::result_type>(cluster_.NewSeed())),
        unhealthy_since_(cluster_.clock().Monotonic()),
        thread_(cluster_.threads().Start([this](const std::stop_token& stop) { Run(stop); })) {}

  void Stop() { thread_->Stop(); }

  bool synced() const { return synced_.load(); }

  absl::Status Health() const {
    const std::lock_guard lock(health_mutex_);
    if (health_.ok()) return health_;
    const auto seconds = std::chrono::duration_cast<std::chrono::seconds>(
        cluster_.clock().Monotonic() - unhealthy_since_);
    return Annotate(
        health_,
        fmt::format("watch of {} broken for {} s", options_.resource.plural, seconds.count()));
  }

 private:
  void Run(const std::stop_token& stop);
  // Lists and tells the differences; sets version_.
  absl::Status Relist(const std::stop_token& stop);
  absl::Status ListedItem(std::string_view object);
  void TellGone();
  // The store has gone back: whatever there is will be told.
  void BeginHistory();
  // Watches from version_ until the watch ends.
  absl::Status WatchOnce(const std::stop_token& stop);
  bool Take(std::string_view piece);
  absl::Status TakeLine(simdjson::padded_string_view line);
  absl::Status TakeChange(std::string_view type, simdjson::padded_string_view object);
  void Tell(Kind kind, std::string_view object, const internal::ObjectIdentity& identity);
  void TellDeleted(const Known& known);
  void SetHealth(const absl::Status& status);
  void PauseAfter(const absl::Status& status, const std::stop_token& stop);

  KnownSet::const_iterator Find(const internal::ObjectIdentity& identity) const {
    return known_.find(std::string_view(fmt::format("{}/{}", identity.space, identity.name)));
  }
  // It is so now. False: nothing of its name was known.
  bool Note(const internal::ObjectIdentity& identity);

  Cluster& cluster_;
  const WatcherOptions options_;
  const Callback callback_;

  // The watcher's thread only.
  internal::ListReader reader_;
  std::string item_;    // a listed object with room behind it
  std::string buffer_;  // what has come of the stream and is not told yet
  std::string version_;
  absl::Status line_error_;
  KnownSet known_;
  uint32_t lists_ = 0;
  uint64_t history_ = 1;
  int failures_ = 0;
  bool told_in_watch_ = false;
  Backoff backoff_;
  std::minstd_rand random_;

  std::atomic<bool> synced_ = false;
  mutable std::mutex health_mutex_;
  absl::Status health_ = absl::UnavailableError("not listed yet");
  std::chrono::steady_clock::time_point unhealthy_since_;
  bool broken_said_ = false;
  const std::unique_ptr<Thread> thread_;  // last: it uses all of the above
};

void Watcher::Impl::Run(const std::stop_token& stop) {
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
    PauseAfter(status, stop);
  }
}

absl::Status Watcher::Impl::Relist(const std::stop_token& stop) {
  ++lists_;
  const auto item = [&](std::string_view object) {
    return stop.stop_requested() ? absl::CancelledError("stop requested") : ListedItem(object);
  };
  ASSIGN_OR_RETURN(std::string version,
                   cluster_.List(options_.resource, options_.selector, item, options_.page));
  TellGone();
  version_ = std::move(version);
  callback_({.history = history_});
  synced_.store(true);
  return absl::OkStatus();
}

absl::Status Watcher::Impl::ListedItem(std::string_view object) {
  item_.assign(object);
  ASSIGN_OR_RETURN(const auto identity, reader_.ReadIdentity(internal::Padded(item_)));
  auto found = Find(identity);
  if (found != known_.end() && found->uid() != identity.uid) {
    TellDeleted(*found);
    known_.erase(found);
    found = known_.end();
  }
  const uint64_t version = VersionOf(identity.resource_version);
  if (found != known_.end() && IsOlder(version, found->version)) {
    // By itself: of failures only the first is said, and the API server was away before.
    LogWarning("the API server's store has gone back: what it shows is the truth",
               {{"resource", options_.resource.plural},
                {"namespace", identity.space},
                {"name", identity.name},
                {"version", identity.resource_version},
                {"known", fmt::format("{}", found->version)}});
    BeginHistory();
    return Unavailable("the API server shows {}/{} as it was before: its store has gone back",
                       identity.space,
                       identity.name);
  }
  const bool news = found == known_.end() || found->version != version;
  const bool was_known = Note(identity);
  if (news) Tell(was_known ? Kind::kModified : Kind::kAdded, object, identity);
  return absl::OkStatus();
}

bool Watcher::Impl::Note(const internal::ObjectIdentity& identity) {
  auto found = Find(identity);
  const bool was_known = found != known_.end();
  if (was_known && found->uid() != identity.uid) {
    known_.erase(found);
    found = known_.end();
  }
  if (found == known_.end()) found = known_.emplace(identity).first;
  found->version = VersionOf(identity.resource_version);
  found->list = lists_;
  return was_known;
}

void Watcher::Impl::BeginHistory() {
  ++history_;
  for (const Known& known : known_) known.version = kNoVersion;
}

void Watcher::Impl::TellGone() {
  for (auto it = known_.begin(); it != known_.end();) {
    if (it->list == lists_) {
      ++it;
      continue;
    }
    TellDeleted(*it);
    it = known_.erase(it);
  }
}

absl::Status Watcher::Impl::WatchOnce(const std::stop_token& stop) {
  buffer_.clear();
  line_error_ = absl::OkStatus();
  told_in_watch_ = false;
  const auto spread = std::uniform_int_distribution<int64_t>(
      0, std::max<int64_t>(1, options_.server_timeout.count() / 2))(random_);
  const auto begin = cluster_.clock().Monotonic();
  const absl::Status status = cluster_.Watch(
      options_.resource,
      options_.selector,
      version_,
      options_.server_timeout + Millis(spread),
      [this](std::string_view piece) { return Take(piece); },
      stop);
  if (!line_error_.ok()) return line_error_;
  RETURN_IF_ERROR(status);
  if (told_in_watch_ || cluster_.clock().Monotonic() - begin > kShortWatch) return absl::OkStatus();
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
    if (type == "DELETED") {
      if (const auto known = Find(identity); known != known_.end()) known_.erase(known);
      Tell(Kind::kDeleted, object, identity);
    } else {
      Tell(Note(identity) ? Kind::kModified : Kind::kAdded, object, identity);
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
             .resource_version = identity.resource_version,
             .history = history_});
}

void Watcher::Impl::TellDeleted(const Known& known) {
  Tell(Kind::kDeleted,
       {},
       {.space = known.space(), .name = known.name(), .uid = known.uid(), .resource_version = {}});
}

void Watcher::Impl::SetHealth(const absl::Status& status) {
  const std::lock_guard lock(health_mutex_);
  const bool was = health_.ok();
  if (was && !status.ok()) unhealthy_since_ = cluster_.clock().Monotonic();
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

void Watcher::Impl::PauseAfter(const absl::Status& status, const std::stop_token& stop) {
  const Millis wait = std::max(backoff_.Next(), RetryAfter(status).value_or(Millis(0)));
  Pause(cluster_.clock(), wait, stop);
}

Watcher::Watcher(Cluster& cluster, WatcherOptions options, Callback callback)
    : impl_(std::make_unique<Impl>(cluster, std::move(options), std::move(callback))) {}
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
