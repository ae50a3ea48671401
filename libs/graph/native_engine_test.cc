#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "libs/base/status_macros.h"
#include "libs/graph/engine_fixture.h"
#include "libs/graph/explanation.h"

namespace fluxqueue::graph {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

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
  EXPECT_THAT(Message(engine_.SetPolicy("best")), HasSubstr("knows first, lonode, hinode, packed"));
}

TEST_F(NativeEngineTest, GpusInParts) {
  const std::string gpus(kGpuMilli);
  ASSERT_TRUE(engine_.SetPolicy("lonode").ok());
  for (const char* name : {"n0", "n1"}) Add(Node(name, {{"cpu", 64000}, {gpus, 2000}}));
  const auto place = [this, &gpus](uint32_t slots, int64_t milli) {
    std::vector<std::string> where;
    const AllocationKey key{"g" + std::to_string(job_++), 1, 0};
    const Outcome outcome = engine_.Match({.key = key, .jobspec = Spec(slots, {{gpus, milli}})});
    if (outcome.placement == nullptr) return where;
    for (const PlacedSlot& slot : outcome.placement->slots) {
      where.push_back(fmt::format("{}:{}", slot.node, fmt::join(slot.devices, "+")));
    }
    return where;
  };
  EXPECT_THAT(place(2, 600), ElementsAre("n0:0", "n0:1"));
  // 800 are free there, but not of one device.
  EXPECT_THAT(place(1, 600), ElementsAre("n1:0"));
  EXPECT_THAT(place(3, 400), ElementsAre("n0:0", "n0:1", "n1:0"));
  EXPECT_THAT(place(1, 2000), IsEmpty());
  EXPECT_EQ(
      Why(Spec(1, {{gpus, 2000}})),
      "fluxqueue.io/gpu-milli: 0 of 1 slots fit now; a slot needs 2000, the best node has 1000 "
      "free; of 2 nodes 2 may be used, 2 are up, 0 have room for a slot");
  EXPECT_THAT(place(1, 1000), ElementsAre("n1:1"));
  EXPECT_THAT(Why(Spec(1, {{gpus, 100}})), HasSubstr("needs 100, the best node has 0 free"));
  EXPECT_EQ(Why(Spec(1, {{gpus, 3000}})),
            "fluxqueue.io/gpu-milli: a slot needs 3000, the largest node has 2000");
  ASSERT_TRUE(engine_.Release({"g4", 1, 0}));
  // What others use is of the first devices: it is not known which.
  NodeSpec shared = Node("n2", {{"cpu", 64000}, {gpus, 2000}});
  shared.foreign = {{gpus, 1300}};
  Add(shared);
  EXPECT_THAT(place(2, 600), ElementsAre("n1:1", "n2:1"));
  EXPECT_THAT(place(1, 1100), IsEmpty());
  Add(Node("n3", {{"cpu", 64000}, {gpus, 4500}}));
  EXPECT_THAT(place(2, 1100), ElementsAre("n3:0+1", "n3:2+3"));
}

TEST_F(NativeEngineTest, PackedKeepsWholeNodesForThoseWhoNeedThem) {
  ASSERT_TRUE(engine_.SetPolicy("packed").ok());
  for (const char* name : {"n0", "n1", "n2"}) {
    Add(Node(name, {{"cpu", 32000}, {"nvidia.com/gpu", 4}}));
  }
  Add(Node("n3", {{"cpu", 32000}}));
  const auto gpus = [](int64_t count) {
    return Spec(1, {{"cpu", 1000}, {"nvidia.com/gpu", count}});
  };
  engine_.Expect(gpus(4), 10);
  engine_.Expect(gpus(1), 10);
  EXPECT_THAT(Place(gpus(1)), ElementsAre("n0"));
  EXPECT_THAT(Place(gpus(2)), ElementsAre("n0"));
  EXPECT_THAT(Place(gpus(2)), ElementsAre("n1"));
  EXPECT_THAT(Place(gpus(1)), ElementsAre("n0"));
  EXPECT_THAT(Place(gpus(4)), ElementsAre("n2"));
  // Nobody wants n0 for its GPUs any more.
  EXPECT_THAT(Place(Spec(1, {{"cpu", 20000}})), ElementsAre("n0"));
  EXPECT_THAT(Place(Spec(1, {{"cpu", 20000}})), ElementsAre("n2"));
  EXPECT_THAT(Place(Spec(1, {{"cpu", 20000}})), ElementsAre("n3"));
}

TEST_F(NativeEngineTest, OthersHaveTheGpusThatWeLeaveThem) {
  const std::string gpus(kGpuMilli);
  ASSERT_TRUE(engine_.SetPolicy("lonode").ok());
  NodeSpec node = Node("n0", {{gpus, 4000}});
  Add(node);
  EXPECT_THAT(Place(Spec(1, {{gpus, 1000}})), ElementsAre("n0"));  // device 0
  node.foreign = {{gpus, 1000}};
  ASSERT_TRUE(engine_.UpdateNode(node).ok());
  EXPECT_THAT(Place(Spec(1, {{gpus, 3000}})), IsEmpty());
  EXPECT_THAT(Place(Spec(1, {{gpus, 2000}})), ElementsAre("n0"));
  // Device 0 is theirs once we have given it back, and device 1 is free.
  ASSERT_TRUE(engine_.Release({"j0", 1, 0}));
  EXPECT_THAT(engine_.Match({.key = {"x", 1, 0}, .jobspec = Spec(1, {{gpus, 1000}})})
                  .placement->slots[0]
                  .devices,
              ElementsAre(1));
}

TEST_F(NativeEngineTest, DevicesComeAndGoBelowWhatIsHeld) {
  const std::string gpus(kGpuMilli);
  NodeSpec node = Node("n0", {{"cpu", 4000}, {gpus, 2000}});
  Add(node);
  const Jobspec half = Spec(1, {{"cpu", 1000}, {gpus, 500}});
  EXPECT_THAT(Place(half), ElementsAre("n0"));  // of device 1
  const uint64_t before = engine_.Fingerprint();
  engine_.Checkpoint();
  node.resources = {{"cpu", 4000}, {gpus, 0}};
  ASSERT_TRUE(engine_.UpdateNode(node).ok());
  EXPECT_THAT(Place(half), IsEmpty());
  EXPECT_THAT(Place(Spec(1, {{"cpu", 3000}})), ElementsAre("n0"));
  EXPECT_THAT(Place(Spec(1, {{"cpu", 1}})), IsEmpty());
  engine_.Rollback();
  EXPECT_EQ(engine_.Fingerprint(), before);
  EXPECT_THAT(Place(Spec(1, {{gpus, 1000}})), ElementsAre("n0"));
  EXPECT_THAT(Place(Spec(2, {{gpus, 500}})), IsEmpty());
  EXPECT_THAT(Place(Spec(1, {{gpus, 500}})), ElementsAre("n0"));
}

TEST_F(NativeEngineTest, WhateverANodeSaysItHas) {
  const std::string gpus(kGpuMilli);
  Add(Node("n0", {{gpus, int64_t{1} << 60}, {gpus + "0", 5}}));
  EXPECT_THAT(Place(Spec(1024, {{gpus, 1000}})).size(), 1024u);
  EXPECT_THAT(Place(Spec(1, {{gpus, 1}})), IsEmpty());
  EXPECT_THAT(Place(Spec(1, {{gpus + "0", 5}})), ElementsAre("n0"));
}

TEST_F(NativeEngineTest, PackedKnowsNothingOfNodesThatHaveGone) {
  BookedEngine other{MakeClusterGraph};
  for (BookedEngine* engine : {&engine_, &other}) {
    ASSERT_TRUE(engine->SetPolicy("packed").ok());
    if (engine == &other) {
      NodeSpec gone = Node("gone", {{std::string(kGpuMilli), 1000}});
      gone.ordinal = 99;
      ASSERT_TRUE(engine->AddNode(gone).ok());
      engine->Match({.key = {"x", 1, 0}, .jobspec = Spec(1, {{"cpu", 1}})});
      ASSERT_TRUE(engine->RemoveNode("gone").ok());
    }
    ordinal_ = 0;
    ASSERT_TRUE(engine->AddNode(Node("a", {{"cpu", 32000}, {"nvidia.com/gpu", 4}})).ok());
    ASSERT_TRUE(engine->AddNode(Node("b", {{"cpu", 64000}, {"nvidia.com/gpu", 4}})).ok());
    engine->Expect(Spec(1, {{"cpu", 8000}, {"example.com/none", 1}, {"nvidia.com/gpu", 1}}), 100);
    EXPECT_EQ(engine->Match({.key = {"y", 1, 0}, .jobspec = Spec(1, {{"cpu", 1000}})})
                  .placement->slots[0]
                  .node,
              "a");
  }
}

TEST_F(NativeEngineTest, DevicesAreRestored) {
  const std::string gpus(kGpuMilli);
  Add(Node("n0", {{gpus, 3000}}));
  const Jobspec half = Spec(1, {{gpus, 500}});
  Placement placement = *engine_.Match({.key = {"a", 1, 0}, .jobspec = half}).placement;
  EXPECT_THAT(placement.slots[0].devices, ElementsAre(2));
  ASSERT_TRUE(engine_.Release({"a", 1, 0}));
  placement.slots[0].devices = {1};
  ASSERT_TRUE(engine_.Restore({"a", 1, 0}, placement).ok());
  EXPECT_THAT(engine_.Match({.key = {"b", 1, 0}, .jobspec = Spec(1, {{gpus, 2000}})})
                  .placement->slots[0]
                  .devices,
              ElementsAre(0, 2));
  EXPECT_THAT(engine_.Match({.key = {"c", 1, 0}, .jobspec = half}).placement->slots[0].devices,
              ElementsAre(1));
  placement.slots[0].devices = {};
  EXPECT_THAT(Message(engine_.Restore({"d", 1, 0}, placement)),
              HasSubstr("slot 0 has 0 devices, and asks for 1"));
  placement.slots[0].devices = {UINT32_MAX};
  EXPECT_THAT(Message(engine_.Restore({"d", 1, 0}, placement)),
              HasSubstr("has the devices 4294967295: each once, below 1024"));
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

TEST_F(NativeEngineTest, OfManyTermsTheHardestAreNamed) {
  for (int i = 0; i < 3; ++i) {
    NodeSpec node = Node(fmt::format("n{}", i), {{"cpu", 8000}});
    node.labels = {{"common", "x"}};
    if (i == 0) node.labels.emplace_back("rare", "x");
    Add(node);
  }
  std::string properties = R"("common=x","rare=x")";
  for (int i = 0; i < 1000; ++i) properties += fmt::format(R"(,"p{}=x")", i);
  const Jobspec spec = Spec(1, {{"cpu", 1}}, R"({"properties":[)" + properties + "]}");
  EXPECT_EQ(Why(spec),
            "constraints: none of the 3 nodes meets them all; p0=x: 0 nodes; p1=x: 0 nodes; p2=x: "
            "0 nodes; p3=x: 0 nodes; p4=x: 0 nodes; p5=x: 0 nodes; p6=x: 0 nodes; p7=x: 0 nodes; "
            "and 994 more");
  const std::string full = engine_.Explain(spec, Wording::kFull).sentence;
  EXPECT_THAT(full, HasSubstr("all; common=x: 3 nodes; rare=x: 1 node; p0=x: 0 nodes"));
  EXPECT_THAT(full, HasSubstr("p999=x: 0 nodes"));
}

TEST_F(NativeEngineTest, SentencesAreCutBetweenCharacters) {
  Add(Node("n", {{"cpu", 8000}}));
  std::string name;
  for (int i = 0; i < 1000; ++i) name += "ö";
  const std::string sentence = Why(Spec(1, {{name, 1}}));
  EXPECT_LE(sentence.size(), kMostSentenceBytes);
  EXPECT_EQ(sentence.substr(sentence.size() - 5), "ö…");
  EXPECT_EQ(engine_.Explain(Spec(1, {{name, 1}}), Wording::kFull).sentence,
            name + ": a slot needs 1, no node has any");
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
            "constraints: none of the 4 nodes meets them all; zone=a: 0 nodes; disk=ssd: 1 node; "
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
  const Explanation why = engine_.Explain(half, Wording::kShort);
  EXPECT_EQ(why.resource, "cpu");
  EXPECT_EQ(why.slots_now, 4u);
  EXPECT_EQ(why.slots_ever, 6u);
  EXPECT_EQ(MakeNativeEngine()->Explain(half, Wording::kShort).sentence, "the pool has no nodes");
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

// Two zones of two racks of two nodes of 4 cores.
class LevelsTest : public NativeEngineTest {
 protected:
  void SetUp() override {
    for (int i = 0; i < 8; ++i) {
      NodeSpec node = Node("n" + std::to_string(i), {{"cpu", 4000}});
      node.labels = {{"example.com/rack", i % 4 < 2 ? "r1" : "r2"}, {"zone", i < 4 ? "a" : "b"}};
      Add(node);
    }
    ASSERT_TRUE(engine_.SetLevels({"zone", "room", "example.com/rack"}).ok());
  }

  static Jobspec Topology(uint32_t slots,
                          const std::string& required,
                          const std::string& preferred) {
    Jobspec spec = Spec(slots, {{"cpu", 4000}});
    spec.required_level = required;
    spec.preferred_level = preferred;
    spec.shape += " " + required + " " + preferred;
    return spec;
  }
};

TEST_F(LevelsTest, RequiredKeepsSlotsTogether) {
  // In the order in which `first` goes: what was not used, the last first.
  EXPECT_THAT(Place(Topology(2, "rack", "")), ElementsAre("n7", "n6"));
  EXPECT_THAT(Place(Topology(3, "zone", "")), ElementsAre("n3", "n2", "n1"));
  EXPECT_THAT(Place(Topology(3, "zone", "")), IsEmpty());
  EXPECT_EQ(kind_, OutcomeKind::kBusy);
  EXPECT_EQ(
      Why(Topology(3, "zone", "")),
      "zone: 2 of 3 slots fit now in the best of 2 zones; of 8 nodes 8 may be used, 8 are up, "
      "3 have room for a slot");
  EXPECT_THAT(Place(Topology(3, "rack", "")), IsEmpty());
  EXPECT_EQ(kind_, OutcomeKind::kUnsatisfiable);
  EXPECT_EQ(Why(Topology(3, "rack", "")),
            "rack: at most 2 of 3 slots would fit in one rack if all nodes were up and empty");
  EXPECT_EQ(Why(Topology(1, "room", "")), "room: no node has the label room");
  EXPECT_EQ(Why(Topology(1, "row", "")),
            "row: the pool has no such level; there is zone, room, rack");
  EXPECT_THAT(Place(Topology(1, "row", "")), IsEmpty());
  EXPECT_EQ(kind_, OutcomeKind::kUnsatisfiable);
}

TEST_F(LevelsTest, PreferredTriesWiderAndWider) {
  EXPECT_THAT(Place(Topology(2, "", "rack")), ElementsAre("n7", "n6"));
  // One rack is not enough, one zone is.
  EXPECT_THAT(Place(Topology(3, "", "rack")), ElementsAre("n3", "n2", "n1"));
  EXPECT_THAT(Place(Topology(3, "", "rack")), ElementsAre("n5", "n4", "n0"));
  EXPECT_THAT(Place(Topology(3, "zone", "rack")), IsEmpty());
}

TEST_F(NativeEngineTest, WhatCouldEverBeFollowsTheLevels) {
  const auto labelled = [this](
                            const std::string& name, const std::string& r, const std::string& z) {
    NodeSpec node = Node(name, {{"cpu", 4000}});
    node.labels = {{"r", r}, {"z", z}};
    Add(node);
  };
  labelled("n0", "a", "a");
  labelled("n1", "b", "a");
  Jobspec two = Spec(1, {{"cpu", 4000}});
  two.groups.push_back(two.groups.front());
  two.slots = 2;
  two.shape += " twice";
  two.required_level = "rack";
  const auto ask = [&] {
    return engine_
        .Match({.operation = Operation::kSatisfiability, .key = {"x", 1, 0}, .jobspec = two})
        .kind;
  };
  ASSERT_TRUE(engine_.SetLevels({"rack=r"}).ok());
  EXPECT_EQ(ask(), OutcomeKind::kUnsatisfiable);
  ASSERT_TRUE(engine_.SetLevels({"rack=z"}).ok());
  EXPECT_EQ(ask(), OutcomeKind::kAllocated);
}

TEST_F(LevelsTest, RacksOfTheSameNameInOtherZonesAreOthers) {
  ASSERT_TRUE(engine_.SetPolicy("lonode").ok());
  EXPECT_THAT(Place(Topology(2, "rack", "")), ElementsAre("n0", "n1"));
  EXPECT_THAT(Place(Topology(2, "rack", "")), ElementsAre("n2", "n3"));
  EXPECT_THAT(Place(Topology(2, "rack", "")), ElementsAre("n4", "n5"));
}

TEST_F(LevelsTest, ANodeWithoutTheLabelIsInARackOfItsOwn) {
  for (int i = 0; i < 4; ++i) ASSERT_EQ(Place(Topology(2, "rack", "")).size(), 2u);
  Add(Node("new", {{"cpu", 4000}}));
  Add(Node("newer", {{"cpu", 4000}}));
  EXPECT_THAT(Place(Topology(2, "rack", "")), IsEmpty());
  EXPECT_THAT(Place(Topology(1, "rack", "")), ElementsAre("newer"));
}

TEST_F(LevelsTest, FollowRelabelling) {
  ASSERT_EQ(Place(Topology(2, "rack", "")).size(), 2u);  // n7, n6
  NodeSpec node = Node("n5", {{"cpu", 4000}});
  node.ordinal = 5;
  node.labels = {{"example.com/rack", "r2"}, {"zone", "b"}};
  EXPECT_TRUE(engine_.UpdateNode(node)->grew);
  ASSERT_TRUE(engine_.Release({"j0", 1, 0}));
  EXPECT_THAT(Place(Topology(3, "rack", "")), ElementsAre("n7", "n6", "n5"));
}

TEST_F(LevelsTest, RefusesWhatIsNoLevel) {
  EXPECT_THAT(Message(engine_.SetLevels({""})), HasSubstr("must be a node label"));
  EXPECT_THAT(Message(engine_.SetLevels({"a/zone", "b/zone"})), HasSubstr("name is another"));
  EXPECT_THAT(Message(engine_.SetLevels({"x=zone", "y=zone"})), HasSubstr("label is another"));
  EXPECT_THAT(Message(engine_.SetLevels({"topology/node"})), HasSubstr("cannot be called"));
  EXPECT_THAT(Message(engine_.SetLevels(std::vector<std::string>(9, "x"))), HasSubstr("at most 8"));
}

Jobspec LeaderAndWorkers(uint32_t workers, const std::string& level) {
  const std::string slots =
      R"({"type":"slot","label":"leader","count":1,"with":[{"type":"cpu","count":1000}]},)"
      R"({"type":"slot","label":"worker","count":)" +
      std::to_string(workers) + R"(,"with":[{"type":"cpu","count":4000}]})";
  const auto spec = ParseJobspec(
      R"({"version":1,"resources":[)" +
      (level.empty() ? slots : R"({"type":")" + level + R"(","count":1,"with":[)" + slots + "]}") +
      R"(],"tasks":[{"command":["x"],"slot":"worker","count":{"per_slot":1}}]})");
  EXPECT_TRUE(spec.ok()) << spec.status();
  return *spec;
}

TEST_F(LevelsTest, SlotsThatDifferAreMatchedAsOne) {
  EXPECT_THAT(Place(LeaderAndWorkers(2, "")), ElementsAre("n5", "n7", "n6"));
  ASSERT_TRUE(engine_.Release({"j0", 1, 0}));
  // Not the leader in one rack and its worker in another; and no rack has room for one and two.
  EXPECT_THAT(Place(LeaderAndWorkers(1, "rack")), ElementsAre("n6", "n7"));
  EXPECT_THAT(Place(LeaderAndWorkers(2, "rack")), IsEmpty());
  EXPECT_EQ(kind_, OutcomeKind::kUnsatisfiable);
  EXPECT_EQ(Why(LeaderAndWorkers(2, "rack")),
            "each of its 2 groups of slots fits now, but not all together");
  EXPECT_THAT(Place(LeaderAndWorkers(2, "zone")), ElementsAre("n1", "n3", "n2"));
  EXPECT_THAT(Place(LeaderAndWorkers(3, "zone")), IsEmpty());
  EXPECT_EQ(kind_, OutcomeKind::kBusy);
  EXPECT_EQ(Why(LeaderAndWorkers(3, "zone")),
            "slot[1]: zone: 2 of 3 slots fit now in the best of 2 zones; of 8 nodes 8 may be used, "
            "8 are up, 3 have room for a slot");
}

TEST_F(LevelsTest, TheHardestSlotsComeFirst) {
  // A leader that went first would take the only large node.
  Add(Node("large", {{"cpu", 64000}}));
  const auto spec = ParseJobspec(R"({"version":1,"resources":[
      {"type":"slot","label":"leader","count":1,"with":[{"type":"cpu","count":4000}]},
      {"type":"slot","label":"worker","count":1,"with":[{"type":"cpu","count":64000}]}],
      "tasks":[{"command":["x"],"slot":"worker","count":{"per_slot":1}}]})");
  ASSERT_TRUE(spec.ok());
  EXPECT_EQ(Place(*spec)[1], "large");
}

TEST_F(NativeEngineTest, Holders) {
  AddNodes(2);
  ASSERT_EQ(Place(Spec(1, {{"cpu", 3000}})).size(), 1u);  // j0 on n1
  ASSERT_EQ(Place(Spec(1, {{"cpu", 2000}})).size(), 1u);  // j1 on n0
  ASSERT_EQ(Place(Spec(1, {{"cpu", 1000}})).size(), 1u);  // j2 on n0
  const Jobspec one = Spec(1, {{"cpu", 2000}});
  ASSERT_THAT(Place(one), IsEmpty());
  const Explanation why = engine_.Explain(one, Wording::kShort);
  EXPECT_EQ(why.resource, "cpu");
  EXPECT_EQ(why.nearest, "n0");
  const std::vector<Holder> holders = engine_.HoldersOf(one, why);
  ASSERT_EQ(holders.size(), 2u);
  EXPECT_EQ(holders[0].key.job_id, "j1");
  EXPECT_EQ(holders[0].amount, 2000);
  EXPECT_EQ(holders[1].key.job_id, "j2");
  // Of a gang all that hold some, wherever.
  const Jobspec gang = Spec(3, {{"cpu", 1000}});
  const std::vector<Holder> all = engine_.HoldersOf(gang, engine_.Explain(gang, Wording::kShort));
  ASSERT_EQ(all.size(), 3u);
  EXPECT_EQ(all[0].key.job_id, "j0");
}

TEST_F(NativeEngineTest, RefusesWhatContradictsItself) {
  AddNodes(1);
  NodeSpec twin = Node("twin", {});
  twin.ordinal = 0;
  EXPECT_TRUE(absl::IsFailedPrecondition(engine_.AddNode(twin)));
  EXPECT_TRUE(absl::IsNotFound(engine_.UpdateNode(twin).status()));
  EXPECT_TRUE(absl::IsNotFound(engine_.RemoveNode("twin").status()));
  Placement placement{.slots = {{0, "gone", false}}, .groups = {{1, {{"cpu", 1}}}}};
  EXPECT_THAT(Message(engine_.Restore({"j", 1, 0}, placement)), HasSubstr("node gone"));
  placement.slots[0].released = true;
  EXPECT_TRUE(engine_.Restore({"j", 1, 0}, placement).ok());
  EXPECT_TRUE(absl::IsFailedPrecondition(engine_.Restore({"j", 1, 0}, placement)));
  placement.groups[0].slots = 2;
  EXPECT_THAT(Message(engine_.Restore({"k", 1, 0}, placement)), HasSubstr("are not those"));
}

TEST(Levels, NaturalOrder) {
  EXPECT_TRUE(NaturallyBefore("rack-2", "rack-10"));
  EXPECT_FALSE(NaturallyBefore("rack-10", "rack-2"));
  EXPECT_TRUE(NaturallyBefore("a/r9", "b/r1"));
  EXPECT_TRUE(NaturallyBefore("r01", "r1"));
  EXPECT_FALSE(NaturallyBefore("r1", "r01"));
  EXPECT_TRUE(NaturallyBefore("r", "r1"));
  EXPECT_FALSE(NaturallyBefore("r1", "r1"));
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
