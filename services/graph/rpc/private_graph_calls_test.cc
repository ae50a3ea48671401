#include "services/graph/rpc/private_graph_calls.h"

#include <atomic>
#include <future>

#include <gtest/gtest.h>

#include "libs/base/status_macros.h"
#include "services/graph/domain/test_graphs.h"

namespace fluxqueue::graph_service {
namespace {

std::shared_ptr<PrivateGraphCalls> MakeGraph(rpc::WorkerPool& pool) {
  v1::CreateGraphRequest request;
  request.set_graph(TestGraph());
  auto graph = PrivateGraph::Make(request, 1000);
  CHECK(graph.ok(), "{}", Message(graph.status()));
  return std::make_shared<PrivateGraphCalls>(*std::move(graph), pool, "ann");
}

// Copies that wait for a thread would fill the memory.
TEST(PrivateGraphCallsTest, JobsAreTriedOnOneCopyAtATime) {
  rpc::WorkerPool pool(4);
  const auto graph = MakeGraph(pool);
  v1::WhatIfRequest request;
  request.add_jobspecs(TestJobspec(1, 1));
  std::promise<void> begun;
  std::promise<void> go;
  std::atomic<bool> second_begun = false;
  CallInfo first{.deadline = {}, .cancelled = [&] {
                   begun.set_value();
                   go.get_future().wait();
                   return false;
                 }};
  CallInfo second{.deadline = {}, .cancelled = [&] {
                    second_begun = true;
                    return false;
                  }};
  v1::WhatIfResponse responses[2];
  std::promise<absl::Status> done[2];
  graph->WhatIf(first, &request, &responses[0], [&](const auto& s) { done[0].set_value(s); });
  begun.get_future().wait();
  graph->WhatIf(second, &request, &responses[1], [&](const auto& s) { done[1].set_value(s); });
  // The strand goes on meanwhile, and whatever it has posted before this has its turn before it.
  v1::ExplainRequest explain;
  explain.set_jobspec(TestJobspec(1, 1));
  v1::ExplainResponse why;
  std::promise<absl::Status> explained;
  const CallInfo other{.deadline = {}, .cancelled = [] { return false; }};
  graph->Explain(other, &explain, &why, [&](const auto& s) { explained.set_value(s); });
  EXPECT_TRUE(explained.get_future().get().ok());
  std::promise<void> turn;
  pool.Post("ann", [&] { turn.set_value(); });
  turn.get_future().wait();
  EXPECT_FALSE(second_begun);
  go.set_value();
  for (auto& one : done) EXPECT_TRUE(one.get_future().get().ok());
  EXPECT_TRUE(second_begun);
  EXPECT_EQ(responses[1].trials(0).outcome(), v1::OUTCOME_ALLOCATED);
}

// Its client would not know that there is such a job.
TEST(PrivateGraphCallsTest, AMatchWhoseAnswerHasNoRoomHoldsNothing) {
  rpc::WorkerPool pool(1);
  const auto graph = MakeGraph(pool);
  ClientCalls calls({.client_calls = 9, .client_bytes = 1000, .bytes = 1000});
  v1::MatchRequest request;
  request.set_jobspec(TestJobspec(4, 4));
  request.set_format(v1::FORMAT_JGF);
  const auto match = [&](std::shared_ptr<ClientCalls::Place> place) {
    v1::MatchResponse response;
    std::promise<absl::Status> done;
    const CallInfo call{
        .deadline = {}, .cancelled = [] { return false; }, .place = std::move(place)};
    graph->Match(call, &request, &response, [&](const auto& s) { done.set_value(s); });
    const absl::Status status = done.get_future().get();
    return status.ok() && response.outcome() != v1::OUTCOME_ALLOCATED ? Unavailable("busy")
                                                                      : status;
  };
  const absl::Status refused = match(*calls.Enter("ann"));
  EXPECT_TRUE(absl::IsResourceExhausted(refused)) << refused;
  const absl::Status matched = match(nullptr);
  EXPECT_TRUE(matched.ok()) << matched;
}

}  // namespace
}  // namespace fluxqueue::graph_service
