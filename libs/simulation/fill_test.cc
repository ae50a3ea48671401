#include "libs/simulation/fill.h"

#include <optional>
#include <vector>

#include <gtest/gtest.h>

#include "libs/simulation/testing_workload.h"

namespace fluxqueue::simulation {
namespace {

constexpr const char* kGpu = "fluxqueue.io/gpu-milli";

trace::TraceJob Pod(int64_t gpu) {
  trace::TraceJob pod = Job("pod", 0, 1, 1);
  if (gpu > 0) pod.requests[kGpu] = gpu;
  return pod;
}

absl::Status FillOnce(const std::vector<trace::TraceNode>& nodes,
                      const std::vector<FillPod>& pods,
                      uint64_t seed,
                      FillResult* result) {
  return Fill(nodes, pods, {.pods = *PodDraw::Make(pods, {})}, seed, result);
}

TEST(FillTest, FillsToTheLastGpu) {
  const std::vector<trace::TraceNode> nodes = {{"a", {{"cpu", 9000}, {kGpu, 4000}}, "T4"},
                                               {"b", {{"cpu", 9000}, {kGpu, 4000}}, "T4"}};
  FillResult result{.policy = "packed"};
  for (uint64_t seed = 1; seed <= 3; ++seed) {
    ASSERT_TRUE(FillOnce(nodes, FillPods({Pod(1000)}), seed, &result).ok());
  }
  EXPECT_EQ(result.left, (std::vector<double>{0, 0, 0}));
  EXPECT_EQ(result.MeanLeft(), 0);
  EXPECT_EQ(result.drawn[2], 24);
  EXPECT_EQ(result.Dropped(2), 0);
}

TEST(FillTest, WhatDoesNotFitIsDropped) {
  // Four cpus: four pods of one each, and no use for the other four gpus.
  const std::vector<trace::TraceNode> nodes = {{"a", {{"cpu", 4000}, {kGpu, 8000}}, "T4"}};
  FillResult result{.policy = "lonode"};
  ASSERT_TRUE(FillOnce(nodes, FillPods({Pod(1000)}), 1, &result).ok());
  EXPECT_EQ(result.MeanLeft(), 4);
  EXPECT_EQ(result.Dropped(2), 0.5);
}

TEST(FillTest, TheSameSeedDrawsTheSame) {
  const std::vector<trace::TraceNode> nodes = {{"a", {{"cpu", 9000}, {kGpu, 8000}}, "T4"},
                                               {"b", {{"cpu", 9000}, {kGpu, 8000}}, "P100"}};
  trace::TraceJob model = Pod(2000);
  model.gpu_models = {"P100"};
  const std::vector<FillPod> pods = FillPods({Pod(300), Pod(1000), model, Pod(0)});
  FillResult once{.policy = "first"};
  FillResult again{.policy = "first"};
  ASSERT_TRUE(FillOnce(nodes, pods, 7, &once).ok());
  ASSERT_TRUE(FillOnce(nodes, pods, 7, &again).ok());
  EXPECT_EQ(once.left, again.left);
  EXPECT_EQ(once.drawn, again.drawn);
}

// One node of 4 gpus, asked for by pods of one each: with a load of a half nothing is dropped.
TEST(FillTest, UnderChurnOthersComeWhenPodsEnd) {
  const std::vector<trace::TraceNode> nodes = {{"a", {{"cpu", 9000}, {kGpu, 4000}}, "T4"}};
  const std::vector<FillPod> pods = FillPods({Pod(1000)});
  FillSetting setting{.pods = *PodDraw::Make(pods, {}), .load = 0.5};
  FillResult half{.policy = "packed"};
  ASSERT_TRUE(Fill(nodes, pods, setting, 1, &half).ok());
  EXPECT_EQ(half.MeanLeft(), 0);
  EXPECT_EQ(half.drawn[2], 4 * kCountedTurns);
  EXPECT_EQ(half.Dropped(2), 0);
  // Six are there, or would be: two of them do not fit, whoever ends.
  setting.load = 1.5;
  FillResult more{.policy = "packed"};
  ASSERT_TRUE(Fill(nodes, pods, setting, 1, &more).ok());
  EXPECT_GT(more.Dropped(2), 0);
  EXPECT_LT(more.Dropped(2), 1);
  EXPECT_GE(more.MeanLeft(), 2);
}

TEST(FillTest, TheMixDriftsFromTheHalfOn) {
  const std::vector<trace::TraceNode> nodes(20, {"a", {{"cpu", 90000}, {kGpu, 4000}}, "T4"});
  const std::vector<FillPod> pods = FillPods({Pod(500), Pod(1000)});
  const auto draw = [&](const char* mix) { return *PodDraw::Make(pods, *ParseMix(mix)); };
  for (const std::optional<double> load : {std::optional<double>(), std::optional<double>(0.9)}) {
    const FillSetting setting{.pods = draw("share=1"), .later = draw("one=1"), .load = load};
    FillResult result{.policy = "packed"};
    ASSERT_TRUE(Fill(nodes, pods, setting, 1, &result).ok());
    const double turns = load.has_value() ? kCountedTurns : 1;
    EXPECT_NEAR(static_cast<double>(result.drawn[1]), turns * 80, 4);
    EXPECT_NEAR(static_cast<double>(result.drawn[2]), turns * 40, 4);
  }
}

// Which pods come and end does not follow from what the policy does with them.
TEST(FillTest, UnderChurnEveryPolicyIsAskedTheSame) {
  const std::vector<trace::TraceNode> nodes(5, {"a", {{"cpu", 9000}, {kGpu, 4000}}, "T4"});
  trace::TraceJob model = Pod(2000);
  model.gpu_models = {"T4"};
  const std::vector<FillPod> pods = FillPods({Pod(300), Pod(1000), model});
  const FillSetting setting{.pods = *PodDraw::Make(pods, {}), .load = 1.2};
  FillResult first{.policy = "first"};
  FillResult packed{.policy = "packed"};
  ASSERT_TRUE(Fill(nodes, pods, setting, 3, &first).ok());
  ASSERT_TRUE(Fill(nodes, pods, setting, 3, &packed).ok());
  EXPECT_EQ(first.drawn, packed.drawn);
  EXPECT_NE(first.dropped, packed.dropped);
  EXPECT_EQ(first.drawn[5], first.drawn[3]);
}

TEST(FillTest, NoSuchPolicy) {
  FillResult result{.policy = "best"};
  EXPECT_FALSE(FillOnce({{"a", {{kGpu, 1000}}, ""}}, FillPods({Pod(1000)}), 1, &result).ok());
}

}  // namespace
}  // namespace fluxqueue::simulation
