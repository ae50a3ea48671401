// Threads for what a gRPC callback must not wait for.
//
// Clients are served in turn (fair_queue.h): one that has its whole allowance in line delays
// another by the task that is next at most, and never has all threads, if there are several. Tasks
// of strangers, who may come in any number, are given to TryPost, of a pool that has a limit: when
// so many wait, it says so, and the caller turns the stranger away. Thread-safe.
#pragma once

#include <condition_variable>
#include <cstddef>
#include <functional>
#include <limits>
#include <mutex>
#include <stop_token>
#include <string>
#include <thread>
#include <vector>

#include "libs/rpc/fair_queue.h"

namespace fluxqueue::rpc {

class WorkerPool {
 public:
  using Task = FairQueue::Task;

  // `most_waiting`: tasks that nobody has begun yet.
  explicit WorkerPool(int threads, size_t most_waiting = std::numeric_limits<size_t>::max());
  // Does what is posted, then ends.
  ~WorkerPool();
  WorkerPool(const WorkerPool&) = delete;
  WorkerPool& operator=(const WorkerPool&) = delete;

  // Whatever waits already. REQUIRES: who posts is bounded by something else.
  void Post(Task task) { Post("", std::move(task)); }
  // The same for a client, when it is his turn.
  void Post(const std::string& client, Task task);
  // False: as many wait as may, and it is not done.
  [[nodiscard]] bool TryPost(Task task) { return TryPost("", std::move(task)); }
  [[nodiscard]] bool TryPost(const std::string& client, Task task);

 private:
  void Run(const std::stop_token& stop);

  const size_t most_waiting_;
  std::mutex mutex_;
  std::condition_variable_any wake_;
  FairQueue tasks_;  // guarded by mutex_
  std::vector<std::jthread> threads_;
};

}  // namespace fluxqueue::rpc
