// What becomes of the allocations of pools that are watched, found by comparing what is held with
// what was: a change that is undone before anybody has looked is told to nobody, and of two changes
// of a job only the last is told. Nothing else is lost: while Postgres is away nobody is told
// anything, and then of all that has changed.
//
// What is held when a watch begins it is told in pieces, by the jobs' ids, each as soon as the one
// before it was read: of jobs behind those that it was told of it hears nothing meanwhile.
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
  // By job: a hash of what it holds.
  using Holders = std::map<std::string, std::string>;

  // `pictures` outlives the object.
  explicit AllocationFeed(PoolPictures& pictures);

  // Tells it what is held, KIND_SYNCED, then what happens, until it has ended. A first look that
  // fails ends it.
  void Watch(const std::string& pool, std::shared_ptr<AllocationWatch> watch);

 private:
  using Watches = std::vector<std::shared_ptr<AllocationWatch>>;
  struct Watcher {
    bool Hears(const std::string& job_id) const;
    // Jobs of the list, behind those that it was told of.
    std::vector<std::string> NextPiece(const Holders& now) const;

    std::shared_ptr<AllocationWatch> watch;
    std::string told{};   // the last job of the list so far
    bool synced = false;  // that was all
    size_t piece = 5000;  // of jobs that are looked at; fewer, when fewer make a piece
  };
  struct Watched {
    std::vector<Watcher> watchers;
    PoolPictures::Version version{};
    Holders holders;  // as told last
  };

  void Run(const std::stop_token& stop);
  // Those that come are told a piece of what is held, all others what has changed.
  void Tell(const std::string& pool, Watched* watched, const Watches& coming);
  void TellPiece(const std::string& pool,
                 const PoolPictures::Held& held,
                 const std::vector<std::string>& piece,
                 Watcher* watcher);

  PoolPictures& pictures_;
  std::map<std::string, Watched> pools_;  // the thread's

  std::mutex mutex_;
  std::condition_variable_any came_;
  std::map<std::string, Watches> coming_;  // guarded by mutex_
  std::jthread thread_;
};

}  // namespace fluxqueue::graph_service
