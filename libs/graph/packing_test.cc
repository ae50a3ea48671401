// Where `packed` puts slots, and that the expected workload is part of what can be undone.

#include "libs/graph/packing.h"

#include <memory>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "libs/graph/general_engine.h"
#include "libs/graph/synthetic_graphs.h"

namespace fluxqueue::graph {
namespace {

using synthetic::MakeCluster;
using synthetic::NodeShape;
using ::testing::ElementsAre;

const std::string kGpu(kGpuMilli);

NodeShape Node(int64_t millicores, size_t gpus) {
  return {.millicores = millicores, .shares = std::vector<int64_t>(gpus, kWholeDevice)};
}

WorkloadShape Expected(uint64_t count, int64_t cpu, int64_t gpu, const std::string& model = "") {
  WorkloadShape shape{{{"cpu", cpu}, {kGpu, gpu}}, {}, count};
  if (!model.empty()) shape.constraint = Constraint::HasLabel("model", model);
  return shape;
}

class PackingTest : public ::testing::Test {
 protected:
  void Make(const std::vector<NodeShape>& nodes) {
    auto engine = GeneralEngine::Make(MakeCluster(nodes), {.policy = "packed"});
    ASSERT_TRUE(engine.ok()) << engine.status();
    engine_ = *std::move(engine);
  }

  // The node of each slot, and the gpus, once each.
  std::vector<std::string> Place(int64_t cpu, int64_t gpu, int slots = 1) {
    std::string parts = "{type: cpu, count: " + std::to_string(cpu) + "}";
    if (gpu > 0) parts += ", {type: " + kGpu + ", count: " + std::to_string(gpu) + "}";
    const auto request = ParseJobRequest(
        "version: 1\nresources: [{type: slot, label: a, count: " + std::to_string(slots) +
        ", with: [" + parts + "]}]\ntasks: []\nattributes: {system: {duration: 60}}");
    EXPECT_TRUE(request.ok()) << request.status();
    const auto answer = engine_->Match(MatchOperation::kAllocate, ++jobs_, *request);
    EXPECT_TRUE(answer.ok()) << answer.status();
    std::vector<std::string> places;
    for (const HeldVertex& held : answer->holding.vertices) {
      const std::string& type = engine_->graph().TypeName(held.vertex);
      const std::string name = engine_->graph().vertex(held.vertex).name;
      if (type == "node" || type == kGpu) places.push_back(name);
    }
    return places;
  }

  std::unique_ptr<GeneralEngine> engine_;
  JobNumber jobs_ = 0;
};

// The example of the README.
TEST_F(PackingTest, AShareGoesWhereLeastIsLost) {
  Make({Node(8000, 2), Node(8000, 1)});
  EXPECT_THAT(Place(4000, 1500), ElementsAre("gpu-milli0", "gpu-milli1", "node0"));
  engine_->Cancel(jobs_);
  engine_->SetWorkload({Expected(1, 4000, 1000), Expected(1, 2000, 500)});
  EXPECT_THAT(Place(2000, 500), ElementsAre("gpu-milli0", "node1"));
  EXPECT_THAT(Place(2000, 500), ElementsAre("gpu-milli0", "node1"));
  EXPECT_THAT(Place(2000, 500), ElementsAre("gpu-milli0", "node0"));
  EXPECT_THAT(Place(4000, 1000), ElementsAre("gpu-milli1", "node0"));
}

TEST_F(PackingTest, GpusAreLostToWhoFindsNoCpuBesideThem) {
  Make({Node(8000, 2), Node(16000, 2)});
  engine_->SetWorkload({Expected(1, 4000, 1000)});
  // On node0 the gpu that is left would have too little cpu.
  EXPECT_THAT(Place(6000, 1000), ElementsAre("gpu-milli0", "node1"));
  EXPECT_THAT(Place(6000, 1000), ElementsAre("gpu-milli1", "node1"));
  EXPECT_THAT(Place(4000, 1000), ElementsAre("gpu-milli0", "node0"));
}

TEST_F(PackingTest, ANamedModelIsKept) {
  Make({Node(8000, 2), Node(8000, 2), Node(8000, 2)});
  ASSERT_TRUE(engine_->SetProperty("/cluster0/rack0/node0", "model", "a").ok());
  engine_->SetWorkload({Expected(4, 1000, 1000), Expected(1, 1000, 1000, "a")});
  EXPECT_THAT(Place(1000, 1000), ElementsAre("gpu-milli0", "node1"));
  // Another node has it now.
  ASSERT_TRUE(engine_->SetProperty("/cluster0/rack0/node0", "model", "b").ok());
  ASSERT_TRUE(engine_->SetProperty("/cluster0/rack0/node1", "model", "a").ok());
  EXPECT_THAT(Place(1000, 1000), ElementsAre("gpu-milli0", "node0"));
}

TEST_F(PackingTest, TheFullestGpuThatFits) {
  Make({Node(8000, 3)});
  EXPECT_THAT(Place(1, 700), ElementsAre("gpu-milli0", "node0"));
  EXPECT_THAT(Place(1, 400), ElementsAre("gpu-milli1", "node0"));
  EXPECT_THAT(Place(1, 300), ElementsAre("gpu-milli0", "node0"));
  EXPECT_THAT(Place(1, 300, 3), ElementsAre("gpu-milli1", "gpu-milli2", "node0"));
}

TEST_F(PackingTest, WithoutAWorkloadFewerFreeGpusThenLessCpu) {
  Make({Node(8000, 2), Node(8000, 1), Node(8000, 1), Node(8000, 0), Node(8000, 0)});
  EXPECT_THAT(Place(1000, 1000), ElementsAre("gpu-milli0", "node1"));
  EXPECT_THAT(Place(1000, 500), ElementsAre("gpu-milli0", "node2"));
  EXPECT_THAT(Place(1000, 500), ElementsAre("gpu-milli0", "node2"));
  // What needs no gpu goes where there are none, the fuller node first.
  EXPECT_THAT(Place(5000, 0), ElementsAre("node3"));
  EXPECT_THAT(Place(4000, 0), ElementsAre("node4"));
  EXPECT_THAT(Place(3000, 0), ElementsAre("node3"));
  EXPECT_THAT(Place(6000, 0), ElementsAre("node2"));
}

TEST_F(PackingTest, SlotsGoOneByOne) {
  Make({Node(8000, 4), Node(8000, 1)});
  engine_->SetWorkload({Expected(1, 1000, 4000), Expected(1, 1000, 1000)});
  EXPECT_THAT(Place(1000, 1000, 2), ElementsAre("gpu-milli0", "node0", "gpu-milli0", "node1"));
}

TEST_F(PackingTest, TheWorkloadIsUndone) {
  Make({Node(8000, 2), Node(8000, 2)});
  const uint64_t before = engine_->StateFingerprint();
  engine_->Checkpoint();
  engine_->SetWorkload({Expected(1, 1000, 1000)});
  EXPECT_NE(engine_->StateFingerprint(), before);
  EXPECT_EQ(engine_->Snapshot()->StateFingerprint(), engine_->StateFingerprint());
  engine_->SetWorkload({Expected(3, 1000, 1000)});
  EXPECT_EQ(Place(1000, 1000).back(), "node0");
  engine_->Rollback();
  EXPECT_EQ(engine_->StateFingerprint(), before);
}

TEST_F(PackingTest, CountsThatNearlyStayAreTheSame) {
  Make({Node(8000, 2)});
  engine_->SetWorkload({Expected(1000, 1000, 1000)});
  const uint64_t before = engine_->StateFingerprint();
  engine_->SetWorkload({Expected(1100, 1000, 1000)});
  EXPECT_EQ(engine_->StateFingerprint(), before);
}

TEST_F(PackingTest, TheMeanOfManyScoresFits) {
  const std::vector<int64_t> scores(64, int64_t{1} << 60);
  EXPECT_EQ(MeanScore(scores), int64_t{1} << 60);
  EXPECT_EQ(MeanScore(std::vector<int64_t>{1, 2, 4}), 2);
}

}  // namespace
}  // namespace fluxqueue::graph
