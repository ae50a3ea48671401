// Which victims a candidate is answered with, and that nothing else comes of looking for them.
#include <random>
#include <set>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "libs/base/status_macros.h"
#include "libs/matcher_core/core_fixture.h"
#include "libs/matcher_core/matcher_core.h"
#include "libs/matcher_core/test_messages.h"

namespace fluxqueue::matcher_core {
namespace {

using events::v1::CycleAnswered;
using events::v1::Outcome;
using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::StartsWith;

class PreemptionTest : public CycleByCycleTest {};

Envelope With(Envelope cycle, int candidate, const std::vector<std::string>& victims) {
  for (const std::string& victim : victims) {
    auto* key = cycle.mutable_cycle_requested()->mutable_candidates(candidate)->add_victims();
    key->set_job_id(victim);
    key->set_attempt(1);
  }
  return cycle;
}

TEST_F(PreemptionTest, TheFewWhoseRoomIsNeeded) {
  Feed(Upserted(MakeNode("a", 2000)));
  Feed(Upserted(MakeNode("b", 2000)));
  Feed(Synced());
  // Two on each node, in turns.
  for (const char* job : {"a1", "b1", "a2", "b2"}) Holds(job, 1, 1000);
  Feed(Submitted("urgent", 1, 2000));
  // In this order: a1 alone is of no use, and b1 is not needed besides b2 and … a1 and a2.
  const Outcome outcome = Ask(With(Cycle(1, {"urgent"}), 0, {"b1", "a1", "a2", "b2"})).outcomes(0);
  EXPECT_EQ(outcome.kind(), Outcome::KIND_BUSY);
  EXPECT_THAT(Victims(outcome), ElementsAre("a1", "a2"));
  EXPECT_EQ(outcome.reason(), "starts when 2 jobs have given back what they hold by being stopped");
  EXPECT_THAT(Victims(Ask(With(Cycle(1, {"urgent"}), 0, {"b1", "b2", "a1", "a2"})).outcomes(0)),
              ElementsAre("b1", "b2"));
}

TEST_F(PreemptionTest, NobodyWhenItStartsOrWhenAllAreNotEnough) {
  Feed(Upserted(MakeNode("a", 2000)));
  Feed(Synced());
  Holds("low", 1, 1000);
  Holds("other", 1, 500);
  Feed(Submitted("wide", 1, 2000));
  Outcome outcome = Ask(With(Cycle(1, {"wide"}), 0, {"low"})).outcomes(0);
  EXPECT_EQ(outcome.kind(), Outcome::KIND_BUSY);
  EXPECT_THAT(Victims(outcome), IsEmpty());
  EXPECT_THAT(outcome.reason(), StartsWith("cpu:"));

  Feed(Submitted("small", 1, 500));
  outcome = Ask(With(Cycle(1, {"small"}), 0, {"low"})).outcomes(0);
  EXPECT_EQ(outcome.kind(), Outcome::KIND_ALLOCATED);
  EXPECT_THAT(Victims(outcome), IsEmpty());

  Feed(Submitted("giant", 1, 9000));
  outcome = Ask(With(Cycle(1, {"giant"}), 0, {"low", "other"})).outcomes(0);
  EXPECT_EQ(outcome.kind(), Outcome::KIND_UNSATISFIABLE);
  EXPECT_THAT(Victims(outcome), IsEmpty());
}

TEST_F(PreemptionTest, WhoHoldsNothingAnyMoreIsNoVictim) {
  Feed(Upserted(MakeNode("a", 1000)));
  Feed(Synced());
  Holds("low", 1, 1000);
  Feed(Submitted("urgent", 1, 1000));
  EXPECT_THAT(Victims(Ask(With(Cycle(1, {"urgent"}), 0, {"gone", "low", "low"})).outcomes(0)),
              ElementsAre("low"));
}

TEST_F(PreemptionTest, TheRoomIsKeptFromThoseBehind) {
  Feed(Upserted(MakeNode("a", 1000)));
  Feed(Upserted(MakeNode("b", 1000)));
  Feed(Upserted(MakeNode("c", 1000)));
  Feed(Synced());
  Holds("low", 1, 1000);
  Feed(Submitted("urgent", 2, 1000));  // one node is free for it, two in all
  Feed(Submitted("next", 1, 1000));
  Feed(Submitted("third", 1, 1000));
  Holds("low2", 1, 1000);
  Envelope cycle = Backfill(1, {{"urgent", 60}, {"next", 10}, {"third", 10}});
  const CycleAnswered answer = Ask(With(cycle, 0, {"low", "low2"}));
  ASSERT_EQ(answer.outcomes_size(), 3);
  EXPECT_EQ(Victims(answer.outcomes(0)).size(), 1u);
  // The free node is counted on.
  EXPECT_NE(answer.outcomes(1).kind(), Outcome::KIND_ALLOCATED);
  EXPECT_NE(answer.outcomes(2).kind(), Outcome::KIND_ALLOCATED);
  EXPECT_EQ(core_.engine().allocations(), 2u);
  // And is free again when nobody waits for it.
  EXPECT_EQ(Ask(Cycle(1, {"next"})).outcomes(0).kind(), Outcome::KIND_ALLOCATED);
}

TEST_F(PreemptionTest, TwoDoNotWaitForTheSameRoom) {
  Feed(Upserted(MakeNode("a", 1000)));
  Feed(Upserted(MakeNode("b", 1000)));
  Feed(Synced());
  Holds("x", 1, 1000);
  Holds("y", 1, 1000);
  Feed(Submitted("first", 1, 1000));
  Feed(Submitted("second", 1, 1000));
  Feed(Submitted("third", 1, 1000));
  Envelope cycle = Backfill(1, {{"first", 60}, {"second", 60}, {"third", 60}});
  for (int i = 0; i < 3; ++i) cycle = With(cycle, i, {"x", "y"});
  const CycleAnswered answer = Ask(cycle);
  ASSERT_EQ(answer.outcomes_size(), 3);
  EXPECT_THAT(Victims(answer.outcomes(0)), ElementsAre("x"));
  EXPECT_THAT(Victims(answer.outcomes(1)), ElementsAre("y"));
  EXPECT_THAT(Victims(answer.outcomes(2)), IsEmpty());
}

TEST_F(PreemptionTest, AReservationOfTheCycleIsRespected) {
  Feed(Upserted(MakeNode("a", 2000)));
  Feed(Synced());
  Holds("x", 1, 1000);  // until 60 s later
  Holds("y", 1, 1000);
  Feed(Submitted("whole", 1, 2000));
  Feed(Submitted("urgent", 1, 1000));
  // Beyond the time at which both have ended, which is promised to the whole node's job.
  Envelope cycle = Backfill(1, {{"whole", 60}, {"urgent", 1000}});
  CycleAnswered answer = Ask(With(cycle, 1, {"x", "y"}));
  EXPECT_EQ(answer.outcomes(0).kind(), Outcome::KIND_RESERVED);
  EXPECT_THAT(Victims(answer.outcomes(1)), IsEmpty());
  // In time.
  cycle = Backfill(1, {{"whole", 60}, {"urgent", 5}});
  answer = Ask(With(cycle, 1, {"x", "y"}));
  EXPECT_EQ(answer.outcomes(0).kind(), Outcome::KIND_RESERVED);
  EXPECT_THAT(Victims(answer.outcomes(1)), ElementsAre("x"));
}

TEST_F(PreemptionTest, TheLineStopsAtItWhereNobodyMayPass) {
  Feed(Upserted(MakeNode("a", 1000)));
  Feed(Synced());
  Holds("low", 1, 600);
  Feed(Submitted("urgent", 1, 1000));
  Feed(Submitted("tiny", 1, 100));
  const CycleAnswered answer = Ask(With(Cycle(1, {"urgent", "tiny"}, /*stop=*/true), 0, {"low"}));
  ASSERT_EQ(answer.outcomes_size(), 1);
  EXPECT_THAT(Victims(answer.outcomes(0)), ElementsAre("low"));
}

// The victim and the one that waits for it hold the same GPU while the cycle lasts.
TEST_F(PreemptionTest, GpusAndPartsOfThem) {
  events::v1::Node node = MakeNode("a", 9000);
  events::v1::Amount* gpus = node.add_allocatable();
  gpus->set_resource("fluxqueue.io/gpu-milli");
  gpus->set_amount(2000);
  Feed(Upserted(node));
  Feed(Synced());
  const auto asks = [](int thousandths) {
    return fmt::format(
        R"({{"version":1,"resources":[{{"type":"slot","count":1,"label":"pod","with":[)"
        R"({{"type":"cpu","count":100}},{{"type":"fluxqueue.io/gpu-milli","count":{}}}]}}],)"
        R"("tasks":[{{"command":["pod"],"slot":"pod","count":{{"per_slot":1}}}}]}})",
        thousandths);
  };
  for (const char* job : {"half1", "half2", "half3"}) {
    Feed(Submitted(job, 1, asks(500)));
    ASSERT_EQ(Ask(Cycle(1, {job})).outcomes(0).kind(), Outcome::KIND_ALLOCATED) << job;
  }
  Feed(Submitted("whole", 1, asks(1000)));
  Feed(Submitted("most", 1, asks(900)));
  Feed(Submitted("half4", 1, asks(500)));
  for (const char* job : {"whole", "most"}) {
    Envelope cycle = Backfill(1, {{job, 60}, {"half4", 60}});
    const CycleAnswered answer = Ask(With(cycle, 0, {"half3", "half1", "half2"}));
    ASSERT_EQ(answer.outcomes(0).kind(), Outcome::KIND_BUSY) << job;
    // It is alone on its GPU.
    EXPECT_EQ(answer.outcomes(0).victims_size(), 1) << job;
    EXPECT_NE(answer.outcomes(1).kind(), Outcome::KIND_ALLOCATED) << job;
  }
  EXPECT_EQ(Ask(Cycle(1, {"half4"})).outcomes(0).kind(), Outcome::KIND_ALLOCATED);
}

TEST_F(PreemptionTest, NothingIsLeftByARollback) {
  Feed(Upserted(MakeNode("a", 2000)));
  Feed(Synced());
  Holds("x", 1, 1000);
  Holds("y", 1, 1000);
  Feed(Submitted("urgent", 1, 2000));
  const uint64_t before = core_.Fingerprint();
  std::vector<Envelope> said;
  ASSERT_TRUE(core_.Handle(With(Cycle(9, {"urgent"}), 0, {"x", "y"}), Millis(5000), &said).ok());
  EXPECT_THAT(core_.TakeChanges().allocations, IsEmpty());
  EXPECT_THAT(core_.TakeChanges().released, IsEmpty());
  core_.Rollback();
  EXPECT_EQ(core_.Fingerprint(), before);
}

// A small full pool, and a job that waits in it.
class SmallPool {
 public:
  explicit SmallPool(uint32_t seed) : random_(seed * 7919) {
    random_.discard(3);
    const int nodes = 1 + Roll(4);
    for (int i = 0; i < nodes; ++i) {
      log_.push_back(Upserted(MakeNode("n" + std::to_string(i), 1000 * (1 + Roll(4)))));
    }
    log_.push_back(Synced());
    if (Roll(2) == 0) log_.push_back(Configured("lonode"));
    for (int i = 0; i < 8; ++i) {
      jobs.push_back("j" + std::to_string(i));
      Submit(jobs.back(), 2, 4);
    }
    log_.push_back(Cycle(1, jobs));
    Submit("urgent", 3, 5);
  }

  // What becomes of the job that waits in a core of its own, when some have gone.
  Outcome Ask(const std::set<std::string>& gone, const std::vector<std::string>& victims) const {
    MatcherCore core("default");
    std::vector<Envelope> said;
    const auto handle = [&](const Envelope& message) {
      EXPECT_TRUE(core.Handle(message, Millis(1), &said).ok());
    };
    for (const Envelope& message : log_) handle(message);
    for (const std::string& job : gone) handle(Release(job));
    core.Commit();
    const uint64_t before = core.engine().Fingerprint();
    handle(With(Cycle(2, {"urgent"}), 0, victims));
    Outcome outcome = said.back().cycle_answered().outcomes(0);
    EXPECT_EQ(core.engine().Fingerprint() == before, outcome.kind() != Outcome::KIND_ALLOCATED);
    return outcome;
  }
  bool StartsWithout(const std::set<std::string>& gone) const {
    return Ask(gone, {}).kind() == Outcome::KIND_ALLOCATED;
  }

  std::vector<std::string> jobs;

 private:
  int Roll(int sides) { return static_cast<int>(random_() % static_cast<uint32_t>(sides)); }
  void Submit(const std::string& job, int most_slots, int most_halves) {
    const auto slots = static_cast<uint32_t>(1 + Roll(most_slots));
    log_.push_back(Submitted(job, slots, 500 * (1 + Roll(most_halves))));
  }

  std::minstd_rand random_;
  std::vector<Envelope> log_;
};

// What is named is enough, and nobody of it can be spared; when nobody is named, all together are
// not enough.
TEST(PreemptionProperty, WhatIsNamedIsEnoughAndNobodyCanBeSpared) {
  int found = 0;
  for (uint32_t seed = 1; seed <= 150; ++seed) {
    SCOPED_TRACE(seed);
    const SmallPool pool(seed);
    const Outcome outcome = pool.Ask({}, pool.jobs);
    if (outcome.kind() == Outcome::KIND_ALLOCATED) continue;
    if (outcome.victims().empty()) {
      EXPECT_FALSE(pool.StartsWithout({pool.jobs.begin(), pool.jobs.end()}));
      continue;
    }
    ++found;
    std::set<std::string> gone;
    for (const auto& key : outcome.victims()) gone.insert(key.job_id());
    EXPECT_TRUE(pool.StartsWithout(gone));
    for (const std::string& spared : gone) {
      std::set<std::string> fewer = gone;
      fewer.erase(spared);
      EXPECT_FALSE(pool.StartsWithout(fewer)) << spared;
    }
  }
  EXPECT_GT(found, 30);
}

}  // namespace
}  // namespace fluxqueue::matcher_core
