// Matches on the pools' graphs: each is a claim in the queue, by the queue's API.
//
//   Match ─► queue/SubmitClaim ─► the pool's log ─► a cycle ─► the answer ─► queue ─► here
//
// Thread-safe.
#pragma once

#include <chrono>
#include <condition_variable>
#include <functional>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <unordered_map>

#include "fluxqueue/queue/v1/queue.grpc.pb.h"

#include "libs/peers/peers.h"
#include "libs/rpc/worker_pool.h"
#include "services/graph/rpc/graph_calls.h"

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace fluxqueue::graph_service {

class Claims {
 public:
  // How long a call waits for its cycle, if the client's deadline lets it.
  static constexpr std::chrono::seconds kPatience{10};

  // `queues` outlives the object. What was posted to `workers` uses it: they end before it does,
  // once it was drained.
  Claims(peers::Peers& queues, rpc::WorkerPool& workers) : queues_(queues), workers_(workers) {}
  ~Claims();
  Claims(const Claims&) = delete;
  Claims& operator=(const Claims&) = delete;

  // The claim as it became: holding its nodes, in line (which is taken back unless `stays`),
  // rejected. `client_id`: the same one is the same claim.
  struct Claim {
    std::string pool;
    std::string client_id;
    std::string jobspec;
    int64_t duration_s = 0;  // 0: until it is cancelled
    bool stays = false;
    // The client knows `client_id`. What nobody can name is given back when the client has gone, or
    // was told of an error.
    bool named = false;
  };
  using Submitted = std::function<void(absl::StatusOr<queue::v1::Job>)>;
  void Submit(const CallInfo& call, const Claim& claim, Submitted submitted);

  // Of a claim, or of any other job, which is stopped first.
  void Cancel(const CallInfo& call, const std::string& pool, const std::string& job_id, Done done);

  // What is to be done for a call however it has ended.
  static CallInfo Afterwards(const CallInfo& call);

  // Calls under way come to their end, after a while at once; none begins any more.
  void Drain();

 private:
  using Stub = std::shared_ptr<queue::v1::Queue::Stub>;

  using Answer = std::function<void(const grpc::Status&, queue::v1::Job)>;
  // To the queue: answered when it has been decided, if that is before `wait` is over.
  void Call(const CallInfo& call,
            const Claim& claim,
            std::chrono::milliseconds wait,
            Answer answer);
  // Whatever became of it: it is found by its client_id, and cancelled.
  void GiveBack(const CallInfo& call, const Claim& claim);
  bool draining();
  // A call begins, and is over.
  void Begin(grpc::ClientContext* context);
  void End(grpc::ClientContext* context);
  // Blocks.
  absl::StatusOr<Stub> HolderOf(const std::string& pool);
  // It may be another's by now.
  void Forget(const std::string& pool);

  peers::Peers& queues_;
  rpc::WorkerPool& workers_;
  struct Known {
    Stub stub;
    std::chrono::steady_clock::time_point until;
  };
  std::mutex mutex_;
  std::unordered_map<std::string, Known> known_;  // by pool; guarded by mutex_, as what follows
  std::set<grpc::ClientContext*> under_way_;
  std::condition_variable ended_;
  bool draining_ = false;
};

}  // namespace fluxqueue::graph_service
