#include "services/matcher/rpc/graph_directory.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "libs/base/status_macros.h"
#include "services/matcher/domain/test_graphs.h"

namespace fluxqueue::matcher {
namespace {

using namespace std::chrono_literals;
using ::testing::HasSubstr;

class GraphDirectoryTest : public testing::Test {
 protected:
  std::shared_ptr<PrivateGraphCalls> Graph() {
    v1::CreateGraphRequest request;
    request.set_graph(TestGraph());
    auto graph = PrivateGraph::Make(request);
    EXPECT_TRUE(graph.ok()) << graph.status();
    return std::make_shared<PrivateGraphCalls>(*std::move(graph), pool_);
  }
  std::string Add(const std::string& peer = "") {
    const auto key = directory_.Add(Graph(), peer);
    EXPECT_TRUE(key.ok()) << key.status();
    return key.value_or("");
  }

  rpc::WorkerPool pool_{1};
  FakeClock clock_;
  // A test graph has 35 vertices.
  GraphDirectory directory_{{.graphs = 3, .vertices = 3 * 35, .graph_bytes = 1000, .idle = 60s},
                            clock_};
};

TEST_F(GraphDirectoryTest, GraphsAreFoundByTheirKeys) {
  const std::string key = Add();
  EXPECT_EQ(key.size(), 32U);
  EXPECT_NE(Add(), key);
  EXPECT_NE(directory_.Find(key), nullptr);
  EXPECT_EQ(directory_.Find("other"), nullptr);
  EXPECT_EQ(directory_.FindOfPeer(""), nullptr);
  EXPECT_EQ(directory_.vertices(), 70);
  EXPECT_TRUE(directory_.Drop(key));
  EXPECT_FALSE(directory_.Drop(key));
  EXPECT_EQ(directory_.Find(key), nullptr);
  EXPECT_EQ(directory_.vertices(), 35);
}

TEST_F(GraphDirectoryTest, WhatIsNotUsedGoes) {
  const std::string used = Add("a");
  const std::string idle = Add("b");
  const std::string busy = Add();
  const auto under_way = directory_.Find(busy);
  clock_.Advance(59s);
  EXPECT_NE(directory_.Find(used), nullptr);
  clock_.Advance(1s);
  directory_.Sweep();
  EXPECT_EQ(directory_.graphs(), 2U);
  EXPECT_EQ(directory_.Find(idle), nullptr);
  EXPECT_EQ(directory_.FindOfPeer("b"), nullptr);
  EXPECT_NE(directory_.FindOfPeer("a"), nullptr);
  clock_.Advance(60s);
  directory_.Sweep();
  EXPECT_EQ(directory_.graphs(), 1U);
  EXPECT_NE(directory_.Find(busy), nullptr);
}

TEST_F(GraphDirectoryTest, ThereIsALimit) {
  for (int i = 0; i < 3; ++i) Add(fmt::format("peer {}", i));
  absl::Status status = directory_.Check(1, "");
  EXPECT_TRUE(absl::IsResourceExhausted(status));
  EXPECT_THAT(Message(status), HasSubstr("3, of 3"));
  EXPECT_TRUE(absl::IsResourceExhausted(directory_.Add(Graph(), "new").status()));
  // One that takes the place of its own is no more than before.
  EXPECT_TRUE(directory_.Check(1, "peer 1").ok());
  Add("peer 1");
  EXPECT_EQ(directory_.graphs(), 3U);
  clock_.Advance(60s);
  EXPECT_TRUE(directory_.Check(1, "").ok());
  EXPECT_EQ(directory_.graphs(), 0U);
  status = directory_.Check(1001, "");
  EXPECT_TRUE(absl::IsResourceExhausted(status));
  EXPECT_THAT(Message(status), HasSubstr("1001, of 1000"));
}

TEST_F(GraphDirectoryTest, TheLastInitOnAConnectionCounts) {
  const std::string first = Add("peer");
  const auto graph = directory_.FindOfPeer("peer");
  const std::string second = Add("peer");
  EXPECT_EQ(directory_.graphs(), 1U);
  EXPECT_NE(directory_.FindOfPeer("peer"), graph);
  EXPECT_EQ(directory_.Find(first), nullptr);
  // Now somebody knows its key: it stays.
  EXPECT_NE(directory_.Find(second), nullptr);
  Add("peer");
  EXPECT_EQ(directory_.graphs(), 2U);
  EXPECT_NE(directory_.Find(second), directory_.FindOfPeer("peer"));
  directory_.DropAll();
  EXPECT_EQ(directory_.FindOfPeer("peer"), nullptr);
  EXPECT_EQ(directory_.vertices(), 0);
}

}  // namespace
}  // namespace fluxqueue::matcher
