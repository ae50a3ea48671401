// Where some threads leave what they have learnt for the one that takes it.
//
//   mailbox.Post(pod.uid, pod);   // takes the place of what was left under this key
//   mailbox.Post(answer);         // is kept beside all others
//   for (News& news : mailbox.Take()) …
//
// Of a thing that changes only the last is of use. So what is left under a key takes the place of
// what was there, at the end of the line: while nobody takes anything a mailbox grows with the
// things there are, and not with how often they change. What has no key is bounded by who leaves
// it (calls under way).
//
// Thread-safe.
#pragma once

#include <functional>
#include <iterator>
#include <list>
#include <mutex>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

namespace fluxqueue {

template <typename T>
class Mailbox {
 public:
  // `wake` is called, on the poster's thread, when the mailbox was empty. Set before anything is
  // posted.
  void SetWake(std::function<void()> wake) { wake_ = std::move(wake); }

  void Post(T item) { Leave(nullptr, std::move(item)); }
  void Post(const std::string& key, T item) { Leave(&key, std::move(item)); }

  // In the order in which it was posted last.
  std::vector<T> Take() {
    std::list<T> taken;
    {
      const std::lock_guard lock(mutex_);
      taken.swap(items_);
      by_key_.clear();
    }
    return {std::make_move_iterator(taken.begin()), std::make_move_iterator(taken.end())};
  }

  void Clear() { Take(); }

  bool empty() const { return size() == 0; }
  size_t size() const {
    const std::lock_guard lock(mutex_);
    return items_.size();
  }

 private:
  void Leave(const std::string* key, T item) {
    bool first = false;
    {
      const std::lock_guard lock(mutex_);
      first = items_.empty();
      items_.push_back(std::move(item));
      if (key != nullptr) {
        const auto last = std::prev(items_.end());
        const auto [known, is_new] = by_key_.try_emplace(*key, last);
        if (!is_new) items_.erase(std::exchange(known->second, last));
      }
    }
    if (first && wake_) wake_();
  }

  std::function<void()> wake_;
  mutable std::mutex mutex_;
  std::list<T> items_;  // guarded by mutex_, as the next
  std::unordered_map<std::string, typename std::list<T>::iterator> by_key_;
};

}  // namespace fluxqueue
