// Whom a candidate is answered with, of all that may be stopped for it: those whose room is of use,
// the fewest of them, and nobody in vain.
#include <algorithm>
#include <bit>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "libs/base/status_macros.h"
#include "libs/graph/engine_kind.h"
#include "libs/matcher_core/codec.h"
#include "libs/matcher_core/core_fixture.h"
#include "libs/matcher_core/matcher_core.h"
#include "libs/matcher_core/test_messages.h"

namespace fluxqueue::matcher_core {
namespace {

using events::v1::CycleAnswered;
using events::v1::CycleRequested;
using events::v1::Outcome;
using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::StartsWith;

struct MayBeStopped {
  std::string job;
  int64_t lost = 0;
  bool stopping = false;
  uint32_t lender = 0;
  int64_t holds = 0;
};

// All of them for these candidates.
Envelope With(Envelope message,
              const std::vector<MayBeStopped>& jobs,
              std::vector<int> candidates) {
  CycleRequested* cycle = message.mutable_cycle_requested();
  for (const MayBeStopped& job : jobs) {
    auto* stoppable = cycle->add_stoppable();
    stoppable->mutable_key()->set_job_id(job.job);
    stoppable->mutable_key()->set_attempt(1);
    stoppable->set_lost(job.lost);
    stoppable->set_stopping(job.stopping);
    if (job.lender == 0) continue;
    stoppable->set_lender(job.lender);
    stoppable->add_holds(job.holds);
  }
  for (const int candidate : candidates) {
    cycle->mutable_candidates(candidate)->set_stoppable(std::string(jobs.size() / 8 + 2, '\xff'));
    cycle->mutable_candidates(candidate)->set_lenders("\xff");
  }
  return message;
}

events::v1::Node Labelled(events::v1::Node node, const std::string& key, const std::string& value) {
  auto* label = node.add_labels();
  label->set_key(key);
  label->set_value(value);
  return node;
}

class StoppableTest : public CycleByCycleTest {};

// Two hundred jobs of which only four run where the job that waits may go, and these lose most.
TEST_F(StoppableTest, OnNodesThatItsConstraintNames) {
  std::vector<MayBeStopped> jobs;
  for (int node = 0; node < 50; ++node) {
    const std::string disk = node < 49 ? "hdd" : "ssd";
    Feed(Upserted(Labelled(MakeNode(fmt::format("n{:02}", node), 4000), "disk", disk)));
  }
  Feed(Synced());
  for (int i = 0; i < 200; ++i) {
    const std::string job = fmt::format("j{:03}", i);
    Holds(job, 1, 1000, i < 196 ? "disk=hdd" : "disk=ssd");
    jobs.push_back({job, i});
  }
  Feed(Submitted("urgent", 1, JobspecText(1, 2000, "disk=ssd")));
  const Outcome outcome = Ask(With(Cycle(1, {"urgent"}), jobs, {0})).outcomes(0);
  EXPECT_EQ(outcome.kind(), Outcome::KIND_BUSY);
  EXPECT_THAT(Victims(outcome), ElementsAre("j196", "j197"));
  EXPECT_EQ(outcome.reason(), "starts when 2 jobs have given back what they hold by being stopped");
}

TEST_F(StoppableTest, AGangOfAnySize) {
  std::vector<MayBeStopped> jobs;
  for (int i = 0; i < 120; ++i) Feed(Upserted(MakeNode(fmt::format("n{:03}", i), 1000)));
  Feed(Synced());
  for (int i = 0; i < 110; ++i) {
    jobs.push_back({fmt::format("j{:03}", i), i});
    Holds(jobs.back().job, 1, 1000);
  }
  Feed(Submitted("gang", 100, 1000));
  // Ten nodes are free.
  const Outcome outcome = Ask(With(Cycle(1, {"gang"}), jobs, {0})).outcomes(0);
  ASSERT_EQ(outcome.victims_size(), 90);
  EXPECT_EQ(outcome.victims(0).job_id(), "j000");
  EXPECT_EQ(outcome.victims(89).job_id(), "j089");
}

TEST_F(StoppableTest, InOneRack) {
  for (const char* node : {"a1", "a2", "b1", "b2"}) {
    Feed(Upserted(Labelled(MakeNode(node, 1000), "zone", std::string(node).substr(0, 1))));
  }
  Feed(Configured("first", {"zone"}));
  Feed(Synced());
  Feed(Submitted("x", 1, JobspecText(1, 1000, "zone=a")));
  Feed(Submitted("y", 1, JobspecText(1, 1000, "zone=b")));
  Feed(Submitted("z", 1, JobspecText(1, 1000, "zone=b")));
  for (const char* job : {"x", "y", "z"}) Ask(Cycle(1, {job}));
  Feed(Submitted("pair", 2, GroupsText(2, 1000)));
  // One node of zone a is free, where stopping one is enough; z and y lose less.
  const Outcome outcome =
      Ask(With(Cycle(1, {"pair"}), {{"y", 1}, {"z", 1}, {"x", 9}}, {0})).outcomes(0);
  EXPECT_THAT(Victims(outcome), ElementsAre("x"));
}

TEST_F(StoppableTest, WhatStopsAlreadyComesFirst) {
  Feed(Upserted(MakeNode("a", 2000)));
  Feed(Upserted(MakeNode("b", 1000)));
  Feed(Synced());
  Holds("going", 1, 1000);
  Holds("gone", 1, 1000);
  Holds("cheap", 1, 1000);
  Feed(Submitted("urgent", 1, 1000));
  Feed(Submitted("wide", 2, 1000));
  const std::vector<MayBeStopped> jobs = {{"going", 0, true}, {"cheap", 0}, {"gone", 5}};
  EXPECT_THAT(Victims(Ask(With(Cycle(1, {"urgent"}), jobs, {0})).outcomes(0)),
              ElementsAre("going"));
  // It is not enough: one more.
  EXPECT_THAT(Victims(Ask(With(Cycle(1, {"wide"}), jobs, {0})).outcomes(0)),
              ElementsAre("going", "cheap"));
}

TEST_F(StoppableTest, NobodyWhenItStartsOrWhenAllAreNotEnough) {
  Feed(Upserted(MakeNode("a", 2000)));
  Feed(Synced());
  Holds("low", 1, 1000);
  Holds("other", 1, 500);
  Feed(Submitted("wide", 1, 2000));
  Feed(Submitted("small", 1, 500));
  const std::vector<MayBeStopped> jobs = {{"low"}, {"nobody"}, {"low"}};
  Outcome outcome = Ask(With(Cycle(1, {"wide"}), jobs, {0})).outcomes(0);
  EXPECT_THAT(Victims(outcome), IsEmpty());
  EXPECT_THAT(outcome.reason(), StartsWith("cpu:"));
  outcome = Ask(With(Cycle(1, {"small"}), jobs, {0})).outcomes(0);
  EXPECT_EQ(outcome.kind(), Outcome::KIND_ALLOCATED);
  EXPECT_THAT(Victims(outcome), IsEmpty());
}

TEST_F(StoppableTest, TwoDoNotWaitForTheSameRoomAndNobodyTakesIt) {
  for (const char* node : {"a", "b", "c"}) Feed(Upserted(MakeNode(node, 1000)));
  Feed(Synced());
  Holds("x", 1, 1000);
  Holds("y", 1, 1000);
  for (const char* job : {"first", "second", "third", "behind"}) Feed(Submitted(job, 1, 1000));
  Feed(Submitted("pair", 2, 1000));
  const std::vector<MayBeStopped> jobs = {{"x"}, {"y"}};
  // One node is free, and counted on.
  Envelope cycle = Backfill(1, {{"pair", 60}, {"second", 60}, {"third", 60}, {"behind", 60}});
  const CycleAnswered answer = Ask(With(cycle, jobs, {0, 1, 2}));
  ASSERT_EQ(answer.outcomes_size(), 4);
  EXPECT_THAT(Victims(answer.outcomes(0)), ElementsAre("x"));
  EXPECT_THAT(Victims(answer.outcomes(1)), ElementsAre("y"));
  EXPECT_THAT(Victims(answer.outcomes(2)), IsEmpty());
  EXPECT_NE(answer.outcomes(3).kind(), Outcome::KIND_ALLOCATED);
  EXPECT_EQ(Ask(Cycle(1, {"behind"})).outcomes(0).kind(), Outcome::KIND_ALLOCATED);
}

// Whoever is stopped for two candidates of a cycle counts together against the guarantee.
TEST_F(StoppableTest, WhatAQueueCanSpareIsOfTheWholeCycle) {
  for (const char* node : {"a", "b", "c"}) Feed(Upserted(MakeNode(node, 1000)));
  Feed(Synced());
  for (const char* job : {"x", "y", "z"}) Holds(job, 1, 1000);
  for (const char* job : {"first", "second"}) Feed(Submitted(job, 1, 1000));
  Envelope cycle = With(Backfill(1, {{"first", 60}, {"second", 60}}),
                        {{"x", 0, false, 1, 1000}, {"y", 0, false, 1, 1000}, {"z", 9}},
                        {0, 1});
  auto* lender = cycle.mutable_cycle_requested()->add_lenders();
  lender->add_spare(5000);
  lender->set_above(2);
  cycle.mutable_cycle_requested()->add_lenders()->add_spare(1500);
  CycleAnswered answer = Ask(cycle);
  EXPECT_THAT(Victims(answer.outcomes(0)), ElementsAre("x"));
  EXPECT_THAT(Victims(answer.outcomes(1)), ElementsAre("z"));
  // The lender above does not count for the second.
  cycle.mutable_cycle_requested()->mutable_candidates(1)->set_lenders("\x01");
  answer = Ask(cycle);
  EXPECT_THAT(Victims(answer.outcomes(1)), ElementsAre("y"));
}

// Whoever is stopped takes a while, and the job must be through before what is promised.
TEST_F(StoppableTest, TheTimeThatStoppingTakesCounts) {
  Feed(Upserted(MakeNode("a", 2000)));
  Feed(Synced());
  Holds("x", 1, 1000);  // until 60 s later
  Holds("y", 1, 1000);
  Feed(Submitted("whole", 1, 2000));
  Feed(Submitted("urgent", 1, 1000));
  Envelope cycle = With(Backfill(1, {{"whole", 60}, {"urgent", 20}}), {{"x"}, {"y"}}, {1});
  cycle.mutable_cycle_requested()->mutable_candidates(1)->set_stop_s(10);
  EXPECT_THAT(Victims(Ask(cycle).outcomes(1)), ElementsAre("x"));
  cycle.mutable_cycle_requested()->mutable_candidates(1)->set_stop_s(45);
  EXPECT_THAT(Victims(Ask(cycle).outcomes(1)), IsEmpty());
  // One that is going anyway is waited for all the same.
  cycle.mutable_cycle_requested()->mutable_stoppable(1)->set_stopping(true);
  EXPECT_THAT(Victims(Ask(cycle).outcomes(1)), ElementsAre("y"));
}

// A job ahead of it would take the room that comes free.
TEST_F(StoppableTest, NobodyIsStoppedForRoomThatOneAheadTakes) {
  Feed(Upserted(Labelled(MakeNode("a", 1000), "disk", "ssd")));
  Feed(Upserted(Labelled(MakeNode("b", 1000), "disk", "hdd")));
  Feed(Synced());
  Holds("x", 1, 1000, "disk=ssd");
  Holds("y", 1, 1000, "disk=hdd");
  Feed(Submitted("ahead", 1, JobspecText(1, 1000, "disk=ssd")));
  Feed(Submitted("urgent", 1, JobspecText(1, 1000, "disk=ssd")));
  Feed(Submitted("other", 1, JobspecText(1, 1000, "disk=hdd")));
  for (const uint32_t reservations : {0, 1}) {
    Envelope cycle = Backfill(1, {{"ahead", 60}, {"urgent", 10}, {"other", 10}}, reservations);
    const CycleAnswered answer = Ask(With(cycle, {{"x"}, {"y"}}, {1, 2}));
    EXPECT_THAT(Victims(answer.outcomes(1)), IsEmpty());
    EXPECT_THAT(Victims(answer.outcomes(2)), ElementsAre("y"));
  }
}

TEST_F(StoppableTest, NothingIsLeftByARollback) {
  Feed(Upserted(MakeNode("a", 2000)));
  Feed(Synced());
  Holds("x", 1, 1000);
  Holds("y", 1, 1000);
  Feed(Submitted("ahead", 1, 4000));
  Feed(Submitted("urgent", 1, 2000));
  const uint64_t before = core_.Fingerprint();
  std::vector<Envelope> said;
  const Envelope cycle = With(Backfill(9, {{"ahead", 60}, {"urgent", 60}}), {{"x"}, {"y"}}, {1});
  ASSERT_TRUE(core_.Handle(cycle, Millis(5000), &said).ok());
  ASSERT_EQ(said.size(), 1U);
  EXPECT_THAT(Victims(said[0].cycle_answered().outcomes(1)), ElementsAre("x", "y"));
  EXPECT_THAT(core_.TakeChanges().allocations, IsEmpty());
  EXPECT_THAT(core_.TakeChanges().released, IsEmpty());
  core_.Rollback();
  EXPECT_EQ(core_.Fingerprint(), before);
}

// What nobody should write is no end of the process.
TEST_F(StoppableTest, PlacesThatAreNone) {
  Feed(Upserted(MakeNode("a", 1000)));
  Feed(Synced());
  Holds("x", 1, 1000);
  Feed(Submitted("urgent", 1, 1000));
  Envelope cycle = With(Cycle(1, {"urgent"}), {{"x", 0, false, 7, 5}}, {0});
  EXPECT_THAT(Victims(Ask(cycle).outcomes(0)), ElementsAre("x"));
  cycle = With(Cycle(1, {"urgent"}), {{"x", 0, false, 1, 5}}, {0});
  for (const uint32_t above : {2, 1})
    cycle.mutable_cycle_requested()->add_lenders()->set_above(above);
  EXPECT_THAT(Victims(Ask(cycle).outcomes(0)), ElementsAre("x"));
}

// ---- all sets

// A small full pool with labels, gpus and what others use, and a job that waits in it.
class SmallPool {
 public:
  explicit SmallPool(uint32_t seed) : random_(seed * 7919) {
    random_.discard(3);
    const int nodes = 2 + Roll(4);
    for (int i = 0; i < nodes; ++i) Feed(Upserted(NewNode(i)));
    policy_ = Roll(2) == 0 ? "lonode" : "first";
    Feed(Configured(policy_, {"rack"}));
    Feed(Synced());
    for (int i = 0; i < 8; ++i) {
      const std::string job = fmt::format("j{}", i);
      jobs.push_back(job);
      Feed(Submit(job, 2, 4, false));
    }
    Feed(Cycle(1, jobs));
    Feed(Submit("urgent", 4, 5, true));
  }

  // Of the first cycle in which it waits, with all that may be stopped.
  Outcome Ask() {
    std::vector<MayBeStopped> all;
    for (const std::string& job : jobs) all.push_back({job, static_cast<int64_t>(all.size())});
    Feed(With(Cycle(2, {"urgent"}), all, {0}));
    return said_.back().cycle_answered().outcomes(0);
  }

  // Those sets of jobs, as bits, without which it would start. Before Ask().
  std::vector<uint32_t> EnoughOf() const {
    const std::unique_ptr<graph::Engine> engine = graph::MakeNativeEngine();
    EXPECT_TRUE(engine->SetPolicy(policy_).ok());
    EXPECT_TRUE(graph::Copy(core_.engine(), engine.get()).ok());
    EXPECT_TRUE(engine->SetLevels({"rack"}).ok());
    const absl::StatusOr<graph::Jobspec> jobspec = graph::ParseJobspec(urgent_);
    std::vector<uint32_t> enough;
    for (uint32_t set = 0; set < 1U << jobs.size(); ++set) {
      std::vector<std::pair<AllocationKey, graph::Placement>> gone;
      for (size_t i = 0; i < jobs.size(); ++i) {
        const AllocationKey key{jobs[i], 1, 0};
        const graph::Placement* held = engine->Find(key);
        if ((set >> i & 1) == 0 || held == nullptr) continue;
        gone.emplace_back(key, *held);
        engine->Release(key);
      }
      const AllocationKey key{"urgent", 1, 0};
      const auto kind = engine
                            ->Match({.operation = graph::Operation::kAllocate,
                                     .key = key,
                                     .jobspec = *jobspec,
                                     .now_s = 102,
                                     .duration_s = 60})
                            .kind;
      if (kind == graph::OutcomeKind::kAllocated) enough.push_back(set);
      engine->Release(key);
      for (const auto& [released, placement] : gone) {
        EXPECT_TRUE(engine->Restore(released, placement).ok());
      }
    }
    return enough;
  }

  uint32_t slots() const { return slots_; }
  std::vector<std::string> jobs;

 private:
  int Roll(int sides) { return static_cast<int>(random_() % static_cast<uint32_t>(sides)); }

  void Feed(const Envelope& message) {
    said_.clear();
    EXPECT_TRUE(core_.Handle(message, Millis(1), &said_).ok());
    core_.Commit();
  }

  events::v1::Node NewNode(int number) {
    events::v1::Node node = MakeNode(fmt::format("n{}", number), 1000 * (1 + Roll(4)));
    // In the order of their names.
    node = Labelled(node, "disk", Roll(2) == 0 ? "ssd" : "hdd");
    node = Labelled(node, "rack", Roll(2) == 0 ? "r1" : "r2");
    auto* gpus = node.add_allocatable();
    gpus->set_resource("fluxqueue.io/gpu-milli");
    gpus->set_amount(1000 * Roll(3));
    if (Roll(3) > 0) return node;
    auto* foreign = node.add_foreign();
    foreign->set_resource(Roll(2) == 0 ? "cpu" : "fluxqueue.io/gpu-milli");
    foreign->set_amount(500);
    return node;
  }

  Envelope Submit(const std::string& job, int most_slots, int most_halves, bool urgent) {
    const auto slots = static_cast<uint32_t>(1 + Roll(most_slots));
    std::string text =
        JobspecText(slots, 500 * (1 + Roll(most_halves)), Roll(4) == 0 ? "disk=ssd" : "");
    const std::string gpus =
        Roll(3) == 0
            ? fmt::format(R"(,{{"type":"fluxqueue.io/gpu-milli","count":{}}})", 500 * (1 + Roll(3)))
            : "";
    const size_t with = text.find("}]}],\"tasks\"");
    text.insert(with + 1, gpus);
    if (urgent && Roll(4) == 0) {
      const std::string resources = "\"resources\":[";
      const size_t begin = text.find(resources) + resources.size();
      const size_t end = text.find("],\"tasks\"");
      text = text.substr(0, begin) + R"({"type":"rack","count":1,"with":[)" +
             text.substr(begin, end - begin) + "]}" + text.substr(end);
    }
    if (urgent) {
      urgent_ = text;
      slots_ = slots;
    }
    return Submitted(job, slots, text);
  }

  std::minstd_rand random_;
  MatcherCore core_{"default"};
  std::vector<Envelope> said_;
  std::string policy_;
  std::string urgent_;
  uint32_t slots_ = 0;
};

// What is named is enough, nobody of it can be spared, and no fewer are; nobody is named when no
// set is enough.
TEST(StoppableProperty, TheFewestOfAllSets) {
  int found = 0;
  int gangs = 0;
  int hopeless = 0;
  int more_than_fewest = 0;
  for (uint32_t seed = 1; seed <= 2000; ++seed) {
    SCOPED_TRACE(seed);
    SmallPool pool(seed);
    const std::vector<uint32_t> enough = pool.EnoughOf();
    const Outcome outcome = pool.Ask();
    if (outcome.kind() == Outcome::KIND_ALLOCATED) {
      EXPECT_EQ(enough.size(), 256U);
      continue;
    }
    if (enough.empty()) {
      ++hopeless;
      EXPECT_THAT(Victims(outcome), IsEmpty());
      continue;
    }
    ++found;
    gangs += pool.slots() > 1 ? 1 : 0;
    uint32_t chosen = 0;
    for (const std::string& victim : Victims(outcome)) {
      chosen |= 1U << (std::find(pool.jobs.begin(), pool.jobs.end(), victim) - pool.jobs.begin());
    }
    const auto is_enough = [&enough](uint32_t set) {
      return std::binary_search(enough.begin(), enough.end(), set);
    };
    EXPECT_TRUE(is_enough(chosen));
    int fewest = 8;
    for (const uint32_t set : enough) fewest = std::min(fewest, std::popcount(set));
    for (size_t i = 0; i < pool.jobs.size(); ++i) {
      if (chosen >> i & 1) {
        EXPECT_FALSE(is_enough(chosen & ~(1U << i)));
      }
    }
    if (pool.slots() == 1) {
      EXPECT_EQ(std::popcount(chosen), fewest);
    }
    more_than_fewest += std::popcount(chosen) > fewest ? 1 : 0;
  }
  fmt::print(
      "of 2000 pools {} ask for victims, {} of them for gangs, {} are hopeless; more than the "
      "fewest: {}\n",
      found,
      gangs,
      hopeless,
      more_than_fewest);
  EXPECT_GT(found, 800);
  EXPECT_GT(gangs, 300);
  EXPECT_GT(hopeless, 100);
  EXPECT_LT(more_than_fewest * 100, found);
}

}  // namespace
}  // namespace fluxqueue::matcher_core
