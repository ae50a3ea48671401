#include "libs/simulation/fill.h"

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

TEST(FillTest, FillsToTheLastGpu) {
  const std::vector<trace::TraceNode> nodes = {{"a", {{"cpu", 9000}, {kGpu, 4000}}, "T4"},
                                               {"b", {{"cpu", 9000}, {kGpu, 4000}}, "T4"}};
  FillResult result{.policy = "packed"};
  for (uint64_t seed = 1; seed <= 3; ++seed) {
    ASSERT_TRUE(Fill(nodes, FillPods({Pod(1000)}), seed, &result).ok());
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
  ASSERT_TRUE(Fill(nodes, FillPods({Pod(1000)}), 1, &result).ok());
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
  ASSERT_TRUE(Fill(nodes, pods, 7, &once).ok());
  ASSERT_TRUE(Fill(nodes, pods, 7, &again).ok());
  EXPECT_EQ(once.left, again.left);
  EXPECT_EQ(once.drawn, again.drawn);
}

TEST(FillTest, NoSuchPolicy) {
  FillResult result{.policy = "best"};
  EXPECT_FALSE(Fill({{"a", {{kGpu, 1000}}, ""}}, FillPods({Pod(1000)}), 1, &result).ok());
}

}  // namespace
}  // namespace fluxqueue::simulation
