// Where threads of the API ask the loop's thread about pools: a mailbox.
//
// A question is put on the loop's thread between two batches, so it sees what is committed and
// nothing else; it must be short. While no partition is held, nobody comes to look: the desk is
// shut, and answers "not held" itself, on the caller's thread.
//
// Thread-safe.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "libs/matcher_core/matcher_core.h"

namespace fluxqueue::matcher {

struct PoolAtHand {
  const matcher_core::MatcherCore& core;
  int64_t now_s;  // since the pool's beginning
};

class PoolDesk {
 public:
  // Null: the pool is not held here.
  using Question = std::function<void(const PoolAtHand* pool)>;
  // Told of a pool's allocations that changed, on the loop's thread; null: the pool has gone.
  // False: it wants to know no more.
  using Watcher =
      std::function<bool(const PoolAtHand* pool, const std::vector<graph::AllocationKey>& changed)>;

  // `wake`: the loop should look at the desk; thread-safe.
  explicit PoolDesk(std::function<void()> wake) : wake_(std::move(wake)) {}

  void Ask(std::string pool, Question question);
  // On the loop's thread, in a question: told of all that happens from then on.
  void Watch(const std::string& pool, Watcher watcher);

  // ---- for the loop

  bool empty() const;
  std::vector<std::pair<std::string, Question>> Take();
  bool watched(const std::string& pool) const { return watchers_.contains(pool); }
  void Tell(const std::string& pool,
            const PoolAtHand* at_hand,
            const std::vector<graph::AllocationKey>& changed);
  // Some partition is held; none is any more.
  void Open();
  void Shut();

 private:
  const std::function<void()> wake_;
  mutable std::mutex mutex_;
  std::deque<std::pair<std::string, Question>> questions_;  // guarded by mutex_, as what follows
  bool open_ = false;

  std::map<std::string, std::vector<Watcher>> watchers_;  // the loop's thread only
};

}  // namespace fluxqueue::matcher
