// The facts that the loop has committed, for threads of the API: watchers of a pool, and waiters
// for one job.
//
// A watcher is told of each fact on the loop's thread and must not block. A waiter is told once, of
// the first fact that it wants, or that its time is over.
//
// Thread-safe.
#pragma once

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <stop_token>
#include <string>
#include <thread>
#include <unordered_map>
#include <utility>
#include <vector>

#include "fluxqueue/events/v1/events.pb.h"

#include "services/queue/adapters/job_observer.h"

#include "absl/status/status.h"

namespace fluxqueue::queue {

class FactWatcher {
 public:
  virtual ~FactWatcher() = default;
  virtual void Changed(const events::v1::JobFact& fact) = 0;
  // Nothing comes any more: the pool is lost, or the service stops.
  virtual void End(const absl::Status& why) = 0;
};

class FactFeed {
 public:
  using TimePoint = std::chrono::steady_clock::time_point;
  using Wants = std::function<bool(const events::v1::JobFact&)>;
  // Nothing: the deadline is over, or nothing will come any more.
  using Done = std::function<void(std::optional<events::v1::JobFact>)>;

  FactFeed();
  ~FactFeed();

  // For the loop.
  void Changed(const std::vector<JobSeen>& jobs);
  void Gained(const std::string& pool);
  void Lost(const std::string& pool);

  // The pool's facts come here.
  bool Holds(const std::string& pool);
  // ResourceExhausted: too many watch already, or too many of the tenant; empty: nobody is known.
  // Unavailable: the pool is not held here.
  absl::Status Watch(const std::string& pool,
                     const std::string& tenant,
                     std::shared_ptr<FactWatcher> watcher);
  void Unwatch(const std::shared_ptr<FactWatcher>& watcher);

  // `done` is called once, on the loop's thread or one of the feed's, unless Forget came before.
  uint64_t Await(const std::string& job_id, TimePoint deadline, Wants wants, Done done);
  // True: `done` will not be called.
  bool Forget(uint64_t waiter);

  // Ends all watchers and waiters, also those that come later.
  void Close();

 private:
  struct Watched {
    std::string pool;
    std::string tenant;
  };
  struct Waiter {
    std::string job_id;
    TimePoint deadline;
    Wants wants;
    Done done;
  };

  void ExpireWaiters(const std::stop_token& stop);
  std::optional<Waiter> Remove(uint64_t id);

  std::mutex mutex_;
  std::condition_variable_any wake_;
  bool closed_ = false;   // guarded by mutex_, as what follows
  bool telling_ = false;  // the expirer tells one that it is late
  std::set<std::string> pools_;
  std::map<std::shared_ptr<FactWatcher>, Watched> watchers_;
  uint64_t last_waiter_ = 0;
  std::unordered_map<uint64_t, Waiter> waiters_;
  std::multimap<std::string, uint64_t> by_job_;
  std::map<std::pair<TimePoint, uint64_t>, uint64_t> by_deadline_;
  std::jthread expirer_;
};

}  // namespace fluxqueue::queue
