// What metrics are told.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "libs/queue_core/testing_story.h"

namespace fluxqueue::queue_core {
namespace {

using model::JobState;
using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::Pair;

std::vector<std::pair<Timing::Kind, int64_t>> TimingsOf(const Story& story) {
  std::vector<std::pair<Timing::Kind, int64_t>> all;
  for (const Timing& timing : story.timings()) all.emplace_back(timing.kind, timing.took.count());
  return all;
}

TEST(FiguresTest, EachStageIsTimedOnce) {
  Story story;
  story.Tell(Submitted("a"));
  EXPECT_THAT(story.timings(), IsEmpty());
  story.Wait(300);
  story.Tell(Answered(1, {{"a"}}));
  EXPECT_THAT(TimingsOf(story), ElementsAre(Pair(Timing::Kind::kWait, 300)));
  EXPECT_EQ(story.timings()[0].queue, "default");
  story.Wait(40);
  story.Tell(Bound("a"));
  EXPECT_THAT(TimingsOf(story), ElementsAre(Pair(Timing::Kind::kBind, 40)));
  story.Wait(2'000);
  story.Tell(Started("a"));
  EXPECT_THAT(TimingsOf(story), ElementsAre(Pair(Timing::Kind::kStart, 2'000)));
  story.Tell(Ended("a"));
  EXPECT_THAT(story.timings(), IsEmpty());
}

TEST(FiguresTest, WhoRunsIsBound) {
  Story story;
  story.Bring("a", JobState::kAllocated);
  story.Wait(70);
  story.Tell(Started("a"));  // overtakes JobBound
  EXPECT_THAT(TimingsOf(story), ElementsAre(Pair(Timing::Kind::kBind, 70)));
  story.Tell(Bound("a"));
  EXPECT_THAT(story.timings(), IsEmpty());
}

TEST(FiguresTest, OnlyTheFirstAttemptHasWaited) {
  Story story;
  story.Bring("a", JobState::kRunning);
  story.Tell(NodeLost("a"));
  story.Tell(Stopped("a"));
  story.Wait(10'000);
  story.Tell(Tick());
  story.Tell(Answered(story.core().cycle_in_flight(), {{"a", 2}}));
  ASSERT_EQ(story.core().Find("a")->state, JobState::kAllocated);
  EXPECT_THAT(story.timings(), IsEmpty());
}

TEST(FiguresTest, ALaterStartThanToldIsASlip) {
  Story story;
  story.Tell(QueueMade("default", 0, 0, "easy"));
  story.Tell(Submitted("a"));
  story.Tell(Answered(1, {{"a", 1, kReservedKind, "no cpu", 500}}));
  EXPECT_THAT(story.timings(), IsEmpty());
  story.Tell(Released("x", 1));
  story.Tell(Answered(2, {{"a", 1, kReservedKind, "no cpu", 600}}));
  EXPECT_THAT(TimingsOf(story), ElementsAre(Pair(Timing::Kind::kSlip, 100'000)));
  story.Wait(607'000);
  story.Tell(Released("y", 1));
  story.Tell(Answered(3, {{"a"}}));
  EXPECT_THAT(TimingsOf(story),
              ElementsAre(Pair(Timing::Kind::kWait, 607'000), Pair(Timing::Kind::kSlip, 7'000)));
}

TEST(FiguresTest, CountsWhyJobsWaitAndWhoHoldsWhat) {
  Story story;
  story.Tell(QueueMade("idle"));
  story.Bring("runs", JobState::kRunning, {.cpu = 4'000});
  story.Wait(1'000);
  for (const char* id : {"a", "b"}) story.Tell(Submitted(id));
  story.Tell(Submitted("held", {.hold = true}));
  story.Wait(1'000);
  story.Tell(Submitted("lost", {.queue = "nowhere"}));
  story.Tell(Answered(story.core().cycle_in_flight(), {{"a", 1, kBusyKind, "cpu is short"}}));

  const std::map<std::string, QueueFigures> all = story.core().Figures();
  const QueueFigures& figures = all.at("default");
  EXPECT_THAT(figures.waiting, ElementsAre(Pair("Busy", 1), Pair("Held", 1), Pair("Queued", 1)));
  EXPECT_THAT(
      figures.oldest_ms,
      ElementsAre(Pair(JobState::kPending, 1'001'000), Pair(JobState::kRunning, 1'000'000)));
  EXPECT_EQ(figures.held[scheduling::kCpu], 4'000);
  EXPECT_GT(figures.share, 0);
  EXPECT_THAT(all.at("nowhere").waiting, ElementsAre(Pair("NoQueue", 1)));
  EXPECT_EQ(all.at("idle").share, 0);
}

}  // namespace
}  // namespace fluxqueue::queue_core
