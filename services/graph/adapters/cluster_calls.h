// The pools' graphs behind the interface of the RPCs.
//
// What is asked is answered of what the matcher has committed, on a worker's thread
// (pool_pictures.h). Match and Release are commands to the queue (claims.h).
//
// Thread-safe.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "libs/rpc/worker_pool.h"
#include "services/graph/adapters/allocation_feed.h"
#include "services/graph/adapters/claims.h"
#include "services/graph/adapters/pool_pictures.h"
#include "services/graph/rpc/graph_calls.h"
#include "services/graph/rpc/graph_judge.h"

namespace fluxqueue::graph_service {

class ClusterCalls final : public ClusterGraph {
 public:
  // All outlive the object, and the calls under way.
  ClusterCalls(PoolPictures& pictures,
               AllocationFeed& feed,
               Claims& claims,
               const GraphJudge& judge,
               rpc::WorkerPool& workers)
      : pictures_(pictures), feed_(feed), claims_(claims), judge_(judge), workers_(workers) {}

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
  std::unique_ptr<GraphReader> GetGraph(CallInfo call, const v1::GetGraphRequest& request) override;
  void Watch(CallInfo call, std::shared_ptr<AllocationWatch> watch) override;
  void GetGroup(CallInfo call,
                const std::string& pool,
                const std::string& name,
                bool behind,
                ::service::GroupResponse* response,
                Done done) override;
  SlotUnits UnitsOf(const std::string& pool) const override;

  void Drain() override { claims_.Drain(); }

 private:
  class Reader;
  using View = PoolPictures::View;
  using Work = std::function<absl::Status(const PoolView& view)>;

  // Of a client, at once: each keeps a picture of its own, until it was read.
  static constexpr int kMostReads = 2;

  static std::string PoolOf(const std::string& pool);
  // InvalidArgument: no pool or job is called so.
  static absl::Status CheckName(std::string_view field, const std::string& name);
  // That it is still wanted, and that the caller may look at the pool.
  absl::Status Check(const CallInfo& call, const std::string& pool) const;
  // The answer is `work` of the pool as it is.
  void Answer(const CallInfo& call, const std::string& pool, Done done, Work work);
  // The same of these jobs; of its own a caller needs no right.
  enum class Whose { kOwn, kAnybodys };
  void AnswerOf(const CallInfo& call,
                const std::string& pool,
                Whose whose,
                PoolPictures::Pick pick,
                Done done,
                std::function<absl::Status(const PoolPictures::Held& held)> work);
  void ReadJob(const CallInfo& call,
               Whose whose,
               const v1::GetJobRequest* request,
               v1::GetJobResponse* response,
               Done done);
  void Claim(const CallInfo& call,
             const v1::MatchRequest* request,
             v1::MatchResponse* response,
             const Done& done);
  void Claimed(const CallInfo& call,
               const v1::MatchRequest* request,
               v1::MatchResponse* response,
               const queue::v1::Job& job,
               const Done& done);

  PoolPictures& pictures_;
  AllocationFeed& feed_;
  Claims& claims_;
  const GraphJudge& judge_;
  rpc::WorkerPool& workers_;
  ClientCalls readers_{CallLimits{.client_calls = kMostReads}};
};

}  // namespace fluxqueue::graph_service
