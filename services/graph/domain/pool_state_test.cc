#include "services/graph/domain/pool_state.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "libs/base/status_macros.h"
#include "libs/matcher_core/core_fixture.h"

namespace fluxqueue::graph_service {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;
using namespace matcher_core;  // NOLINT(google-build-using-namespace): messages for tests

// The rows of a pool of two nodes, on which one job holds a slot.
class PoolStateTest : public CycleByCycleTest {
 protected:
  void SetUp() override {
    FeedAndKeep(Upserted(MakeNode("b", 4000)));
    FeedAndKeep(Upserted(MakeNode("a", 4000)));
    FeedAndKeep(Synced());
    FeedAndKeep(Submitted("job", 1, JobspecText(1, 1000)));
    Envelope cycle = Cycle(1, {"job"});
    cycle.mutable_cycle_requested()->set_now_s(100);
    FeedAndKeep(cycle);
    ASSERT_THAT(rows_.allocations, SizeIs(1));
  }

  void FeedAndKeep(const Envelope& message) {
    said_.clear();
    ASSERT_TRUE(core_.Handle(message, Millis(5000), &said_).ok());
    tables_.Apply(core_.TakeChanges());
    core_.Commit();
    rows_ = tables_.All();
  }

  Tables tables_;
  Rows rows_;
};

TEST_F(PoolStateTest, ItIsWhatTheMatcherHas) {
  const auto state = StateOf(rows_, core_.beginning() + Millis(7999));
  ASSERT_TRUE(state.ok()) << state.status();
  EXPECT_EQ(state->now_s, 7);
  const std::vector<graph::NodeSpec> nodes = core_.engine().Nodes();
  ASSERT_THAT(state->nodes, SizeIs(2));
  EXPECT_EQ(state->nodes[0].name, nodes[0].name);
  EXPECT_EQ(state->nodes[1].name, nodes[1].name);
  ASSERT_THAT(state->held, SizeIs(1));
  EXPECT_EQ(state->held[0].first.job_id, "job");
  EXPECT_EQ(state->held[0].second, *core_.engine().Find(state->held[0].first));
  const auto jobs = JobsOf(rows_.allocations);
  ASSERT_TRUE(jobs.ok()) << jobs.status();
  EXPECT_THAT(jobs->at("job"), ElementsAre(state->held[0].second));
}

TEST_F(PoolStateTest, NodesThatHaveGoneAreLeftOut) {
  rows_.allocations.clear();
  for (NodeRow& row : rows_.nodes) row.present = false;
  const auto state = StateOf(rows_, Millis(0));
  ASSERT_TRUE(state.ok()) << state.status();
  EXPECT_THAT(state->nodes, IsEmpty());
}

TEST_F(PoolStateTest, WhatWasReleasedIsNotHeld) {
  FeedAndKeep(Release("job"));
  ASSERT_THAT(rows_.allocations, SizeIs(1));
  EXPECT_THAT(StateOf(rows_, Millis(0))->held, IsEmpty());
  EXPECT_THAT(*JobsOf(rows_.allocations), IsEmpty());
}

TEST_F(PoolStateTest, ARowThatDoesNotDecodeIsDataLoss) {
  rows_.allocations[0].placement = "\xff";
  const absl::Status status = StateOf(rows_, Millis(0)).status();
  EXPECT_TRUE(absl::IsDataLoss(status)) << status;
  EXPECT_THAT(Message(status), HasSubstr("job job"));
  EXPECT_TRUE(absl::IsDataLoss(JobsOf(rows_.allocations).status()));
  EXPECT_TRUE(absl::IsDataLoss(LevelsOf("\xff").status()));
}

}  // namespace
}  // namespace fluxqueue::graph_service
