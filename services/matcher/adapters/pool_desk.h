// Where threads of the API ask the loop's thread about pools: a mailbox.
//
// A question is put on the loop's thread between two batches, so it sees what is committed and
// nothing else; it must be short. It is asked once: when nobody came by its deadline (what the loop
// needs is away), on a thread of the desk; while no partition is held, and when the desk is closed
// or full, on the caller's. Then there is no pool, and a status says why.
//
// Thread-safe.
#pragma once

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <mutex>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "libs/matcher_core/matcher_core.h"

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace fluxqueue::matcher {

struct PoolAtHand {
  const matcher_core::MatcherCore& core;
  int64_t now_s;  // since the pool's beginning
};

class PoolDesk {
 public:
  using TimePoint = std::chrono::steady_clock::time_point;
  // Unavailable: the pool is not held here; DeadlineExceeded; ResourceExhausted.
  using Question = std::function<void(absl::StatusOr<const PoolAtHand*> pool)>;
  struct Watcher {
    // It wants to know no more. Thread-safe.
    std::function<bool()> ended;
    // Of a pool's allocations that changed, on the loop's thread; null: the pool has gone.
    std::function<void(const PoolAtHand* pool, const std::vector<graph::AllocationKey>& changed)>
        tell;
  };

  static constexpr size_t kMostQuestions = 10'000;
  static absl::Status NotHeld(const std::string& pool);

  // `wake`: the loop should look at the desk; thread-safe.
  explicit PoolDesk(std::function<void()> wake);

  void Ask(std::string pool, TimePoint deadline, Question question);
  // On the loop's thread, in a question: told of all that happens from then on.
  void Watch(const std::string& pool, Watcher watcher);

  // ---- for the loop

  bool empty() const;
  struct Asked {
    std::string pool;
    TimePoint deadline;
    Question question;
  };
  std::vector<Asked> Take();
  bool watched(const std::string& pool) const { return watchers_.contains(pool); }
  void Tell(const std::string& pool,
            const PoolAtHand* at_hand,
            const std::vector<graph::AllocationKey>& changed);
  // Some partition is held; none is any more.
  void Open();
  void Shut();

  // At stop: what was asked is answered, and nothing more taken.
  void Close();

 private:
  void Expire(const std::stop_token& stop);

  const std::function<void()> wake_;
  mutable std::mutex mutex_;
  std::deque<Asked> questions_;  // guarded by mutex_, as what follows
  bool open_ = false;
  bool closed_ = false;
  std::condition_variable_any asked_;

  std::map<std::string, std::vector<Watcher>> watchers_;  // the loop's thread only
  std::jthread expirer_;
};

}  // namespace fluxqueue::matcher
