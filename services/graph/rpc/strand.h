// Tasks that run one after another, on threads of a pool, as tasks of one of its clients.
//
// gRPC's own threads, of which there are a few for all clients, do none of it. After kMostAtOnce,
// and one task, the thread is given back, so that other clients of the pool get theirs in turn.
//
// Thread-safe. Tasks run in the order in which they were posted. A task must keep alive what it
// uses; the strand lives until its tasks have run, and the pool longer.
#pragma once

#include <chrono>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <utility>

#include "libs/rpc/worker_pool.h"

namespace fluxqueue::graph_service {

class Strand : public std::enable_shared_from_this<Strand> {
 public:
  static constexpr std::chrono::microseconds kMostAtOnce{2000};

  using Task = std::function<void()>;

  Strand(rpc::WorkerPool& pool, std::string client) : pool_(pool), client_(std::move(client)) {}

  void Post(Task task);

 private:
  void Run();
  void RunInPool();

  rpc::WorkerPool& pool_;
  const std::string client_;
  std::mutex mutex_;
  std::deque<Task> waiting_;  // guarded by mutex_, as what follows
  bool running_ = false;
};

}  // namespace fluxqueue::graph_service
