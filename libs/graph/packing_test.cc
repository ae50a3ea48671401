// Where `packed` puts slots, and that the expected workload is part of what can be undone.

#include "libs/graph/packing.h"

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "libs/graph/general_engine.h"
#include "libs/graph/synthetic_graphs.h"

namespace fluxqueue::graph {
namespace {

using synthetic::MakeCluster;
using synthetic::NodeShape;
using ::testing::AnyOf;
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

// A fifth of the gpus is for slots that want four: nodes with twice that are kept, the last ones.
TEST_F(PackingTest, TheBackIsUsedLast) {
  Make({Node(8000, 4), Node(8000, 4), Node(8000, 4), Node(8000, 4)});
  engine_->SetWorkload({Expected(32, 500, 500), Expected(1, 4000, 4000)});
  for (int i = 0; i < 16; ++i) EXPECT_THAT(Place(500, 500).back(), AnyOf("node0", "node1")) << i;
  EXPECT_EQ(Place(500, 500).back(), "node2");
  EXPECT_EQ(Place(4000, 4000).back(), "node3");
}

// Cpu runs short on node0 for what comes next; the last node is kept all the same.
TEST_F(PackingTest, WhatIsLostDoesNotCountMoreThanTheBack) {
  Make({Node(4000, 2), Node(64000, 2)});
  engine_->SetWorkload({Expected(64, 2000, 500), Expected(1, 64000, 2000)});
  EXPECT_EQ(Place(3000, 500).back(), "node0");
  // By rules up to 3.
  ASSERT_TRUE(engine_->SetPolicy("packed-3").ok());
  engine_->Cancel(jobs_);
  EXPECT_EQ(Place(3000, 500).back(), "node1");
}

// Whatever is expected, asked for and given back: a node that is set aside is used only when the
// slot fits on no other, as on that node alone.
RC_GTEST_PROP(PackingProperty, ASlotGoesToTheBackOnlyWhenItFitsNowhereElse, ()) {
  const auto any = [](int64_t from, int64_t to) {
    return *rc::gen::inRange<int64_t>(from, to + 1);
  };
  constexpr size_t kNodes = 5;
  std::vector<NodeKind> kinds;
  std::vector<NodeShape> shapes;
  std::vector<uint32_t> last_first;
  for (uint32_t n = 0; n < kNodes; ++n) {
    shapes.push_back(Node(1000 * any(1, 8), static_cast<size_t>(any(1, 4))));
    kinds.push_back({{true}, {shapes[n].shares, {shapes[n].millicores}}});
    last_first.push_back(static_cast<uint32_t>(kNodes) - 1 - n);
  }
  auto engine = GeneralEngine::Make(MakeCluster(shapes), {.policy = "packed"});
  RC_ASSERT(engine.ok());
  Workload workload;
  std::vector<ExpectedSlots> expected;
  for (int i = 0; i < 3; ++i) {
    const auto count = uint64_t{1} << any(0, 6);
    const int64_t gpu = any(0, 1) == 1 ? 250 * any(1, 4) : 1000 * any(1, 4);
    workload.push_back(Expected(count, 1000 * any(1, 4), gpu));
    expected.push_back({{gpu, {workload.back().amounts.front().amount}}, 0, count});
  }
  (*engine)->SetWorkload(workload);
  const std::vector<LastUse> uses =
      SetAside(Holdable(expected, kinds), kinds, last_first, kPercentSetAside);
  std::vector<JobNumber> running;
  for (JobNumber job = 1; job <= 30; ++job) {
    if (!running.empty() && any(0, 3) == 0) {
      const auto ends = running.begin() + any(0, static_cast<int64_t>(running.size()) - 1);
      (*engine)->Cancel(*ends);
      running.erase(ends);
    }
    const size_t shape = static_cast<size_t>(any(0, 2));
    const std::string slot = fmt::format(
        "type: slot, label: a, count: 1, with: [{{type: cpu, "
        "count: {}}}, {{type: {}, count: {}}}]",
        workload[shape].amounts[0].amount,
        kGpu,
        expected[shape].shape.gpu);
    const std::string tail = "tasks: []\nattributes: {system: {duration: 60}}";
    const auto request = ParseJobRequest("version: 1\nresources: [{" + slot + "}]\n" + tail);
    RC_ASSERT(request.ok());
    const auto where = [&](JobNumber number, const JobRequest& asked) -> std::optional<size_t> {
      const auto answer = (*engine)->Match(MatchOperation::kAllocate, number, asked);
      if (!answer.ok() || answer->status != MatchStatus::kAllocated) return std::nullopt;
      for (const HeldVertex& held : answer->holding.vertices) {
        const Vertex& vertex = (*engine)->graph().vertex(held.vertex);
        if ((*engine)->graph().TypeName(held.vertex) == "node") {
          return static_cast<size_t>(vertex.id);
        }
      }
      return std::nullopt;
    };
    const std::optional<size_t> node = where(job, *request);
    if (!node.has_value()) continue;
    running.push_back(job);
    const LastUse use = uses[kNodes - 1 - *node];
    if (use == LastUse::kNone) continue;
    // Undone, and tried on each node that is used earlier.
    (*engine)->Cancel(job);
    for (size_t other = 0; other < kNodes; ++other) {
      if (uses[kNodes - 1 - other] >= use) continue;
      const auto there = ParseJobRequest("version: 1\nresources: [{" + slot +
                                         "}]\ntasks: []\nattributes: {system: {duration: 60, "
                                         "constraints: {hostlist: [node" +
                                         std::to_string(other) + "]}}}");
      RC_ASSERT(there.ok());
      RC_ASSERT(!where(1000 + job, *there).has_value());
    }
    RC_ASSERT(where(job, *request) == node);
  }
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
