// Jobs that lose slots while they run, and have others in their place.
#include <numeric>
#include <sstream>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "fluxqueue/queue/v1/rows.pb.h"

#include "libs/model/rules.h"
#include "libs/queue_core/testing_story.h"

namespace fluxqueue::queue_core {
namespace {

using model::JobState;
using ::testing::_;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::StartsWith;

JobOptions Gang() {
  return {.slots = 3, .completions = 3, .cpu = 3000};
}

Said Has(const std::string& job, uint32_t slots) {
  return {.job = job, .slots = slots};
}
Said Busy(const std::string& job) {
  return {.job = job, .kind = kBusyKind, .reason = "full"};
}

TEST(ReplacementCore, ALostSlotIsGivenBackAloneAndAnotherAskedFor) {
  Story story;
  story.Bring("a", JobState::kRunning, Gang());
  EXPECT_TRUE(story.last().replaces_slots());
  EXPECT_THAT(
      story.Tell(SlotsLost("a", {{1}})),
      ElementsAre("fact a v5 Running SlotLost", "release a/1 slot 1", "cycle 2: a/1=<3>-n0"));
  EXPECT_EQ(story.last().message(),
            "node n0 is cordoned: 1 of its 3 slots is looked for elsewhere, the others go on");
  EXPECT_THAT(story.last().lost_slots(), ElementsAre(1));
  EXPECT_EQ(story.last().slots(), 3U) << "it is charged for all of them";
  EXPECT_THAT(story.Tell(Answered(2, {Has("a", 4)})), ElementsAre("fact a v6 Running Replaced"));
  EXPECT_EQ(story.last().message(), "goes on with 1 other slot in place of what it lost");
  EXPECT_EQ(story.last().slots(), 3U);
  EXPECT_EQ(story.last().placement_hash(), 81U);
  EXPECT_THAT(story.Tell(Released("x", 1)), IsEmpty()) << "it lacks none";
}

TEST(ReplacementCore, WhatIsToldTwiceOrIsNotHeldIsStale) {
  Story story;
  story.Bring("a", JobState::kBound, Gang());
  story.Tell(SlotsLost("a", {{1}}));
  EXPECT_THAT(story.Tell(SlotsLost("a", {{1}, {9}})), IsEmpty());
  EXPECT_EQ(story.stale(), 1U);
  story.Tell(SlotsLost("a", {{1}, {0, "n7"}}));
  EXPECT_THAT(story.last().message(), StartsWith("node n7 is cordoned: 2 of its 3 slots"));
  // The pod of slot 2 has succeeded, so that it was given back.
  story.Tell(PodEnded("a", 2));
  EXPECT_THAT(story.Tell(SlotsLost("a", {{2}})), IsEmpty());
  EXPECT_THAT(story.Tell(SlotsLost("a", {{0}}, /*attempt=*/2)), ElementsAre("poison"));
}

TEST(ReplacementCore, ThatItsPodHadSucceededIsHeardTooLate) {
  Story story;
  story.Bring("a", JobState::kRunning, Gang());
  story.Tell(SlotsLost("a", {{1}}));
  EXPECT_THAT(story.Tell(PodEnded("a", 1)), IsEmpty());
  EXPECT_EQ(story.stale(), 1U);
}

TEST(ReplacementCore, TwoLossesAtOnceAndOneWhileItIsAsked) {
  Story story;
  story.Bring("a", JobState::kRunning, Gang());
  EXPECT_THAT(
      story.Tell(SlotsLost("a", {{0, "n0"}, {1, "n1"}})),
      ElementsAre(
          "fact a v5 Running SlotLost", "release a/1 slot 0 slot 1", "cycle 2: a/1=<3>-n0-n1"));
  EXPECT_THAT(story.Tell(SlotsLost("a", {{2, "n2"}})),
              ElementsAre("fact a v6 Running SlotLost", "release a/1 slot 2"));
  EXPECT_THAT(story.Tell(Answered(2, {Has("a", 4)})),
              ElementsAre("fact a v7 Running Replaced", "cycle 3: a/1=<3>-n0-n1-n2"));
  EXPECT_THAT(story.last().message(), HasSubstr("2 more are looked for"));
  EXPECT_THAT(story.Tell(Answered(3, {Has("a", 6)})), ElementsAre("fact a v8 Running Replaced"));
  EXPECT_THAT(story.Tell(Released("x", 1)), IsEmpty());
}

TEST(ReplacementCore, ASlotInPlaceOfAnotherMayBeLostToo) {
  Story story;
  story.Bring("a", JobState::kRunning, Gang());
  story.Tell(SlotsLost("a", {{1}}));
  story.Tell(Answered(2, {Has("a", 4)}));
  EXPECT_THAT(
      story.Tell(SlotsLost("a", {{3, "n3", /*closed=*/false}})),
      ElementsAre("fact a v7 Running SlotLost", "release a/1 slot 3", "cycle 3: a/1=<3>-n0~n3"));
  story.Tell(Answered(3, {Has("a", 5)}));
  EXPECT_THAT(story.last().lost_slots(), ElementsAre(1, 3));
}

TEST(ReplacementCore, GoesBeforeTheLineAlsoBehindABlockedHead) {
  Story story;
  story.Bring("a", JobState::kRunning, Gang());
  story.Tell(Submitted("b", {.priority = 9}));
  story.Tell(Submitted("c"));
  EXPECT_THAT(story.Tell(Answered(2, {Busy("b")})), ElementsAre("fact b v2 Pending Busy"));
  EXPECT_THAT(
      story.Tell(SlotsLost("a", {{1}})),
      ElementsAre(
          "fact a v5 Running SlotLost", "release a/1 slot 1", "cycle 3: a/1=<3>-n0 b/1 c/1"));
  EXPECT_THAT(story.Tell(Answered(3, {Has("a", 4), Busy("b")})),
              ElementsAre("fact a v6 Running Replaced"));
  EXPECT_THAT(story.Tell(Tick()), IsEmpty()) << "b is refused as before";
}

TEST(ReplacementCore, WhereThereIsNoRoomItIsAskedAgainWhenThereMayBeSome) {
  Story story;
  story.Bring("a", JobState::kRunning, Gang());
  story.Tell(SlotsLost("a", {{1}}));
  EXPECT_THAT(story.Tell(Answered(2, {Busy("a")})), ElementsAre("fact a v6 Running SlotMissing"));
  EXPECT_EQ(story.last().message(),
            "no other node has room for 1 of its 3 slots, which it has lost: full");
  EXPECT_THAT(story.Tell(Released("x", 1, /*nothing_held=*/true)), IsEmpty());
  EXPECT_THAT(story.Tell(Released("x", 1)), ElementsAre("cycle 3: a/1=<3>-n0"));
  EXPECT_THAT(story.Tell(Answered(3, {Busy("a")})), IsEmpty()) << "the same sentence";
  // Its node is opened again, or the matcher has heard by now that it is closed.
  const auto at = story.core().NextDeadline();
  ASSERT_TRUE(at.has_value());
  EXPECT_EQ(*at, story.now() + Millis(30'000));
  story.Wait(30'000);
  EXPECT_THAT(story.Tell(Tick()), ElementsAre("cycle 4: a/1=<3>~n0"));
  EXPECT_THAT(story.Tell(Answered(4, {Busy("a")})), IsEmpty());
  EXPECT_EQ(story.core().NextDeadline(), std::nullopt);
  story.Wait(600'000);
  EXPECT_THAT(story.Tell(Inventory(true, true)), ElementsAre("cycle 5: a/1=<3>"));
}

TEST(ReplacementCore, AWindowThatEndsMayLeaveRoom) {
  Story story;
  story.Bring("a", JobState::kRunning, Gang());
  story.Tell(WindowSet("w", story.now(), story.now() + Millis(50'000)));
  story.Tell(SlotsLost("a", {{1, "n0", /*closed=*/false}}));
  story.Tell(Answered(2, {Busy("a")}));
  EXPECT_EQ(story.core().NextDeadline(), story.now() + Millis(50'000));
  story.Wait(50'000);
  EXPECT_THAT(story.Tell(Tick()), ElementsAre("cycle 3: a/1=<3>~n0"));
}

TEST(ReplacementCore, TheBinderGivesUpAndAllOfItIsPlacedAgain) {
  Story story;
  story.Bring("a", JobState::kRunning, Gang());
  story.Tell(SlotsLost("a", {{1}}));
  EXPECT_THAT(story.Tell(BindFailed("a")),
              ElementsAre("fact a v6 Stopping BindFailed after=requeue"));
  // What it got in that moment is released with the rest, and nothing more is lost.
  EXPECT_THAT(story.Tell(Answered(2, {Has("a", 4)})), IsEmpty());
  EXPECT_EQ(story.stale(), 1U);
  EXPECT_THAT(story.Tell(SlotsLost("a", {{0}})), IsEmpty());
  EXPECT_THAT(story.Tell(Stopped("a")), ElementsAre("fact a v7 Pending Retry", "release a/1"));
  EXPECT_THAT(story.last().lost_slots(), IsEmpty());
  EXPECT_THAT(story.Tell(Released("a", 1)), IsEmpty()) << "nothing is looked for in place of them";
}

TEST(ReplacementCore, AJobThatEndsWhileAnotherSlotIsLookedFor) {
  Story story;
  story.Bring("a", JobState::kRunning, Gang());
  story.Tell(SlotsLost("a", {{1}}));
  EXPECT_THAT(story.Tell(Ended("a")), ElementsAre("fact a v6 Succeeded", "release a/1 ended"));
  EXPECT_THAT(story.Tell(Answered(2, {Has("a", 4)})), IsEmpty());
}

TEST(ReplacementCore, ItIsAccountedForWhatItHeld) {
  Story story;
  story.Bring("a", JobState::kRunning, Gang());
  story.Wait(10'000);
  story.Tell(SlotsLost("a", {{1}}));
  story.Wait(10'000);
  story.Tell(Answered(2, {Has("a", 4)}));
  story.Wait(10'000);
  story.Tell(Ended("a"));
  ASSERT_EQ(story.changes().attempts.size(), 1U);
  EXPECT_EQ(story.changes().attempts[0].slots, 3U);
  EXPECT_EQ(story.changes().attempts[0].cpu_seconds, (30 + 20 + 30) * 1000);
}

// The limit is for three slots: what it holds counts for three all along.
TEST(ReplacementCore, LimitsNeitherHoldItBackNorLetOthersIn) {
  Story story;
  events::v1::Envelope queue = QueueMade("default", 0, 0, "easy");
  events::v1::Amount* limit = queue.mutable_queue_configured()->mutable_limits()->add_amounts();
  limit->set_resource("cpu");
  limit->set_amount(3000);
  story.Tell(queue);
  story.Bring("a", JobState::kRunning, Gang());
  EXPECT_THAT(story.Tell(Submitted("b", {.cpu = 1000})),
              ElementsAre("fact b v1 Pending Queued", "fact b v2 Pending Limit"));
  EXPECT_THAT(
      story.Tell(SlotsLost("a", {{1}})),
      ElementsAre("fact a v5 Running SlotLost", "release a/1 slot 1", "cycle 2: a/1=<3>-n0"));
  EXPECT_THAT(story.Tell(Answered(2, {Busy("a")})), ElementsAre("fact a v6 Running SlotMissing"))
      << "neither is asked for again before something happens";
  EXPECT_THAT(story.Tell(Released("x", 1)), ElementsAre("cycle 3: a/1=<3>-n0"));
  EXPECT_THAT(story.Tell(Answered(3, {Busy("a")})), IsEmpty());
}

TEST(ReplacementCore, OneThatHasNoneIsNotToBlameForTheLaterStartOfAnother) {
  Story story;
  story.Tell(QueueMade("default", 0, 0, "easy"));
  const auto starts = [](int64_t at_s) {
    return Said{.job = "w", .kind = kReservedKind, .reason = "full", .at_s = at_s};
  };
  story.Tell(Submitted("w"));
  story.Tell(Answered(1, {starts(500)}));
  JobOptions gang = Gang();
  gang.priority = 9;
  story.Tell(Submitted("r", gang));
  story.Tell(Answered(2, {{.job = "r"}, starts(500)}));
  story.Tell(Bound("r"));
  story.Tell(Started("r"));
  ASSERT_THAT(story.Tell(SlotsLost("r", {{1}})),
              ElementsAre(_, "release r/1 slot 1", "cycle 3: r/1=<3>-n0 w/1"));
  story.Tell(Answered(3, {Busy("r"), starts(600)}));
  ASSERT_EQ(story.last().job_id(), "w");
  EXPECT_EQ(story.last().slip().cause(), events::v1::Slip::CAUSE_PLAN);
}

TEST(ReplacementCore, OthersAreToldNothing) {
  Story story;
  story.Bring("p", JobState::kBound, {.recreatable = false});
  EXPECT_FALSE(story.last().replaces_slots());
  EXPECT_THAT(story.Tell(SlotsLost("p", {{0}})), IsEmpty());
  story.Bring("e", JobState::kBound, {.slots = 4, .completions = 9, .min_slots = 2});
  EXPECT_FALSE(story.last().replaces_slots());
  EXPECT_THAT(story.Tell(SlotsLost("e", {{0}})), IsEmpty());
  story.Bring("a", JobState::kPending, Gang());
  EXPECT_FALSE(story.last().replaces_slots());
  EXPECT_THAT(story.Tell(SlotsLost("a", {{0}})), ElementsAre("poison"));
}

TEST(ReplacementCore, BeforeRules10NothingIsLost) {
  Story story;
  story.Tell(PoolConfig(/*max_attempts=*/0, model::kReplacesSlots - 1));
  story.Bring("a", JobState::kRunning, Gang());
  EXPECT_FALSE(story.last().replaces_slots());
  EXPECT_THAT(story.Tell(SlotsLost("a", {{1}})), IsEmpty());
}

TEST(ReplacementCore, AnAbandonedCycleIsAskedAgainLater) {
  Story story;
  story.Bring("a", JobState::kRunning, Gang());
  story.Tell(SlotsLost("a", {{1}}));
  EXPECT_THAT(story.Tell(Abandoned(2)), IsEmpty());
  story.Wait(10'000);
  EXPECT_THAT(story.Tell(Tick()), ElementsAre("cycle 3: a/1=<3>-n0"));
  // It had been given one already.
  EXPECT_THAT(story.Tell(Answered(3, {Has("a", 4)})), ElementsAre("fact a v6 Running Replaced"));
}

TEST(ReplacementCore, WhatAnAbandonedCycleGaveIsHeardWithARefusal) {
  Story story;
  story.Bring("a", JobState::kRunning, Gang());
  story.Tell(SlotsLost("a", {{1}, {2}}));
  story.Tell(Abandoned(2));
  story.Wait(10'000);
  story.Tell(Tick());
  Said busy = Busy("a");
  busy.slots = 4;
  EXPECT_THAT(story.Tell(Answered(3, {busy})), ElementsAre("fact a v6 Running Replaced"));
  EXPECT_EQ(story.last().placement_hash(), 81U);
  EXPECT_EQ(story.last().message(),
            "goes on with 1 other slot in place of what it lost; 1 more is looked for");
}

// Those who wait are tried apart from each other at once.
TEST(ReplacementCore, AfterAnAbandonedCycleOthersAreTriedMeanwhile) {
  Story story;
  story.Bring("a", JobState::kRunning, Gang());
  story.Tell(Submitted("b"));
  story.Tell(Answered(2, {Busy("b")}));
  EXPECT_THAT(story.Tell(SlotsLost("a", {{1}})),
              ElementsAre(_, "release a/1 slot 1", "cycle 3: a/1=<3>-n0 b/1"));
  EXPECT_THAT(story.Tell(Abandoned(3)), Contains(HasSubstr("fact b")));
  EXPECT_THAT(story.Tell(Submitted("c")), ElementsAre(HasSubstr("fact c"), "cycle 4: c/1"));
  EXPECT_THAT(story.Tell(Answered(4, {Busy("c")})), ElementsAre("fact c v2 Pending Busy"));
  EXPECT_THAT(story.Tell(Released("x", 1)), ElementsAre("cycle 5: c/1"));
  story.Tell(Answered(5, {Busy("c")}));
  story.Wait(10'000);
  EXPECT_THAT(story.Tell(Tick()), ElementsAre("cycle 6: a/1=<3>-n0 c/1"));
}

// More than one cycle names: 0, 1, 2 …
class ManyLack : public ::testing::Test {
 protected:
  static constexpr int kJobs = 300;

  void SetUp() override {
    for (int i = 0; i < kJobs; ++i) {
      story_.Bring(std::to_string(i), JobState::kRunning, {.completions = 1});
    }
    story_.Tell(Submitted("first"));  // in flight while they lose their slots
    for (int i = 0; i < kJobs; ++i) story_.Tell(SlotsLost(std::to_string(i), {{0}}));
  }
  // None of those that are named has room; what the answer leads to.
  Story::Lines Refuse(const std::vector<int>& named) {
    std::vector<Said> outcomes;
    for (const int job : named) outcomes.push_back(Busy(std::to_string(job)));
    Story::Lines lines = story_.Tell(Answered(++cycle_, outcomes));
    std::erase_if(lines, [](const std::string& line) { return line.starts_with("fact"); });
    return lines;
  }
  static std::vector<int> FromTo(int from, int to) {
    std::vector<int> jobs(static_cast<size_t>(to - from));
    std::iota(jobs.begin(), jobs.end(), from);
    return jobs;
  }
  static std::vector<int> NamedIn(const Story::Lines& lines) {
    std::vector<int> jobs;
    if (lines.size() != 1) return jobs;
    std::istringstream words(lines[0]);
    for (std::string word; words >> word;) {
      if (word.find('=') != std::string::npos) jobs.push_back(std::stoi(word));
    }
    return jobs;
  }

  Story story_;
  uint64_t cycle_ = kJobs;
};

TEST_F(ManyLack, EachIsNamedOnceInARound) {
  Story::Lines lines = story_.Tell(Answered(++cycle_, {{.job = "first"}}));
  std::vector<int> all;
  while (true) {
    std::erase_if(lines, [](const std::string& line) { return line.starts_with("fact"); });
    const std::vector<int> named = NamedIn(lines);
    if (named.empty()) break;
    EXPECT_LE(named.size(), 128U);
    all.insert(all.end(), named.begin(), named.end());
    ASSERT_LE(all.size(), static_cast<size_t>(kJobs)) << "for ever";
    lines = Refuse(named);
  }
  EXPECT_EQ(all, FromTo(0, kJobs));
  EXPECT_EQ(story_.core().NextDeadline(), story_.now() + Millis(30'000));
}

TEST_F(ManyLack, RoomInTheMiddleOfARoundIsForAllAndThoseBehindFirst) {
  story_.Tell(Answered(++cycle_, {{.job = "first"}}));
  EXPECT_EQ(NamedIn(Refuse(FromTo(0, 128))), FromTo(128, 256));
  EXPECT_THAT(story_.Tell(Released("x", 1)), IsEmpty()) << "a cycle is in flight";
  std::vector<int> behind = FromTo(256, 300);
  for (const int job : FromTo(0, 84)) behind.push_back(job);
  EXPECT_EQ(NamedIn(Refuse(FromTo(128, 256))), behind);
  EXPECT_EQ(NamedIn(Refuse(behind)), FromTo(84, 212));
  EXPECT_EQ(NamedIn(Refuse(FromTo(84, 212))), FromTo(212, 256));
  EXPECT_THAT(Refuse(FromTo(212, 256)), IsEmpty());
}

TEST_F(ManyLack, ARestoredCoreGoesOnBehindTheLast) {
  story_.Tell(Answered(++cycle_, {{.job = "first"}}));
  Refuse(FromTo(0, 128));
  ASSERT_EQ(story_.changes().cycles_requested.size(), 1U);
  Rows rows;
  rows.pool = story_.changes().pool;
  rows.cycles_unanswered = {story_.changes().cycles_requested[0].requested};
  QueueCore restored(kPool);
  ASSERT_TRUE(restored.Restore(rows).ok());
  Outputs outputs;
  ASSERT_TRUE(restored.Handle(Tick(), story_.now(), &outputs).ok());
  queue::v1::PoolRow row;
  ASSERT_TRUE(row.ParseFromString(restored.TakeChanges().pool));
  EXPECT_EQ(row.replace_after(), 256U);
  EXPECT_EQ(row.replace_left(), 44U);
}

TEST(ReplacementCore, OneThatLosesSlotsForEverIsPlacedAgain) {
  Story story;
  story.Bring("a", JobState::kRunning, Gang());
  uint32_t slots = 3;
  uint64_t cycle = 1;
  Story::Lines said;
  while (slots < 2000) {
    said = story.Tell(SlotsLost("a", {{slots - 1, "n0", /*closed=*/false}}));
    if (story.last().state() == events::v1::JOB_STATE_STOPPING) break;
    story.Tell(Answered(++cycle, {Has("a", ++slots)}));
  }
  EXPECT_EQ(slots, 1025U);
  EXPECT_THAT(said, ElementsAre(HasSubstr("Stopping SlotLost after=requeue")));
}

}  // namespace
}  // namespace fluxqueue::queue_core
