// Against our own library with Fluxion's interface; where another is to be had, its path as
// FLUXQUEUE_FLUXION_LIBRARY.
#include "libs/fluxion/context.h"

#include <cstdlib>
#include <memory>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "libs/base/status_macros.h"
#include "libs/fluxion/test_cluster.h"

namespace fluxqueue::fluxion {
namespace {

using graph::MatchOperation;
using ::testing::HasSubstr;

std::string LibraryPath() {
  const char* path = std::getenv("FLUXQUEUE_FLUXION_LIBRARY");
  return path == nullptr ? FLUXQUEUE_REAPI_LIBRARY : path;
}

// One node of two cores.
const std::string kGraph = ClusterJgf(1, 2);

class ContextTest : public ::testing::Test {
 protected:
  void SetUp() override {
    auto library = Library::Open(LibraryPath());
    ASSERT_TRUE(library.ok()) << library.status();
    library_ = *std::move(library);
    context_ = Make("low");
  }

  std::unique_ptr<Context> Make(const std::string& policy) {
    auto context = MakeContext(library_, kGraph, {.policy = policy});
    EXPECT_TRUE(context.ok()) << context.status();
    return *std::move(context);
  }

  std::shared_ptr<const Library> library_;
  std::unique_ptr<Context> context_;
};

TEST(LibraryTest, SaysWhatIsMissingAndWhatToInstall) {
  const auto nowhere = Library::Open("/nowhere/libreapi_cli.so");
  EXPECT_THAT(Message(nowhere.status()), HasSubstr("/nowhere/libreapi_cli.so"));
  EXPECT_THAT(Message(nowhere.status()), HasSubstr("flux-sched 0.54"));
  const auto other = Library::Open("libm.so.6");
  EXPECT_THAT(Message(other.status()),
              HasSubstr("libm.so.6: has no function reapi_cli_new; wanted"));
}

TEST_F(ContextTest, MatchesUntilItIsFull) {
  for (const uint64_t job : {1, 2}) {
    const auto placed = context_->Match(MatchOperation::kAllocate, Cores(1), job);
    ASSERT_TRUE(placed.ok()) << placed.status();
    EXPECT_FALSE(placed->reserved);
    EXPECT_THAT(placed->resources, HasSubstr("\"scheduling\""));
  }
  const auto busy = context_->Match(MatchOperation::kAllocate, Cores(1), 3);
  EXPECT_EQ(busy.status().code(), absl::StatusCode::kResourceExhausted) << busy.status();
  const auto never = context_->Match(MatchOperation::kAllocateWithSatisfiability, Cores(3), 4);
  EXPECT_EQ(never.status().code(), absl::StatusCode::kFailedPrecondition) << never.status();
  EXPECT_TRUE(context_->Match(MatchOperation::kSatisfiability, Cores(2), 5).ok());
  EXPECT_TRUE(context_->Cancel(1).ok());
  EXPECT_TRUE(context_->Match(MatchOperation::kAllocate, Cores(1), 6).ok());
  EXPECT_FALSE(context_->Cancel(3).ok());
}

TEST_F(ContextTest, WhatWasHeldIsHeldAgainInAnotherContext) {
  const auto placed = context_->Match(MatchOperation::kAllocate, Cores(1), 1);
  ASSERT_TRUE(placed.ok());
  const auto again = Make("low");
  ASSERT_TRUE(again->Restore(7, placed->resources).ok());
  const auto other = again->Match(MatchOperation::kAllocate, Cores(1), 8);
  ASSERT_TRUE(other.ok());
  EXPECT_NE(other->resources, placed->resources);
  EXPECT_FALSE(again->Match(MatchOperation::kAllocate, Cores(1), 9).ok());
}

TEST_F(ContextTest, NodesThatAreDownGiveNothing) {
  ASSERT_TRUE(context_->SetUp("/cluster0/rack0/node0", false).ok());
  EXPECT_FALSE(context_->Match(MatchOperation::kAllocate, Cores(1), 1).ok());
  ASSERT_TRUE(context_->SetUp("/cluster0/rack0/node0", true).ok());
  EXPECT_TRUE(context_->Match(MatchOperation::kAllocate, Cores(1), 2).ok());
  EXPECT_FALSE(context_->SetUp("/cluster0/rack0/node1", true).ok());
}

TEST_F(ContextTest, WhatWouldAbortTheLibraryIsRefusedBefore) {
  const auto make = [this](const std::string& graph, const Context::Settings& settings) {
    return Message(MakeContext(library_, graph, settings).status());
  };
  EXPECT_THAT(make(kGraph, {.policy = "packed"}),
              HasSubstr("\"packed\": the fluxion engine knows"));
  EXPECT_THAT(make("", {}), HasSubstr("graph: is empty"));
  EXPECT_THAT(make(kGraph, {.traverser = "fast"}), HasSubstr("\"fast\": must be simple or"));
  EXPECT_THAT(make(kGraph, {.prune_filters = std::string(1, '\0')}),
              HasSubstr("prune filters: has a NUL at byte 0"));
  EXPECT_THAT(make("{}", {}), HasSubstr("graph: "));
  const std::string broken("a\0b", 3);
  EXPECT_THAT(Message(context_->Match(MatchOperation::kAllocate, broken, 1).status()),
              HasSubstr("jobspec: has a NUL at byte 1"));
  EXPECT_THAT(Message(context_->Cancel(UINT64_MAX)), HasSubstr("cannot cancel ids above"));
  EXPECT_EQ(context_->Restore(1, "{}").code(), absl::StatusCode::kInvalidArgument);
}

}  // namespace
}  // namespace fluxqueue::fluxion
