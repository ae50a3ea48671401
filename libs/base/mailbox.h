// Where some threads leave what they have learnt for the one that takes it.
//
//   mailbox.Post(pod.uid, pod);   // takes the place of what was left under this key
//   mailbox.Post(answer);         // is kept beside all others
//   for (News& news : mailbox.Take()) …
//
// Of a thing that changes only the last is of use. So what is left under a key takes the place of
// what was there, and keeps its place in line: what was left behind something is taken after it,
// however often that has changed since.
//
// Full. What is left with its size counts: while kMostBytes of it wait, WaitForRoom does not
// return, and who calls it before each Post leaves no more than one item too many. Who cannot wait
// calls TryPost, and is told that it is full. What is left without a size is bounded by who leaves
// it: by the keys there are, or by calls under way. Who had to wait or was refused is counted, and
// said in the log, a line each kSayInterval.
//
// Thread-safe. Any number may take.
#pragma once

#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <iterator>
#include <limits>
#include <list>
#include <mutex>
#include <optional>
#include <stop_token>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "libs/base/clock.h"
#include "libs/base/log.h"

namespace fluxqueue {

template <typename T>
class Mailbox {
 public:
  static constexpr size_t kMostBytes = size_t{64} << 20;
  static constexpr size_t kAll = std::numeric_limits<size_t>::max();

  static constexpr std::chrono::seconds kSayInterval{10};

  explicit Mailbox(size_t most_bytes = kMostBytes) : Mailbox("", most_bytes) {}
  // `name`: for the log.
  explicit Mailbox(std::string name, size_t most_bytes = kMostBytes)
      : name_(std::move(name)), most_bytes_(most_bytes) {}

  // `wake` is called, on the poster's thread, when the mailbox was empty. Set before anything is
  // posted.
  void SetWake(std::function<void()> wake) { wake_ = std::move(wake); }

  // REQUIRES: as many wait as their poster has calls under way, at most.
  void Post(T item) { Leave(nullptr, std::move(item), 0, /*replace=*/true); }
  void Post(const std::string& key, T item, size_t bytes = 0) {
    Leave(&key, std::move(item), bytes, /*replace=*/true);
  }
  // False: it is full, and nothing was left. The size may be a count, where the limit is one.
  [[nodiscard]] bool TryPost(T item, size_t bytes) {
    return Leave(nullptr, std::move(item), bytes, /*replace=*/true, /*limited=*/true);
  }
  // Unless something waits under the key, which then says more.
  void PostIfNone(const std::string& key, T item, size_t bytes = 0) {
    Leave(&key, std::move(item), bytes, /*replace=*/false);
  }
  // What waits under the key is not so any more.
  void Withdraw(const std::string& key) {
    const std::lock_guard lock(mutex_);
    const auto known = by_key_.find(key);
    if (known == by_key_.end()) return;
    bytes_ -= known->second->bytes;
    items_.erase(known->second);
    by_key_.erase(known);
    changed_.notify_all();
  }

  // Returns when less than the limit waits. False: `stop` came first.
  bool WaitForRoom(const std::stop_token& stop) {
    std::unique_lock lock(mutex_);
    if (bytes_ >= most_bytes_) NoteFull();
    return changed_.wait(lock, stop, [this] { return bytes_ < most_bytes_; });
  }
  // Returns when something can be taken, `stop` comes, or the time is over.
  void WaitForItems(const std::stop_token& stop, Millis time) {
    std::unique_lock lock(mutex_);
    changed_.wait_for(lock, stop, time, [this] { return !items_.empty(); });
  }
  // Waits for one and takes it; nothing: `stop` came.
  std::optional<T> TakeOne(const std::stop_token& stop) {
    std::list<Entry> taken;
    {
      std::unique_lock lock(mutex_);
      changed_.wait(lock, stop, [this] { return !items_.empty(); });
      if (!stop.stop_requested()) MoveFirst(&taken);
    }
    if (taken.empty()) return std::nullopt;
    changed_.notify_all();
    return std::move(taken.front().item);
  }

  // The first `most`, in order.
  std::vector<T> Take(size_t most = kAll) {
    std::list<Entry> taken;
    {
      const std::lock_guard lock(mutex_);
      while (!items_.empty() && taken.size() < most) MoveFirst(&taken);
    }
    changed_.notify_all();
    std::vector<T> items;
    items.reserve(taken.size());
    for (Entry& entry : taken) items.push_back(std::move(entry.item));
    return items;
  }

  void Clear() { Take(); }

  bool empty() const { return size() == 0; }
  size_t size() const {
    const std::lock_guard lock(mutex_);
    return items_.size();
  }
  // Of what counts, without the one item too many at most the limit.
  size_t bytes() const {
    const std::lock_guard lock(mutex_);
    return bytes_;
  }
  // How often it was full for somebody.
  uint64_t times_full() const {
    const std::lock_guard lock(mutex_);
    return times_full_;
  }

 private:
  struct Entry {
    T item;
    size_t bytes = 0;
    bool keyed = false;
    std::string key{};
  };

  // Called with mutex_ held, as MoveFirst.
  void NoteFull() {
    ++times_full_;
    const auto now = std::chrono::steady_clock::now();
    if (said_at_.has_value() && now - *said_at_ < kSayInterval) return;
    said_at_ = now;
    LogWarning("mailbox is full: who fills it waits, or is refused",
               {{"mailbox", name_},
                {"items", std::to_string(items_.size())},
                {"times", std::to_string(times_full_)}});
  }
  void MoveFirst(std::list<Entry>* taken) {
    const Entry& first = items_.front();
    bytes_ -= first.bytes;
    if (first.keyed) by_key_.erase(first.key);
    taken->splice(taken->end(), items_, items_.begin());
  }

  bool Leave(const std::string* key, T item, size_t bytes, bool replace, bool limited = false) {
    bool first = false;
    {
      const std::lock_guard lock(mutex_);
      if (limited && bytes_ >= most_bytes_) {
        NoteFull();
        return false;
      }
      const auto known = key == nullptr ? by_key_.end() : by_key_.find(*key);
      if (known != by_key_.end()) {
        if (!replace) return true;
        Entry& entry = *known->second;
        bytes_ += bytes - entry.bytes;
        entry.item = std::move(item);
        entry.bytes = bytes;
        return true;
      }
      first = items_.empty();
      bytes_ += bytes;
      items_.push_back({std::move(item), bytes, key != nullptr, key == nullptr ? "" : *key});
      if (key != nullptr) by_key_.emplace(*key, std::prev(items_.end()));
    }
    if (!first) return true;
    changed_.notify_all();
    if (wake_) wake_();
    return true;
  }

  const std::string name_;
  const size_t most_bytes_;
  std::function<void()> wake_;
  mutable std::mutex mutex_;
  std::condition_variable_any changed_;
  std::list<Entry> items_;  // guarded by mutex_, as what follows
  std::unordered_map<std::string, typename std::list<Entry>::iterator> by_key_;
  size_t bytes_ = 0;
  uint64_t times_full_ = 0;
  std::optional<std::chrono::steady_clock::time_point> said_at_;
};

}  // namespace fluxqueue
