// A private graph behind the interface of the RPCs: calls on it run one after another on its
// strand, calls on different graphs side by side.
#pragma once

#include <deque>
#include <functional>
#include <memory>
#include <string>
#include <utility>

#include "libs/rpc/worker_pool.h"
#include "services/graph/domain/private_graph.h"
#include "services/graph/rpc/graph_calls.h"
#include "services/graph/rpc/strand.h"

namespace fluxqueue::graph_service {

class PrivateGraphCalls final : public GraphCalls,
                                public std::enable_shared_from_this<PrivateGraphCalls> {
 public:
  // `pool` outlives the calls. `client`: whose turn it is there, whoever calls.
  PrivateGraphCalls(std::unique_ptr<PrivateGraph> graph,
                    rpc::WorkerPool& pool,
                    const std::string& client);

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
  // The jobs are tried on a copy, beside other calls; of one graph there is one copy at a time.
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

  // Goes when the graph does: after its last call. REQUIRES: before the first call.
  void Keep(std::shared_ptr<void> share) { share_ = std::move(share); }
  // The graph is dropped: watches end with `why`. Calls under way end as usual.
  void Drop(const absl::Status& why);
  int64_t vertices() const { return vertices_; }

 private:
  class Reader;

  // Runs `work`, which returns the call's status, on the strand.
  template <typename Work>
  void Run(CallInfo call, Done done, Work work);
  // Tries jobs on the copy, beside the strand.
  using Trying = std::function<void(PrivateGraph::Trials*)>;
  // Of the strand.
  void NextTrials();

  std::shared_ptr<void> share_;  // the first: it goes last
  const std::string client_;
  rpc::WorkerPool& pool_;
  const std::shared_ptr<Strand> strand_;
  const std::unique_ptr<PrivateGraph> graph_;  // the strand only, as what follows
  std::deque<Trying> trying_;                  // the first has the copy
  const SlotUnits units_;
  const int64_t vertices_;
};

}  // namespace fluxqueue::graph_service
