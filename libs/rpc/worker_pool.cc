#include "libs/rpc/worker_pool.h"

#include <utility>

namespace fluxqueue::rpc {

WorkerPool::WorkerPool(int threads, size_t most_waiting) : most_waiting_(most_waiting) {
  for (int i = 0; i < threads; ++i) {
    threads_.emplace_back([this](const std::stop_token& stop) { Run(stop); });
  }
}

WorkerPool::~WorkerPool() {
  for (std::jthread& thread : threads_) thread.request_stop();
  threads_.clear();
}

void WorkerPool::Post(Task task) {
  {
    const std::lock_guard lock(mutex_);
    tasks_.push_back(std::move(task));
  }
  wake_.notify_one();
}

bool WorkerPool::TryPost(Task task) {
  {
    const std::lock_guard lock(mutex_);
    if (tasks_.size() >= most_waiting_) return false;
    tasks_.push_back(std::move(task));
  }
  wake_.notify_one();
  return true;
}

void WorkerPool::Run(const std::stop_token& stop) {
  std::unique_lock lock(mutex_);
  while (true) {
    wake_.wait(lock, stop, [this] { return !tasks_.empty(); });
    if (tasks_.empty()) return;
    Task task = std::move(tasks_.front());
    tasks_.pop_front();
    lock.unlock();
    task();
    task = nullptr;
    lock.lock();
  }
}

}  // namespace fluxqueue::rpc
