// The pools' graphs behind the interface of the RPCs.
//
// What is asked is asked of the pool's core on the loop's thread, which copies what the answer is
// about; the answer is made of the copy, on a worker's thread (domain/pool_view.h). Match and
// Release are commands to the queue (claims.h). What another replica holds, it is asked for; its
// streams, the client has to ask for itself (UNAVAILABLE with the address).
//
// Thread-safe.
#pragma once

#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "fluxqueue/matcher/v1/matcher.grpc.pb.h"

#include "libs/peers/peers.h"
#include "libs/rpc/worker_pool.h"
#include "services/matcher/adapters/claims.h"
#include "services/matcher/adapters/pool_desk.h"
#include "services/matcher/domain/pool_view.h"
#include "services/matcher/rpc/graph_calls.h"

namespace fluxqueue::matcher {

class ClusterCalls final : public ClusterGraph {
 public:
  // All outlive the object, and the calls under way.
  ClusterCalls(PoolDesk& desk, Claims& claims, peers::Peers& matchers, rpc::WorkerPool& workers)
      : desk_(desk), claims_(claims), matchers_(matchers), workers_(workers) {}

  void Match(CallInfo call,
             const v1::MatchRequest* request,
             v1::MatchResponse* response,
             Done done) override;
  void Release(CallInfo call,
               const v1::ReleaseRequest* request,
               v1::ReleaseResponse* response,
               Done done) override;
  void GetJob(CallInfo call,
              const v1::GetJobRequest* request,
              v1::GetJobResponse* response,
              Done done) override;
  void Explain(CallInfo call,
               const v1::ExplainRequest* request,
               v1::ExplainResponse* response,
               Done done) override;
  void Find(CallInfo call,
            const v1::FindRequest* request,
            v1::FindResponse* response,
            Done done) override;
  void WhatIf(CallInfo call,
              const v1::WhatIfRequest* request,
              v1::WhatIfResponse* response,
              Done done) override;
  std::unique_ptr<GraphReader> GetGraph(const v1::GetGraphRequest& request) override;
  void Watch(std::shared_ptr<AllocationWatch> watch) override;
  void GetGroup(CallInfo call,
                const std::string& pool,
                const std::string& name,
                bool behind,
                ::service::GroupResponse* response,
                Done done) override;
  SlotUnits UnitsOf(const std::string& pool) const override;

  // The desk is closed too.
  void Drain() override;

 private:
  class Reader;
  class Watched;
  using View = std::shared_ptr<const PoolView>;
  using TimePoint = PoolDesk::TimePoint;
  // Of jobs, by their ids.
  using Jobs = std::map<std::string, HeldByJob>;
  // Which of a pool's keys an answer is about.
  using Picks = std::function<std::vector<graph::AllocationKey>(const graph::Engine& engine)>;
  template <typename Request, typename Response>
  using Remote = void (v1::Matcher::StubInterface::async_interface::*)(
      grpc::ClientContext*, const Request*, Response*, std::function<void(grpc::Status)>);

  static std::string PoolOf(const std::string& pool);
  // `look` gets the pool as it is, on a worker's thread.
  void Look(const std::string& pool,
            TimePoint deadline,
            std::function<void(absl::StatusOr<View>)> look);
  // The same of these jobs alone, with a view of the nodes that may have other jobs on it.
  void LookAtJobs(const std::string& pool,
                  TimePoint deadline,
                  Picks picks,
                  std::function<void(absl::StatusOr<std::pair<View, Jobs>>)> look);
  // What the nodes' view is made of, when it is another than the last one; on the loop's thread.
  std::function<absl::StatusOr<View>()> NodesOf(const std::string& pool, const PoolAtHand& at);
  // The answer is `work` of the view; where another replica holds the pool, the call is made there.
  template <typename Request, typename Response, typename Work>
  void Answer(CallInfo call,
              const Request* request,
              Response* response,
              Done done,
              Remote<Request, Response> remote,
              Work work);
  template <typename Request, typename Response>
  void HandOn(const CallInfo& call,
              const std::string& pool,
              const Request* request,
              Response* response,
              const Done& done,
              Remote<Request, Response> remote);
  void Claimed(const CallInfo& call,
               const v1::MatchRequest* request,
               v1::MatchResponse* response,
               const queue::v1::Job& job,
               const Done& done);

  PoolDesk& desk_;
  Claims& claims_;
  peers::Peers& matchers_;
  rpc::WorkerPool& workers_;

  // By pool: the view of its nodes, and of which engine in which version it is.
  struct Nodes {
    const graph::Engine* engine = nullptr;
    uint64_t version = 0;
    View view;
  };
  std::mutex mutex_;
  std::map<std::string, Nodes> nodes_;  // guarded by mutex_
};

}  // namespace fluxqueue::matcher
