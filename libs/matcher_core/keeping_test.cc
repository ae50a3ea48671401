#include "libs/matcher_core/keeping.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "libs/base/status_macros.h"
#include "libs/matcher_core/test_messages.h"

namespace fluxqueue::matcher_core {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

class KeepingTest : public ::testing::Test {
 protected:
  void Node(const std::string& name, const std::string& rack = "", bool schedulable = true) {
    graph::NodeSpec node;
    node.name = name;
    node.uid = name;
    node.ordinal = ordinal_++;
    node.resources = {{"cpu", 4000}};
    if (!rack.empty()) node.labels = {{"rack", rack}};
    node.schedulable = schedulable;
    ASSERT_TRUE(engine_->AddNode(node).ok());
  }
  // 0: without an end.
  void Holds(const std::string& job, const std::string& node, int64_t cpu, int64_t duration_s) {
    const graph::Placement placement{.slots = {{0, node}},
                                     .groups = {{1, {{"cpu", cpu}}}},
                                     .start_s = 0,
                                     .duration_s = duration_s};
    ASSERT_TRUE(engine_->Restore({job, 1, 0}, placement).ok());
  }
  std::vector<std::string> Keep(const graph::Jobspec& jobspec) const {
    return NodesToKeep(*engine_, levels_, jobspec);
  }
  static graph::Jobspec Slots(uint32_t slots, int64_t cpu, const std::string& level = "") {
    absl::StatusOr<graph::Jobspec> parsed = graph::ParseJobspec(JobspecText(slots, cpu));
    EXPECT_TRUE(parsed.ok()) << Message(parsed.status());
    parsed->required_level = level;
    return *std::move(parsed);
  }

  std::unique_ptr<graph::Engine> engine_ = graph::MakeNativeEngine();
  const std::vector<graph::Level> levels_ = {{"rack", "rack"}};
  uint64_t ordinal_ = 0;
};

TEST_F(KeepingTest, TheSoonestAndNoMoreThanItNeeds) {
  for (const char* name : {"late", "soon", "endless", "free", "down"}) {
    Node(name, "", std::string_view(name) != "down");
  }
  Holds("l", "late", 4000, 500);
  Holds("s", "soon", 4000, 100);
  Holds("e", "endless", 4000, 0);
  EXPECT_THAT(Keep(Slots(1, 4000)), ElementsAre("free"));
  EXPECT_THAT(Keep(Slots(2, 4000)), ElementsAre("soon", "free"));
  EXPECT_THAT(Keep(Slots(3, 4000)), ElementsAre("late", "soon", "free"));
  // There are no more than those: what something without an end has is not kept.
  EXPECT_THAT(Keep(Slots(4, 4000)), ElementsAre("late", "soon", "free"));
}

TEST_F(KeepingTest, SeveralSlotsOfANode) {
  Node("a");
  Node("b");
  Holds("e", "a", 2000, 0);
  Holds("s", "a", 1000, 100);
  // a has room for two of them once s has ended, b for four now.
  EXPECT_THAT(Keep(Slots(4, 1000)), ElementsAre("a", "b"));
  EXPECT_THAT(Keep(Slots(6, 1000)), ElementsAre("a", "b"));
  EXPECT_THAT(Keep(Slots(1, 3000)), ElementsAre("b"));
}

TEST_F(KeepingTest, BelowOneRack) {
  Node("a", "r1");
  Node("b", "r1");
  Node("c", "r2");
  Node("d", "r2");
  Holds("e", "a", 4000, 0);
  Holds("s", "d", 4000, 100);
  EXPECT_THAT(Keep(Slots(2, 4000, "rack")), ElementsAre("c", "d"));
}

TEST_F(KeepingTest, NothingThatItCouldNotUse) {
  Node("a");
  Holds("e", "a", 2000, 0);
  EXPECT_THAT(Keep(Slots(1, 3000)), IsEmpty());
  EXPECT_THAT(Keep(Slots(1, 5000)), IsEmpty());
}

}  // namespace
}  // namespace fluxqueue::matcher_core
