#include "services/graph/domain/pool_view.h"

#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "libs/base/status_macros.h"

namespace fluxqueue::graph_service {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;

std::string Slots(int slots, int cpu, int duration_s = 100, const std::string& system = "") {
  return fmt::format(
      R"({{"version":1,"resources":[{{"type":"slot","count":{},"label":"s","with":[
          {{"type":"cpu","count":{}}}]}}],"tasks":[{{"command":["x"],"slot":"s",
          "count":{{"per_slot":1}}}}],"attributes":{{"system":{{"duration":{}{}}}}}}})",
      slots,
      cpu,
      duration_s,
      system);
}

graph::NodeSpec Node(const std::string& name, uint64_t ordinal, const std::string& rack) {
  graph::NodeSpec node;
  node.name = name;
  node.uid = name;
  node.ordinal = ordinal;
  node.resources = {{"cpu", 4000}, {"nvidia.com/gpu", 2}};
  node.labels = {{"rack", rack}};
  return node;
}

// Two nodes of four cores; job "a" holds all of n0 until 150, "b" two cores of n1 without an end,
// and somebody else one core of it. It is 100.
PoolState TwoNodes() {
  PoolState state{.now_s = 100, .policy = "lonode", .levels = {"rack"}, .nodes = {}, .held = {}};
  state.nodes = {Node("n0", 0, "r0"), Node("n1", 1, "r1")};
  state.nodes[1].foreign = {{"cpu", 1000}};
  state.held.emplace_back(graph::AllocationKey{"a", 1, 0},
                          graph::Placement{.slots = {{0, "n0"}, {1, "n0"}},
                                           .groups = {{2, {{"cpu", 2000}}}},
                                           .start_s = 50,
                                           .duration_s = 100});
  state.held.emplace_back(
      graph::AllocationKey{"b", 1, 0},
      graph::Placement{
          .slots = {{0, "n1"}}, .groups = {{1, {{"cpu", 2000}}}}, .start_s = 90, .duration_s = 0});
  return state;
}

std::unique_ptr<const PoolView> View(const PoolState& state) {
  auto view = PoolView::Make(state);
  EXPECT_TRUE(view.ok()) << view.status();
  return *std::move(view);
}

TEST(PoolView, WhatAJobHolds) {
  const PoolState state = TwoNodes();
  const auto view = View(state);
  v1::Allocation allocation;
  const HeldByJob held = {state.held[0].second};
  ASSERT_TRUE(view->WriteJob(held, {v1::FORMAT_SIMPLE, true}, &allocation).ok());
  EXPECT_EQ(allocation.at_s(), 50);
  EXPECT_EQ(allocation.duration_s(), 100);
  ASSERT_EQ(allocation.nodes_size(), 1);
  EXPECT_EQ(allocation.nodes(0).node(), "n0");
  EXPECT_EQ(allocation.nodes(0).amounts().at("cpu"), 4000);
  EXPECT_EQ(allocation.resources(),
            "      ------------cpu[4000:x]\n"
            "      ---------n0[1:s]\n"
            "      ------r0[1:s]\n"
            "      ---cluster0[1:s]\n");
  // The nodes alone are enough to say it.
  PoolState empty = state;
  empty.held.clear();
  v1::Allocation same;
  ASSERT_TRUE(View(empty)->WriteJob(held, {v1::FORMAT_SIMPLE, true}, &same).ok());
  EXPECT_EQ(same.SerializeAsString(), allocation.SerializeAsString());
}

TEST(PoolView, PartsOfGpusAndSlotsThatWereGivenBack) {
  PoolState state = TwoNodes();
  state.held.clear();
  state.nodes[0].resources.insert(state.nodes[0].resources.begin() + 1,
                                  {std::string(graph::kGpuMilli), 2000});
  const graph::Placement placement{
      .slots = {{0, "n0", false, {1}}, {1, "n1", true}, {2, "n0", false, {1}}},
      .groups = {{3, {{"cpu", 1000}, {std::string(graph::kGpuMilli), 400}}}},
      .start_s = 1,
      .duration_s = 0};
  v1::Allocation allocation;
  ASSERT_TRUE(View(state)->WriteJob({placement}, {v1::FORMAT_UNSPECIFIED, true}, &allocation).ok());
  ASSERT_EQ(allocation.nodes_size(), 1);
  EXPECT_EQ(allocation.nodes(0).amounts().at("cpu"), 2000);
  EXPECT_EQ(allocation.nodes(0).amounts().at(std::string(graph::kGpuMilli)), 800);
  EXPECT_EQ(KindOf({placement}), v1::WatchAllocationsResponse::KIND_REDUCED);
  EXPECT_EQ(KindOf({TwoNodes().held[0].second}), v1::WatchAllocationsResponse::KIND_ALLOCATED);
  EXPECT_EQ(KindOf({}), v1::WatchAllocationsResponse::KIND_RELEASED);
  EXPECT_GT(NumberOf("a"), 0);
  EXPECT_NE(NumberOf("a"), NumberOf("b"));
}

TEST(PoolView, WhenAndWhereJobsWouldStart) {
  const auto view = View(TwoNodes());
  PoolView::Trials trials = view->BeginTrials();
  v1::WhatIfRequest request;
  request.set_nodes(true);
  const auto tried = [&](const std::string& jobspec) {
    v1::WhatIfResponse::Trial trial;
    const absl::Status status = trials.Try(request, jobspec, &trial);
    EXPECT_TRUE(status.ok()) << status;
    return trial;
  };
  // One core of n1 is left.
  const auto now = tried(Slots(1, 1000));
  EXPECT_EQ(now.outcome(), v1::OUTCOME_ALLOCATED);
  EXPECT_EQ(now.allocation().at_s(), 100);
  EXPECT_EQ(now.allocation().nodes(0).node(), "n1");
  // n0 is free when "a" ends; the next one has to wait for that one.
  const auto later = tried(Slots(1, 4000));
  EXPECT_EQ(later.outcome(), v1::OUTCOME_RESERVED);
  EXPECT_EQ(later.allocation().at_s(), 150);
  EXPECT_EQ(later.allocation().nodes(0).node(), "n0");
  EXPECT_EQ(tried(Slots(1, 4000)).allocation().at_s(), 250);
  // "b" never ends.
  EXPECT_EQ(tried(Slots(2, 4000)).outcome(), v1::OUTCOME_BUSY);
  const auto never = tried(Slots(1, 5000));
  EXPECT_EQ(never.outcome(), v1::OUTCOME_UNSATISFIABLE);
  EXPECT_THAT(never.reason(), HasSubstr("cpu"));
  const absl::Status bad = trials.Try(request, "{", nullptr);
  EXPECT_TRUE(absl::IsInvalidArgument(bad));
  // What was tried has left no trace.
  v1::WhatIfResponse::Trial fresh;
  ASSERT_TRUE(view->BeginTrials().Try(request, Slots(1, 1000), &fresh).ok());
  EXPECT_EQ(fresh.outcome(), v1::OUTCOME_ALLOCATED);
}

TEST(PoolView, OneThatOverrunsEndsASecondFromNow) {
  PoolState state = TwoNodes();
  state.now_s = 1000;
  const auto view = View(state);
  v1::WhatIfResponse::Trial trial;
  ASSERT_TRUE(view->BeginTrials().Try({}, Slots(1, 4000), &trial).ok());
  EXPECT_EQ(trial.outcome(), v1::OUTCOME_RESERVED);
  EXPECT_EQ(trial.allocation().at_s(), 1001);
}

TEST(PoolView, TriesBesideWhatIsPromisedAndOutsideOfWindows) {
  PoolState state = TwoNodes();
  state.reserved.emplace_back(graph::AllocationKey{"c", 1, 0},
                              graph::Placement{.slots = {{0, "n0"}},
                                               .groups = {{1, {{"cpu", 3000}}}},
                                               .start_s = 160,
                                               .duration_s = 40});
  state.closures = {{graph::Constraint::IsHost("n1"), 110, 300}};
  const auto view = View(state);
  const auto start = [&view](const std::string& jobspec) {
    v1::WhatIfResponse::Trial trial;
    v1::WhatIfRequest request;
    request.set_nodes(true);
    EXPECT_TRUE(view->BeginTrials().Try(request, jobspec, &trial).ok());
    EXPECT_EQ(trial.allocation().nodes_size(), 1);
    return fmt::format("{} at {}", trial.allocation().nodes(0).node(), trial.allocation().at_s());
  };
  EXPECT_EQ(start(Slots(1, 1000, 10)), "n1 at 100");
  EXPECT_EQ(start(Slots(1, 1000, 11)), "n0 at 150");
  EXPECT_EQ(start(Slots(1, 2000, 10)), "n0 at 150");
  EXPECT_EQ(start(Slots(1, 2000, 11)), "n0 at 200");
  // Without an end.
  EXPECT_EQ(start(Slots(1, 1000, 0, R"(,"constraints":{"hostlist":["n1"]})")), "n1 at 300");
}

TEST(PoolView, WhyNotAndWhoHoldsIt) {
  const auto view = View(TwoNodes());
  v1::ExplainRequest request;
  request.set_jobspec(Slots(1, 2000, 0, R"(,"constraints":{"properties":["rack=r1"]})"));
  v1::ExplainResponse response;
  ASSERT_TRUE(view->Explain(request, &response).ok());
  EXPECT_EQ(response.missing(), "cpu");
  ASSERT_EQ(response.holders_size(), 1);
  EXPECT_EQ(response.holders(0).job_id(), "b");
  EXPECT_EQ(response.holders(0).amount(), 2000);
}

TEST(PoolView, SumsAndWhatMeetsCriteria) {
  const auto view = View(TwoNodes());
  v1::GetGraphResponse summary;
  view->Summarise(&summary);
  std::map<std::string, std::pair<int64_t, int64_t>> held;
  for (const auto& level : summary.levels()) held[level.type()] = {level.size(), level.held()};
  EXPECT_EQ(held.at("cpu"), std::pair(int64_t{8000}, int64_t{6000}));
  EXPECT_EQ(held.at("nvidia.com/gpu"), std::pair(int64_t{4}, int64_t{0}));
  EXPECT_TRUE(held.contains("rack"));
  EXPECT_THAT(view->Write().Next(1 << 20), HasSubstr("/cluster0/r1/n1"));
  v1::FindRequest find;
  find.set_criteria("property=rack");
  find.set_format(v1::FORMAT_SIMPLE);
  v1::FindResponse found;
  ASSERT_TRUE(view->Find(find, &found).ok());
  EXPECT_THAT(found.resources(), HasSubstr("n0"));
  find.set_criteria("shape=round");
  EXPECT_TRUE(absl::IsInvalidArgument(view->Find(find, &found)));
}

TEST(PoolView, OperationsThatHoldNothing) {
  const auto view = View(TwoNodes());
  const auto outcome = [&view](v1::Operation operation, const std::string& jobspec) {
    v1::MatchRequest request;
    request.set_operation(operation);
    request.set_jobspec(jobspec);
    v1::MatchResponse response;
    EXPECT_TRUE(view->Try(request, &response).ok());
    return response.outcome();
  };
  EXPECT_EQ(outcome(v1::OPERATION_SATISFIABILITY, Slots(2, 4000)), v1::OUTCOME_SATISFIABLE);
  EXPECT_EQ(outcome(v1::OPERATION_SATISFIABILITY, Slots(3, 4000)), v1::OUTCOME_UNSATISFIABLE);
  EXPECT_EQ(outcome(v1::OPERATION_WITHOUT_ALLOCATING, Slots(1, 4000)), v1::OUTCOME_BUSY);
  EXPECT_EQ(outcome(v1::OPERATION_WITHOUT_ALLOCATING_FUTURE, Slots(1, 4000)), v1::OUTCOME_FITS);
  EXPECT_EQ(outcome(v1::OPERATION_WITHOUT_ALLOCATING, Slots(1, 1000)), v1::OUTCOME_FITS);
}

}  // namespace
}  // namespace fluxqueue::graph_service
