// What the log has lost: the core asks for it again, and goes on meanwhile.
#include <set>
#include <string>

#include <fmt/format.h>

#include "libs/model/no_jobspec.h"
#include "libs/model/rules.h"
#include "libs/queue_core/testing_story.h"

namespace fluxqueue::queue_core {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::IsEmpty;

TEST(LostTest, AJobWhoseJobspecIsLostHoldsUpNobody) {
  Story story;
  story.Tell(Submitted("a"));
  story.Tell(Submitted("b"));
  const auto lines = story.Tell(Answered(1, {{"a", 1, kInvalidKind, model::NoJobspec(0)}}));
  EXPECT_THAT(lines, ElementsAre("fact a v2 Pending JobspecLost", "cycle 2: b/1"));
  story.Tell(Answered(2, {{"b", 1, kAllocatedKind}}));
  // Handed in again, it is tried at once.
  EXPECT_THAT(story.Tell(Submitted("a")), ElementsAre("fact a v3 Pending Queued", "cycle 3: a/1"));
}

TEST(LostTest, AJobspecThatIsHandedInAgainMayBeANewerOne) {
  Story story;
  story.Tell(Submitted("a"));
  story.Tell(Answered(1, {{"a", 1, kInvalidKind, model::NoJobspec(0)}}));
  events::v1::Envelope again = Submitted("a", {.slots = 4, .completions = 4});
  again.mutable_job_submitted()->mutable_spec()->set_revision(2);
  story.Tell(again);
  EXPECT_EQ(story.core().Find("a")->slots, 4);
  EXPECT_EQ(story.core().Find("a")->revision, 2);
}

// Nothing hands a claim in again but who has made it.
TEST(LostTest, AClaimWhoseJobspecIsLostIsRejected) {
  Story story;
  story.Tell(Claimed("c"));
  const auto lines = story.Tell(Answered(1, {{"c", 1, kInvalidKind, model::NoJobspec(0)}}));
  EXPECT_THAT(lines, Contains("fact c v2 Rejected Invalid"));
}

TEST(LostTest, ByEarlierRulesItIsRejected) {
  Story story;
  story.Tell(PoolConfig(0, model::kAsksForTheLost - 1));
  story.Tell(Submitted("a"));
  EXPECT_THAT(story.Tell(Answered(1, {{"a", 1, kInvalidKind, model::NoJobspec(0)}})),
              Contains("fact a v2 Rejected Invalid"));
}

TEST(LostTest, AReleaseIsAskedForUntilItIsConfirmed) {
  Story story;
  story.Tell(Submitted("a"));
  story.Tell(Answered(1, {{"a", 1, kAllocatedKind}}));
  EXPECT_THAT(story.Tell(Withdrawn("a")), Contains("fact a v3 Stopping Withdrawn after=cancel"));
  EXPECT_THAT(story.Tell(Stopped("a", 1)), Contains("release a/1 ended"));
  ASSERT_TRUE(story.core().NextDeadline().has_value());
  story.Wait(60'000);
  EXPECT_THAT(story.Tell(Tick()), ElementsAre("release a/1 ended"));
  EXPECT_THAT(story.Tell(Tick()), IsEmpty()) << "once a minute";
  story.Wait(60'000);
  EXPECT_THAT(story.Tell(Tick()), ElementsAre("release a/1 ended"));
  story.Tell(Released("a", 1));
  EXPECT_FALSE(story.core().NextDeadline().has_value());
  story.Wait(60'000);
  EXPECT_THAT(story.Tell(Tick()), IsEmpty());
}

TEST(LostTest, ManyReleasesTakeTurns) {
  Story story;
  std::set<std::string> awaited;
  for (int i = 0; i < 300; ++i) {
    const std::string id = fmt::format("j{:03}", i);
    story.Tell(Submitted(id, {.hold = true}));
    story.Tell(Withdrawn(id));
    awaited.insert(fmt::format("release {}/1 ended", id));
  }
  for (int minute = 0; minute < 4 && !awaited.empty(); ++minute) {
    story.Wait(60'000);
    const auto lines = story.Tell(Tick());
    EXPECT_EQ(lines.size(), 256);
    for (const std::string& line : lines) awaited.erase(line);
  }
  EXPECT_THAT(awaited, IsEmpty());
}

// The queue's table went back, and what it had asked since is in no log.
TEST(LostTest, TheMatcherSaysHowFarTheQueueWas) {
  Story story;
  EXPECT_THAT(story.Tell(Submitted("a")), Contains("cycle 1: a/1"));
  EXPECT_THAT(story.Tell(Answered(7, {})), ElementsAre("cycle 8: a/1"));
  EXPECT_THAT(story.Tell(Answered(8, {{"a", 1, kAllocatedKind}})),
              ElementsAre("fact a v2 Allocated"));
}

TEST(LostTest, ByEarlierRulesAnAnswerToACycleThatWasNotAskedIsPoison) {
  Story story;
  story.Tell(PoolConfig(0, model::kAsksForTheLost - 1));
  story.Tell(Submitted("a"));
  EXPECT_THAT(story.Tell(Answered(7, {})), ElementsAre("poison"));
}

TEST(LostTest, AConfigurationThatIsSaidAgainChangesNothing) {
  Story story;
  story.Tell(Submitted("a", {.slots = 9, .completions = 9}));
  story.Tell(Answered(1, {{"a", 1, kBusyKind}}));
  EXPECT_THAT(story.Tell(PoolConfig()), IsEmpty());
  EXPECT_THAT(story.Tell(QueueMade("default")), IsEmpty());
  EXPECT_THAT(story.Tell(PoolConfig(3)), ElementsAre("cycle 2: a/1"));
}

}  // namespace
}  // namespace fluxqueue::queue_core
