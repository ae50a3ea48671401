// Mixes: what share of the draws is of a class, and which texts are refused.
#include "libs/simulation/fill_pods.h"

#include <cstdint>
#include <map>
#include <random>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "libs/base/status_macros.h"
#include "libs/simulation/testing_workload.h"

namespace fluxqueue::simulation {
namespace {

using ::testing::HasSubstr;

constexpr int kDraws = 20'000;

trace::TraceJob Pod(int64_t gpu, const std::string& model = "") {
  trace::TraceJob pod = Job("pod", 0, 1, 1);
  if (gpu > 0) pod.requests["fluxqueue.io/gpu-milli"] = gpu;
  if (!model.empty()) pod.gpu_models = {model};
  return pod;
}

// Of the draws, each pod's share; -1 when the mix cannot be made.
std::vector<double> Shares(const std::vector<trace::TraceJob>& jobs, const std::string& mix) {
  const std::vector<FillPod> pods = FillPods(jobs);
  const auto draw = PodDraw::Make(pods, *ParseMix(mix));
  if (!draw.ok()) return {-1};
  std::mt19937_64 random(1);
  std::vector<double> shares(pods.size());
  for (int i = 0; i < kDraws; ++i) shares[draw->Next(&random)] += 1.0 / kDraws;
  return shares;
}

TEST(FillPodsTest, AClassHasItsShareAndTheOthersKeepTheirs) {
  const std::vector<trace::TraceJob> jobs = {Pod(0), Pod(500), Pod(500), Pod(1000), Pod(8000)};
  using ::testing::DoubleNear;
  using ::testing::ElementsAre;
  const auto near = [](double share) { return DoubleNear(share, 0.02); };
  EXPECT_THAT(Shares(jobs, ""), ElementsAre(near(.2), near(.2), near(.2), near(.2), near(.2)));
  EXPECT_THAT(Shares(jobs, "share=0.7"),
              ElementsAre(near(.1), near(.35), near(.35), near(.1), near(.1)));
  EXPECT_THAT(Shares(jobs, "share=0,whole=0.5,one=0.5"),
              ElementsAre(near(0), near(0), near(0), near(.5), near(.5)));
}

// Both hold, though pods of one class are of the other too.
TEST(FillPodsTest, ModelsCutAcrossTheOtherClasses) {
  const std::vector<trace::TraceJob> jobs = {
      Pod(500), Pod(500, "T4"), Pod(1000), Pod(1000, "T4"), Pod(2000, "T4")};
  const std::vector<double> shares = Shares(jobs, "share=0.6,model=0.1");
  EXPECT_NEAR(shares[0] + shares[1], 0.6, 0.02);
  EXPECT_NEAR(shares[1] + shares[3] + shares[4], 0.1, 0.02);
}

TEST(FillPodsTest, AMixThatTheListCannotGive) {
  EXPECT_EQ(Shares({Pod(500), Pod(1000)}, "several=0.1"), std::vector<double>{-1});
  EXPECT_EQ(Shares({Pod(500), Pod(500)}, "share=0.5"), std::vector<double>{-1});
  // All pods that name one take a part of a gpu.
  EXPECT_EQ(Shares({Pod(500, "T4"), Pod(1000)}, "share=0.1,model=0.5"), std::vector<double>{-1});
}

TEST(FillPodsTest, OnlySharesOfKnownClasses) {
  EXPECT_TRUE(ParseMix("share=1")->at(0).share == 1);
  EXPECT_EQ(ParseMix("share=0.6,model=0.9")->size(), 2U);
  for (const std::string text : {"half=0.5",
                                 "share",
                                 "share=",
                                 "share=x",
                                 "share=1.5",
                                 "share=-0.1",
                                 "share=nan",
                                 "share=0.5x",
                                 "=0.5",
                                 ",share=0.5"}) {
    EXPECT_FALSE(ParseMix(text).ok()) << text;
  }
  EXPECT_THAT(Message(ParseMix("share=0.1,share=0.2").status()), HasSubstr("share is named twice"));
  EXPECT_THAT(Message(ParseMix("share=0.6,one=0.6").status()), HasSubstr("1.2 in all"));
}

TEST(FillPodsTest, WhatIsExpectedIsTheMix) {
  const std::vector<FillPod> pods =
      FillPods({Pod(500), Pod(500), Pod(500), Pod(1000), Pod(8000), Pod(8000)});
  const auto counts = [&](const std::string& mix) {
    std::map<int64_t, uint64_t> by_gpu;
    for (const graph::WorkloadShape& shape : PodDraw::Make(pods, *ParseMix(mix))->Shapes(pods)) {
      by_gpu[shape.amounts.back().amount] = shape.count;
    }
    return by_gpu;
  };
  EXPECT_EQ(counts(""), (std::map<int64_t, uint64_t>{{500, 3}, {1000, 1}, {8000, 2}}));
  EXPECT_EQ(counts("one=0.5,whole=0"), (std::map<int64_t, uint64_t>{{500, 3}, {1000, 3}}));
}

}  // namespace
}  // namespace fluxqueue::simulation
