// What windows keep, from whom and how long; and how that is said.
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "libs/matcher_core/core_fixture.h"
#include "libs/matcher_core/test_messages.h"

namespace fluxqueue::matcher_core {
namespace {

using events::v1::CycleAnswered;
using events::v1::Outcome;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

// Nodes a and b of 4 cores; b is labelled.
class WindowsTest : public MatcherCoreTest {
 protected:
  void SetUp() override {
    now_ = At(0);
    Feed(Upserted(MakeNode("a", 4000)));
    events::v1::Node b = MakeNode("b", 4000);
    b.add_labels()->set_key("row");
    b.mutable_labels(0)->set_value("2");
    Feed(Upserted(b));
    Feed(Synced());
    Feed(Submitted("one", 1, 4000));
    Feed(Submitted("two", 2, 4000));
  }

  // A cycle at that second. What is given is given back.
  CycleAnswered Ask(int64_t now_s, const std::vector<Tried>& jobs) {
    now_ = At(now_s);
    Envelope message = Backfill(++cycle_, jobs, /*most_reservations=*/2);
    message.mutable_cycle_requested()->set_now_s(now_s);
    Feed(message);
    const CycleAnswered answer = said_.empty() ? CycleAnswered() : said_[0].cycle_answered();
    for (const Tried& job : jobs) Feed(Release(job.job));
    return answer;
  }

  // "now", or when, or why not; of one job.
  std::string Begin(int64_t now_s, const Tried& job) {
    const CycleAnswered answer = Ask(now_s, {job});
    if (answer.outcomes_size() != 1) return "no answer";
    const Outcome& outcome = answer.outcomes(0);
    if (outcome.kind() == Outcome::KIND_ALLOCATED) return "now";
    if (outcome.kind() == Outcome::KIND_RESERVED) return std::to_string(outcome.at_s());
    return outcome.reason();
  }

  std::vector<std::string> Windows() const {
    std::vector<std::string> names;
    matcher::v1::PoolState state;
    EXPECT_TRUE(state.ParseFromString(core_.TakeChanges().pool.value_or("")));
    for (const auto& window : state.windows()) names.push_back(window.window());
    return names;
  }

  uint64_t cycle_ = 0;
};

TEST_F(WindowsTest, KeepTheirNodesInTheirTime) {
  Envelope of_b = Window("of-b", 100, 200);
  of_b.mutable_window_configured()->add_nodes("b");
  Envelope of_row = Window("of-row", 100, 200);
  of_row.mutable_window_configured()->add_labels()->set_key("row");
  of_row.mutable_window_configured()->mutable_labels(0)->set_value("2");
  Envelope of_either = of_row;
  of_either.mutable_window_configured()->add_nodes("a");
  Envelope of_nobody = of_row;
  of_nobody.mutable_window_configured()->add_labels()->set_key("gpu");
  const Envelope all = Window("all", 100, 200);
  struct Case {
    const Envelope& window;
    int64_t now_s;
    Tried job;
    std::string want;
  };
  const Case cases[] = {
      {all, 10, {"one", 90}, "now"},  // ends as it begins
      {all, 10, {"one", 91}, "201"},  // would overlap it
      {all, 10, {"one", 0}, "201"},   // has no end
      {all, 150, {"one", 1}, "201"},  // in its time
      {all, 200, {"one", 0}, "now"},  // it is over
      {all, 10, {"one", 0, true, {"all"}}, "now"},
      {all, 10, {"one", 0, true, {"other"}}, "201"},
      {of_b, 10, {"one", 0}, "now"},  // on a
      {of_b, 10, {"two", 90}, "now"},
      {of_b, 10, {"two", 91}, "201"},
      {of_row, 10, {"two", 91}, "201"},
      {of_row, 10, {"one", 91}, "now"},
      {of_either, 10, {"one", 91}, "201"},
      {of_nobody, 10, {"two", 0}, "now"},
  };
  for (const Case& test : cases) {
    core_.Commit();
    now_ = At(0);
    Feed(test.window);
    EXPECT_EQ(Begin(test.now_s, test.job), test.want)
        << test.window.ShortDebugString() << test.now_s << " " << test.job.duration_s;
    core_.Rollback();
  }
}

TEST_F(WindowsTest, SayWhoKeepsTheRoom) {
  Envelope of_b = Window("service", 100, 7300);
  of_b.mutable_window_configured()->add_nodes("b");
  Feed(of_b);
  // One second before it begins, and so long that it would run into it; reserved or not.
  const char* keeps =
      "there is room, but window service keeps 1 node from 2023-11-14T22:15:00Z on, "
      "and it would not end before ";
  EXPECT_EQ(Begin(10, {"two", 28'800, false}), std::string(keeps) + "(it may take 8 h)");
  EXPECT_EQ(Begin(10, {"two", 5400, false}), std::string(keeps) + "(it may take 90 min)");
  EXPECT_EQ(Begin(10, {"two", 91, false}), std::string(keeps) + "(it may take 91 s)");
  EXPECT_EQ(Begin(10, {"two", 0, false}),
            std::string(keeps) + "(it does not say how long it takes)");
  EXPECT_EQ(Ask(10, {{"two", 0}}).outcomes(0).reason(),
            std::string(keeps) + "(it does not say how long it takes)");
  EXPECT_EQ(Begin(100, {"two", 1, false}),
            "there is room, but window service keeps 1 node until 2023-11-15T00:15:00Z");
  // What is in use is in use, whatever is kept.
  Feed(Submitted("large", 3, 4000));
  EXPECT_THAT(Begin(101, {"large", 1, false}), HasSubstr("slots would fit if all"));
  // The first of several without which it has room says it.
  Feed(Window("all", 50, 60));
  EXPECT_THAT(Begin(20, {"two", 100, false}), HasSubstr("window all keeps 2 nodes"));
  // Where slots differ, each kind of them has room.
  Feed(Submitted("groups", 2, R"({"version":1,"resources":[
      {"type":"slot","count":1,"label":"leader","with":[{"type":"cpu","count":4000}]},
      {"type":"slot","count":1,"label":"worker","with":[{"type":"cpu","count":3000}]}],
      "tasks":[{"command":["pod"],"slot":"worker","count":{"per_slot":1}}]})"));
  EXPECT_THAT(Begin(21, {"groups", 100, false}), HasSubstr("window all keeps 2 nodes"));
}

TEST_F(WindowsTest, LikeJobsAreToldTheirOwn) {
  Feed(Submitted("like", 1, 4000));
  Feed(Submitted("kin", 1, 4000));
  Feed(Window("all", 100, 200));
  const CycleAnswered answer =
      Ask(10, {{"one", 3600, false}, {"like", 7200, false}, {"kin", 7200, false, {"all"}}});
  ASSERT_EQ(answer.outcomes_size(), 3);
  EXPECT_THAT(answer.outcomes(0).reason(), HasSubstr("(it may take 1 h)"));
  EXPECT_THAT(answer.outcomes(1).reason(), HasSubstr("(it may take 2 h)"));
  EXPECT_EQ(answer.outcomes(2).kind(), Outcome::KIND_ALLOCATED);
}

TEST_F(WindowsTest, ReservationsGoAroundThem) {
  Feed(Window("all", 100, 200));
  Feed(Submitted("more", 2, 4000));
  Feed(Submitted("short", 1, 1000));
  // Two and more are promised what is behind it, one after the other; what is short goes before.
  const CycleAnswered answer = Ask(10, {{"two", 300}, {"more", 300}, {"short", 90}});
  ASSERT_EQ(answer.outcomes_size(), 3);
  EXPECT_EQ(answer.outcomes(0).at_s(), 201);
  EXPECT_EQ(answer.outcomes(1).at_s(), 501);
  EXPECT_EQ(answer.outcomes(2).kind(), Outcome::KIND_ALLOCATED);
}

TEST_F(WindowsTest, WhatRunsRunsOn) {
  now_ = At(10);
  Envelope start = Backfill(++cycle_, {{"two", 0}});
  start.mutable_cycle_requested()->set_now_s(10);
  Feed(start);
  ASSERT_EQ(said_[0].cycle_answered().outcomes(0).kind(), Outcome::KIND_ALLOCATED);
  Feed(Window("all", 100, 200));
  Feed(Submitted("next", 1, 1000));
  EXPECT_THAT(Begin(150, {"next", 1, false}), HasSubstr("0 of 1 slots fit now"));
  EXPECT_EQ(core_.engine().allocations(), 1U);
}

TEST_F(WindowsTest, VictimsAreOfNoUseBehindAWindow) {
  now_ = At(10);
  Envelope start = Backfill(++cycle_, {{"one", 50}});
  start.mutable_cycle_requested()->set_now_s(10);
  Feed(start);
  Feed(Window("all", 100, 200));
  Envelope preempt = Backfill(++cycle_, {{"two", 300}});
  preempt.mutable_cycle_requested()->set_now_s(11);
  auto* victim = preempt.mutable_cycle_requested()->mutable_candidates(0)->add_victims();
  victim->set_job_id("one");
  victim->set_attempt(1);
  now_ = At(11);
  Feed(preempt);
  const Outcome& outcome = said_[0].cycle_answered().outcomes(0);
  EXPECT_EQ(outcome.kind(), Outcome::KIND_RESERVED);
  EXPECT_EQ(outcome.at_s(), 201);
  EXPECT_TRUE(outcome.victims().empty());
}

TEST_F(WindowsTest, AreForgottenWhenTheyAreOverOrDeleted) {
  Feed(Window("b", 100, 200));
  Feed(Window("c", 100, 300));
  Feed(Window("a", 100, 300));
  EXPECT_THAT(Windows(), ElementsAre("a", "b", "c"));
  EXPECT_EQ(Begin(199, {"one", 0}), "301");
  EXPECT_THAT(Windows(), ElementsAre("a", "b", "c"));
  Ask(200, {});
  EXPECT_THAT(Windows(), ElementsAre("a", "c"));
  Feed(WindowDeleted("c"));
  Feed(WindowDeleted("never-there"));
  EXPECT_THAT(Windows(), ElementsAre("a"));
  // Its end is moved.
  Feed(Window("a", 100, 250));
  EXPECT_EQ(Begin(201, {"one", 0}), "251");
  Ask(250, {});
  EXPECT_THAT(Windows(), IsEmpty());
}

// It begins and ends between two seconds of the pool's time.
TEST_F(WindowsTest, PartsOfASecondCountAsWholeOnes) {
  Ask(0, {});
  Envelope window = Window("all", 100, 200);
  window.mutable_window_configured()->set_start_ms(At(100).count() - 1);
  window.mutable_window_configured()->set_end_ms(At(200).count() + 1);
  Feed(window);
  EXPECT_EQ(Begin(10, {"one", 89}), "now");
  EXPECT_EQ(Begin(10, {"one", 90}), "202");
  EXPECT_EQ(Begin(200, {"one", 0}), "202");
}

TEST_F(WindowsTest, ARequestThatCameLateSaysNothingOfTheBeginning) {
  now_ = At(60);
  Feed(Backfill(++cycle_, {}));  // names second 101
  EXPECT_EQ(core_.beginning(), At(60 - 101));
  Ask(0, {});
  EXPECT_EQ(core_.beginning(), At(60 - 101));
  now_ = At(-50);
  Feed(Backfill(++cycle_, {}));  // names second 103
  EXPECT_EQ(core_.beginning(), At(-50 - 103));
}

TEST_F(WindowsTest, RollbackAndRestore) {
  Tables tables;
  tables.Apply(core_.TakeChanges());
  core_.Commit();
  const uint64_t before = core_.Fingerprint();
  Feed(Window("all", 100, 200));
  EXPECT_EQ(Begin(10, {"one", 0}), "201");
  core_.Rollback();
  EXPECT_EQ(core_.Fingerprint(), before);
  EXPECT_EQ(Begin(10, {"one", 0}), "now");
  core_.Rollback();

  Feed(Window("all", 100, 200));
  Ask(10, {});
  tables.Apply(core_.TakeChanges());
  core_.Commit();
  MatcherCore restored("default");
  ASSERT_TRUE(restored.Restore(tables.All()).ok());
  EXPECT_EQ(restored.Fingerprint(), core_.Fingerprint());
  Envelope ask = Backfill(++cycle_, {{"one", 0}});
  ask.mutable_cycle_requested()->set_now_s(11);
  std::vector<Envelope> said;
  ASSERT_TRUE(restored.Handle(ask, At(11), &said).ok());
  EXPECT_EQ(said[0].cycle_answered().outcomes(0).at_s(), 201);
}

TEST_F(WindowsTest, RefusesWhatIsNoWindow) {
  EXPECT_THAT(Message(Handle(Window("", 100, 200))), HasSubstr("names no window"));
  EXPECT_THAT(Message(Handle(Window("w", 200, 200))), HasSubstr("to a later time"));
  Envelope early = Window("w", 100, 200);
  early.mutable_window_configured()->set_start_ms(-1);
  EXPECT_TRUE(IsPoison(Handle(early)));
  EXPECT_TRUE(MatcherCore::Reads(Envelope::kWindowConfigured));
}

}  // namespace
}  // namespace fluxqueue::matcher_core
