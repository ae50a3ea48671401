#include "services/graph/rpc/graph_directory.h"

#include <functional>
#include <future>
#include <thread>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "libs/base/status_macros.h"
#include "services/graph/domain/test_graphs.h"

namespace fluxqueue::graph_service {
namespace {

using namespace std::chrono_literals;
using ::testing::HasSubstr;

class GraphDirectoryTest : public testing::Test {
 protected:
  std::shared_ptr<PrivateGraphCalls> Graph(int nodes = 4) {
    v1::CreateGraphRequest request;
    request.set_graph(TestGraph(nodes));
    auto graph = PrivateGraph::Make(request, 1000);
    EXPECT_TRUE(graph.ok()) << graph.status();
    return std::make_shared<PrivateGraphCalls>(*std::move(graph), pool_, "ann");
  }
  std::string Add(const std::string& peer = "") {
    const auto key = directory_.Add(Graph(), {.user = "ann", .peer = peer});
    EXPECT_TRUE(key.ok()) << key.status();
    return key.value_or("");
  }
  std::shared_ptr<PrivateGraphCalls> FindOf(const std::string& peer,
                                            const std::string& client = "ann") {
    return directory_.FindOf({.user = client, .peer = peer});
  }
  static bool Eventually(const std::function<bool()>& condition) {
    const auto patience = std::chrono::steady_clock::now() + 10s;
    while (std::chrono::steady_clock::now() < patience) {
      if (condition()) return true;
      std::this_thread::yield();
    }
    return false;
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
  EXPECT_EQ(FindOf(""), nullptr);
  EXPECT_EQ(directory_.vertices(), 70);
  EXPECT_TRUE(directory_.Drop(key));
  EXPECT_FALSE(directory_.Drop(key));
  EXPECT_EQ(directory_.Find(key), nullptr);
  EXPECT_EQ(directory_.vertices(), 35);
}

TEST_F(GraphDirectoryTest, AConnectionLeadsItsOwnUserToHisGraph) {
  Add("proxy");
  const auto of_ann = FindOf("proxy");
  EXPECT_NE(of_ann, nullptr);
  EXPECT_EQ(FindOf("proxy", "bob"), nullptr);
  EXPECT_EQ(FindOf("another"), nullptr);
  // Another's Init by the same address takes nobody's place.
  ASSERT_TRUE(directory_.Add(Graph(), {.user = "bob", .peer = "proxy"}).ok());
  EXPECT_EQ(FindOf("proxy"), of_ann);
  EXPECT_NE(FindOf("proxy", "bob"), of_ann);
  EXPECT_EQ(directory_.graphs(), 2U);
}

// A stream that is never read keeps its graph, whether or not that was dropped.
TEST_F(GraphDirectoryTest, WhatIsUsedCountsUntilItGoes) {
  GraphDirectory directory(
      {.graphs = 10, .vertices = 1000, .client_graphs = 10, .client_vertices = 35, .idle = 60s},
      clock_);
  const auto key = directory.Add(Graph(), {.user = "ann"});
  ASSERT_TRUE(key.ok()) << key.status();
  std::shared_ptr<PrivateGraphCalls> used = directory.Find(*key);
  EXPECT_TRUE(directory.Drop(*key));
  // What the drop itself has posted is over.
  std::promise<void> over;
  pool_.Post([&] { over.set_value(); });
  over.get_future().wait();
  const absl::Status status = directory.Add(Graph(), {.user = "ann"}).status();
  EXPECT_TRUE(absl::IsResourceExhausted(status)) << status;
  EXPECT_THAT(Message(status), HasSubstr("drop some"));
  used = nullptr;
  EXPECT_TRUE(Eventually([&] { return directory.Add(Graph(), {.user = "ann"}).ok(); }));
}

TEST_F(GraphDirectoryTest, WhatIsReplacedAndUsedCountsUntilItGoes) {
  GraphDirectory directory(
      {.graphs = 10, .vertices = 1000, .client_graphs = 10, .client_vertices = 35, .idle = 60s},
      clock_);
  const GraphOwner owner{.user = "ann", .peer = "p"};
  ASSERT_TRUE(directory.Add(Graph(), owner).ok());
  EXPECT_TRUE(directory.Add(Graph(), owner).ok()) << "nobody uses the first";
  std::shared_ptr<PrivateGraphCalls> used = directory.FindOf(owner);
  ASSERT_NE(used, nullptr);
  EXPECT_TRUE(absl::IsResourceExhausted(directory.Add(Graph(), owner).status()));
  used = nullptr;
  EXPECT_TRUE(directory.Add(Graph(), owner).ok());
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
  EXPECT_EQ(FindOf("b"), nullptr);
  EXPECT_NE(FindOf("a"), nullptr);
  clock_.Advance(60s);
  directory_.Sweep();
  EXPECT_EQ(directory_.graphs(), 1U);
  EXPECT_NE(directory_.Find(busy), nullptr);
}

TEST_F(GraphDirectoryTest, ThereIsALimit) {
  for (int i = 0; i < 3; ++i) Add(fmt::format("peer {}", i));
  absl::Status status = directory_.Check(1, {.user = "ann"});
  EXPECT_TRUE(absl::IsResourceExhausted(status));
  EXPECT_THAT(Message(status), HasSubstr("3, of 3"));
  EXPECT_TRUE(
      absl::IsResourceExhausted(directory_.Add(Graph(), {.user = "ann", .peer = "new"}).status()));
  // One that takes the place of its own is no more than before.
  EXPECT_TRUE(directory_.Check(1, {.user = "ann", .peer = "peer 1"}).ok());
  Add("peer 1");
  EXPECT_EQ(directory_.graphs(), 3U);
  clock_.Advance(60s);
  EXPECT_TRUE(directory_.Check(1, {.user = "ann"}).ok());
  EXPECT_EQ(directory_.graphs(), 0U);
  status = directory_.Check(1001, {.user = "ann"});
  EXPECT_TRUE(absl::IsResourceExhausted(status));
  EXPECT_THAT(Message(status), HasSubstr("1001, of 1000"));
}

TEST_F(GraphDirectoryTest, EachClientHasALimitOfItsOwn) {
  GraphDirectory directory(
      {.graphs = 10, .vertices = 1000, .client_graphs = 2, .client_vertices = 3 * 35, .idle = 60s},
      clock_);
  const GraphOwner ann{.user = "ann", .peer = "a connection"};
  const auto first = directory.Add(Graph(), ann);
  ASSERT_TRUE(first.ok()) << first.status();
  ASSERT_TRUE(directory.Add(Graph(), {.user = "ann"}).ok());
  absl::Status status = directory.Check(1, {.user = "ann"});
  EXPECT_TRUE(absl::IsResourceExhausted(status)) << status;
  EXPECT_THAT(Message(status), HasSubstr("ann has too many private graphs"));
  EXPECT_THAT(Message(status), HasSubstr("2, of 2"));
  EXPECT_TRUE(directory.Check(1, {.user = "bob"}).ok());
  // In the place of one of its own; of another's it takes none.
  EXPECT_TRUE(directory.Check(1, ann).ok());
  ASSERT_TRUE(directory.Add(Graph(), {.user = "bob"}).ok());
  EXPECT_TRUE(directory.Drop(*first));
  EXPECT_TRUE(directory.Check(1, {.user = "ann"}).ok());
  status = directory.Add(Graph(12), {.user = "ann"}).status();
  EXPECT_TRUE(absl::IsResourceExhausted(status)) << status;
  EXPECT_THAT(Message(status), HasSubstr("the private graphs of ann would have too many vertices"));
}

// Who may make accounts in a namespace has any number of them.
TEST_F(GraphDirectoryTest, TheAccountsOfANamespaceHaveOneLimit) {
  GraphDirectory directory(
      {.graphs = 10, .vertices = 1000, .client_graphs = 2, .client_vertices = 3 * 35, .idle = 60s},
      clock_);
  const auto add = [&](const char* user, int nodes = 4) {
    return directory.Add(Graph(nodes), {.user = user, .peer = "a connection"}).status();
  };
  ASSERT_TRUE(add("system:serviceaccount:lab:a").ok());
  absl::Status status = add("system:serviceaccount:lab:b", 12);
  EXPECT_TRUE(absl::IsResourceExhausted(status));
  EXPECT_THAT(Message(status), HasSubstr("of system:serviceaccount:lab would have too many"));
  ASSERT_TRUE(add("system:serviceaccount:lab:b").ok());
  status = add("system:serviceaccount:lab:c");
  EXPECT_TRUE(absl::IsResourceExhausted(status));
  EXPECT_THAT(Message(status), HasSubstr("system:serviceaccount:lab has too many"));
  EXPECT_TRUE(add("system:serviceaccount:other:a").ok());
  // Each finds his own graph alone.
  const auto find = [&](const char* user) {
    return directory.FindOf({.user = user, .peer = "a connection"});
  };
  EXPECT_NE(find("system:serviceaccount:lab:a"), find("system:serviceaccount:lab:b"));
  EXPECT_EQ(find("system:serviceaccount:lab:c"), nullptr);
}

TEST_F(GraphDirectoryTest, TheLastInitOnAConnectionCounts) {
  const std::string first = Add("peer");
  const auto graph = FindOf("peer");
  const std::string second = Add("peer");
  EXPECT_EQ(directory_.graphs(), 1U);
  EXPECT_NE(FindOf("peer"), graph);
  EXPECT_EQ(directory_.Find(first), nullptr);
  // Now somebody knows its key: it stays.
  EXPECT_NE(directory_.Find(second), nullptr);
  Add("peer");
  EXPECT_EQ(directory_.graphs(), 2U);
  EXPECT_NE(directory_.Find(second), FindOf("peer"));
  directory_.DropAll();
  EXPECT_EQ(FindOf("peer"), nullptr);
}

}  // namespace
}  // namespace fluxqueue::graph_service
