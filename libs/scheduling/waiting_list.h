// The jobs of one queue that could start now, in the order in which they are tried: the higher rank
// (aging.h: the priority, and how long it waits) first, then the earlier submission. Submission
// numbers follow the log, so the order is total and the same on every machine.
//
// A balanced tree that counts its subtrees: Insert, Erase and Position are O(log n), the first k
// cost O(k). The list holds pointers and owns nothing. Thread-compatible.
#pragma once

#include <cstddef>
#include <cstdint>

#include <ext/pb_ds/assoc_container.hpp>
#include <ext/pb_ds/tree_policy.hpp>

#include "libs/base/check.h"

namespace fluxqueue::scheduling {

struct OrderKey {
  int64_t rank = 0;
  uint64_t submission = 0;

  friend bool operator==(const OrderKey&, const OrderKey&) = default;
  // The one that is tried first is the lesser.
  friend bool operator<(const OrderKey& a, const OrderKey& b) {
    if (a.rank != b.rank) return a.rank > b.rank;
    return a.submission < b.submission;
  }
};

template <typename Job>
class WaitingList {
 public:
  // REQUIRES: no job has this key.
  void Insert(OrderKey key, Job* job) {
    const bool inserted = jobs_.insert({key, job}).second;
    CHECK(inserted, "submission {} waits already", key.submission);
  }
  // REQUIRES: a job has this key.
  void Erase(OrderKey key) {
    const bool erased = jobs_.erase(key);
    CHECK(erased, "submission {} does not wait", key.submission);
  }

  // Null: no job has this key.
  Job* Find(OrderKey key) const {
    const auto it = jobs_.find(key);
    return it == jobs_.end() ? nullptr : it->second;
  }

  // Null: nobody waits behind the key.
  Job* After(OrderKey key) const {
    const auto it = jobs_.upper_bound(key);
    return it == jobs_.end() ? nullptr : it->second;
  }

  // 1 for the first. REQUIRES: a job has this key.
  size_t Position(OrderKey key) const { return jobs_.order_of_key(key) + 1; }

  auto begin() const { return jobs_.begin(); }  // to (key, job)
  auto end() const { return jobs_.end(); }
  size_t size() const { return jobs_.size(); }
  bool empty() const { return jobs_.empty(); }

 private:
  __gnu_pbds::tree<OrderKey,
                   Job*,
                   std::less<OrderKey>,
                   __gnu_pbds::rb_tree_tag,
                   __gnu_pbds::tree_order_statistics_node_update>
      jobs_;
};

}  // namespace fluxqueue::scheduling
