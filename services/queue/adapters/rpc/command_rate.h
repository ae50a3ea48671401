// How often commands are taken: of one user, and about one job. Each is an event in the pool's log,
// and most are a row of the job's history, so whoever repeats them without end would fill both.
//
// A burst is taken at once, then so many a second. What is refused costs nothing. Memory: of those
// who have commanded as long ago as a whole burst takes to come back, nothing is kept.
//
// Thread-safe.
#pragma once

#include <chrono>
#include <mutex>
#include <string>
#include <string_view>
#include <unordered_map>

#include "absl/status/status.h"

namespace fluxqueue::queue {

class CommandRate {
 public:
  using TimePoint = std::chrono::steady_clock::time_point;

  struct Bound {
    double burst = 0;
    double each_second = 0;
  };
  // As many as there are jobs in a large array, at once.
  static constexpr Bound kOfUser{.burst = 10'000, .each_second = 20};
  static constexpr Bound kOfJob{.burst = 50, .each_second = 0.1};

  // ResourceExhausted says what to do. `user`: whose bounds he shares (access::TenantOf); empty:
  // nobody is known, and nothing is counted. `job`: empty, it is about none that is there.
  absl::Status Take(std::string_view user, const std::string& job, TimePoint now);

  // Users and jobs that are remembered.
  size_t size() const;

 private:
  struct Bucket {
    double left = 0;
    TimePoint at;  // of `left`
  };
  using Buckets = std::unordered_map<std::string, Bucket>;

  // With mutex_ held.
  static double Left(const Buckets& buckets,
                     const std::string& key,
                     const Bound& bound,
                     TimePoint now);
  void Sweep(TimePoint now);

  mutable std::mutex mutex_;
  Buckets users_;  // guarded by mutex_, as what follows
  Buckets jobs_;
  TimePoint swept_;
};

}  // namespace fluxqueue::queue
