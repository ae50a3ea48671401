// Threads for what a gRPC callback must not wait for.
//
// Thread-safe. Tasks are taken in the order in which they came.
#pragma once

#include <condition_variable>
#include <deque>
#include <functional>
#include <mutex>
#include <stop_token>
#include <thread>
#include <vector>

namespace fluxqueue::rpc {

class WorkerPool {
 public:
  using Task = std::function<void()>;

  explicit WorkerPool(int threads);
  // Does what is posted, then ends.
  ~WorkerPool();
  WorkerPool(const WorkerPool&) = delete;
  WorkerPool& operator=(const WorkerPool&) = delete;

  void Post(Task task);

 private:
  void Run(const std::stop_token& stop);

  std::mutex mutex_;
  std::condition_variable_any wake_;
  std::deque<Task> tasks_;  // guarded by mutex_
  std::vector<std::jthread> threads_;
};

}  // namespace fluxqueue::rpc
