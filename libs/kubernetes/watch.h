// One resource kept in view: list, then watch from there, for ever.
//
// The watcher tells the whole state level by level: after kSynced the events so far are the
// cluster's state; each later event moves it on. When the watch breaks (connection lost, the
// server's time limit, silence) it goes on from the last resourceVersion, bookmarks included; when
// that has expired (410, an ERROR event, the API server restored from a backup) it lists again and
// tells only the differences: kAdded for new objects, kModified where the resourceVersion differs,
// kDeleted (without a text) for those that have gone meanwhile, then kSynced again. An object made
// again under its name is told as kDeleted of the old uid, then kAdded of the new. Errors are
// retried for ever with backoff (200 ms to 10 s, or what Retry-After says); logged when they begin
// and when they end.
//
// A list that shows an older version of an object than was told before is one of a store that has
// gone back: etcd was restored from a backup. Another history begins, and its first list tells all
// that there is, also what looks as before. Who compares versions does so within one history; a
// later one is the truth, however low its versions are. Not seen: a restored store whose revision
// has passed that of our watch before we asked again; so restore with a revision that is raised and
// marked compacted (etcdutl snapshot restore --bump-revision --mark-compacted).
//
// Confinement: the callback runs on the watcher's own thread, one event at a time, in order; while
// it blocks, no events are read. It must not call Stop(). The rest is thread-safe.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "libs/base/clock.h"
#include "libs/kubernetes/cluster.h"

#include "absl/status/status.h"

namespace fluxqueue::kubernetes {

struct WatchEvent {
  enum class Kind { kAdded, kModified, kDeleted, kSynced };
  Kind kind = Kind::kSynced;
  // Views that are valid during the callback. All empty with kSynced.
  std::string_view object{};  // JSON; empty for what was found gone by a new list
  std::string_view space{};   // namespace
  std::string_view name{};
  std::string_view uid{};
  std::string_view resource_version{};  // likewise
  uint64_t history = 1;                 // of the store; rises when that has gone back
};

struct WatcherOptions {
  Resource resource{};
  Selector selector{};
  int page = 500;
  // The server ends each watch after this (spread by up to a half more); it is taken up again at
  // once.
  Millis server_timeout{240'000};
  Millis retry_min{200};
  Millis retry_max{10'000};
};

class Watcher {
 public:
  using Callback = std::function<void(const WatchEvent&)>;

  // Starts at once. The cluster must outlive the watcher.
  Watcher(Cluster& cluster, WatcherOptions options, Callback callback);
  ~Watcher();  // Stop()
  Watcher(const Watcher&) = delete;
  Watcher& operator=(const Watcher&) = delete;

  // Returns when the callback runs no more. Safe to call twice.
  void Stop();

  // The first kSynced has been told. Stays true.
  bool synced() const;
  // OK while the watch stands; else the last error and since when it lasts: for /readyz.
  absl::Status Health() const;

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace fluxqueue::kubernetes
