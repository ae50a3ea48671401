// Containers that span the same nodes: vertices with several containment paths.
//
//   tiny0 ─┬─ container0 ─┬─ node0 ─┬─ socket0 ─ 18 cores, 1 gpu, 4 memory
//          │              │         └─ socket1 ─ …
//          └─ container1 ─┴─ node1 ─ …              (each container has both nodes)

#include <algorithm>
#include <memory>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "libs/base/status_macros.h"
#include "libs/graph/general_engine.h"
#include "libs/graph/jgf.h"
#include "libs/graph/resource_set.h"

namespace fluxqueue::graph {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

class JgfText {
 public:
  // Below each of `parents`; returns the vertex's id.
  std::string Add(const std::string& type, int id, const std::vector<std::string>& parents) {
    const std::string number = std::to_string(count_++);
    std::vector<std::string> paths;
    for (const std::string& parent : parents) {
      for (const std::string& path : paths_[std::stoul(parent)]) {
        paths.push_back(path + "/" + type + std::to_string(id));
      }
      edges_ += (edges_.empty() ? "" : ", ") + std::string(R"({"source": ")") + parent +
                R"(", "target": ")" + number + R"("})";
    }
    if (parents.empty()) paths = {"/tiny0"};
    std::string list;
    for (const std::string& path : paths) list += (list.empty() ? "\"" : ", \"") + path + "\"";
    nodes_ += (nodes_.empty() ? "" : ", ") + std::string(R"({"id": ")") + number +
              R"(", "metadata": {"type": ")" + type + R"(", "id": )" + std::to_string(id) +
              R"(, "paths": {"containment": [)" + list + "]}}}";
    paths_.push_back(paths);
    return number;
  }

  std::string Text() const {
    return R"({"graph": {"nodes": [)" + nodes_ + R"(], "edges": [)" + edges_ + "]}}";
  }

 private:
  size_t count_ = 0;
  std::vector<std::vector<std::string>> paths_;
  std::string nodes_;
  std::string edges_;
};

std::string TinyContainers() {
  JgfText text;
  const std::string cluster = text.Add("cluster", 0, {});
  const std::string container0 = text.Add("container", 0, {cluster});
  const std::string container1 = text.Add("container", 1, {cluster});
  for (int n = 0; n < 2; ++n) {
    const std::string node = text.Add("node", n, {container0, container1});
    for (int s = 0; s < 2; ++s) {
      const std::string socket = text.Add("socket", s, {node});
      for (int i = 0; i < 18; ++i) text.Add("core", i, {socket});
      text.Add("gpu", 0, {socket});
      for (int i = 0; i < 4; ++i) text.Add("memory", i, {socket});
    }
  }
  return text.Text();
}

JobRequest Request(const std::string& resources) {
  const auto request = ParseJobRequest("version: 1\nresources: " + resources +
                                       "\ntasks: []\nattributes: {system: {duration: 60}}");
  EXPECT_TRUE(request.ok()) << request.status();
  return *request;
}

class SharedVerticesTest : public ::testing::Test {
 protected:
  void SetUp() override { Begin("ALL:core"); }

  void Begin(std::string_view prune_filters) {
    auto graph = ParseJgf(TinyContainers());
    ASSERT_TRUE(graph.ok()) << graph.status();
    auto engine =
        GeneralEngine::Make(*std::move(graph), {.policy = "first", .prune_filters = prune_filters});
    ASSERT_TRUE(engine.ok()) << engine.status();
    engine_ = *std::move(engine);
    empty_ = engine_->Fingerprint();
  }

  MatchAnswer Match(JobNumber job, const std::string& resources) {
    const auto answer =
        engine_->Match(MatchOperation::kAllocateWithSatisfiability, job, Request(resources));
    EXPECT_TRUE(answer.ok()) << answer.status();
    return *answer;
  }

  std::vector<std::string> Held(JobNumber job, const std::string& type) const {
    std::vector<std::string> names;
    const Holding* holding = engine_->Find(job);
    if (holding == nullptr) return {};
    for (const HeldVertex& held : holding->vertices) {
      if (held.exclusive && engine_->graph().TypeName(held.vertex) == type) {
        names.push_back(engine_->graph().vertex(held.vertex).name);
      }
    }
    std::sort(names.begin(), names.end());
    return names;
  }

  void ExpectEmptyAfter(const std::vector<JobNumber>& jobs) {
    for (const JobNumber job : jobs) EXPECT_TRUE(engine_->Cancel(job));
    EXPECT_EQ(engine_->Fingerprint(), empty_);
  }

  std::unique_ptr<GeneralEngine> engine_;
  uint64_t empty_ = 0;
};

const char kOneContainerTwoNodes[] =
    "[{type: cluster, count: 1, with: [{type: slot, count: 1, label: a, with: "
    "[{type: container, count: 1, with: [{type: node, count: 2}]}]}]}]";
const char kTwoContainers[] =
    "[{type: cluster, count: 1, with: [{type: slot, count: 1, label: a, with: "
    "[{type: container, count: 2}]}]}]";
const char kBothContainersTheSameNodes[] =
    "[{type: container, count: 2, with: [{type: slot, count: 1, label: a, with: "
    "[{type: node, count: 2}]}]}]";
const char kOneContainerHalfOfTheCores[] =
    "[{type: container, count: 1, exclusive: true, with: [{type: node, count: 2, with: "
    "[{type: socket, count: 1, with: [{type: slot, count: 1, label: a, with: "
    "[{type: core, count: 9}]}]}]}]}]";

TEST_F(SharedVerticesTest, ASlotOfAContainerWithItsNodes) {
  for (int round = 0; round < 2; ++round) {
    ASSERT_EQ(Match(1, kOneContainerTwoNodes).status, MatchStatus::kAllocated);
    EXPECT_EQ(Held(1, "container").size(), 1u);
    EXPECT_THAT(Held(1, "node"), ElementsAre("node0", "node1"));
    // The other container is free, its nodes are not.
    EXPECT_EQ(Match(2, kOneContainerTwoNodes).status, MatchStatus::kBusy);
    ExpectEmptyAfter({1});
  }
}

TEST_F(SharedVerticesTest, ASlotOfTwoContainers) {
  for (int round = 0; round < 2; ++round) {
    ASSERT_EQ(Match(1, kTwoContainers).status, MatchStatus::kAllocated);
    EXPECT_THAT(Held(1, "container"), ElementsAre("container0", "container1"));
    EXPECT_EQ(Match(2, kTwoContainers).status, MatchStatus::kBusy);
    ExpectEmptyAfter({1});
  }
}

TEST_F(SharedVerticesTest, TwoContainersSpanTheSameNodesInOneJob) {
  for (int round = 0; round < 2; ++round) {
    const MatchAnswer answer = Match(1, kBothContainersTheSameNodes);
    ASSERT_EQ(answer.status, MatchStatus::kAllocated);
    // Each node once, and both containers on the way to them.
    EXPECT_THAT(Held(1, "node"), ElementsAre("node0", "node1"));
    EXPECT_EQ(answer.holding.vertices.size(), 2u + 2u + 1u);
    EXPECT_EQ(Match(2, kBothContainersTheSameNodes).status, MatchStatus::kBusy);
    ExpectEmptyAfter({1});
  }
}

TEST_F(SharedVerticesTest, TheSumsOfNodesCountSharedOnesOnce) {
  Begin("ALL:core,ALL:node");
  ASSERT_EQ(Match(1, kBothContainersTheSameNodes).status, MatchStatus::kAllocated);
  EXPECT_THAT(Held(1, "node"), ElementsAre("node0", "node1"));
  EXPECT_EQ(Match(2, kOneContainerTwoNodes).status, MatchStatus::kBusy);
  ExpectEmptyAfter({1});
}

TEST_F(SharedVerticesTest, WhatSharedNodesContainCountsOnceToo) {
  const MatchAnswer answer = Match(
      1,
      "[{type: container, count: 2, with: [{type: node, count: 2, with: [{type: socket, count: "
      "2, with: [{type: slot, count: 1, label: a, with: [{type: core, count: 18}]}]}]}]}]");
  ASSERT_EQ(answer.status, MatchStatus::kAllocated);
  EXPECT_EQ(Held(1, "core").size(), 72u);
  ExpectEmptyAfter({1});
}

TEST_F(SharedVerticesTest, TwoJobsShareTheNodesOfTheirContainers) {
  for (int round = 0; round < 2; ++round) {
    ASSERT_EQ(Match(1, kOneContainerHalfOfTheCores).status, MatchStatus::kAllocated);
    ASSERT_EQ(Match(2, kOneContainerHalfOfTheCores).status, MatchStatus::kAllocated);
    EXPECT_EQ(Held(1, "core").size(), 18u);
    EXPECT_EQ(Held(2, "core").size(), 18u);
    EXPECT_NE(Held(1, "container"), Held(2, "container"));
    EXPECT_TRUE(Held(1, "node").empty());
    // There is no third container.
    EXPECT_EQ(Match(3, kOneContainerHalfOfTheCores).status, MatchStatus::kBusy);
    ExpectEmptyAfter({1, 2});
  }
}

TEST_F(SharedVerticesTest, CapacityCountsOnce) {
  const std::string cores = "[{type: slot, count: 72, label: a, with: [{type: core, count: 1}]}]";
  EXPECT_EQ(Match(1, cores).status, MatchStatus::kAllocated);
  EXPECT_EQ(Held(1, "core").size(), 72u);
  ExpectEmptyAfter({1});
  EXPECT_EQ(Match(2, "[{type: slot, count: 73, label: a, with: [{type: core, count: 1}]}]").status,
            MatchStatus::kUnsatisfiable);
  EXPECT_EQ(Match(2,
                  "[{type: node, count: 3, with: [{type: socket, count: 1, with: [{type: slot, "
                  "count: 1, label: a, with: [{type: core, count: 1}]}]}]}]")
                .status,
            MatchStatus::kUnsatisfiable);
}

TEST_F(SharedVerticesTest, EachPathIsAPathOfTheVertexInTheOutput) {
  const MatchAnswer answer = Match(1, kBothContainersTheSameNodes);
  EXPECT_THAT(WriteResourceSet(engine_->graph(), answer.holding, SetFormat::kJgf),
              HasSubstr(R"("paths":{"containment":["/tiny0/container0/node0",)"
                        R"("/tiny0/container1/node0"]})"));
  EXPECT_EQ(engine_->graph().FindPath("/tiny0/container0/node1/socket0"),
            engine_->graph().FindPath("/tiny0/container1/node1/socket0"));
}

}  // namespace
}  // namespace fluxqueue::graph
