// Which nodes jobs go to that would rather have some than others.
#include "libs/graph/preferred_placement.h"

#include <algorithm>
#include <map>
#include <random>
#include <set>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "libs/graph/engine_fixture.h"

namespace fluxqueue::graph {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::UnorderedElementsAre;

// "zone=a:80": the label zone=a is worth 80.
std::string Terms(const std::vector<std::string>& worth) {
  std::string terms;
  for (const std::string& one : worth) {
    const size_t colon = one.rfind(':');
    terms += fmt::format(R"({}{{"weight":{},"constraint":{{"properties":["{}"]}}}})",
                         terms.empty() ? "" : ",",
                         one.substr(colon + 1),
                         one.substr(0, colon));
  }
  return terms;
}

Jobspec Parsed(const std::string& resources, const std::string& tasks, const std::string& system) {
  const auto spec = ParseJobspec(fmt::format(
      R"({{"version":1,"resources":[{}],"tasks":[{}],"attributes":{{"system":{{{}}}}}}})",
      resources,
      tasks,
      system));
  EXPECT_TRUE(spec.ok()) << spec.status();
  return *spec;
}

std::string Slot(const std::string& label, uint32_t count, int64_t cpu) {
  return fmt::format(
      R"({{"type":"slot","label":"{}","count":{},"with":[{{"type":"cpu","count":{}}}]}})",
      label,
      count,
      cpu);
}

std::string Task(const std::string& label) {
  return fmt::format(R"({{"command":["x"],"slot":"{}","count":{{"per_slot":1}}}})", label);
}

std::string Preferring(const std::string& terms, const std::string& tolerations = "") {
  return fmt::format(
      R"("job":{{"preferences":{{"terms":[{}],"tolerations":[{}]}}}})", terms, tolerations);
}

class PreferredPlacementTest : public NativeEngineTest {
 protected:
  // With 4 cores.
  void AddNode(const std::string& name, Labels labels, const std::vector<Taint>& taints = {}) {
    NodeSpec node = Node(name, {{"cpu", 4000}});
    std::sort(labels.begin(), labels.end());
    node.labels = std::move(labels);
    node.taints = taints;
    Add(std::move(node));
  }

  static Jobspec Wanting(uint32_t slots, const std::vector<std::string>& worth) {
    return Parsed(Slot("s", slots, 2000), Task("s"), Preferring(Terms(worth)));
  }

  std::vector<std::string> PlaceUnder(const AllocationKey& key, const Jobspec& spec) {
    const Outcome outcome = engine_.Match({.key = key, .jobspec = spec});
    std::vector<std::string> nodes;
    if (outcome.placement == nullptr) return nodes;
    for (const PlacedSlot& slot : outcome.placement->slots) nodes.push_back(slot.node);
    return nodes;
  }
};

TEST_F(PreferredPlacementTest, ItGoesWhereItWouldRatherBeWhileThereIsRoom) {
  AddNode("n0", {{"zone", "a"}});
  AddNode("n1", {{"zone", "b"}});
  AddNode("n2", {{"zone", "b"}, {"disk", "ssd"}});
  AddNode("n3", {{"zone", "c"}});
  const Jobspec one = Wanting(1, {"zone=b:10", "disk=ssd:1"});
  // Policy `first` would take the last node.
  EXPECT_THAT(Place(Wanting(1, {})), ElementsAre("n3"));
  EXPECT_THAT(Place(one), ElementsAre("n2"));
  EXPECT_THAT(Place(one), ElementsAre("n2"));
  EXPECT_THAT(Place(one), ElementsAre("n1"));
  // One slot has room on n1: the better nodes first, in the order of the slots.
  EXPECT_THAT(Place(Wanting(3, {"zone=b:10", "zone=a:5"})), ElementsAre("n1", "n0", "n0"));
  EXPECT_THAT(Place(one), ElementsAre("n3")) << "no other has room";
  EXPECT_THAT(Place(one), IsEmpty());
  EXPECT_EQ(kind_, OutcomeKind::kBusy);
}

TEST_F(PreferredPlacementTest, NoMoreTiersAreUsedThanItNeeds) {
  AddNode("n0", {{"zone", "a"}});
  AddNode("n1", {{"zone", "b"}});
  AddNode("n2", {{"zone", "c"}});
  AddNode("n3", {{"zone", "d"}});
  EXPECT_THAT(Place(Wanting(5, {"zone=c:30", "zone=a:20", "zone=d:10"})),
              ElementsAre("n2", "n2", "n0", "n0", "n3"));
}

TEST_F(PreferredPlacementTest, NodesWithSoftTaintsAreTakenLast) {
  AddNode("n0", {});
  AddNode("n1", {{"zone", "a"}}, {{"spot", "", "PreferNoSchedule"}});
  const Jobspec plain = Wanting(1, {});
  EXPECT_THAT(Place(plain), ElementsAre("n0")) << "also of a job that says nothing";
  EXPECT_THAT(Place(Wanting(1, {"zone=a:99"})), ElementsAre("n0")) << "a taint weighs 100";
  EXPECT_THAT(Place(plain), ElementsAre("n1")) << "it keeps no job away";
  EXPECT_TRUE(engine_.Release({"j0", 1, 0}));
  const Jobspec tolerant =
      Parsed(Slot("s", 1, 2000), Task("s"), Preferring(Terms({"zone=a:1"}), R"("spot")"));
  EXPECT_THAT(Place(tolerant), ElementsAre("n1"));
}

TEST_F(PreferredPlacementTest, ALevelThatIsRequiredHoldsAllAndOneThatIsPreferredComesFirst) {
  ASSERT_TRUE(engine_.SetLevels({"rack"}).ok());
  AddNode("n0", {{"rack", "r0"}, {"zone", "a"}});
  AddNode("n1", {{"rack", "r0"}});
  AddNode("n2", {{"rack", "r1"}});
  AddNode("n3", {{"rack", "r1"}, {"zone", "a"}});
  const auto in_rack = [](uint32_t slots, const std::string& system) {
    return Parsed(fmt::format(R"({{"type":"rack","count":1,"with":[{}]}})", Slot("s", slots, 2000)),
                  Task("s"),
                  system);
  };
  const std::string zone_a = Preferring(Terms({"zone=a:50"}));
  // A rack that has such a node, and that node first.
  EXPECT_THAT(PlaceUnder({"two", 1, 0}, in_rack(2, zone_a)), ElementsAre("n3", "n3"));
  EXPECT_THAT(PlaceUnder({"three", 1, 0}, in_rack(3, zone_a)), ElementsAre("n0", "n0", "n1"));
  EXPECT_THAT(PlaceUnder({"none", 1, 0}, in_rack(3, zone_a)), IsEmpty());
  for (const char* job : {"two", "three"}) EXPECT_TRUE(engine_.Release({job, 1, 0}));
  // Beside each other is worth more than where: the two nodes of the zone are in two racks.
  const Jobspec together =
      Parsed(Slot("s", 4, 2000), Task("s"), R"("topology":{"preferred":"rack"},)" + zone_a);
  const std::vector<std::string> nodes = PlaceUnder({"together", 1, 0}, together);
  ASSERT_EQ(nodes.size(), 4u);
  EXPECT_EQ(nodes[0], nodes[1]);
  EXPECT_THAT((std::set<std::string>{nodes[0], nodes[2]}),
              testing::AnyOf(UnorderedElementsAre("n0", "n1"), UnorderedElementsAre("n2", "n3")));
  EXPECT_THAT(nodes[0], testing::AnyOf("n0", "n3")) << "the better node of the rack first";
}

TEST_F(PreferredPlacementTest, APreferredLevelTakesNothingFromTheOneThatIsRequired) {
  ASSERT_TRUE(engine_.SetLevels({"zone", "rack"}).ok());
  for (int i = 0; i < 4; ++i) {
    Labels labels = {{"rack", i < 2 ? "r0" : "r1"}, {"zone", "a"}};
    if (i % 2 == 0) labels.emplace_back("disk", "ssd");
    AddNode(fmt::format("n{}", i), labels);
  }
  const std::string rest =
      R"("topology":{"preferred":"zone"},)" + Preferring(Terms({"disk=ssd:50"}));
  const std::vector<std::string> nodes = PlaceUnder(
      {"required", 1, 0},
      Parsed(fmt::format(R"({{"type":"rack","count":1,"with":[{}]}})", Slot("s", 4, 2000)),
             Task("s"),
             rest));
  ASSERT_EQ(nodes.size(), 4u);
  EXPECT_THAT((std::set<std::string>{nodes[0], nodes[2]}),
              testing::AnyOf(UnorderedElementsAre("n0", "n1"), UnorderedElementsAre("n2", "n3")));
  EXPECT_TRUE(engine_.Release({"required", 1, 0}));
  // One that does not exist confines nothing.
  const Jobspec unknown =
      Parsed(Slot("s", 2, 4000),
             Task("s"),
             R"("topology":{"preferred":"row"},)" + Preferring(Terms({"disk=ssd:50"})));
  EXPECT_THAT(PlaceUnder({"unknown", 1, 0}, unknown), UnorderedElementsAre("n0", "n2"));
}

TEST_F(PreferredPlacementTest, NodesThatItCannotUseAreNoTier) {
  AddNode("n0", {{"zone", "a"}}, {{"closed", "", "NoSchedule"}});
  AddNode("n1", {});
  AddNode("n2", {});
  EXPECT_THAT(Place(Wanting(3, {"zone=a:5"})), ElementsAre("n2", "n2", "n1"));
}

TEST_F(PreferredPlacementTest, WhetherItFitsIsAskedWithout) {
  AddNode("n0", {{"zone", "a"}});
  AddNode("n1", {});
  const Jobspec one = Wanting(1, {"zone=a:1"});
  const Outcome fits = engine_.Match({.key = {"j", 1, 0}, .jobspec = one, .anywhere = true});
  ASSERT_NE(fits.placement, nullptr);
  EXPECT_EQ(fits.placement->slots[0].node, "n1");
}

TEST_F(PreferredPlacementTest, SlotsThatDifferAreEachPlacedWhereTheyWouldRatherBe) {
  AddNode("n0", {{"zone", "a"}});
  AddNode("n1", {{"zone", "b"}});
  AddNode("n2", {{"zone", "b"}});
  const Jobspec gang = Parsed(Slot("leader", 1, 4000) + "," + Slot("worker", 3, 2000),
                              Task("leader") + "," + Task("worker"),
                              Preferring(Terms({"zone=b:5"})));
  const std::vector<std::string> nodes = Place(gang);
  ASSERT_EQ(nodes.size(), 4u);
  EXPECT_THAT(nodes[0], testing::AnyOf("n1", "n2"));
  EXPECT_EQ(nodes[1], nodes[0] == "n1" ? "n2" : "n1");
  EXPECT_EQ(nodes[2], nodes[1]);
  EXPECT_EQ(nodes[3], "n0");
}

TEST_F(PreferredPlacementTest, GrowthGoesThereToo) {
  AddNode("n0", {{"zone", "a"}});
  AddNode("n1", {});
  const AllocationKey key{"j", 1, 0};
  const Jobspec one = Wanting(1, {"zone=a:1"});
  ASSERT_THAT(PlaceUnder(key, one), ElementsAre("n0"));
  const Outcome grown = engine_.Grow({.key = key, .jobspec = WithSlots(one, 2)});
  ASSERT_EQ(grown.kind, OutcomeKind::kAllocated);
  EXPECT_EQ(grown.placement->slots[1].node, "n0");
  EXPECT_EQ(grown.placement->slots[2].node, "n1");
  EXPECT_EQ(engine_.Usage()[0].free, 2000);
  EXPECT_TRUE(engine_.Release(key));
  EXPECT_EQ(engine_.Usage()[0].free, 8000);
  EXPECT_THAT(Place(Wanting(4, {})), testing::SizeIs(4)) << "nothing is held that is not known";
}

TEST_F(PreferredPlacementTest, WhatIsReservedForOthersIsNotTaken) {
  AddNode("n0", {{"zone", "a"}});
  AddNode("n1", {});
  engine_.Match({.key = {"runs", 1, 0}, .jobspec = Wanting(1, {"zone=a:1"}), .duration_s = 10});
  const Jobspec both = Spec(2, {{"cpu", 4000}});
  const Outcome reserved = engine_.Match({.operation = Operation::kAllocateOrReserve,
                                          .key = {"next", 1, 0},
                                          .jobspec = both,
                                          .duration_s = 10});
  ASSERT_EQ(reserved.kind, OutcomeKind::kReserved);
  const auto match = [&](const std::string& job, int64_t duration_s) {
    const Jobspec two = Wanting(2, {"zone=a:1"});
    const Outcome outcome =
        engine_.Match({.key = {job, 1, 0}, .jobspec = two, .now_s = 1, .duration_s = duration_s});
    return outcome.placement == nullptr ? 0 : outcome.placement->slots.size();
  };
  EXPECT_EQ(match("long", 20), 0u);
  EXPECT_EQ(match("short", 5), 2u);
}

TEST_F(PreferredPlacementTest, AJobThatIsReservedPrefersNothingUntilItStarts) {
  AddNode("n0", {{"zone", "a"}});
  const Jobspec two = Wanting(2, {"zone=a:1"});
  AddNode("n1", {});
  engine_.Match({.key = {"a", 1, 0}, .jobspec = Spec(2, {{"cpu", 4000}}), .duration_s = 10});
  const Outcome reserved = engine_.Match({.operation = Operation::kAllocateOrReserve,
                                          .key = {"next", 1, 0},
                                          .jobspec = two,
                                          .duration_s = 10});
  ASSERT_EQ(reserved.kind, OutcomeKind::kReserved);
  EXPECT_TRUE(engine_.Release({"a", 1, 0}));
  EXPECT_THAT(PlaceUnder({"next", 1, 0}, two), ElementsAre("n0", "n0"));
}

TEST_F(PreferredPlacementTest, WhatCountsIsSaidAndTakenBack) {
  AddNode("n0", {{"zone", "a"}});
  AddNode("n1", {});
  const uint64_t before = engine_.Fingerprint();
  engine_.Checkpoint();
  engine_.HeedPreferences(false);
  EXPECT_NE(engine_.Fingerprint(), before);
  EXPECT_THAT(Place(Wanting(1, {"zone=a:1"})), ElementsAre("n1"));
  engine_.Rollback();
  EXPECT_EQ(engine_.Fingerprint(), before);
  EXPECT_THAT(Place(Wanting(1, {"zone=a:1"})), ElementsAre("n0"));
}

TEST_F(PreferredPlacementTest, LabelsThatChangeCountAtOnce) {
  AddNode("n0", {{"zone", "a"}});
  AddNode("n1", {});
  const Jobspec one = Wanting(1, {"zone=a:1"});
  EXPECT_THAT(Place(one), ElementsAre("n0"));
  for (NodeSpec node : engine_.Nodes()) {
    node.labels = node.name == "n1" ? Labels{{"zone", "a"}} : Labels{};
    ASSERT_TRUE(engine_.UpdateNode(node).ok());
  }
  EXPECT_THAT(Place(one), ElementsAre("n1"));
}

// What a job of equal slots without levels is to get is simple: as many of its slots as each tier
// has room for, the best first; and something exactly when it would without preferences.
TEST_F(PreferredPlacementTest, EachTierIsUsedAsFarAsItGoes) {
  std::mt19937_64 random(7);
  const auto below = [&random](uint64_t bound) { return random() % bound; };
  int placed = 0;
  int spread = 0;
  for (int world = 0; world < 60; ++world) {
    BookedEngine engine(MakeClusterGraph);
    ASSERT_TRUE(engine.SetPolicy(world % 3 == 0   ? "first"
                                 : world % 3 == 1 ? "lonode"
                                                  : "packed")
                    .ok());
    std::map<std::string, int64_t> free;
    std::map<std::string, int> worth;
    for (uint64_t i = 0; i < 3 + below(20); ++i) {
      NodeSpec node;
      node.name = fmt::format("n{}", i);
      node.ordinal = i;
      node.resources = {{"cpu", 1000 * static_cast<int64_t>(1 + below(8))}};
      const int grade = static_cast<int>(below(4));
      node.labels = {{"grade", std::to_string(grade)}};
      free[node.name] = node.resources[0].amount;
      worth[node.name] = grade * 10;
      if (below(4) == 0) {
        node.taints = {{"soft", "", "PreferNoSchedule"}};
        worth[node.name] -= 100;
      }
      ASSERT_TRUE(engine.AddNode(node).ok());
    }
    for (int job = 0; job < 30; ++job) {
      const int64_t cpu = 500 * static_cast<int64_t>(1 + below(4));
      const auto slots = static_cast<uint32_t>(1 + below(12));
      const Jobspec spec = Parsed(Slot("s", slots, cpu),
                                  Task("s"),
                                  Preferring(Terms({"grade=1:10", "grade=2:20", "grade=3:30"})));
      std::map<int, int64_t, std::greater<>> room;
      int64_t all = 0;
      for (const auto& [name, amount] : free) {
        room[worth[name]] += amount / cpu;
        all += amount / cpu;
      }
      const AllocationKey key{fmt::format("j{}", job), 1, 0};
      const Outcome outcome = engine.Match({.key = key, .jobspec = spec});
      ASSERT_EQ(outcome.placement != nullptr, all >= slots) << world << " " << job;
      if (outcome.placement == nullptr) continue;
      std::map<int, int64_t, std::greater<>> used;
      int last = 1000;
      for (const PlacedSlot& slot : outcome.placement->slots) {
        EXPECT_LE(worth[slot.node], last) << "in the order of the tiers";
        last = worth[slot.node];
        ++used[last];
        free[slot.node] -= cpu;
        EXPECT_GE(free[slot.node], 0);
      }
      int64_t left = slots;
      for (const auto& [grade, fits] : room) {
        EXPECT_EQ(used[grade], std::min(left, fits)) << world << " " << job << " at " << grade;
        left -= std::min(left, fits);
      }
      ++placed;
      spread += used.size() > 1 ? 1 : 0;
      if (below(3) == 0) {
        for (const PlacedSlot& slot : outcome.placement->slots) free[slot.node] += cpu;
        EXPECT_TRUE(engine.Release(key));
      }
    }
  }
  EXPECT_GT(placed, 300);
  EXPECT_GT(spread, 50);
}

}  // namespace
}  // namespace fluxqueue::graph
