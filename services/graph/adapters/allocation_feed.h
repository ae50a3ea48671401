// What becomes of the allocations of pools that are watched, found by comparing what is held with
// what was: a change that is undone before anybody has looked is told to nobody, and of two changes
// of a job only the last is told. Nothing else is lost: while Postgres is away nobody is told
// anything, and then of all that has changed.
//
// Looks at whether the matcher has committed anything every kInterval, and only where somebody
// watches. Thread-safe.
#pragma once

#include <chrono>
#include <condition_variable>
#include <map>
#include <memory>
#include <mutex>
#include <stop_token>
#include <string>
#include <thread>
#include <vector>

#include "services/graph/adapters/pool_pictures.h"
#include "services/graph/domain/allocation_watch.h"

#include "absl/status/status.h"

namespace fluxqueue::graph_service {

class AllocationFeed {
 public:
  static constexpr std::chrono::milliseconds kInterval{100};

  // `pictures` outlives the object.
  explicit AllocationFeed(PoolPictures& pictures);

  // Tells it what is held, KIND_SYNCED, then what happens, until it has ended. A first look that
  // fails ends it.
  void Watch(const std::string& pool, std::shared_ptr<AllocationWatch> watch);

 private:
  using Watches = std::vector<std::shared_ptr<AllocationWatch>>;
  struct Watched {
    Watches watches;
    PoolPictures::Version version{};
    std::map<std::string, std::string> holders;  // as told last, by job: a hash of what it holds
  };

  void Run(const std::stop_token& stop);
  // Those that come are told what is held, the others what has changed.
  void Tell(const std::string& pool, Watched* watched, Watches coming);

  PoolPictures& pictures_;
  std::map<std::string, Watched> pools_;  // the thread's

  std::mutex mutex_;
  std::condition_variable_any came_;
  std::map<std::string, Watches> coming_;  // guarded by mutex_
  std::jthread thread_;
};

}  // namespace fluxqueue::graph_service
