// Whose slots a candidate is answered with, where elastic jobs can go on with fewer: as few as will
// do, before any job is stopped, and none in vain.
#include <algorithm>
#include <bit>
#include <memory>
#include <optional>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "libs/base/status_macros.h"
#include "libs/graph/engine_kind.h"
#include "libs/matcher_core/core_fixture.h"
#include "libs/matcher_core/matcher_core.h"
#include "libs/matcher_core/test_messages.h"

namespace fluxqueue::matcher_core {
namespace {

using events::v1::CycleRequested;
using events::v1::Outcome;
using ::testing::ElementsAre;
using ::testing::IsEmpty;

struct MayGive {
  std::string job;
  uint32_t spare = 0;
  std::vector<uint32_t> vacating = {};
  int64_t lost = 0;
  uint32_t lender = 0;
  int64_t holds = 0;
  bool for_all = true;  // it may be stopped for the candidates
};

// For all candidates.
Envelope With(Envelope message, const std::vector<MayGive>& jobs) {
  CycleRequested* cycle = message.mutable_cycle_requested();
  std::string bits(jobs.size() / 8 + 1, '\0');
  for (size_t i = 0; i < jobs.size(); ++i) {
    auto* stoppable = cycle->add_stoppable();
    stoppable->mutable_key()->set_job_id(jobs[i].job);
    stoppable->mutable_key()->set_attempt(1);
    stoppable->set_spare_slots(jobs[i].spare);
    stoppable->set_lost(jobs[i].lost);
    for (const uint32_t slot : jobs[i].vacating) stoppable->add_vacating(slot);
    if (jobs[i].for_all) bits[i / 8] = static_cast<char>(bits[i / 8] | 1 << i % 8);
    if (jobs[i].lender == 0) continue;
    stoppable->set_lender(jobs[i].lender);
    stoppable->add_holds(jobs[i].holds);
  }
  for (auto& candidate : *cycle->mutable_candidates()) {
    candidate.set_stoppable(bits);
    candidate.set_lenders("\xff");
    candidate.set_stop_s(30);
  }
  return message;
}

// "e 2 3"
std::vector<std::string> Vacated(const Outcome& outcome) {
  std::vector<std::string> vacated;
  for (const auto& held : outcome.vacate()) {
    vacated.push_back(fmt::format("{} {}", held.key().job_id(), fmt::join(held.slots(), " ")));
  }
  return vacated;
}

class VacateTest : public CycleByCycleTest {
 protected:
  void Node(const std::string& name, int64_t cpu) { Feed(Upserted(MakeNode(name, cpu))); }
  // It holds all that it asks for.
  void HoldsElastic(const std::string& job, uint32_t min, uint32_t max, int64_t cpu = 1000) {
    Feed(Submitted(job, max, ElasticText(min, max, cpu)));
    const Outcome outcome = Ask(Cycle(1, {job})).outcomes(0);
    ASSERT_EQ(outcome.kind(), Outcome::KIND_ALLOCATED) << job;
    ASSERT_EQ(outcome.slots(), max);
  }
};

TEST_F(VacateTest, SlotsComeBeforeJobs) {
  Node("a", 4000);
  Feed(Synced());
  HoldsElastic("e", 1, 3);
  Holds("rigid", 1, 1000);
  Feed(Submitted("urgent", 1, 1000));
  // The rigid one would lose less.
  const Outcome outcome =
      Ask(With(Cycle(1, {"urgent"}), {{"rigid"}, {.job = "e", .spare = 2, .lost = 900}}))
          .outcomes(0);
  EXPECT_EQ(outcome.kind(), Outcome::KIND_BUSY);
  EXPECT_THAT(Vacated(outcome), ElementsAre("e 2"));
  EXPECT_THAT(Victims(outcome), IsEmpty());
  EXPECT_EQ(outcome.reason(), "starts when 1 elastic job has given back 1 slot");
}

TEST_F(VacateTest, OnTheNodeWhereTheyAreOfUse) {
  Node("a", 2000);
  Node("b", 4000);
  Feed(Synced());
  // Two on each, and two on b for others.
  Feed(Configured("lonode"));
  HoldsElastic("e", 1, 4);
  Holds("rigid", 2, 1000);
  Feed(Submitted("urgent", 1, 2000));
  const Outcome outcome = Ask(With(Cycle(1, {"urgent"}), {{.job = "e", .spare = 2}})).outcomes(0);
  const auto vacated = Vacated(outcome);
  ASSERT_EQ(vacated.size(), 1U);
  // Both of one node.
  const graph::Placement& placement = *core_.engine().Find({"e", 1, 0});
  const auto& slots = outcome.vacate(0).slots();
  ASSERT_EQ(slots.size(), 2);
  EXPECT_EQ(placement.slots[slots[0]].node, placement.slots[slots[1]].node);
}

TEST_F(VacateTest, NoMoreThanEachCanSpareAndThenJobsToo) {
  Node("a", 6000);
  Feed(Synced());
  HoldsElastic("e", 2, 3);
  HoldsElastic("f", 1, 2);
  Holds("rigid", 1, 1000);
  Feed(Submitted("pair", 2, 1000));
  Feed(Submitted("three", 3, 1000));
  Feed(Submitted("two", 1, 2000));
  const std::vector<MayGive> jobs = {
      {.job = "rigid"}, {.job = "e", .spare = 1, .lost = 30}, {.job = "f", .spare = 1, .lost = 20}};
  EXPECT_THAT(Vacated(Ask(With(Cycle(1, {"pair"}), jobs)).outcomes(0)), ElementsAre("e 2", "f 1"));
  const Outcome outcome = Ask(With(Cycle(1, {"three"}), jobs)).outcomes(0);
  EXPECT_THAT(Victims(outcome), ElementsAre("rigid"));
  EXPECT_THAT(Vacated(outcome), ElementsAre("e 2", "f 1"));
  EXPECT_EQ(outcome.reason(),
            "starts when 1 job has given back what it holds by being stopped and 2 elastic jobs "
            "have given back 2 slots");
}

// Where a job has to be stopped all the same, no slots are given back that are of no use beside it.
TEST_F(VacateTest, NoneInVainBesideAJobThatIsStopped) {
  Node("a", 2000);
  Node("b", 2000);
  Feed(Synced());
  Feed(Configured("lonode"));
  Holds("rigid", 1, 1000);
  HoldsElastic("e", 1, 2);  // one on each node
  Holds("other", 1, 1000);
  Feed(Submitted("wide", 1, 2000));
  const Outcome outcome =
      Ask(With(Cycle(1, {"wide"}), {{.job = "e", .spare = 1}, {"rigid"}, {"other"}})).outcomes(0);
  EXPECT_EQ(Victims(outcome).size(), 1U);
  EXPECT_EQ(Vacated(outcome).size(), 1U);
}

TEST_F(VacateTest, WhatIsGivenBackAlreadyIsWaitedFor) {
  Node("a", 4000);
  Feed(Synced());
  HoldsElastic("e", 1, 4);
  Feed(Submitted("urgent", 1, 1000));
  Feed(Submitted("pair", 2, 1000));
  // Also where the job itself may not be stopped for this one.
  const std::vector<MayGive> others = {{.job = "x"},
                                       {.job = "e", .vacating = {1}, .for_all = false}};
  EXPECT_THAT(Vacated(Ask(With(Cycle(1, {"urgent"}), others)).outcomes(0)), ElementsAre("e 1"));
  const std::vector<MayGive> jobs = {{.job = "e", .spare = 2, .vacating = {1}}};
  EXPECT_THAT(Vacated(Ask(With(Cycle(1, {"urgent"}), jobs)).outcomes(0)), ElementsAre("e 1"));
  EXPECT_THAT(Vacated(Ask(With(Cycle(1, {"pair"}), jobs)).outcomes(0)), ElementsAre("e 1 3"));
}

TEST_F(VacateTest, TwoCandidatesTakeNoMoreTogetherThanOneJobCanSpare) {
  Node("a", 4000);
  Feed(Synced());
  HoldsElastic("e", 2, 4);
  for (const char* job : {"p", "q", "r"}) Feed(Submitted(job, 1, 1000));
  const auto answer = Ask(With(Cycle(1, {"p", "q", "r"}), {{.job = "e", .spare = 2}}));
  EXPECT_THAT(Vacated(answer.outcomes(0)), ElementsAre("e 3"));
  EXPECT_THAT(Vacated(answer.outcomes(1)), ElementsAre("e 2 3"));
  // All that is left is to stop it: it gives back the rest, which is its least.
  EXPECT_THAT(Vacated(answer.outcomes(2)), IsEmpty());
  EXPECT_THAT(Victims(answer.outcomes(2)), ElementsAre("e"));
}

TEST_F(VacateTest, ALenderIsLeftItsGuarantee) {
  Node("a", 4000);
  Feed(Synced());
  HoldsElastic("e", 1, 4);
  Feed(Submitted("pair", 2, 1000));
  Feed(Submitted("one", 1, 1000));
  Envelope cycle = With(Cycle(1, {"pair"}), {{.job = "e", .spare = 3, .lender = 1, .holds = 4000}});
  cycle.mutable_cycle_requested()->add_lenders()->add_spare(1500);
  EXPECT_THAT(Vacated(Ask(cycle).outcomes(0)), IsEmpty());
  cycle = With(Cycle(1, {"one"}), {{.job = "e", .spare = 3, .lender = 1, .holds = 4000}});
  cycle.mutable_cycle_requested()->add_lenders()->add_spare(1500);
  EXPECT_THAT(Vacated(Ask(cycle).outcomes(0)), ElementsAre("e 3"));
}

// What one user writes is looked through in a moment, and without a copy of it for each slot.
TEST_F(VacateTest, ManySlotsOfOneJob) {
  for (int node = 0; node < 64; ++node) Node(fmt::format("n{:02}", node), 64'000);
  Feed(Synced());
  HoldsElastic("e", 1, 4096);
  Feed(Submitted("wide", 300, 1000));
  Feed(Submitted("large", 65, 64'000));
  const std::vector<MayGive> jobs = {{.job = "e", .spare = 4095, .lost = 9}};
  const Outcome outcome = Ask(With(Cycle(1, {"wide"}), jobs)).outcomes(0);
  ASSERT_EQ(outcome.vacate_size(), 1);
  EXPECT_EQ(outcome.vacate(0).slots_size(), 300);
  // More than there are nodes.
  EXPECT_THAT(Vacated(Ask(With(Cycle(1, {"large"}), jobs)).outcomes(0)), IsEmpty());
}

TEST_F(VacateTest, SlotsThatAreReleasedComeFree) {
  Node("a", 4000);
  Feed(Synced());
  HoldsElastic("e", 1, 4);
  Feed(Submitted("urgent", 1, 1000));
  Envelope release;
  release.mutable_release_requested()->mutable_key()->set_job_id("e");
  release.mutable_release_requested()->mutable_key()->set_attempt(1);
  release.mutable_release_requested()->add_slots(3);
  Feed(release);
  EXPECT_EQ(Ask(With(Cycle(1, {"urgent"}), {{.job = "e", .spare = 2}})).outcomes(0).kind(),
            Outcome::KIND_ALLOCATED);
}

// ---- all sets

// A small pool that elastic jobs fill, and a job that waits in it.
class SmallPool {
 public:
  explicit SmallPool(uint32_t seed) : random_(seed * 7919) {
    random_.discard(3);
    const int nodes = 2 + Roll(3);
    for (int i = 0; i < nodes; ++i) {
      Feed(Upserted(MakeNode(fmt::format("n{}", i), 1000 * (1 + Roll(3)))));
    }
    policy_ = Roll(2) == 0 ? "lonode" : "first";
    Feed(Configured(policy_));
    Feed(Synced());
    std::vector<std::string> names;
    for (int i = 0; i < 3; ++i) {
      const auto most = static_cast<uint32_t>(1 + Roll(4));
      names.push_back(fmt::format("e{}", i));
      Feed(Submitted(names.back(), most, ElasticText(1, most, 500 * (1 + Roll(2)))));
    }
    Feed(Cycle(1, names));
    for (const std::string& name : names) {
      const graph::Placement* held = core_.engine().Find({name, 1, 0});
      if (held == nullptr) continue;
      const auto slots = static_cast<uint32_t>(held->slots.size());
      jobs_.push_back({.job = name,
                       .spare = std::min(slots - 1, static_cast<uint32_t>(Roll(4))),
                       .lost = Roll(100)});
      for (uint32_t slot = 0; slot < slots; ++slot) all_.emplace_back(jobs_.size() - 1, slot);
    }
    const auto slots = static_cast<uint32_t>(1 + Roll(3));
    jobspec_ = JobspecText(slots, 500 * (1 + Roll(4)));
    Feed(Submitted("urgent", slots, jobspec_));
    slots_ = slots;
  }

  Outcome Ask() {
    Feed(With(Cycle(2, {"urgent"}), jobs_));
    return said_.back().cycle_answered().outcomes(0);
  }

  // Without these slots, as bits of all(), it would start.
  bool IsEnough(uint32_t set, const std::string& jobspec) {
    const std::unique_ptr<graph::Engine> engine = graph::MakeNativeEngine();
    EXPECT_TRUE(engine->SetPolicy(policy_).ok());
    EXPECT_TRUE(graph::Copy(core_.engine(), engine.get()).ok());
    for (size_t i = 0; i < all_.size(); ++i) {
      if ((set >> i & 1) == 0) continue;
      engine->ReleaseSlots({jobs_[all_[i].first].job, 1, 0}, {all_[i].second});
    }
    const absl::StatusOr<graph::Jobspec> parsed = graph::ParseJobspec(jobspec);
    return engine
               ->Match({.operation = graph::Operation::kAllocate,
                        .key = {"urgent", 1, 0},
                        .jobspec = *parsed,
                        .now_s = 102,
                        .duration_s = 60})
               .kind == graph::OutcomeKind::kAllocated;
  }
  // No job gives more than it can spare.
  bool MayBe(uint32_t set) const {
    std::vector<uint32_t> given(jobs_.size(), 0);
    for (size_t i = 0; i < all_.size(); ++i) given[all_[i].first] += set >> i & 1;
    for (size_t job = 0; job < jobs_.size(); ++job) {
      if (given[job] > jobs_[job].spare) return false;
    }
    return true;
  }
  uint32_t BitsOf(const Outcome& outcome) const {
    uint32_t bits = 0;
    for (const auto& held : outcome.vacate()) {
      for (const uint32_t slot : held.slots()) {
        for (size_t i = 0; i < all_.size(); ++i) {
          const bool same = jobs_[all_[i].first].job == held.key().job_id();
          if (same && all_[i].second == slot) bits |= 1U << i;
        }
      }
    }
    return bits;
  }
  size_t slots_of_all() const { return all_.size(); }
  uint32_t slots() const { return slots_; }
  const std::string& jobspec() const { return jobspec_; }

 private:
  int Roll(int sides) { return static_cast<int>(random_() % static_cast<uint32_t>(sides)); }

  void Feed(const Envelope& message) {
    said_.clear();
    EXPECT_TRUE(core_.Handle(message, Millis(1), &said_).ok());
    core_.Commit();
  }

  std::minstd_rand random_;
  MatcherCore core_{"default"};
  std::vector<Envelope> said_;
  std::string policy_;
  std::vector<MayGive> jobs_;
  std::vector<std::pair<size_t, uint32_t>> all_;  // job, slot
  std::string jobspec_;                           // of the job that waits
  uint32_t slots_ = 0;
};

// Where slots alone are enough no job is stopped; what is named is enough, within what each can
// spare, and none of it can be left out. For one slot no smaller set is enough.
TEST(VacateProperty, TheFewestOfAllSets) {
  int found = 0;
  int with_jobs = 0;
  for (uint32_t seed = 1; seed <= 1000; ++seed) {
    SCOPED_TRACE(seed);
    SmallPool pool(seed);
    const std::string jobspec = pool.jobspec();
    std::optional<int> fewest;
    for (uint32_t set = 0; set < 1U << pool.slots_of_all(); ++set) {
      if (fewest.has_value() && std::popcount(set) >= *fewest) continue;
      if (pool.MayBe(set) && pool.IsEnough(set, jobspec)) fewest = std::popcount(set);
    }
    const Outcome outcome = pool.Ask();
    if (outcome.kind() == Outcome::KIND_ALLOCATED) {
      EXPECT_EQ(fewest, 0);
      continue;
    }
    const uint32_t chosen = pool.BitsOf(outcome);
    EXPECT_TRUE(pool.MayBe(chosen));
    if (!fewest.has_value()) {
      with_jobs += Victims(outcome).empty() ? 0 : 1;
      continue;
    }
    ++found;
    EXPECT_THAT(Victims(outcome), IsEmpty());
    EXPECT_TRUE(pool.IsEnough(chosen, jobspec));
    for (size_t i = 0; i < pool.slots_of_all(); ++i) {
      if (chosen >> i & 1) {
        EXPECT_FALSE(pool.IsEnough(chosen & ~(1U << i), jobspec));
      }
    }
    if (pool.slots() == 1) {
      EXPECT_EQ(std::popcount(chosen), *fewest);
    }
  }
  fmt::print("{} times slots were enough, {} times jobs were stopped\n", found, with_jobs);
  EXPECT_GT(found, 200);
  EXPECT_GT(with_jobs, 100);
}

}  // namespace
}  // namespace fluxqueue::matcher_core
