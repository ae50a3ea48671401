// What the model of placer_property_test.cc does not have: amounts that are no whole granules, GPUs
// in parts, and a library that fails. On our own library, in this process.
#include "libs/fluxion/placer.h"

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "libs/base/status_macros.h"
#include "libs/graph/booked_engine.h"

namespace fluxqueue::fluxion {
namespace {

using graph::Amounts;
using graph::Jobspec;
using graph::NodeSpec;
using graph::OutcomeKind;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr int64_t kGi = int64_t{1} << 30;

Jobspec Spec(uint32_t slots, Amounts request) {
  Jobspec spec;
  spec.slots = slots;
  spec.groups = {{slots, std::move(request)}};
  spec.shape = std::to_string(slots);
  for (const graph::Amount& amount : spec.groups[0].request) {
    spec.shape += " " + amount.resource + std::to_string(amount.amount);
  }
  return spec;
}

// Ends, as the library's process may, whenever it is asked for five cores, and when `calls` is
// over; restores nothing on a node that is called "refused".
class Brittle final : public Context {
 public:
  Brittle(std::unique_ptr<Context> whole, int* calls) : whole_(std::move(whole)), calls_(*calls) {}

  absl::StatusOr<Placed> Match(graph::MatchOperation operation,
                               const std::string& jobspec,
                               uint64_t job) override {
    const bool fatal = jobspec.find(R"("count":5,"type":"core")") != std::string::npos;
    if (fatal || calls_-- == 0) return Unavailable("it has ended");
    return whole_->Match(operation, jobspec, job);
  }
  absl::Status Restore(uint64_t job, const std::string& resources) override {
    if (resources.find("refused") != std::string::npos) return InvalidArgument("not that one");
    return whole_->Restore(job, resources);
  }
  absl::Status Cancel(uint64_t job) override { return whole_->Cancel(job); }
  absl::Status CancelPart(uint64_t job, const std::string& resources) override {
    return whole_->CancelPart(job, resources);
  }
  absl::StatusOr<std::string> Find(const std::string& criteria) override {
    return whole_->Find(criteria);
  }
  absl::Status SetUp(const std::string& path, bool up) override { return whole_->SetUp(path, up); }

 private:
  std::unique_ptr<Context> whole_;
  int& calls_;
};

class FluxionPlacerTest : public ::testing::Test {
 protected:
  FluxionPlacerTest() { EXPECT_TRUE(engine_.SetPolicy("lonode").ok()); }

  void AddNode(const std::string& name, Amounts resources, Amounts foreign = {}) {
    NodeSpec node;
    node.name = name;
    node.uid = name;
    node.ordinal = next_ordinal_++;
    node.resources = std::move(resources);
    node.foreign = std::move(foreign);
    nodes_[name] = node;
    ASSERT_TRUE(engine_.AddNode(node).ok());
  }

  // Nothing: not now.
  std::vector<std::string> Match(const std::string& job, const Jobspec& spec) {
    const graph::Outcome outcome = engine_.Match({.key = {job, 1, 0}, .jobspec = spec});
    last_ = outcome.kind;
    std::vector<std::string> nodes;
    if (outcome.placement == nullptr) return nodes;
    for (const graph::PlacedSlot& slot : outcome.placement->slots) nodes.push_back(slot.node);
    return nodes;
  }

  std::unique_ptr<Context> Open(const std::string& jgf, const Context::Settings& settings) {
    auto library = Library::Open(FLUXQUEUE_REAPI_LIBRARY);
    EXPECT_TRUE(library.ok()) << library.status();
    auto context = MakeContext(*library, jgf, settings);
    EXPECT_TRUE(context.ok()) << context.status();
    return std::make_unique<Brittle>(*std::move(context), &calls_);
  }

  int lost_ = 0;
  int calls_ = -1;  // never
  uint64_t next_ordinal_ = 0;
  std::map<std::string, NodeSpec> nodes_;
  OutcomeKind last_ = OutcomeKind::kBusy;
  graph::BookedEngine engine_{[this](graph::NodeTable* table, graph::ExpectedWork*) {
    PlacerOptions options;
    options.open = [this](const std::string& jgf, const Context::Settings& settings)
        -> absl::StatusOr<std::unique_ptr<Context>> { return Open(jgf, settings); };
    options.lost = [this](const absl::Status&) { ++lost_; };
    options.failed = [](const absl::Status& why) { FAIL() << why; };
    return std::make_unique<FluxionPlacer>(table, std::move(options));
  }};
};

TEST_F(FluxionPlacerTest, RoundsUpToGranulesAndSaysSo) {
  AddNode("n", {{"cpu", 4000}, {"memory", 8 * kGi - 1}});
  const Jobspec one_and_a_half = Spec(1, {{"cpu", 1500}, {"memory", kGi / 2}});
  EXPECT_THAT(Match("a", one_and_a_half), ElementsAre("n"));
  EXPECT_THAT(Match("b", one_and_a_half), ElementsAre("n"));
  EXPECT_THAT(Match("c", one_and_a_half), ElementsAre());
  EXPECT_EQ(last_, OutcomeKind::kBusy);
  EXPECT_THAT(engine_.Explain(one_and_a_half, graph::Wording::kShort).sentence,
              HasSubstr("in whole granules of 1 and 1Gi"));
  // The books say what was asked for.
  EXPECT_EQ(engine_.UsageByNode()[0].resources[0].held, 3000);
  // Seven whole GiB are there, and 3.5 cores are four.
  EXPECT_THAT(Match("d", Spec(1, {{"memory", 8 * kGi - 1}})), ElementsAre());
  EXPECT_EQ(last_, OutcomeKind::kUnsatisfiable);
  EXPECT_THAT(Match("e", Spec(1, {{"cpu", 3500}})), ElementsAre());
  EXPECT_EQ(last_, OutcomeKind::kBusy);
}

TEST_F(FluxionPlacerTest, TakesNodesThatAreWorthMoreFirst) {
  for (const char* name : {"n0", "n1", "n2"}) AddNode(name, {{"cpu", 2000}});
  NodeSpec better = nodes_["n1"];
  better.labels = {{"disk", "ssd"}};
  ASSERT_TRUE(engine_.UpdateNode(better).ok());
  Jobspec spec = Spec(3, {{"cpu", 1000}});
  spec.preferences = {.terms = {{graph::Constraint::HasLabel("disk", "ssd"), 5}},
                      .tolerations = {},
                      .pods = {},
                      .worths = nullptr,
                      .signature = "ssd"};
  EXPECT_THAT(Match("a", spec), ElementsAre("n1", "n1", "n0"));
  EXPECT_THAT(Match("b", WithSlots(spec, 3)), ElementsAre("n0", "n2", "n2"));
  EXPECT_TRUE(engine_.Release({"a", 1, 0}));
  EXPECT_THAT(Match("c", WithSlots(spec, 2)), ElementsAre("n1", "n1"));
  EXPECT_EQ(lost_, 0);
}

TEST_F(FluxionPlacerTest, LeavesToOthersWhatTheyUse) {
  AddNode("n", {{"cpu", 4000}}, {{"cpu", 1500}});
  EXPECT_THAT(Match("a", Spec(1, {{"cpu", 3000}})), ElementsAre());
  EXPECT_THAT(Match("b", Spec(2, {{"cpu", 1000}})), ElementsAre("n", "n"));
  EXPECT_THAT(Match("c", Spec(1, {{"cpu", 100}})), ElementsAre());
  NodeSpec node = nodes_["n"];
  node.foreign.clear();
  ASSERT_TRUE(engine_.UpdateNode(node).ok());
  EXPECT_THAT(Match("d", Spec(2, {{"cpu", 100}})), ElementsAre("n", "n"));
  EXPECT_EQ(lost_, 0);
}

TEST_F(FluxionPlacerTest, WhatAMatchHasGotCountsWhenTheLibraryEndsInTheMiddleOfIt) {
  AddNode("n0", {{"cpu", 4000}}, {{"cpu", 2000}});
  AddNode("n1", {{"cpu", 4000}}, {{"cpu", 2000}});
  calls_ = 1;
  EXPECT_THAT(Match("a", Spec(4, {{"cpu", 1000}})), ElementsAre("n0", "n0", "n1", "n1"));
  EXPECT_EQ(lost_, 1);
  EXPECT_THAT(Match("b", Spec(1, {{"cpu", 1000}})), ElementsAre());
}

TEST_F(FluxionPlacerTest, GivesNothingOfANodeOnWhichTheLibraryRefusesWhatIsHeld) {
  AddNode("refused", {{"cpu", 4000}}, {{"cpu", 1000}});
  AddNode("n", {{"cpu", 1000}});
  EXPECT_THAT(Match("a", Spec(1, {{"cpu", 1000}})), ElementsAre("n"));
  EXPECT_THAT(Match("b", Spec(1, {{"cpu", 1000}})), ElementsAre());
  // By a job, once the graph was made anew.
  NodeSpec node = nodes_["refused"];
  node.foreign.clear();
  node.labels = {{"new", ""}};
  ASSERT_TRUE(engine_.UpdateNode(node).ok());
  EXPECT_THAT(Match("c", Spec(1, {{"cpu", 1000}})), ElementsAre("refused"));
  AddNode("other", {{"cpu", 1000}});
  EXPECT_THAT(Match("d", Spec(1, {{"cpu", 1000}})), ElementsAre("other"));
  EXPECT_THAT(Match("e", Spec(1, {{"cpu", 1000}})), ElementsAre());
  EXPECT_EQ(lost_, 0);
}

TEST_F(FluxionPlacerTest, GivesWholeDevicesToParts) {
  AddNode("n", {{"cpu", 8000}, {std::string(graph::kGpuMilli), 3000}});
  const Jobspec half = Spec(1, {{"cpu", 1000}, {std::string(graph::kGpuMilli), 500}});
  EXPECT_THAT(Match("a", half), ElementsAre("n"));
  EXPECT_THAT(engine_.Find({"a", 1, 0})->slots[0].devices, ElementsAre(0));
  EXPECT_THAT(Match("b", Spec(1, {{std::string(graph::kGpuMilli), 1500}})), ElementsAre("n"));
  EXPECT_THAT(engine_.Find({"b", 1, 0})->slots[0].devices, ElementsAre(1, 2));
  EXPECT_THAT(Match("c", half), ElementsAre());
  EXPECT_TRUE(engine_.Release({"a", 1, 0}));
  EXPECT_THAT(Match("c", half), ElementsAre("n"));
}

TEST_F(FluxionPlacerTest, SeesNodesComeChangeAndGoUnderLiveJobs) {
  AddNode("a", {{"cpu", 2000}});
  EXPECT_THAT(Match("on a", Spec(1, {{"cpu", 2000}})), ElementsAre("a"));
  AddNode("b", {{"cpu", 2000}});
  EXPECT_THAT(Match("on b", Spec(1, {{"cpu", 1000}})), ElementsAre("b"));
  // Smaller than what is held: nothing new until enough was given back.
  NodeSpec a = nodes_["a"];
  a.resources = {{"cpu", 1000}};
  ASSERT_TRUE(engine_.UpdateNode(a).ok());
  EXPECT_THAT(Match("too much", Spec(2, {{"cpu", 1000}})), ElementsAre());
  EXPECT_TRUE(engine_.Release({"on a", 1, 0}));
  EXPECT_THAT(Match("both", Spec(2, {{"cpu", 1000}})), ElementsAre("a", "b"));
  EXPECT_THAT(*engine_.RemoveNode("a"), ElementsAre(graph::AllocationKey{"both", 1, 0}));
  EXPECT_THAT(Match("none", Spec(1, {{"cpu", 1000}})), ElementsAre());
  NodeSpec b = nodes_["b"];
  b.schedulable = false;
  EXPECT_TRUE(engine_.Release({"both", 1, 0}));
  ASSERT_TRUE(engine_.UpdateNode(b).ok());
  EXPECT_THAT(Match("cordoned", Spec(1, {{"cpu", 1000}})), ElementsAre());
  b.schedulable = true;
  ASSERT_TRUE(engine_.UpdateNode(b).ok());
  EXPECT_THAT(Match("again", Spec(1, {{"cpu", 1000}})), ElementsAre("b"));
  EXPECT_EQ(lost_, 0);
}

TEST_F(FluxionPlacerTest, AJobspecThatEndsTheLibraryEachTimeWaitsAndNobodyElseDoes) {
  AddNode("n", {{"cpu", 16'000}});
  EXPECT_THAT(Match("before", Spec(1, {{"cpu", 1000}})), ElementsAre("n"));
  EXPECT_THAT(Match("fatal", Spec(1, {{"cpu", 5000}})), ElementsAre());
  EXPECT_EQ(last_, OutcomeKind::kBusy);
  EXPECT_EQ(lost_, 3);
  EXPECT_THAT(
      Match("behind", Spec(15, {{"cpu", 1000}})),
      ElementsAre("n", "n", "n", "n", "n", "n", "n", "n", "n", "n", "n", "n", "n", "n", "n"));
  EXPECT_THAT(Match("full", Spec(1, {{"cpu", 1000}})), ElementsAre());
}

// On nodes of which a part is reserved the rest goes to others, in the library too; parts of a GPU
// keep the whole device.
TEST_F(FluxionPlacerTest, GivesToOthersWhatIsNotReservedInTheirTime) {
  const std::string gpus(graph::kGpuMilli);
  AddNode("a", {{"cpu", 4000}, {gpus, 2000}});
  AddNode("b", {{"cpu", 4000}, {gpus, 2000}});
  const auto ask = [this](const std::string& job, const Jobspec& spec, int64_t duration_s) {
    return engine_.Match({.operation = graph::Operation::kAllocateOrReserve,
                          .key = {job, 1, 0},
                          .jobspec = spec,
                          .duration_s = duration_s});
  };
  const Jobspec half = Spec(1, {{"cpu", 2500}, {gpus, 500}});
  EXPECT_EQ(ask("runs", half, 100).kind, OutcomeKind::kAllocated);
  // Both nodes, but for a core and a device of each.
  const graph::Outcome wide = ask("wide", Spec(2, {{"cpu", 2500}, {gpus, 500}}), 100);
  EXPECT_EQ(wide.kind, OutcomeKind::kReserved);
  EXPECT_EQ(wide.at_s, 100);
  const Jobspec rest = Spec(1, {{"cpu", 700}, {gpus, 300}});
  const graph::Outcome first = ask("first", rest, 500);
  ASSERT_EQ(first.kind, OutcomeKind::kAllocated);
  EXPECT_EQ(first.placement->slots[0].node, "a");
  EXPECT_THAT(first.placement->slots[0].devices, ElementsAre(1));
  const graph::Outcome second = ask("second", rest, 500);
  ASSERT_EQ(second.kind, OutcomeKind::kAllocated);
  EXPECT_EQ(second.placement->slots[0].node, "b");
  EXPECT_EQ(ask("third", rest, 500).kind, OutcomeKind::kReserved);
  EXPECT_EQ(ask("short", rest, 100).kind, OutcomeKind::kAllocated);
  engine_.DropReservations();
  EXPECT_EQ(ask("third", Spec(1, {{"cpu", 1000}}), 500).kind, OutcomeKind::kAllocated);
  EXPECT_EQ(lost_, 0);
}

TEST_F(FluxionPlacerTest, KnowsFluxionsPoliciesThatTakeSlots) {
  EXPECT_TRUE(engine_.SetPolicy("locality").ok());
  const absl::Status refused = engine_.SetPolicy("lonodex");
  EXPECT_TRUE(absl::IsInvalidArgument(refused));
  EXPECT_THAT(Message(refused), HasSubstr("first, high, hinode, locality, lonode, low, variation"));
}

}  // namespace
}  // namespace fluxqueue::fluxion
