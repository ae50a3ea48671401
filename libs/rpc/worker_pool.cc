#include "libs/rpc/worker_pool.h"

#include <algorithm>
#include <optional>
#include <utility>

namespace fluxqueue::rpc {

WorkerPool::WorkerPool(int threads, size_t most_waiting)
    : most_waiting_(most_waiting), tasks_(std::max(1, threads - 1)) {
  for (int i = 0; i < threads; ++i) {
    threads_.emplace_back([this](const std::stop_token& stop) { Run(stop); });
  }
}

WorkerPool::~WorkerPool() {
  for (std::jthread& thread : threads_) thread.request_stop();
  threads_.clear();
}

void WorkerPool::Post(const std::string& client, Task task) {
  {
    const std::lock_guard lock(mutex_);
    tasks_.Push(client, std::move(task));
  }
  wake_.notify_one();
}

bool WorkerPool::TryPost(const std::string& client, Task task) {
  {
    const std::lock_guard lock(mutex_);
    if (tasks_.size() >= most_waiting_) return false;
    tasks_.Push(client, std::move(task));
  }
  wake_.notify_one();
  return true;
}

void WorkerPool::Run(const std::stop_token& stop) {
  std::unique_lock lock(mutex_);
  while (true) {
    std::optional<FairQueue::Taken> next;
    // What may not begin yet is begun by the thread whose task of the same client ends.
    wake_.wait(lock, stop, [&] { return (next = tasks_.Take()).has_value(); });
    if (!next.has_value()) return;
    lock.unlock();
    next->task();
    next->task = nullptr;
    lock.lock();
    tasks_.Ended(next->client);
  }
}

}  // namespace fluxqueue::rpc
