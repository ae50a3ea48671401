// What runs takes more slots, in place.
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "libs/graph/engine_fixture.h"

namespace fluxqueue::graph {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

TEST_F(NativeEngineTest, GrowsInPlace) {
  AddNodes(2);
  const Jobspec two = Spec(2, {{"cpu", 2000}});
  const AllocationKey key{"j", 1, 0};
  const auto grow = [&](const Jobspec& more, int64_t now_s) {
    return engine_.Grow({.key = key, .jobspec = more, .now_s = now_s});
  };
  EXPECT_EQ(grow(two, 0).kind, OutcomeKind::kBusy) << "it holds nothing";
  ASSERT_EQ(engine_.Match({.key = key, .jobspec = two, .now_s = 0, .duration_s = 10}).kind,
            OutcomeKind::kAllocated);
  EXPECT_EQ(grow(Spec(1, {{"cpu", 1000}}), 1).kind, OutcomeKind::kBusy) << "other slots";
  EXPECT_EQ(grow(WithSlots(two, 3), 1).kind, OutcomeKind::kBusy) << "all or none";
  const Outcome grown = grow(WithSlots(two, 1), 1);
  ASSERT_EQ(grown.kind, OutcomeKind::kAllocated);
  EXPECT_EQ(*grown.placement, *engine_.Find(key));
  EXPECT_EQ(grown.placement->slots.size(), 3u);
  EXPECT_EQ(grown.placement->slots[2].slot, 2u);
  EXPECT_EQ(grown.placement->groups[0].slots, 3u);
  EXPECT_EQ(grown.placement->start_s + grown.placement->duration_s, 10);
  EXPECT_EQ(engine_.Usage()[0].held, 6000);
  // What it gave back before stays given back, and its number is not used again.
  EXPECT_THAT(engine_.ReleaseSlots(key, {0, 2}), ElementsAre(0, 2));
  ASSERT_EQ(grow(WithSlots(two, 3), 2).kind, OutcomeKind::kAllocated);
  const Placement placement = *engine_.Find(key);
  EXPECT_EQ(placement.slots.size(), 6u);
  EXPECT_TRUE(placement.slots[0].released && placement.slots[2].released);
  EXPECT_EQ(engine_.Usage()[0].free, 0);
  // Restored, it is the same.
  BookedEngine restored(MakeClusterGraph);
  for (const NodeSpec& node : engine_.Nodes()) ASSERT_TRUE(restored.AddNode(node).ok());
  ASSERT_TRUE(restored.Restore(key, placement).ok());
  EXPECT_EQ(restored.Fingerprint(), engine_.Fingerprint());
  // A time that is over is not stretched.
  ASSERT_THAT(engine_.ReleaseSlots(key, {3}), ElementsAre(3));
  EXPECT_EQ(grow(WithSlots(two, 1), 10).kind, OutcomeKind::kBusy);
  EXPECT_TRUE(engine_.Release(key));
  EXPECT_EQ(engine_.Usage()[0].free, 8000);
}

TEST_F(NativeEngineTest, GrowthTakesNothingOfWhatIsReserved) {
  AddNodes(1);
  const Jobspec one = Spec(1, {{"cpu", 1000}});
  const AllocationKey key{"j", 1, 0};
  engine_.Match({.key = key, .jobspec = one, .now_s = 0, .duration_s = 20});
  engine_.Match({.key = {"short", 1, 0}, .jobspec = one, .now_s = 0, .duration_s = 5});
  const Jobspec three = Spec(3, {{"cpu", 1000}});
  const Outcome reserved = engine_.Match({.operation = Operation::kAllocateOrReserve,
                                          .key = {"next", 1, 0},
                                          .jobspec = three,
                                          .now_s = 1,
                                          .duration_s = 10});
  ASSERT_EQ(reserved.kind, OutcomeKind::kReserved);
  EXPECT_EQ(reserved.at_s, 5);
  // Two cores are free until then, and it would hold one until 20.
  EXPECT_EQ(engine_.Grow({.key = key, .jobspec = one, .now_s = 1}).kind, OutcomeKind::kBusy);
  engine_.DropReservations();
  EXPECT_EQ(engine_.Grow({.key = key, .jobspec = one, .now_s = 1}).kind, OutcomeKind::kAllocated);
}

TEST_F(NativeEngineTest, GrowthIsTakenBack) {
  AddNodes(2);
  const Jobspec gpu = Spec(1, {{"cpu", 1000}, {"memory", 1}});
  const AllocationKey key{"j", 1, 0};
  engine_.Match({.key = key, .jobspec = gpu, .now_s = 0, .duration_s = 10});
  const uint64_t before = engine_.Fingerprint();
  engine_.Checkpoint();
  ASSERT_EQ(engine_.Grow({.key = key, .jobspec = WithSlots(gpu, 4), .now_s = 3}).kind,
            OutcomeKind::kAllocated);
  engine_.ReleaseSlots(key, {1, 3});
  ASSERT_TRUE(engine_.RemoveNode("n0").ok());
  ASSERT_EQ(engine_.Grow({.key = key, .jobspec = gpu, .now_s = 4}).kind, OutcomeKind::kAllocated);
  engine_.Rollback();
  EXPECT_EQ(engine_.Fingerprint(), before);
  EXPECT_EQ(engine_.Find(key)->slots.size(), 1u);
  EXPECT_EQ(Place(Spec(7, {{"cpu", 1000}})).size(), 7u);
}

}  // namespace
}  // namespace fluxqueue::graph
