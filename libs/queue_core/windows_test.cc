// Who may use what is kept for a time, when is asked again, and what is said.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "libs/queue_core/testing_story.h"

namespace fluxqueue::queue_core {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

constexpr Millis kMinute(60'000);

// The lines of the last cycle's answer, in which everybody is refused.
Story::Lines Refuse(Story* story, const std::vector<std::string>& jobs) {
  std::vector<Said> said;
  for (const std::string& job : jobs) said.push_back({job, 1, kBusyKind, "there is no room"});
  return story->Tell(Answered(story->core().cycle_in_flight(), said));
}

TEST(QueueWindowsTest, CandidatesNameThoseOfTheirNamespace) {
  Story story;
  const Millis now = story.now();
  EXPECT_THAT(story.Tell(WindowSet("b", now, now + kMinute, {"team", "other"})), IsEmpty());
  story.Tell(WindowSet("a", now + kMinute, now + 2 * kMinute, {"team"}));
  story.Tell(WindowSet("c", now, now + kMinute, {}));
  story.Tell(WindowSet("d", now, now + kMinute, {"elsewhere"}));
  EXPECT_THAT(story.Tell(Submitted("x", {.hold = true})), ElementsAre("fact x v1 Pending Held"));
  story.Tell(Submitted("y", {.hold = true, .space = "other"}));
  story.Tell(Submitted("z", {.hold = true, .space = "third"}));
  EXPECT_THAT(story.Tell(Held("x", false)),
              ElementsAre("fact x v2 Pending Queued", "cycle 1: x/1@a@b"));
  story.Tell(Held("y", false));
  story.Tell(Held("z", false));
  EXPECT_THAT(Refuse(&story, {"x"}), ElementsAre("fact x v3 Pending Busy"));
  EXPECT_THAT(story.Tell(WindowDeleted("b")), ElementsAre("cycle 2: x/1@a y/1 z/1"));
}

TEST(QueueWindowsTest, AreAskedAboutWhenTheyChangeOrAreOver) {
  Story story;
  const Millis start = story.now() + kMinute;
  const Millis end = start + kMinute;
  story.Tell(Submitted("a"));
  Refuse(&story, {"a"});
  // It has waited long then as the first of its queue.
  const Millis overdue = story.now() + Millis(900'000);
  EXPECT_EQ(story.core().NextDeadline(), overdue);
  EXPECT_THAT(story.Tell(WindowSet("w", start, end)), ElementsAre("cycle 2: a/1"));
  EXPECT_THAT(Refuse(&story, {"a"}), IsEmpty());
  EXPECT_EQ(story.core().NextDeadline(), end);
  // Its start matters to nobody.
  story.Wait(kMinute.count());
  EXPECT_THAT(story.Tell(Tick()), IsEmpty());
  story.Wait(kMinute.count());
  EXPECT_THAT(story.Tell(Tick()), ElementsAre("cycle 3: a/1"));
  EXPECT_THAT(Refuse(&story, {"a"}), IsEmpty());
  EXPECT_EQ(story.core().NextDeadline(), overdue);
  // One that is over, or was never there, changes nothing.
  EXPECT_THAT(story.Tell(WindowSet("w", start, end)), IsEmpty());
  EXPECT_EQ(story.stale(), 1U);
  EXPECT_THAT(story.Tell(WindowDeleted("w")), IsEmpty());
  EXPECT_EQ(story.stale(), 1U);
}

TEST(QueueWindowsTest, NobodyIsWokenForNobody) {
  Story story;
  story.Tell(WindowSet("w", story.now(), story.now() + kMinute));
  EXPECT_FALSE(story.core().NextDeadline().has_value());
  story.Wait(kMinute.count());
  EXPECT_THAT(story.Tell(Submitted("a")), ElementsAre("fact a v1 Pending Queued", "cycle 1: a/1"));
}

// What the answer cannot have known of is asked about behind it.
TEST(QueueWindowsTest, ChangesWhileACycleIsInFlight) {
  Story story;
  const Millis now = story.now();
  story.Tell(Submitted("a"));
  EXPECT_THAT(story.Tell(WindowSet("w", now, now + Millis(1500))), IsEmpty());
  EXPECT_THAT(Refuse(&story, {"a"}), ElementsAre("fact a v2 Pending Busy", "cycle 2: a/1"));
  story.Wait(1500);
  EXPECT_THAT(story.Tell(Tick()), IsEmpty());  // it is over
  EXPECT_THAT(Refuse(&story, {"a"}), ElementsAre("cycle 3: a/1"));
  EXPECT_THAT(Refuse(&story, {"a"}), IsEmpty());
}

TEST(QueueWindowsTest, APromiseThatSlipsSaysWhichWindowWasSet) {
  Story story;
  story.Tell(QueueMade("default", 0, 0, "easy"));
  story.Tell(Submitted("a"));
  story.Tell(Answered(1, {{"a", 1, kReservedKind, "no cpu", 500}}));
  story.Tell(WindowSet("maintenance", story.now(), story.now() + 60 * kMinute));
  EXPECT_THAT(story.Tell(Answered(2, {{"a", 1, kReservedKind, "no cpu", 3600}})),
              ElementsAre("fact a v3 Pending Reserved"));
  EXPECT_EQ(story.last().message(),
            "starts 3100 s later than it was told: window maintenance was set");
  // The next time it is something else.
  story.Tell(Inventory(true, true));
  story.Tell(Answered(3, {{"a", 1, kReservedKind, "no cpu", 7200}}));
  EXPECT_EQ(story.last().message(), "starts 3600 s later than it was told: the plan was made anew");
}

TEST(QueueWindowsTest, WhatWouldLetAJobStartBefore) {
  Story story;
  story.Tell(QueueMade("default", 0, 0, "easy"));
  const Millis start = story.now() + 20 * kMinute;
  story.Tell(WindowSet("late", start + kMinute, start + 2 * kMinute));
  story.Tell(WindowSet("maintenance", start, start + kMinute));
  story.Tell(WindowSet("ours", story.now(), start, {"team"}));
  story.Tell(Submitted("a", {.slots = 4}));
  auto answer = Answered(1, {{"a", 1, kReservedKind, "there is room, but …", 2400}});
  answer.mutable_cycle_answered()->mutable_outcomes(0)->set_slots_now(4);
  story.Tell(answer);
  EXPECT_THAT(story.core().Explain("a")->sooner,
              ElementsAre("if it took at most 20 min, it could start now and be through before "
                          "window maintenance begins",
                          HasSubstr("it does not say how long it runs")));
  // Who stands ahead of it and starts before is nearer.
  story.Tell(Submitted("b", {.slots = 2}));
  answer = Answered(2, {{"a", 1, kReservedKind, "no cpu", 2400}, {"b", 1, kBusyKind, "room, but"}});
  answer.mutable_cycle_answered()->mutable_outcomes(1)->set_slots_now(1);
  story.Tell(answer);
  // With fewer pods it would meet the window all the same.
  EXPECT_THAT(story.core().Explain("b")->sooner,
              ElementsAre(HasSubstr("it does not say how long it runs")));
}

TEST(QueueWindowsTest, RollbackAndRestore) {
  QueueCore core(kPool);
  Outputs outputs;
  const Millis now(1000);
  const auto tell = [&](const events::v1::Envelope& message) {
    EXPECT_TRUE(core.Handle(message, now, &outputs).ok());
  };
  tell(PoolConfig());
  tell(QueueMade("default"));
  core.Commit();
  const uint64_t before = core.Fingerprint();
  tell(WindowSet("w", now, now + kMinute, {"team"}));
  EXPECT_NE(core.Fingerprint(), before);
  core.Rollback();
  EXPECT_EQ(core.Fingerprint(), before);
  tell(WindowSet("w", now, now + kMinute, {"team"}));
  Rows rows;
  rows.pool = core.TakeChanges().pool;
  core.Commit();
  QueueCore restored(kPool);
  ASSERT_TRUE(restored.Restore(rows).ok());
  ASSERT_TRUE(restored.Handle(QueueMade("default"), now, &outputs).ok());
  outputs = {};
  ASSERT_TRUE(restored.Handle(Submitted("a"), now, &outputs).ok());
  ASSERT_EQ(outputs.pool.size(), 1U);
  EXPECT_EQ(Describe(outputs.pool[0]), "cycle 1: a/1@w");
}

TEST(QueueWindowsTest, RefusesWhatIsNoWindow) {
  Story story;
  EXPECT_THAT(story.Tell(WindowSet("", Millis(1), Millis(2))), ElementsAre("poison"));
  EXPECT_THAT(story.Tell(WindowSet("w", Millis(2), Millis(2))), ElementsAre("poison"));
  EXPECT_THAT(story.error(), HasSubstr("its end must be later than its start"));
}

}  // namespace
}  // namespace fluxqueue::queue_core
