// The pools' graphs behind the interface of the RPCs.
//
// What is asked is asked of the pool's core on the loop's thread, which copies what the answer is
// about; the answer is made of the copy, on a worker's thread (domain/pool_view.h). Match and
// Release are commands to the queue (claims.h). What another replica holds, it is asked for; its
// streams, the client has to ask for itself (UNAVAILABLE with the address).
//
// Thread-safe.
#pragma once

#include <memory>
#include <string>

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

 private:
  class Reader;
  using View = std::shared_ptr<const PoolView>;
  // Which of a pool's jobs an answer is about.
  using Picks = std::function<bool(const std::string& job_id)>;
  template <typename Request, typename Response>
  using Remote = void (v1::Matcher::StubInterface::async_interface::*)(
      grpc::ClientContext*, const Request*, Response*, std::function<void(grpc::Status)>);

  // `look` gets the pool as it is, on a worker's thread: all of it, or those jobs and their nodes.
  void Look(const std::string& pool, Picks picks, std::function<void(absl::StatusOr<View>)> look);
  // The same, and where another replica holds the pool, the call is made there.
  template <typename Request, typename Response, typename Work>
  void Answer(CallInfo call,
              const Request* request,
              Response* response,
              Done done,
              Picks picks,
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
};

}  // namespace fluxqueue::matcher
