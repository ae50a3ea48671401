// Tasks that run one after another, on no thread of their own.
//
// Whoever posts to an idle strand runs the task, and those that others post meanwhile, at once: a
// call that takes microseconds costs no change of threads. Tasks that take long go to the worker
// pool, and so does all that is posted while they run or wait; a strand whose short tasks turn out
// not to be short uses the pool until one is again. gRPC's threads are held for kMostHere at most,
// and one task.
//
// Thread-safe. Tasks run in the order in which they were posted. A task must keep alive what it
// uses; the strand lives until its tasks have run, and the pool longer.
#pragma once

#include <chrono>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>

#include "libs/rpc/worker_pool.h"

namespace fluxqueue::graph_service {

class Strand : public std::enable_shared_from_this<Strand> {
 public:
  static constexpr std::chrono::microseconds kMostHere{2000};

  using Task = std::function<void()>;
  enum class Length { kShort, kLong };

  explicit Strand(rpc::WorkerPool& pool) : pool_(pool) {}

  void Post(Length length, Task task);

 private:
  struct Waiting {
    Length length = Length::kShort;
    Task task;
  };

  // Runs tasks until there are none; on a thread of gRPC's only short ones.
  void Run(bool in_pool);
  void RunInPool();

  rpc::WorkerPool& pool_;
  std::mutex mutex_;
  std::deque<Waiting> waiting_;  // guarded by mutex_, as what follows
  bool running_ = false;
  bool slow_ = false;  // the last short task was not
};

}  // namespace fluxqueue::graph_service
