#include "libs/matcher_core/bound_ends.h"

#include <memory>
#include <string>

#include <gtest/gtest.h>

namespace fluxqueue::matcher_core {
namespace {

using graph::AllocationKey;
using graph::Placement;

class BoundEndsTest : public ::testing::Test {
 protected:
  void SetUp() override {
    for (const char* name : {"a", "b"}) {
      graph::NodeSpec node;
      node.name = name;
      node.uid = name;
      node.ordinal = ordinal_++;
      node.resources = {{"cpu", 4000}};
      ASSERT_TRUE(engine_->AddNode(node).ok());
    }
  }

  static Placement On(const std::string& node, int64_t start_s, int64_t duration_s) {
    return {.slots = {{0, node}},
            .groups = {{1, {{"cpu", 1000}}}},
            .start_s = start_s,
            .duration_s = duration_s,
            .corrected = true};
  }
  void Holds(const std::string& job, const Placement& placement) {
    ASSERT_TRUE(engine_->Restore({job, 1, 0}, placement).ok());
  }
  // Of a promise of node a.
  bool IsFirm(int64_t now_s = 10, int64_t at_s = 100) {
    const AllocationKey key{"promised", 1, 0};
    reservations_[key] = On("a", at_s, 60);
    return BoundEnds(*engine_, reservations_, now_s).IsFirm(reservations_.at(key));
  }

  std::unique_ptr<graph::Engine> engine_ = graph::MakeNativeEngine();
  std::map<AllocationKey, Placement> reservations_;
  uint64_t ordinal_ = 0;
};

TEST_F(BoundEndsTest, RestsOnWhatEndsBeforeItOnItsNodes) {
  EXPECT_TRUE(IsFirm());
  Holds("elsewhere", On("b", 0, 50));
  Holds("endless", On("a", 0, 0));
  Holds("later", On("a", 0, 101));
  EXPECT_TRUE(IsFirm());
  Holds("before", On("a", 0, 100));
  EXPECT_FALSE(IsFirm());
}

TEST_F(BoundEndsTest, WhatIsEndedInTimeCounts) {
  Placement bound = On("a", 0, 100);
  bound.enforced = true;
  Holds("bound", bound);
  EXPECT_TRUE(IsFirm());
  // Once it has outlived its bound its end is not known.
  EXPECT_FALSE(IsFirm(/*now_s=*/100, /*at_s=*/110));
}

TEST_F(BoundEndsTest, APredictionIsNoBound) {
  Placement expected = On("a", 0, 80);
  expected.enforced = true;
  expected.bound_s = 101;
  Holds("expected", expected);
  EXPECT_FALSE(IsFirm());
}

TEST_F(BoundEndsTest, APredictionWhoseBoundIsOverInTimeIsNoHarm) {
  Placement expected = On("a", 0, 80);
  expected.enforced = true;
  expected.bound_s = 100;
  Holds("expected", expected);
  EXPECT_TRUE(IsFirm());
}

TEST_F(BoundEndsTest, WhatIsPromisedBeforeItCounts) {
  reservations_[{"first", 1, 0}] = On("a", 50, 50);
  EXPECT_FALSE(IsFirm());
  reservations_[{"first", 1, 0}].enforced = true;
  EXPECT_TRUE(IsFirm());
}

}  // namespace
}  // namespace fluxqueue::matcher_core
