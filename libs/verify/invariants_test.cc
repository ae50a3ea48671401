// A system in order has no findings; each thing that is broken in it is found under its number, and
// only there.
#include "libs/verify/invariants.h"

#include <functional>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "libs/matcher_core/codec.h"

namespace fluxqueue::verify {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

events::v1::Placement MakePlacement(const std::vector<std::string>& nodes, int64_t cpu) {
  events::v1::Placement placement;
  for (size_t i = 0; i < nodes.size(); ++i) {
    auto* slot = placement.add_slots();
    slot->set_slot(static_cast<uint32_t>(i));
    slot->set_node(nodes[i]);
  }
  auto* group = placement.add_groups();
  group->set_slots(static_cast<uint32_t>(nodes.size()));
  auto* amount = group->add_requests();
  amount->set_resource("cpu");
  amount->set_amount(cpu);
  return placement;
}

void AddNode(Snapshot* snapshot, const std::string& name, int64_t cpu) {
  NodeRow row{.pool = "default", .node = {}, .present = true};
  row.node.set_name(name);
  row.node.set_ready(true);
  auto* amount = row.node.add_allocatable();
  amount->set_resource("cpu");
  amount->set_amount(cpu);
  snapshot->nodes.push_back(row);
  snapshot->cluster->nodes[name] = true;
}

void AddJob(Snapshot* snapshot,
            const std::string& id,
            const std::string& state,
            uint64_t version,
            uint32_t slots) {
  snapshot->jobs[id] = {.id = id,
                        .pool = "default",
                        .space = "team",
                        .name = id,
                        .kind = "Job",
                        .state = state,
                        .version = version,
                        .attempt = 1,
                        .slots = slots};
  const bool ended = state == "Succeeded";
  snapshot->events[id] = {.count = version,
                          .first = 1,
                          .last = version,
                          .ended = ended ? version : 0,
                          .last_state = state};
  snapshot->topic[id] = {.last = version, .faults = {}};
  snapshot->cluster->objects[id] = {"team/" + id, ended};
  if (ended) return;
  snapshot->workloads.push_back({id, "Job", "team", id});
  snapshot->specs.push_back({id, 0, 1, slots});
}

// Runs on these nodes, a pod for each slot.
void AddRunning(Snapshot* snapshot,
                const std::string& id,
                const std::vector<std::string>& nodes,
                int64_t cpu) {
  const auto slots = static_cast<uint32_t>(nodes.size());
  AddJob(snapshot, id, "Bound", 3, slots);
  const AllocationKey key{id, 1, 0};
  AllocationRow allocation{.key = key, .pool = "default", .placement = MakePlacement(nodes, cpu)};
  allocation.placement_hash = matcher_core::PlacementHash(allocation.placement);
  snapshot->jobs[id].placement_hash = allocation.placement_hash;
  snapshot->allocations[key] = allocation;
  for (uint32_t i = 0; i < slots; ++i) {
    const std::string pod = fmt::format("team/{}-{}", id, i);
    snapshot->slots.push_back({.key = key,
                               .slot = i,
                               .node = nodes[i],
                               .pod_uid = "uid-" + pod,
                               .pod = pod,
                               .state = "bound",
                               .bound_once = true});
    snapshot->cluster->pods.push_back({.uid = "uid-" + pod,
                                       .name = pod,
                                       .node = nodes[i],
                                       .job_id = id,
                                       .slot = kubernetes::SlotName{1, 0, i, slots},
                                       .ended = false,
                                       .deleting = false});
  }
}

// "one" runs on n1, "gang" on n1 and n2, "waiting" waits, "over" has ended and its allocation is
// released.
Snapshot Healthy() {
  Snapshot snapshot;
  snapshot.cluster.emplace();
  AddNode(&snapshot, "n1", 4000);
  AddNode(&snapshot, "n2", 4000);
  AddRunning(&snapshot, "one", {"n1"}, 2000);
  AddRunning(&snapshot, "gang", {"n1", "n2"}, 2000);
  AddJob(&snapshot, "waiting", "Pending", 1, 1);
  AddJob(&snapshot, "over", "Succeeded", 5, 1);
  AllocationRow released{
      .key = {"over", 1, 0}, .pool = "default", .placement = MakePlacement({"n2"}, 4000)};
  released.placement_hash = matcher_core::PlacementHash(released.placement);
  released.released = true;
  snapshot.allocations[released.key] = released;
  return snapshot;
}

std::vector<int> Broken(const std::vector<Check>& checks) {
  std::vector<int> numbers;
  for (const Check& check : checks) {
    if (!check.ok()) numbers.push_back(check.number);
  }
  return numbers;
}

AllocationRow& Allocation(Snapshot& s, const std::string& id) {
  return s.allocations.at({id, 1, 0});
}

void Rehash(Snapshot& s, const std::string& id) {
  AllocationRow& row = Allocation(s, id);
  row.placement_hash = matcher_core::PlacementHash(row.placement);
  s.jobs[id].placement_hash = row.placement_hash;
}

TEST(InvariantsTest, NothingIsFoundInASystemInOrder) {
  const std::vector<Check> checks = CheckInvariants(Healthy());
  ASSERT_EQ(checks.size(), 7U);
  for (const Check& check : checks) {
    EXPECT_TRUE(check.ok()) << check.number << ": " << check.findings.front().text;
    EXPECT_THAT(check.checked, Not(IsEmpty()));
    EXPECT_THAT(check.not_checked, IsEmpty());
  }
  EXPECT_TRUE(AllOk(checks));
}

TEST(InvariantsTest, AnElasticJobMayHoldSomeOfItsSlotsAndGrow) {
  Snapshot snapshot = Healthy();
  JobRow& job = snapshot.jobs.at("gang");
  job.most_slots = 5;
  for (SpecRow& spec : snapshot.specs) {
    if (spec.job_id == "gang") spec.slots = 5;
  }
  EXPECT_TRUE(AllOk(CheckInvariants(snapshot))) << "2 of 5";
  // It has a third slot now, of which neither the queue nor its pods know.
  AllocationRow& allocation = snapshot.allocations.at({"gang", 1, 0});
  auto* slot = allocation.placement.add_slots();
  slot->set_slot(2);
  slot->set_node("n2");
  allocation.placement.mutable_groups(0)->set_slots(3);
  allocation.placement.mutable_groups(0)->mutable_requests(0)->set_amount(1000);
  allocation.placement_hash = matcher_core::PlacementHash(allocation.placement);
  EXPECT_TRUE(AllOk(CheckInvariants(snapshot)));
  job.most_slots = 2;
  EXPECT_FALSE(AllOk(CheckInvariants(snapshot)));
}

TEST(InvariantsTest, AJobThatLostASlotMayHaveAnother) {
  Snapshot snapshot = Healthy();
  AllocationRow& allocation = Allocation(snapshot, "gang");
  allocation.placement.mutable_slots(1)->set_released(true);
  auto* slot = allocation.placement.add_slots();
  slot->set_slot(2);
  slot->set_node("n2");
  allocation.placement.mutable_groups(0)->set_slots(3);
  // Of the pod that was in it nothing is left; neither the queue nor the next pod knows of the
  // other.
  std::erase_if(snapshot.cluster->pods,
                [](const PodView& pod) { return pod.name == "team/gang-1"; });
  allocation.placement_hash = matcher_core::PlacementHash(allocation.placement);
  for (const Check& check : CheckInvariants(snapshot)) {
    EXPECT_TRUE(check.ok()) << check.number << ": " << check.findings.front().text;
  }
  // Of what the queue has heard it knows what it is.
  snapshot.jobs.at("gang").held_slots = 3;
  EXPECT_THAT(Broken(CheckInvariants(snapshot)), Contains(3));
  snapshot.jobs.at("gang").placement_hash = allocation.placement_hash;
  EXPECT_TRUE(AllOk(CheckInvariants(snapshot)));
  // Not beside the one that it lost.
  allocation.placement.mutable_slots(1)->set_released(false);
  EXPECT_THAT(Broken(CheckInvariants(snapshot)), Contains(2));
}

TEST(InvariantsTest, PlacesOfAPodMayHaveNoPods) {
  Snapshot snapshot = Healthy();
  std::erase_if(snapshot.slots,
                [](const SlotRow& slot) { return slot.key.job_id == "gang" && slot.slot == 1; });
  std::erase_if(snapshot.cluster->pods,
                [](const PodView& pod) { return pod.name == "team/gang-1"; });
  EXPECT_THAT(Broken(CheckInvariants(snapshot)), Contains(2));
  snapshot.jobs.at("gang").kind = "Pod";
  EXPECT_TRUE(AllOk(CheckInvariants(snapshot)));
  for (SlotRow& slot : snapshot.slots) slot.bound_once = slot.key.job_id != "gang";
  EXPECT_THAT(Broken(CheckInvariants(snapshot)), Contains(2)) << "not its own slot";
}

TEST(InvariantsTest, AJobWithPlacesIsNotOverBeforeThePodsThatTookThem) {
  Snapshot snapshot = Healthy();
  snapshot.jobs.at("gang").kind = "Pod";
  for (const bool gone : {false, true}) {
    if (gone) {
      snapshot.cluster->objects.erase("gang");
    } else {
      snapshot.cluster->objects["gang"].ended = true;
    }
    EXPECT_TRUE(AllOk(CheckInvariants(snapshot)));
    Snapshot over = snapshot;
    for (PodView& pod : over.cluster->pods) pod.ended = pod.ended || pod.job_id == "gang";
    EXPECT_THAT(Broken(CheckInvariants(over)), Contains(6));
  }
}

struct Case {
  const char* name;
  std::function<void(Snapshot&)> breaks;
  std::vector<int> numbers;  // that say so
  const char* says;
};

class BrokenTest : public ::testing::TestWithParam<Case> {};

TEST_P(BrokenTest, IsFound) {
  Snapshot snapshot = Healthy();
  GetParam().breaks(snapshot);
  const std::vector<Check> checks = CheckInvariants(snapshot);
  EXPECT_EQ(Broken(checks), GetParam().numbers);
  const Check& check = checks.at(static_cast<size_t>(GetParam().numbers.front() - 1));
  ASSERT_FALSE(check.ok());
  EXPECT_THAT(check.findings.front().text, HasSubstr(GetParam().says));
}

const Case kCases[] = {
    {"NodeHoldsTooMuch",
     [](Snapshot& s) { s.nodes[0].node.mutable_allocatable(0)->set_amount(3999); },
     {1},
     "node n1: 2 jobs hold 4000 of cpu, and it has 3999"},
    {"NodeIsGone",
     [](Snapshot& s) { s.nodes[1].present = false; },
     {1},
     "node n2 is not in the graph"},
    {"SlotMissing",
     [](Snapshot& s) {
       Allocation(s, "gang").placement.mutable_slots()->RemoveLast();
       Rehash(s, "gang");
       s.slots.pop_back();
       s.cluster->pods.pop_back();
     },
     {2, 4},  // its other pod was told of two slots
     "asks for 2 slots and holds 1"},
    {"SlotTwice",
     [](Snapshot& s) {
       Allocation(s, "gang").placement.mutable_slots(1)->set_slot(0);
       Rehash(s, "gang");
       s.slots.pop_back();
       s.cluster->pods.pop_back();
       s.slots.back().node = s.cluster->pods.back().node = "n2";
     },
     {2},
     "slot 0 stands where 1 should"},
    {"BoundWithoutPod",
     [](Snapshot& s) { s.slots.pop_back(); },
     {2},
     "1 of its 2 slots have had their pod"},
    {"TwoAttemptsHold",
     [](Snapshot& s) {
       AllocationRow second = Allocation(s, "one");
       second.key.attempt = 2;
       second.placement.mutable_slots(0)->set_node("n2");
       second.placement_hash = matcher_core::PlacementHash(second.placement);
       s.allocations[second.key] = second;
     },
     {3},
     "what attempt 1 was given, and what attempt 2"},
    {"NobodysAllocation",
     [](Snapshot& s) {
       AllocationRow other = Allocation(s, "over");
       other.key.job_id = "nobody";
       other.released = false;
       other.placement.mutable_groups(0)->mutable_requests(0)->set_amount(1);
       other.placement_hash = matcher_core::PlacementHash(other.placement);
       s.allocations[other.key] = other;
     },
     {3},
     "the queue does not know it"},
    {"HolderHoldsNothing",
     [](Snapshot& s) {
       s.allocations.erase({"one", 1, 0});
       std::erase_if(s.slots, [](const SlotRow& row) { return row.key.job_id == "one"; });
       std::erase_if(s.cluster->pods, [](const PodView& pod) { return pod.job_id == "one"; });
     },
     {3},
     "attempt 1 holds no allocation"},
    {"PlacementChanged",
     [](Snapshot& s) { Allocation(s, "one").placement.set_start_s(7); },
     {3},
     "its placement is not what was decided"},
    {"OtherPlacementThanTold",
     [](Snapshot& s) { ++s.jobs["one"].placement_hash; },
     {3},
     "queue was told of"},
    {"PodElsewhere",
     [](Snapshot& s) { s.cluster->pods[0].node = "n2"; },
     {4},
     "is on node n2, and its slot 0 is on node n1"},
    {"RowElsewhere",
     [](Snapshot& s) { s.slots[0].node = "n2"; },
     {4},
     "for node n2, and was given node n1"},
    {"PodWithoutAllocation",
     [](Snapshot& s) { s.cluster->pods[0].slot->attempt = 3; },
     {4},
     "attempt 3 was never given"},
    {"TwoPodsInASlot",
     [](Snapshot& s) {
       PodView second = s.cluster->pods[0];
       second.uid = "other";
       second.name = "team/other";
       s.cluster->pods.push_back(second);
     },
     {4},
     "both run in slot 0"},
    {"EndedJobHolds",
     [](Snapshot& s) {
       Allocation(s, "over").released = false;
       s.nodes[1].node.mutable_allocatable(0)->set_amount(9000);
     },
     {5},
     "still holds 1 slots"},
    {"EndedJobKeepsASlot",
     [](Snapshot& s) {
       s.slots.push_back({.key = {"over", 1, 0},
                          .slot = 0,
                          .node = "n2",
                          .pod_uid = "x",
                          .pod = "team/x",
                          .state = "bound",
                          .bound_once = true});
     },
     {5},
     "the binder still keeps slot 0"},
    {"ReleasedAndRuns",
     [](Snapshot& s) { Allocation(s, "gang").placement.mutable_slots(1)->set_released(true); },
     {5},
     "still runs on node n2, and its slot 1 has been given back"},
    {"AdmittedAndLost",
     [](Snapshot& s) {
       s.workloads.push_back({"w", "Pod", "team", "w"});
     },
     {6},
     "does not know it"},
    {"NotAState",
     [](Snapshot& s) { s.jobs["waiting"].state = s.events["waiting"].last_state = "Napping"; },
     {6},
     "\"Napping\" is not a state"},
    {"EventsSayOtherwise",
     [](Snapshot& s) { s.events["waiting"].last_state = "Running"; },
     {6},
     "its last event says Running"},
    {"WorkloadIsGone",
     [](Snapshot& s) { s.cluster->objects.erase("waiting"); },
     {6},
     "is not in the cluster"},
    {"WorkloadHasEnded",
     [](Snapshot& s) { s.cluster->objects["one"].ended = true; },
     {6},
     "its Job has ended"},
    {"GapInEvents",
     [](Snapshot& s) { --s.events["over"].count; },
     {7},
     "4 events with versions 1 to 5"},
    {"BeginningIsMissing",
     [](Snapshot& s) {
       --s.events["over"].count;
       ++s.events["over"].first;
     },
     {7},
     "4 events with versions 2 to 5"},
    {"RowAhead",
     [](Snapshot& s) {
       s.jobs["waiting"].version = 2;
       s.topic["waiting"].last = 2;
     },
     {7},
     "it is at version 2, its events at 1"},
    {"TopicBehind", [](Snapshot& s) { s.topic.erase("over"); }, {7}, "the jobs topic at 0"},
    {"TopicRepeats",
     [](Snapshot& s) { s.topic["one"].faults = {"version 2 follows 2"}; },
     {7},
     "version 2 follows 2"},
    {"TopicUnreadable",
     [](Snapshot& s) { s.unreadable = {"partition 1 offset 2: junk"}; },
     {7},
     "junk"},
};

INSTANTIATE_TEST_SUITE_P(Each, BrokenTest, ::testing::ValuesIn(kCases), [](const auto& each) {
  return std::string(each.param.name);
});

TEST(InvariantsTest, PodOnALostNodeThatIsBeingDeletedHasStopped) {
  Snapshot snapshot = Healthy();
  Allocation(snapshot, "gang").placement.mutable_slots(1)->set_released(true);
  snapshot.cluster->pods.back().deleting = true;
  EXPECT_EQ(Broken(CheckInvariants(snapshot)), std::vector<int>{5});
  snapshot.cluster->nodes["n2"] = false;
  EXPECT_THAT(Broken(CheckInvariants(snapshot)), IsEmpty());
}

TEST(InvariantsTest, AClaimIsNotLookedForInTheCluster) {
  Snapshot snapshot = Healthy();
  snapshot.jobs["one"].kind = "Claim";
  snapshot.cluster->objects.erase("one");
  EXPECT_TRUE(AllOk(CheckInvariants(snapshot)));
  // But what it holds must be there.
  Allocation(snapshot, "one").released = true;
  EXPECT_THAT(Broken(CheckInvariants(snapshot)), testing::Contains(3));
}

TEST(InvariantsTest, WithoutAClusterTheRestIsChecked) {
  Snapshot snapshot = Healthy();
  snapshot.cluster.reset();
  std::vector<Check> checks = CheckInvariants(snapshot);
  EXPECT_TRUE(AllOk(checks));
  EXPECT_THAT(checks[3].not_checked, HasSubstr("kubeconfig"));
  snapshot.slots[0].node = "n2";
  EXPECT_THAT(Broken(CheckInvariants(snapshot)), ElementsAre(4));
}

TEST(InvariantsTest, OfALongHistoryTheEndIsEnough) {
  Snapshot snapshot = Healthy();
  snapshot.jobs["one"].version = snapshot.topic["one"].last = 1500;
  EventTrail& trail = snapshot.events["one"];
  trail = {.count = 1000, .first = 501, .last = 1500, .last_state = trail.last_state};
  EXPECT_TRUE(AllOk(CheckInvariants(snapshot)));
  --trail.count;
  EXPECT_THAT(Broken(CheckInvariants(snapshot)), ElementsAre(7));
}

TEST(InvariantsTest, OnlyWhatTwoLooksSeeIsADefect) {
  Snapshot first = Healthy();
  Allocation(first, "over").released = false;
  first.nodes[1].node.mutable_allocatable(0)->set_amount(9000);
  first.topic["one"].last = 2;
  Snapshot second = first;
  Allocation(second, "over").released = true;
  const auto checks = Persisting(CheckInvariants(first), CheckInvariants(second));
  EXPECT_THAT(Broken(checks), ElementsAre(7));

  // It moves: another version, not yet told.
  second.jobs["one"].version = second.events["one"].last = second.events["one"].count = 4;
  second.topic["one"].last = 3;
  EXPECT_THAT(Broken(Persisting(CheckInvariants(first), CheckInvariants(second))), IsEmpty());
}

TEST(InvariantsTest, ReplayThatDiffersIsTheEighth) {
  PoolReplay pool{.pool = "default"};
  pool.total = {.decisions = 10, .identical = 10, .in_flight = 1};
  EXPECT_TRUE(CheckReplay({pool}).ok());
  EXPECT_EQ(CheckReplay({pool}).checked, "10 decisions, 10 identical, 1 in flight");
  pool.total.identical = 9;
  pool.differences.push_back({"cycle_requested at partition 0 offset 3", "a", "b"});
  const Check check = CheckReplay({pool});
  EXPECT_EQ(check.number, 8);
  ASSERT_FALSE(check.ok());
  EXPECT_THAT(check.findings.front().text,
              HasSubstr("1 of 10 decisions differ, the first: cycle_requested"));
}

}  // namespace
}  // namespace fluxqueue::verify
