// Which promises are firm, and what is said of those that move.
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "libs/matcher_core/core_fixture.h"
#include "libs/matcher_core/test_messages.h"

namespace fluxqueue::matcher_core {
namespace {

using events::v1::CycleAnswered;
using events::v1::Outcome;
using events::v1::Slip;

// Two nodes of 4 cores, held by `first` until 201 and by `second` until 301; `waits` wants both.
class PromiseTest : public MatcherCoreTest {
 protected:
  void SetUp() override {
    now_ = At(101);
    Feed(Upserted(MakeNode("a", 4000)));
    Feed(Upserted(MakeNode("b", 4000)));
    Feed(Synced());
    for (const char* job : {"first", "second", "urgent"}) Feed(Submitted(job, 1, 4000));
    Feed(Submitted("waits", 2, 3000));
    Ask(Backfill(1, {Bound("first", 100), Bound("second", 200)}));
  }

  static Tried Bound(const std::string& job, int64_t duration_s) {
    return {.job = job, .duration_s = duration_s, .enforced = true};
  }
  Outcome Last(const Envelope& cycle) {
    const CycleAnswered answer = Ask(cycle);
    EXPECT_FALSE(answer.outcomes().empty());
    return answer.outcomes(answer.outcomes_size() - 1);
  }
  Outcome Promise(uint64_t id = 2) { return Last(Backfill(id, {Bound("waits", 60)})); }

  static std::string Why(const Outcome& outcome) {
    if (!outcome.has_slip()) return "";
    std::string name = Slip::Cause_Name(outcome.slip().cause());
    if (!outcome.slip().by().empty()) name += " " + outcome.slip().by();
    return name;
  }
};

TEST_F(PromiseTest, IsFirmWhereAllThatItWaitsForIsEnded) {
  const Outcome promise = Promise();
  EXPECT_EQ(promise.at_s(), 301);
  EXPECT_TRUE(promise.firm());
  EXPECT_EQ(Why(promise), "");
}

TEST_F(PromiseTest, IsAForecastWhereSomeMayGoOn) {
  Feed(Release("second"));
  ASSERT_EQ(Last(Backfill(2, {{"second", 199}})).kind(), Outcome::KIND_ALLOCATED);
  const Outcome promise = Promise(3);
  EXPECT_EQ(promise.at_s(), 301);
  EXPECT_FALSE(promise.firm());
}

TEST_F(PromiseTest, IsAForecastForAJobOfAQueueThatBindsNobody) {
  EXPECT_FALSE(Last(Backfill(2, {{"waits", 60}})).firm());
}

TEST_F(PromiseTest, SaysWhoOverran) {
  EXPECT_EQ(Promise().at_s(), 301);
  Feed(Release("first"));
  const Outcome late = Promise(201);  // it is 301, and `second` goes on
  EXPECT_EQ(late.at_s(), 311);
  EXPECT_FALSE(late.firm());
  EXPECT_EQ(Why(late), "CAUSE_OVERRUN second");
}

TEST_F(PromiseTest, SaysWhoWentBeforeIt) {
  EXPECT_EQ(Promise().at_s(), 301);
  const Outcome moved =
      Last(Backfill(3, {Bound("urgent", 1000), Bound("waits", 60)}, /*most_reservations=*/2));
  EXPECT_EQ(moved.at_s(), 1201);
  EXPECT_EQ(Why(moved), "CAUSE_AHEAD urgent");
  EXPECT_EQ(Why(Last(Backfill(4, {Bound("urgent", 1000), Bound("waits", 60)}, 2))), "");
}

TEST_F(PromiseTest, SaysWhichNodeWasLost) {
  Promise();
  Feed(Gone("b"));
  const Outcome lost = Promise(3);
  EXPECT_EQ(Why(lost), "CAUSE_NODE b");
}

TEST_F(PromiseTest, SaysWhichWindowWasSet) {
  Promise();
  Feed(Window("works", 300, 900));
  const Outcome moved = Promise(3);
  EXPECT_GT(moved.at_s(), 301);
  EXPECT_EQ(Why(moved), "CAUSE_WINDOW works");
}

TEST_F(PromiseTest, SaysWhenTheJobItselfIsAnother) {
  Promise();
  Feed(Updated("waits", 2, 2, 2000));
  EXPECT_EQ(Why(Promise(3)), "CAUSE_COMMAND");
}

TEST_F(PromiseTest, WhyIsNotForgottenByARestart) {
  Promise();
  Feed(Gone("b"));
  Tables tables;
  tables.Apply(core_.TakeChanges());
  core_.Commit();
  MatcherCore other("default");
  ASSERT_TRUE(other.Restore(tables.All()).ok());
  std::vector<Envelope> said;
  ASSERT_TRUE(other.Handle(Backfill(3, {Bound("waits", 60)}), now_, &said).ok());
  EXPECT_EQ(Why(said.at(0).cycle_answered().outcomes(0)), "CAUSE_NODE b");
}

}  // namespace
}  // namespace fluxqueue::matcher_core
