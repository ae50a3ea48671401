// Nodes that are closed for a time.
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "libs/graph/engine_fixture.h"

namespace fluxqueue::graph {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

// n0 and n1, of which one or both are closed in [100, 200).
class ClosuresTest : public NativeEngineTest {
 protected:
  void SetUp() override { AddNodes(2); }

  void Close(Constraint nodes) { engine_.SetClosures({{std::move(nodes), 100, 200}}); }

  // When it begins, and where it is if that is now.
  struct Begin {
    int64_t at_s = 0;
    std::vector<std::string> nodes;
    friend bool operator==(const Begin&, const Begin&) = default;
  };
  Begin Try(const Jobspec& spec, int64_t now_s, int64_t duration_s) {
    const Outcome outcome = engine_.Match({.operation = Operation::kAllocateOrReserve,
                                           .key = {"j" + std::to_string(job_++), 1, 0},
                                           .jobspec = spec,
                                           .now_s = now_s,
                                           .duration_s = duration_s});
    kind_ = outcome.kind;
    if (outcome.kind == OutcomeKind::kReserved) return {outcome.at_s, {}};
    Begin begin{now_s, {}};
    if (outcome.placement == nullptr) return begin;
    for (const PlacedSlot& slot : outcome.placement->slots) begin.nodes.push_back(slot.node);
    return begin;
  }
  Begin TryAnew(const Jobspec& spec, int64_t now_s, int64_t duration_s) {
    Begin begin = Try(spec, now_s, duration_s);
    engine_.DropReservations();
    engine_.Release({"j" + std::to_string(job_ - 1), 1, 0});
    return begin;
  }
};

TEST_F(ClosuresTest, NothingIsHeldInTheirTime) {
  const Jobspec one = Spec(1, {{"cpu", 1000}});
  const Jobspec both = Spec(2, {{"cpu", 4000}});
  struct Case {
    Constraint closed;
    const Jobspec& spec;
    int64_t now_s;
    int64_t duration_s;
    Begin want;
  };
  const Case cases[] = {
      {Constraint::And({}), one, 0, 100, {0, {"n1"}}},    // through when it begins
      {Constraint::And({}), one, 0, 101, {200, {}}},      // would overlap it
      {Constraint::And({}), one, 0, 0, {200, {}}},        // has no end
      {Constraint::And({}), one, 150, 1, {200, {}}},      // within it
      {Constraint::And({}), one, 199, 1, {200, {}}},      // its last second
      {Constraint::And({}), one, 200, 0, {200, {"n1"}}},  // it is over
      {Constraint::IsHost("n1"), one, 0, 0, {0, {"n0"}}},
      {Constraint::IsHost("n1"), both, 0, 50, {0, {"n1", "n0"}}},
      {Constraint::IsHost("n1"), both, 0, 150, {200, {}}},
      {Constraint::IsHost("gone"), both, 0, 150, {0, {"n1", "n0"}}},
      {Constraint::HasLabel("disk", "ssd"), both, 0, 150, {0, {"n1", "n0"}}},
  };
  for (const Case& test : cases) {
    Close(test.closed);
    EXPECT_EQ(TryAnew(test.spec, test.now_s, test.duration_s), test.want)
        << test.closed.ToString() << " at " << test.now_s << " for " << test.duration_s;
  }
}

TEST_F(ClosuresTest, WhatIsHeldStaysAndCountsAfterwards) {
  const Jobspec one = Spec(1, {{"cpu", 3000}});
  // Two that run into it, without an end and until 250.
  ASSERT_EQ(Try(one, 0, 0).nodes, std::vector<std::string>{"n1"});
  ASSERT_EQ(Try(one, 0, 250).nodes, std::vector<std::string>{"n0"});
  Close(Constraint::And({}));
  EXPECT_EQ(engine_.Usage()[0].free, 2000);
  EXPECT_EQ(TryAnew(one, 10, 10), (Begin{250, {}}));
  EXPECT_EQ(TryAnew(Spec(1, {{"cpu", 1000}}), 10, 90).at_s, 10);
  ASSERT_TRUE(engine_.Release({"j1", 1, 0}));
  EXPECT_EQ(TryAnew(one, 150, 10), (Begin{200, {}}));
  engine_.SetClosures({});
  EXPECT_EQ(TryAnew(one, 150, 0).at_s, 150);
}

TEST_F(ClosuresTest, SeveralThatMeetCloseOnce) {
  const Jobspec one = Spec(1, {{"cpu", 1000}});
  const Constraint n1 = Constraint::IsHost("n1");
  engine_.SetClosures({{n1, 0, 120}, {n1, 100, 200}, {n1, 50, 150}, {n1, 300, 400}});
  EXPECT_EQ(TryAnew(one, 10, 0).nodes, std::vector<std::string>{"n0"});
  Jobspec there = Spec(1, {{"cpu", 1000}}, R"({"hostlist":["n1"]})");
  EXPECT_EQ(TryAnew(there, 10, 100).at_s, 200);
  EXPECT_EQ(TryAnew(there, 10, 101).at_s, 400);
  // One of them is taken back.
  engine_.SetClosures({{n1, 0, 120}, {n1, 50, 150}});
  EXPECT_EQ(TryAnew(there, 10, 101).at_s, 150);
}

Jobspec WholeNodes(int nodes) {
  const auto spec = ParseJobspec(
      R"({"version":1,"resources":[{"type":"node","count":)" + std::to_string(nodes) +
      R"(,"with":[{"type":"slot","count":1,"label":"s","with":[{"type":"cpu","count":1000}]}]}],)"
      R"("tasks":[{"command":["x"],"slot":"s","count":{"per_slot":1}}]})");
  EXPECT_TRUE(spec.ok()) << spec.status();
  return *spec;
}

// Found by EqualsTheModel of fluxion_test. Once a node has nothing (yet), nodes are summed up.
TEST_F(ClosuresTest, WhatIsClosedTwiceIsNotMissingTwice) {
  Add(Node("n2", {{"cpu", 4000}}));
  Add(Node("bare", {}));
  const Jobspec whole = WholeNodes(2);
  ASSERT_EQ(Try(Spec(1, {{"cpu", 4000}}, R"({"hostlist":["n0"]})"), 10, 20).at_s, 10);
  const Constraint n1 = Constraint::IsHost("n1");
  std::vector<Closure> closures = {{n1, 0, 120}, {n1, 0, 150}, {n1, 0, 200}};
  engine_.SetClosures(closures);
  EXPECT_EQ(TryAnew(whole, 10, 50).at_s, 30);
  for (Closure& closure : closures) closure.counts_as_taken = true;
  engine_.SetClosures(closures);
  EXPECT_EQ(TryAnew(whole, 10, 50).at_s, 120) << "as it was";
}

TEST_F(ClosuresTest, FollowNodesAndLeaveCouldEverAlone) {
  Close(Constraint::HasLabel("disk", "ssd"));
  const Jobspec three = Spec(3, {{"cpu", 4000}});
  NodeSpec ssd = Node("n2", {{"cpu", 4000}});
  ssd.labels = {{"disk", "ssd"}};
  Add(ssd);
  EXPECT_EQ(TryAnew(three, 10, 0).at_s, 200);
  ssd.labels = {};
  ASSERT_TRUE(engine_.UpdateNode(ssd).ok());
  EXPECT_EQ(TryAnew(three, 10, 0).at_s, 10);
  ssd.labels = {{"disk", "ssd"}, {"zone", "a"}};
  ASSERT_TRUE(engine_.UpdateNode(ssd).ok());
  ASSERT_TRUE(engine_.SetLevels({"zone"}).ok());
  EXPECT_EQ(TryAnew(three, 10, 0).at_s, 200);
  const auto ask = [&](const Jobspec& spec) {
    return engine_
        .Match({.operation = Operation::kSatisfiability, .key = {"x", 1, 0}, .jobspec = spec})
        .kind;
  };
  EXPECT_EQ(ask(three), OutcomeKind::kAllocated);
  EXPECT_EQ(ask(Spec(4, {{"cpu", 4000}})), OutcomeKind::kUnsatisfiable);
  ASSERT_TRUE(engine_.RemoveNode("n2").ok());
  EXPECT_EQ(TryAnew(Spec(2, {{"cpu", 4000}}), 10, 0).at_s, 10);
}

}  // namespace
}  // namespace fluxqueue::graph
