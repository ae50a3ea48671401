#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "libs/queue_core/testing_story.h"

namespace fluxqueue::queue_core {
namespace {

using model::JobState;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using Lines = Story::Lines;

// From `min` to `max` slots of one cpu each; many more completions.
JobOptions Elastic(uint32_t min, uint32_t max) {
  return {.slots = max, .completions = 100, .min_slots = min, .cpu = 1000 * max};
}

events::v1::Envelope CpuLimit(int64_t cpu, const std::string& strategy = "fcfs") {
  events::v1::Envelope message = QueueMade("default", 0, 0, strategy);
  events::v1::Amount* limit = message.mutable_queue_configured()->mutable_limits()->add_amounts();
  limit->set_resource("cpu");
  limit->set_amount(cpu);
  return message;
}

Said Starts(const std::string& job, uint32_t slots) {
  return {.job = job, .slots = slots};
}
Said Busy(const std::string& job) {
  return {.job = job, .kind = kBusyKind, .reason = "full"};
}

// `e` runs with 2 of 2 to 6 slots, in the first cycle.
void RunElastic(Story* story, const JobOptions& options = Elastic(2, 6)) {
  EXPECT_THAT(story->Tell(Submitted("e", options)),
              ElementsAre("fact e v1 Pending Queued 6 of 2..6", "cycle 1: e/1"));
  EXPECT_THAT(story->Tell(Answered(1, {Starts("e", 2)})),
              ElementsAre("fact e v2 Allocated 2 of 2..6"));
  story->Tell(Bound("e"));
  story->Tell(Started("e"));
}

TEST(ElasticCore, StartsWithWhatItIsGivenAndGrows) {
  Story story;
  RunElastic(&story);
  EXPECT_EQ(story.last().placement_hash(), 79U);
  EXPECT_THAT(story.Tell(Released("x", 1)), ElementsAre("cycle 2: e/1+"));
  EXPECT_THAT(story.Tell(Answered(2, {Starts("e", 5)})),
              ElementsAre("fact e v5 Running Grown 5 of 2..6"));
  EXPECT_EQ(story.last().attempt(), 1U);
  EXPECT_EQ(story.last().placement_hash(), 82U);
  EXPECT_EQ(story.last().message(), "holds 5 of at most 6 slots, 3 more than before");
  story.Tell(Released("x", 1));
  EXPECT_THAT(story.Tell(Answered(3, {Starts("e", 6)})),
              ElementsAre("fact e v6 Running Grown 6 of 2..6"));
  EXPECT_THAT(story.Tell(Released("x", 1)), IsEmpty()) << "it has all of its slots";
}

TEST(ElasticCore, NothingIsAskedInVain) {
  Story story;
  RunElastic(&story);
  EXPECT_THAT(story.Tell(Tick()), IsEmpty()) << "its start was tried with all";
  EXPECT_THAT(story.Tell(Released("x", 1, /*nothing_held=*/true)), IsEmpty());
  EXPECT_THAT(story.Tell(Inventory(true, true)), ElementsAre("cycle 2: e/1+"));
  // What the matcher said before its answer, the answer knows.
  EXPECT_THAT(story.Tell(Released("x", 1)), IsEmpty());
  EXPECT_THAT(story.Tell(Answered(2, {Busy("e")})), IsEmpty());
  story.Wait(60'000);
  EXPECT_THAT(story.Tell(Tick()), IsEmpty());
  EXPECT_THAT(story.Tell(Released("x", 1)), ElementsAre("cycle 3: e/1+"));
}

TEST(ElasticCore, RoomThatCameDuringACycleWithoutGrowth) {
  Story story;
  RunElastic(&story);
  EXPECT_THAT(story.Tell(Submitted("a")), ElementsAre("fact a v1 Pending Queued", "cycle 2: a/1"));
  EXPECT_THAT(story.Tell(Released("x", 1)), IsEmpty());
  EXPECT_THAT(story.Tell(Answered(2, {{.job = "a"}})),
              ElementsAre("fact a v2 Allocated", "cycle 3: e/1+"));
}

TEST(ElasticCore, RoomThatIsNoUseBehindABlockedHead) {
  Story story;
  RunElastic(&story);
  story.Tell(Submitted("a"));
  EXPECT_THAT(story.Tell(Released("x", 1)), IsEmpty());
  EXPECT_THAT(story.Tell(Answered(2, {Busy("a")})), ElementsAre("fact a v2 Pending Busy"));
  EXPECT_THAT(story.Tell(Released("x", 1)), ElementsAre("cycle 3: a/1 e/1+"));
}

TEST(ElasticCore, GrowthStandsBehindAllWhoWait) {
  Story story;
  RunElastic(&story);
  story.Tell(Submitted("a"));
  story.Tell(Submitted("b"));
  EXPECT_THAT(story.Tell(Answered(2, {Busy("a")})), ElementsAre("fact a v2 Pending Busy"));
  // Nobody may pass `a`, so the cycle ended before the growth.
  EXPECT_THAT(story.Tell(Released("x", 1)), ElementsAre("cycle 3: a/1 b/1 e/1+"));
  EXPECT_THAT(story.Tell(Answered(3, {Busy("a")})), IsEmpty());
  EXPECT_THAT(story.Tell(Tick()), IsEmpty());
  // It goes along with the next.
  EXPECT_THAT(
      story.Tell(Cancelled("a")),
      ElementsAre("fact a v3 Cancelled Cancelled", "release a/1 ended", "cycle 4: b/1 e/1+"));
  EXPECT_THAT(story.Tell(Answered(4, {{.job = "b"}, Starts("e", 3)})),
              ElementsAre("fact b v2 Allocated", "fact e v5 Running Grown 3 of 2..6"));
}

TEST(ElasticCore, NoGrowthWhileNotAllWhoWaitAreTried) {
  Story story;
  story.Tell(QueueMade("default", /*depth=*/2));
  RunElastic(&story);
  story.Tell(Submitted("a"));
  story.Tell(Submitted("b"));
  story.Tell(Submitted("c"));
  EXPECT_THAT(story.Tell(Released("x", 1)), IsEmpty());
  EXPECT_THAT(story.Tell(Answered(2, {{.job = "a"}})),
              ElementsAre("fact a v2 Allocated", "cycle 3: b/1 c/1 e/1+"));
  story.Tell(Submitted("d"));
  story.Tell(Submitted("f"));
  story.Tell(Submitted("g"));
  EXPECT_THAT(story.Tell(Answered(3, {{.job = "b"}, {.job = "c"}, Busy("e")})),
              ElementsAre("fact b v2 Allocated", "fact c v2 Allocated", "cycle 4: d/1 f/1"));
}

TEST(ElasticCore, WhoLeavesTheLineMayLeaveRoom) {
  Story story;
  story.Tell(QueueMade("default", 0, 0, "easy"));
  RunElastic(&story);
  story.Tell(Submitted("a"));
  EXPECT_THAT(story.Tell(Answered(2, {{.job = "a", .kind = kReservedKind, .at_s = 100}})),
              ElementsAre("fact a v2 Pending Reserved"));
  EXPECT_THAT(story.Tell(Cancelled("a")),
              ElementsAre("fact a v3 Cancelled Cancelled", "release a/1 ended", "cycle 3: e/1+"));
}

TEST(ElasticCore, LimitsLeaveItSomeOfItsSlots) {
  Story story;
  story.Tell(CpuLimit(5000));
  story.Tell(Submitted("a", {.cpu = 2000}));
  story.Tell(Answered(1, {{.job = "a"}}));
  EXPECT_THAT(story.Tell(Submitted("e", Elastic(2, 6))),
              ElementsAre("fact e v1 Pending Queued 6 of 2..6", "cycle 2: e/1<3>"));
  story.Tell(Answered(2, {Starts("e", 3)}));
  // All of the limit is in use now, and nothing that it holds is more than it holds.
  EXPECT_THAT(story.Tell(Released("x", 1)), IsEmpty());
  EXPECT_THAT(story.Tell(Ended("a")), ElementsAre("fact a v3 Succeeded", "release a/1 ended"));
  EXPECT_THAT(story.Tell(Released("a", 1)), ElementsAre("cycle 3: e/1+<5>"));
  story.Tell(Answered(3, {Starts("e", 5)}));
  EXPECT_THAT(story.Tell(CpuLimit(20'000)), ElementsAre("cycle 4: e/1+"));
}

TEST(ElasticCore, WaitsUntilItsLeastIsWithinTheLimit) {
  Story story;
  story.Tell(CpuLimit(5000));
  story.Tell(Submitted("a", {.cpu = 4000}));
  story.Tell(Answered(1, {{.job = "a"}}));
  EXPECT_THAT(
      story.Tell(Submitted("e", Elastic(2, 6))),
      ElementsAre("fact e v1 Pending Queued 6 of 2..6", "fact e v2 Pending Limit 6 of 2..6"));
  EXPECT_THAT(story.last().message(), HasSubstr("and this job asks for 2"));
}

TEST(ElasticCore, TheLeastOfAllGoesBeforeTheMostOfOne) {
  Story story;
  story.Tell(CpuLimit(5000));
  story.Tell(Submitted("x"));  // its cycle lets both come into line
  story.Tell(Submitted("e", Elastic(1, 6)));
  story.Tell(Submitted("f", Elastic(2, 6)));
  EXPECT_THAT(story.Tell(Answered(1, {{.job = "x"}})),
              ElementsAre("fact x v2 Allocated", "cycle 2: e/1<2> f/1<2>"));
}

TEST(ElasticCore, TakesNothingOfALimitForWhichSomebodyWaits) {
  Story story;
  story.Tell(CpuLimit(6000, "easy"));
  RunElastic(&story);
  story.Tell(Submitted("a", {.cpu = 5000}));
  EXPECT_THAT(story.Tell(Released("x", 1)), IsEmpty());
  EXPECT_THAT(story.Tell(Cancelled("a")),
              ElementsAre("fact a v3 Cancelled Cancelled", "release a/1 ended", "cycle 2: e/1+"));
}

TEST(ElasticCore, NotMoreThanItHasCompletionsLeft) {
  Story story;
  JobOptions options = Elastic(2, 6);
  options.completions = 7;
  RunElastic(&story, options);
  for (const uint32_t slot : {0U, 1U, 0U}) {
    EXPECT_THAT(story.Tell(PodEnded("e", slot)), IsEmpty()) << "its next pod wants the slot";
  }
  story.Tell(PodEnded("e", 1, kPodFailed));
  EXPECT_THAT(story.Tell(Released("x", 1)), ElementsAre("cycle 2: e/1+<4>"));
  story.Tell(Answered(2, {Starts("e", 4)}));
  EXPECT_THAT(story.Tell(Released("x", 1)), IsEmpty());
  // As many as are left, also when it begins again.
  story.Tell(NodeLost("e"));
  EXPECT_THAT(story.Tell(Stopped("e")),
              ElementsAre("fact e v7 Pending Retry 6 of 2..6", "release e/1"));
  story.Wait(2000);
  EXPECT_THAT(story.Tell(Tick()), ElementsAre("cycle 3: e/2<4>"));
}

TEST(ElasticCore, GivesSlotsBackEarlyOnlyWhenItNeverGrew) {
  Story story;
  JobOptions options = Elastic(2, 6);
  options.completions = 6;
  story.Tell(Submitted("e", options));
  story.Tell(Answered(1, {Starts("e", 6)}));
  EXPECT_THAT(story.Tell(PodEnded("e", 4)), ElementsAre("release e/1 slot 4"));
  EXPECT_THAT(story.Tell(PodEnded("e", 4)), IsEmpty());
  EXPECT_EQ(story.core().Find("e")->succeeded, 1U);

  Story grows;
  RunElastic(&grows, options);
  grows.Tell(Released("x", 1));
  grows.Tell(Answered(2, {Starts("e", 6)}));
  EXPECT_THAT(grows.Tell(PodEnded("e", 4)), IsEmpty());
}

TEST(ElasticCore, GrowthThatIsNotWantedAnyMore) {
  Story story;
  RunElastic(&story);
  story.Tell(Released("x", 1));
  EXPECT_THAT(story.Tell(Cancelled("e")),
              ElementsAre("fact e v5 Stopping Cancelled 2 of 2..6 after=cancel"));
  EXPECT_THAT(story.Tell(Answered(2, {Starts("e", 6)})), IsEmpty());
  EXPECT_EQ(story.stale(), 1U);
  // What it has by now goes with the rest.
  EXPECT_THAT(story.Tell(Stopped("e")),
              ElementsAre("fact e v6 Cancelled Cancelled 6 of 2..6", "release e/1 ended"));
}

TEST(ElasticCore, GrowthOfAnEarlierAttempt) {
  Story story;
  RunElastic(&story);
  story.Tell(Released("x", 1));
  story.Tell(NodeLost("e"));
  EXPECT_THAT(story.Tell(Stopped("e")),
              ElementsAre("fact e v6 Pending Retry 6 of 2..6", "release e/1"));
  EXPECT_THAT(story.Tell(Answered(2, {Starts("e", 6)})), IsEmpty());
  // Everything begins again.
  story.Wait(2000);
  EXPECT_THAT(story.Tell(Tick()), ElementsAre("cycle 3: e/2"));
  EXPECT_THAT(story.Tell(Answered(3, {{.job = "e", .attempt = 2, .slots = 3}})),
              ElementsAre("fact e v7 Allocated 3 of 2..6"));
}

TEST(ElasticCore, ThoseWhoGrowAreTriedInTheOrderOfTheLine) {
  Story story;
  story.Tell(QueueMade("high", 0, /*priority=*/1));
  story.Tell(Submitted("a", Elastic(1, 3)));
  JobOptions urgent = Elastic(1, 3);
  urgent.priority = 5;
  story.Tell(Submitted("b", urgent));
  JobOptions other = Elastic(1, 3);
  other.queue = "high";
  story.Tell(Submitted("c", other));
  story.Tell(Answered(1, {Starts("a", 1)}));
  story.Tell(Answered(2, {Starts("c", 1), Starts("b", 1)}));
  EXPECT_THAT(story.Tell(Released("x", 1)), ElementsAre("cycle 3: c/1+ b/1+ a/1+"));
}

TEST(ElasticCore, ItsChargeIsWhatItHolds) {
  Story story;
  story.Tell(CpuLimit(8000));
  RunElastic(&story);
  EXPECT_THAT(story.Tell(Submitted("a", {.cpu = 6000})),
              ElementsAre("fact a v1 Pending Queued", "cycle 2: a/1"));
}

TEST(ElasticCore, ExplainSpeaksOfItsLeast) {
  Story story;
  story.Tell(Submitted("e", Elastic(4, 6)));
  events::v1::Envelope answer = Answered(1, {Busy("e")});
  answer.mutable_cycle_answered()->mutable_outcomes(0)->set_slots_now(3);
  story.Tell(answer);
  const auto why = story.core().Explain("e");
  ASSERT_TRUE(why.has_value());
  EXPECT_THAT(why->why,
              testing::Contains("it is elastic: it starts with 4 pods, and grows to 6 pods"));
  EXPECT_THAT(why->sooner, testing::Contains("with 3 pods instead of 4 pods it would start now"));
}

TEST(ElasticCore, MessagesThatContradictThemselves) {
  Story story;
  EXPECT_THAT(story.Tell(Submitted("e", Elastic(7, 6))), ElementsAre("poison"));
  EXPECT_THAT(story.error(), HasSubstr("a jobspec of 7 to 6 slots; the least is above the most"));
}

TEST(ElasticCore, BecomesRigidWhileItRuns) {
  Story story;
  RunElastic(&story);
  EXPECT_THAT(story.Tell(Resized("e", 2, 4)),
              ElementsAre("fact e v5 Stopping Resized after=requeue"));
  EXPECT_EQ(story.last().slots(), 2U);
  EXPECT_THAT(story.Tell(Stopped("e")),
              ElementsAre("fact e v6 Pending Queued", "release e/1", "cycle 2: e/2"));
  EXPECT_EQ(story.last().slots(), 4U);
}

}  // namespace
}  // namespace fluxqueue::queue_core
