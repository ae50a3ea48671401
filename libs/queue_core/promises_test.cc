// The ledger of promises, and which of them are firm.
#include <gtest/gtest.h>

#include "libs/model/slip.h"
#include "libs/queue_core/testing_story.h"

namespace fluxqueue::queue_core {
namespace {

using events::v1::QueueConfigured;
using events::v1::Slip;
using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

class LedgerTest : public testing::Test {
 protected:
  LedgerTest() { story_.Tell(Binding("default", QueueConfigured::ENFORCEMENT_END)); }

  static events::v1::Envelope Binding(const std::string& name,
                                      QueueConfigured::Enforcement enforcement) {
    events::v1::Envelope message = QueueMade(name, 0, 0, "easy");
    message.mutable_queue_configured()->set_enforce_duration(enforcement);
    return message;
  }

  // The job is promised a start so many seconds after the pool's beginning.
  Story::Lines Promise(const std::string& id, int64_t at_s, bool firm, Slip::Cause cause = {}) {
    events::v1::Envelope answer =
        Answered(story_.core().cycle_in_flight(), {{id, 1, kReservedKind, "no cpu", at_s}});
    events::v1::Outcome* outcome = answer.mutable_cycle_answered()->mutable_outcomes(0);
    outcome->set_firm(firm);
    outcome->mutable_slip()->set_cause(cause);
    if (cause != Slip::CAUSE_UNSPECIFIED) outcome->mutable_slip()->set_by("who");
    return story_.Tell(answer);
  }
  // The matcher has room for another cycle.
  void Again() { story_.Tell(Released("x", 1)); }

  // "start firm|forecast|kept cause by", of the last message; 0: withdrawn.
  std::vector<std::string> Ledger() const {
    std::vector<std::string> lines;
    for (const PromiseRecord& one : story_.changes().promises) {
      lines.push_back(fmt::format("{} {} {}{}",
                                  one.start_ms == 0 ? 0 : (one.start_ms - 1'000'000) / 1000,
                                  one.kept   ? "kept"
                                  : one.firm ? "firm"
                                             : "forecast",
                                  model::CauseName(one.slip.cause()),
                                  one.slip.by().empty() ? "" : " " + one.slip.by()));
    }
    return lines;
  }

  Story story_;
};

TEST_F(LedgerTest, IsFirmWhereEachQueueOfThePoolBinds) {
  story_.Tell(Submitted("a"));
  Promise("a", 500, true);
  EXPECT_TRUE(story_.last().firm());
  EXPECT_THAT(Ledger(), ElementsAre("500 firm "));
  story_.Wait(20'000);
  story_.Tell(Binding("loose", QueueConfigured::ENFORCEMENT_WARN));
  Again();
  EXPECT_THAT(Promise("a", 500, true), Contains("fact a v3 Pending Reserved"));
  EXPECT_FALSE(story_.last().firm());
  EXPECT_THAT(Ledger(), ElementsAre("500 forecast "));
}

TEST_F(LedgerTest, IsAForecastWhereTheMatcherSaysSo) {
  story_.Tell(Submitted("a"));
  Promise("a", 500, false);
  EXPECT_FALSE(story_.last().firm());
}

TEST_F(LedgerTest, SaysWhyItMovesLater) {
  story_.Tell(Submitted("a"));
  Promise("a", 500, true);
  Again();
  Promise("a", 600, true, Slip::CAUSE_NODE);
  EXPECT_EQ(story_.last().message(), "starts 100 s later than it was told: node who was lost");
  EXPECT_EQ(story_.last().slip().cause(), Slip::CAUSE_NODE);
  EXPECT_THAT(Ledger(), ElementsAre("600 firm node who"));
  ASSERT_EQ(story_.timings().size(), 1U);
  EXPECT_EQ(story_.timings()[0].cause, Slip::CAUSE_NODE);
  // The next version has nothing of it.
  story_.Wait(20'000);
  Again();
  Promise("a", 300, true);
  EXPECT_FALSE(story_.last().has_slip());
  EXPECT_THAT(Ledger(), ElementsAre("300 firm "));
}

TEST_F(LedgerTest, IsWithdrawnByACommand) {
  story_.Tell(Submitted("a"));
  Promise("a", 500, true);
  story_.Tell(HoldCommand("a", true));
  EXPECT_FALSE(story_.last().firm());
  EXPECT_EQ(story_.last().slip().cause(), Slip::CAUSE_COMMAND);
  EXPECT_THAT(Ledger(), ElementsAre("0 forecast command"));
}

TEST_F(LedgerTest, IsWithdrawnWhenTheJobCannotBePlanned) {
  story_.Tell(Submitted("a"));
  Promise("a", 500, true);
  story_.Wait(20'000);
  Again();
  events::v1::Envelope busy =
      Answered(story_.core().cycle_in_flight(), {{"a", 1, kBusyKind, "no cpu"}});
  auto* slip = busy.mutable_cycle_answered()->mutable_outcomes(0)->mutable_slip();
  slip->set_cause(Slip::CAUSE_WINDOW);
  slip->set_by("works");
  story_.Tell(busy);
  EXPECT_THAT(story_.last().message(), HasSubstr("withdrawn: window works was set"));
  EXPECT_THAT(Ledger(), ElementsAre("0 forecast window works"));
}

TEST_F(LedgerTest, IsKept) {
  story_.Tell(Submitted("a"));
  Promise("a", 500, true);
  story_.Wait(400'000);
  Again();
  story_.Tell(Answered(story_.core().cycle_in_flight(), {{"a"}}));
  EXPECT_THAT(Ledger(), ElementsAre("400 kept "));
  EXPECT_FALSE(story_.last().firm());
  story_.Tell(Bound("a"));
  EXPECT_THAT(Ledger(), IsEmpty());
}

TEST_F(LedgerTest, SaysNothingOfItByOlderRules) {
  story_.Tell(PoolConfig(0, /*rules=*/2));
  story_.Tell(Submitted("a"));
  Promise("a", 500, false);
  Again();
  Promise("a", 600, false);
  EXPECT_EQ(story_.last().message(), "starts 100 s later than it was told: the plan was made anew");
  EXPECT_FALSE(story_.last().has_slip());
}

}  // namespace
}  // namespace fluxqueue::queue_core
