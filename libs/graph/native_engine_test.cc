#include "libs/graph/native_engine.h"

#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "libs/base/status_macros.h"
#include "libs/graph/explanation.h"

namespace fluxqueue::graph {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

Jobspec Spec(uint32_t slots, Amounts request, const std::string& constraints = "{}") {
  std::string with;
  for (const Amount& amount : request) {
    with += (with.empty() ? "" : ",") + std::string(R"({"type":")") + amount.resource +
            R"(","count":)" + std::to_string(amount.amount) + "}";
  }
  const auto spec = ParseJobspec(
      R"({"version":1,"resources":[{"type":"slot","label":"s","count":)" + std::to_string(slots) +
      R"(,"with":[)" + with +
      R"(]}],"tasks":[{"command":["x"],"slot":"s","count":{"per_slot":1}}],"attributes":{"system":{"constraints":)" +
      constraints + "}}}");
  EXPECT_TRUE(spec.ok()) << spec.status();
  return *spec;
}

class NativeEngineTest : public ::testing::Test {
 protected:
  NodeSpec Node(const std::string& name, Amounts resources) {
    NodeSpec node;
    node.name = name;
    node.uid = name + "-uid";
    node.ordinal = ordinal_++;
    node.resources = std::move(resources);
    return node;
  }

  // n0, n1 …, each with 4 cores and 8 memory.
  void AddNodes(int count) {
    for (int i = 0; i < count; ++i) {
      Add(Node("n" + std::to_string(i), {{"cpu", 4000}, {"memory", 8}}));
    }
  }

  void Add(NodeSpec node) { ASSERT_TRUE(engine_.AddNode(std::move(node)).ok()); }

  // The nodes of the slots; empty when it does not fit.
  std::vector<std::string> Place(const Jobspec& spec) {
    const Outcome outcome =
        engine_.Match({.key = {"j" + std::to_string(job_++), 1, 0}, .jobspec = spec});
    kind_ = outcome.kind;
    std::vector<std::string> nodes;
    if (outcome.placement == nullptr) return nodes;
    for (const PlacedSlot& slot : outcome.placement->slots) nodes.push_back(slot.node);
    return nodes;
  }

  std::string Why(const Jobspec& spec) { return engine_.Explain(spec).sentence; }

  NativeEngine engine_;
  OutcomeKind kind_ = OutcomeKind::kBusy;
  uint64_t ordinal_ = 0;
  int job_ = 0;
};

TEST_F(NativeEngineTest, FirstSpreads) {
  AddNodes(3);
  const Jobspec one = Spec(1, {{"cpu", 1000}});
  const Jobspec two = Spec(1, {{"cpu", 2000}});
  // Untouched nodes first, the last ordinal before the others; then the most free cpu.
  EXPECT_THAT(Place(one), ElementsAre("n2"));
  EXPECT_THAT(Place(two), ElementsAre("n1"));
  EXPECT_THAT(Place(one), ElementsAre("n0"));
  EXPECT_THAT(Place(one), ElementsAre("n2"));  // 3000 free, as n0: the last ordinal
  EXPECT_THAT(Place(one), ElementsAre("n0"));
  EXPECT_THAT(Place(one), ElementsAre("n2"));  // all have 2000 free
  EXPECT_THAT(Place(two), ElementsAre("n1"));
}

TEST_F(NativeEngineTest, FirstFillsANodeBeforeTheNext) {
  AddNodes(3);
  EXPECT_THAT(Place(Spec(6, {{"cpu", 1000}})), ElementsAre("n2", "n2", "n2", "n2", "n1", "n1"));
  EXPECT_THAT(Place(Spec(6, {{"cpu", 1000}})), ElementsAre("n0", "n0", "n0", "n0", "n1", "n1"));
  EXPECT_THAT(Place(Spec(1, {{"cpu", 1000}})), IsEmpty());
  EXPECT_EQ(kind_, OutcomeKind::kBusy);
}

TEST_F(NativeEngineTest, LonodeAndHinode) {
  AddNodes(3);
  ASSERT_TRUE(engine_.SetPolicy("lonode").ok());
  EXPECT_THAT(Place(Spec(1, {{"cpu", 3000}})), ElementsAre("n0"));
  EXPECT_THAT(Place(Spec(2, {{"cpu", 1000}})), ElementsAre("n0", "n1"));
  ASSERT_TRUE(engine_.SetPolicy("hinode").ok());
  EXPECT_THAT(Place(Spec(1, {{"cpu", 3000}})), ElementsAre("n2"));
  EXPECT_THAT(Place(Spec(2, {{"cpu", 1000}})), ElementsAre("n2", "n1"));
  EXPECT_THAT(Message(engine_.SetPolicy("best")), HasSubstr("knows first, lonode, hinode"));
}

TEST_F(NativeEngineTest, AllOrNothing) {
  AddNodes(2);
  const uint64_t before = engine_.Fingerprint();
  EXPECT_THAT(Place(Spec(9, {{"cpu", 1000}})), IsEmpty());
  EXPECT_EQ(kind_, OutcomeKind::kUnsatisfiable);
  EXPECT_EQ(engine_.Fingerprint(), before);
  EXPECT_EQ(Place(Spec(8, {{"cpu", 1000}})).size(), 8u);
}

TEST_F(NativeEngineTest, Operations) {
  AddNodes(1);
  const Jobspec whole = Spec(1, {{"cpu", 4000}});
  const Jobspec large = Spec(1, {{"cpu", 4001}});
  const auto match = [this](Operation operation, const char* job, const Jobspec& spec) {
    return engine_.Match({.operation = operation, .key = {job, 1, 0}, .jobspec = spec}).kind;
  };
  EXPECT_EQ(match(Operation::kSatisfiability, "a", whole), OutcomeKind::kAllocated);
  EXPECT_EQ(engine_.allocations(), 0u);
  EXPECT_EQ(match(Operation::kAllocate, "a", whole), OutcomeKind::kAllocated);
  EXPECT_EQ(match(Operation::kAllocate, "b", large), OutcomeKind::kBusy);
  EXPECT_EQ(match(Operation::kAllocateWithSatisfiability, "b", large), OutcomeKind::kUnsatisfiable);
  EXPECT_EQ(match(Operation::kAllocateWithSatisfiability, "b", whole), OutcomeKind::kBusy);
  EXPECT_EQ(match(Operation::kSatisfiability, "b", whole), OutcomeKind::kAllocated);
  EXPECT_EQ(engine_.allocations(), 1u);
}

TEST_F(NativeEngineTest, NodesDownAreCapacityButNotRoom) {
  AddNodes(1);
  NodeSpec node = Node("n0", {{"cpu", 4000}, {"memory", 8}});
  node.ordinal = 0;
  node.uid = "n0-uid";
  node.schedulable = false;
  EXPECT_FALSE(engine_.UpdateNode(node)->grew);
  EXPECT_EQ(engine_.nodes_up(), 0u);
  const Jobspec one = Spec(1, {{"cpu", 1000}});
  EXPECT_THAT(Place(one), IsEmpty());
  EXPECT_EQ(kind_, OutcomeKind::kBusy);
  EXPECT_EQ(Why(one), "no node that the job may use is up: 0 of 1");
  node.schedulable = true;
  EXPECT_TRUE(engine_.UpdateNode(node)->grew);
  EXPECT_THAT(Place(one), ElementsAre("n0"));
}

TEST_F(NativeEngineTest, OvercommittedNodeGivesNothingUntilEnoughIsBack) {
  AddNodes(1);
  const Jobspec one = Spec(1, {{"cpu", 1000}});
  for (int i = 0; i < 4; ++i) ASSERT_THAT(Place(one), ElementsAre("n0"));
  NodeSpec node = Node("n0", {{"cpu", 2000}});
  node.ordinal = 0;
  EXPECT_FALSE(engine_.UpdateNode(node)->grew);
  EXPECT_EQ(engine_.Usage()[0].free, 0);
  for (const char* job : {"j0", "j1"}) {
    ASSERT_TRUE(engine_.Release({job, 1, 0}));
    EXPECT_THAT(Place(one), IsEmpty());
  }
  ASSERT_TRUE(engine_.Release({"j2", 1, 0}));
  EXPECT_THAT(Place(one), ElementsAre("n0"));
}

TEST_F(NativeEngineTest, ForeignUse) {
  AddNodes(1);
  NodeSpec node = Node("n0", {{"cpu", 4000}, {"memory", 8}});
  node.ordinal = 0;
  node.foreign = {{"cpu", 3500}};
  EXPECT_FALSE(engine_.UpdateNode(node)->grew);
  const Jobspec one = Spec(1, {{"cpu", 1000}});
  EXPECT_THAT(Place(one), IsEmpty());
  EXPECT_EQ(kind_, OutcomeKind::kBusy);
  node.foreign = {{"cpu", 9000}};
  EXPECT_FALSE(engine_.UpdateNode(node)->grew);
  EXPECT_EQ(engine_.Usage()[0].free, 0);
  node.foreign = {};
  EXPECT_TRUE(engine_.UpdateNode(node)->grew);
  EXPECT_THAT(Place(one), ElementsAre("n0"));
}

TEST_F(NativeEngineTest, RemovedNodeBreaksWhatHeldIt) {
  AddNodes(2);
  ASSERT_THAT(Place(Spec(5, {{"cpu", 1000}})), ElementsAre("n1", "n1", "n1", "n1", "n0"));
  EXPECT_THAT(*engine_.RemoveNode("n1"), ElementsAre(AllocationKey{"j0", 1, 0}));
  EXPECT_TRUE(engine_.Find({"j0", 1, 0})->slots[0].released);
  EXPECT_FALSE(engine_.Find({"j0", 1, 0})->slots[4].released);
  // A new one under its name is empty.
  Add(Node("n1", {{"cpu", 4000}}));
  EXPECT_EQ(engine_.UsageByNode()[1].slots, 0u);
  ASSERT_TRUE(engine_.Release({"j0", 1, 0}));
  EXPECT_EQ(engine_.Usage()[0].free, 8000);
}

TEST_F(NativeEngineTest, Reasons) {
  for (int i = 0; i < 3; ++i) {
    NodeSpec node = Node("gpu" + std::to_string(i), {{"cpu", 8000}, {"nvidia.com/gpu", 4}});
    node.labels = {{"disk", i == 0 ? "ssd" : "hdd"}};
    Add(node);
  }
  NodeSpec control = Node("control", {{"cpu", 64000}, {"memory", int64_t{64} << 30}});
  control.taints = {{"control-plane", "", "NoSchedule"}};
  Add(control);

  EXPECT_EQ(Why(Spec(1, {{"nvidia.com/gpu", 8}})),
            "nvidia.com/gpu: a slot needs 8, the largest node that the job may use has 4");
  EXPECT_EQ(Why(Spec(1, {{"memory", 3 << 29}})),
            "memory: a slot needs 1.5Gi, no node that the job may use has any");
  EXPECT_EQ(Why(Spec(1, {{"tpu", 1}}, R"({"tolerations":["*"]})")),
            "tpu: a slot needs 1, no node has any");
  EXPECT_EQ(Why(Spec(1, {{"cpu", 9000}, {"nvidia.com/gpu", 1}}, R"({"tolerations":["*"]})")),
            "no node is large enough in everything: cpu 9 on 1 node, nvidia.com/gpu 1 on 3 nodes");
  EXPECT_EQ(Why(Spec(1, {{"cpu", 1}}, R"({"properties":["disk=ssd","zone=a"]})")),
            "constraints: none of the 4 nodes meets them all; disk=ssd: 1 node; zone=a: 0 nodes; "
            "taints tolerated: 3 nodes (a taint that is not: control-plane:NoSchedule)");
  EXPECT_EQ(Why(Spec(16, {{"nvidia.com/gpu", 1}})),
            "nvidia.com/gpu: 12 of 16 slots would fit if all 3 nodes that the job may use were up "
            "and empty; a slot needs 1, the largest node has 4");
  const Jobspec half = Spec(6, {{"cpu", 4000}, {"nvidia.com/gpu", 1}});
  ASSERT_EQ(Place(Spec(3, {{"cpu", 4500}})).size(), 3u);
  EXPECT_EQ(Why(half),
            "cpu: 0 of 6 slots fit now; a slot needs 4, the best node has 3.5 free; of 4 nodes 3 "
            "may be used, 3 are up, 0 have room for a slot");
  ASSERT_TRUE(engine_.Release({"j0", 1, 0}));
  ASSERT_EQ(Place(Spec(1, {{"cpu", 4500}})).size(), 1u);
  EXPECT_EQ(Why(half),
            "cpu: 4 of 6 slots fit now; a slot needs 4, the best node has 8 free; of 4 nodes 3 may "
            "be used, 3 are up, 2 have room for a slot");
  const Explanation why = engine_.Explain(half);
  EXPECT_EQ(why.resource, "cpu");
  EXPECT_EQ(why.slots_now, 4u);
  EXPECT_EQ(why.slots_ever, 6u);
  EXPECT_EQ(NativeEngine().Explain(half).sentence, "the pool has no nodes");
}

TEST_F(NativeEngineTest, ConditionTaintsAreBusyNotUnsatisfiable) {
  NodeSpec node = Node("n0", {{"cpu", 4000}});
  node.taints = {{"node.kubernetes.io/unschedulable", "", "NoSchedule"}};
  Add(node);
  EXPECT_THAT(Place(Spec(1, {{"cpu", 1}})), IsEmpty());
  EXPECT_EQ(kind_, OutcomeKind::kBusy);
  node.taints = {{"mine", "", "NoSchedule"}};
  EXPECT_TRUE(engine_.UpdateNode(node)->grew);
  EXPECT_THAT(Place(Spec(1, {{"cpu", 1}})), IsEmpty());
  EXPECT_EQ(kind_, OutcomeKind::kUnsatisfiable);
}

TEST_F(NativeEngineTest, ConstraintsFollowRelabelling) {
  AddNodes(40);
  const Jobspec ssd = Spec(1, {{"cpu", 1000}}, R"({"properties":["disk=ssd"]})");
  EXPECT_THAT(Place(ssd), IsEmpty());
  NodeSpec node = Node("n7", {{"cpu", 4000}});
  node.ordinal = 7;
  node.labels = {{"disk", "ssd"}};
  EXPECT_TRUE(engine_.UpdateNode(node)->grew);
  EXPECT_THAT(Place(ssd), ElementsAre("n7"));
}

TEST_F(NativeEngineTest, RefusesWhatContradictsItself) {
  AddNodes(1);
  NodeSpec twin = Node("twin", {});
  twin.ordinal = 0;
  EXPECT_TRUE(absl::IsFailedPrecondition(engine_.AddNode(twin)));
  EXPECT_TRUE(absl::IsNotFound(engine_.UpdateNode(twin).status()));
  EXPECT_TRUE(absl::IsNotFound(engine_.RemoveNode("twin").status()));
  Placement placement{.slots = {{0, "gone", false}}, .requests = {{"cpu", 1}}};
  EXPECT_THAT(Message(engine_.Restore({"j", 1, 0}, placement)), HasSubstr("node gone"));
  placement.slots[0].released = true;
  EXPECT_TRUE(engine_.Restore({"j", 1, 0}, placement).ok());
  EXPECT_TRUE(absl::IsFailedPrecondition(engine_.Restore({"j", 1, 0}, placement)));
}

TEST(FormatAmount, ForPeople) {
  EXPECT_EQ(FormatAmount("cpu", 1500), "1.5");
  EXPECT_EQ(FormatAmount("cpu", 64000), "64");
  EXPECT_EQ(FormatAmount("cpu", 1), "0.001");
  EXPECT_EQ(FormatAmount("memory", int64_t{3} << 30), "3Gi");
  EXPECT_EQ(FormatAmount("memory", 1000), "1000");
  EXPECT_EQ(FormatAmount("memory", (int64_t{1} << 40) - 1), "1023.999Gi");
  EXPECT_EQ(FormatAmount("nvidia.com/gpu", 8), "8");
}

}  // namespace
}  // namespace fluxqueue::graph
