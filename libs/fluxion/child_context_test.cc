// A real process with our library in it, which is killed and stopped.
#include "libs/fluxion/child_context.h"

#include <csignal>
#include <fstream>
#include <map>
#include <memory>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include "libs/base/status_macros.h"
#include "libs/fluxion/test_cluster.h"

namespace fluxqueue::fluxion {
namespace {

using graph::MatchOperation;
using ::testing::HasSubstr;

// The one process that this one has started.
pid_t TheChild() {
  std::ifstream children("/proc/self/task/" + std::to_string(getpid()) + "/children");
  pid_t child = 0;
  children >> child;
  return child;
}

class ChildContextTest : public ::testing::Test {
 protected:
  std::unique_ptr<Context> Make() {
    auto context = MakeChildContext(options_, graph_, {.policy = "low"});
    EXPECT_TRUE(context.ok()) << context.status();
    return *std::move(context);
  }

  ChildOptions options_{.host = FLUXQUEUE_FLUXION_HOST,
                        .library = FLUXQUEUE_REAPI_LIBRARY,
                        .call_timeout = Millis(5000),
                        .load_timeout = Millis(30'000)};
  std::string graph_ = ClusterJgf(4, 8);
};

TEST_F(ChildContextTest, AnswersAsInThisProcess) {
  const auto child = Make();
  const auto library = Library::Open(options_.library);
  ASSERT_TRUE(library.ok());
  const auto here = *MakeContext(*library, graph_, {.policy = "low"});
  for (uint64_t job = 1; job <= 12; ++job) {
    const auto given = child->Match(MatchOperation::kAllocateOrElseReserve, Cores(3), job);
    const auto expected = here->Match(MatchOperation::kAllocateOrElseReserve, Cores(3), job);
    ASSERT_TRUE(given.ok() && expected.ok()) << given.status() << expected.status();
    EXPECT_EQ(given->resources, expected->resources);
    EXPECT_EQ(given->at_s, expected->at_s);
    EXPECT_EQ(given->reserved, expected->reserved);
  }
  EXPECT_EQ(child->Cancel(99), here->Cancel(99));
  EXPECT_EQ(child->Match(MatchOperation::kAllocate, "{", 50).status(),
            here->Match(MatchOperation::kAllocate, "{", 50).status());
  ASSERT_TRUE(child->Cancel(1).ok() && here->Cancel(1).ok());
  ASSERT_TRUE(child->SetUp("/cluster0/rack0/node1", false).ok());
  ASSERT_TRUE(here->SetUp("/cluster0/rack0/node1", false).ok());
  EXPECT_EQ(*child->Find("status=down"), *here->Find("status=down"));
}

TEST_F(ChildContextTest, SaysWhatCannotBeOpened) {
  const auto message = [this](const ChildOptions& options, const std::string& graph) {
    return Message(MakeChildContext(options, graph, {}).status());
  };
  EXPECT_THAT(message({.host = "/nowhere/host", .library = options_.library}, graph_),
              HasSubstr("/nowhere/host cannot be started: No such file"));
  EXPECT_THAT(message({.host = options_.host, .library = "/nowhere/x.so"}, graph_),
              HasSubstr("/nowhere/x.so"));
  EXPECT_THAT(message(options_, "{}"), HasSubstr("graph: "));
}

TEST_F(ChildContextTest, AProcessThatHangsIsEnded) {
  options_.call_timeout = Millis(200);
  const auto context = Make();
  ASSERT_EQ(kill(TheChild(), SIGSTOP), 0);
  const absl::Status hung = context->Match(MatchOperation::kAllocate, Cores(1), 1).status();
  EXPECT_EQ(hung.code(), absl::StatusCode::kUnavailable);
  EXPECT_THAT(Message(hung), HasSubstr("was ended by SIGKILL (match: no answer in time)"));
  EXPECT_EQ(context->Cancel(1), hung);
  EXPECT_EQ(TheChild(), 0);
}

TEST_F(ChildContextTest, NothingIsLostWhenItDiesAHundredTimes) {
  auto context = Make();
  std::map<uint64_t, std::string> held;
  uint64_t job = 0;
  for (int death = 0; death < 100; ++death) {
    // 4 nodes hold 8 jobs of 4 cores.
    if (held.size() == 8) {
      ASSERT_TRUE(context->Cancel(held.begin()->first).ok());
      held.erase(held.begin());
    }
    const auto placed = context->Match(MatchOperation::kAllocate, Cores(4), ++job);
    ASSERT_TRUE(placed.ok()) << placed.status();
    held[job] = placed->resources;
    ASSERT_EQ(kill(TheChild(), SIGKILL), 0);
    const absl::Status gone = context->Match(MatchOperation::kAllocate, Cores(4), ++job).status();
    ASSERT_EQ(gone.code(), absl::StatusCode::kUnavailable) << gone;
    ASSERT_THAT(Message(gone), HasSubstr("was ended by SIGKILL"));
    context = Make();
    for (const auto& [id, resources] : held) ASSERT_TRUE(context->Restore(id, resources).ok());
  }
  for (; held.size() < 8; ++job) {
    const auto placed = context->Match(MatchOperation::kAllocate, Cores(4), job + 1);
    ASSERT_TRUE(placed.ok()) << placed.status();
    held[job + 1] = placed->resources;
  }
  EXPECT_EQ(context->Match(MatchOperation::kAllocate, Cores(1), job + 1).status().code(),
            absl::StatusCode::kResourceExhausted);
}

}  // namespace
}  // namespace fluxqueue::fluxion
