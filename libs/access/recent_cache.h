// What was found out a moment ago, and may be believed for another: entries live for `age`, and the
// oldest goes where there would be more than `most`.
//
// Thread-safe.
#pragma once

#include <chrono>
#include <cstddef>
#include <deque>
#include <mutex>
#include <optional>
#include <string>
#include <unordered_map>
#include <utility>

#include "libs/base/clock.h"

namespace fluxqueue::access {

template <typename Value>
class RecentCache {
 public:
  // `clock` outlives the cache. REQUIRES: most >= 1.
  RecentCache(const Clock& clock, Millis age, size_t most)
      : clock_(clock), age_(age), most_(most) {}

  std::optional<Value> Find(const std::string& key) {
    const std::lock_guard lock(mutex_);
    Drop(clock_.Monotonic());
    const auto found = values_.find(key);
    if (found == values_.end()) return std::nullopt;
    return found->second;
  }

  // What is there already stays, with its age.
  void Put(const std::string& key, Value value) {
    const std::lock_guard lock(mutex_);
    const auto now = clock_.Monotonic();
    Drop(now);
    if (!values_.emplace(key, std::move(value)).second) return;
    order_.emplace_back(now + age_, key);
    if (values_.size() > most_) DropFirst();
  }

  size_t size() const {
    const std::lock_guard lock(mutex_);
    return values_.size();
  }

 private:
  void DropFirst() {
    values_.erase(order_.front().second);
    order_.pop_front();
  }
  void Drop(std::chrono::steady_clock::time_point now) {
    while (!order_.empty() && order_.front().first <= now) DropFirst();
  }

  const Clock& clock_;
  const Millis age_;
  const size_t most_;
  mutable std::mutex mutex_;
  std::unordered_map<std::string, Value> values_;  // guarded by mutex_, as what follows
  std::deque<std::pair<std::chrono::steady_clock::time_point, std::string>> order_;
};

}  // namespace fluxqueue::access
