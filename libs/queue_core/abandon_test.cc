// A cycle whose answer cannot be kept: it is closed, and the pool goes on without the job that is
// to blame.
#include <set>

#include "libs/queue_core/cycle_size.h"
#include "libs/queue_core/testing_story.h"

namespace fluxqueue::queue_core {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

class AbandonTest : public ::testing::Test {
 protected:
  // Candidates of the cycle in flight.
  static std::vector<std::string> CandidatesIn(const Story::Lines& lines) {
    std::vector<std::string> ids;
    for (const std::string& line : lines) {
      if (line.rfind("cycle ", 0) != 0) continue;
      for (size_t at = line.find(": ") + 1; at != std::string::npos; at = line.find(' ', at + 1)) {
        ids.push_back(line.substr(at + 1, line.find('/', at) - at - 1));
      }
    }
    return ids;
  }

  // As a service of which the answer about `bad` cannot be written; all others are busy. How many
  // cycles that took until no cycle is in flight.
  int RunUntilQuiet(const std::string& bad, Story::Lines lines) {
    int cycles = 0;
    for (; story_.core().cycle_in_flight() != 0 && cycles < 100; ++cycles) {
      const std::vector<std::string> candidates = CandidatesIn(lines);
      const uint64_t cycle = story_.core().cycle_in_flight();
      if (std::find(candidates.begin(), candidates.end(), bad) != candidates.end()) {
        lines = story_.Tell(Abandoned(cycle));
        continue;
      }
      std::vector<Said> outcomes;
      for (const std::string& id : candidates) {
        tried_.insert(id);
        outcomes.push_back({id, 1, kBusyKind, "full"});
      }
      lines = story_.Tell(Answered(cycle, outcomes));
    }
    return cycles;
  }

  Story story_;
  std::set<std::string> tried_;
};

TEST_F(AbandonTest, TheOnlyCandidateIsSetAside) {
  story_.Tell(Submitted("a"));
  EXPECT_THAT(story_.Tell(Abandoned(1)), ElementsAre("fact a v2 Pending Retry", "release a/1"));
  EXPECT_THAT(story_.last().message(), HasSubstr("could not be kept"));
  EXPECT_EQ(story_.core().cycle_in_flight(), 0U);
  // Others go on.
  EXPECT_THAT(story_.Tell(Submitted("b")), Contains("cycle 2: b/1"));
  story_.Tell(Answered(2, {{"b"}}));
  EXPECT_EQ(story_.core().Find("b")->state, model::JobState::kAllocated);
  // It is tried again later.
  story_.Wait(600'000);
  EXPECT_THAT(story_.Tell(Tick()), Contains("cycle 3: a/1"));
}

TEST_F(AbandonTest, WhatTheMatcherMayHaveGivenToOneWhoLeftIsReleased) {
  story_.Tell(Submitted("a"));
  story_.Tell(Held("a", true));
  EXPECT_THAT(story_.Tell(Abandoned(1)), Contains("release a/1"));
}

TEST_F(AbandonTest, NoPromiseOutlivesIt) {
  story_.Tell(Submitted("a"));
  story_.Tell(Answered(story_.core().cycle_in_flight(), {{"a", 1, kReservedKind, "full", 60}}));
  ASSERT_TRUE(IsPromised(*story_.core().Find("a")));
  story_.Tell(Inventory(/*grew=*/true, /*synced=*/true));
  ASSERT_NE(story_.core().cycle_in_flight(), 0U);
  story_.Tell(Abandoned(story_.core().cycle_in_flight()));
  EXPECT_FALSE(IsPromised(*story_.core().Find("a")));
}

TEST_F(AbandonTest, WhoIsToBlameIsFoundAmongMany) {
  Story::Lines lines;
  story_.Tell(QueueMade("default", 0, 0, "easy"));
  for (int i = 0; i < 40; ++i) {
    const Story::Lines said = story_.Tell(Submitted(fmt::format("j{}", i)));
    if (i == 0) lines = said;
  }
  EXPECT_LT(RunUntilQuiet("j23", lines), 30);
  EXPECT_EQ(tried_.size(), 39U);
  EXPECT_EQ(story_.core().Find("j23")->reason, "Retry");
  for (const int good : {0, 22, 24, 39}) {
    EXPECT_EQ(story_.core().Find(fmt::format("j{}", good))->reason, "Busy") << good;
  }
  // From then on cycles are as large as before.
  lines = story_.Tell(Inventory(true, true));
  EXPECT_EQ(CandidatesIn(lines).size(), 39U);
}

TEST_F(AbandonTest, NobodyPassesAnotherInItsQueueMeanwhile) {
  story_.Tell(Submitted("first"));
  for (const char* id : {"a", "b", "c"}) story_.Tell(Submitted(id));
  story_.Tell(Answered(1, {{"first"}}));
  EXPECT_THAT(story_.Tell(Abandoned(2)), Contains("cycle 3: a/1"));
  // By fcfs a waits, and those behind it with it.
  EXPECT_THAT(story_.Tell(Answered(3, {{"a", 1, kBusyKind, "full"}})),
              Contains("cycle 4: a/1 b/1 c/1"));
}

TEST_F(AbandonTest, OfAnotherCycleItIsStale) {
  story_.Tell(Submitted("a"));
  EXPECT_THAT(story_.Tell(Abandoned(7)), IsEmpty());
  EXPECT_EQ(story_.stale(), 1U);
  EXPECT_EQ(story_.core().cycle_in_flight(), 1U);
  story_.Tell(Answered(1, {{"a"}}));
  EXPECT_THAT(story_.Tell(Abandoned(1)), IsEmpty());
  EXPECT_EQ(story_.core().Find("a")->state, model::JobState::kAllocated);
}

TEST_F(AbandonTest, AnAnswerThatComesLateIsNotTaken) {
  story_.Tell(Submitted("a"));
  story_.Tell(Abandoned(1));
  EXPECT_THAT(story_.Tell(Answered(1, {{"a"}})), IsEmpty());
  EXPECT_EQ(story_.core().Find("a")->state, model::JobState::kPending);
}

TEST_F(AbandonTest, WhoHasEndedIsNotSetAside) {
  story_.Tell(Submitted("a"));
  story_.Tell(Cancelled("a"));
  EXPECT_THAT(story_.Tell(Abandoned(1)), IsEmpty());
  EXPECT_EQ(story_.core().cycle_in_flight(), 0U);
}

TEST_F(AbandonTest, SuspectsThatMayNotGoHoldUpNobody) {
  story_.Tell(Submitted("first"));
  story_.Tell(Submitted("a"));
  story_.Tell(Submitted("b"));
  story_.Tell(Submitted("c"));
  story_.Tell(Answered(1, {{"first"}}));
  EXPECT_THAT(story_.Tell(Abandoned(2)), Contains("cycle 3: a/1"));
  story_.Tell(Held("b", true));
  story_.Tell(Held("c", true));
  story_.Tell(Submitted("d"));
  EXPECT_THAT(story_.Tell(Answered(3, {{"a"}})), Contains("cycle 4: d/1"));
}

TEST(CycleSizeTest, StoppableJobsGoFirstAndThenTheEndOfTheLine) {
  events::v1::CycleRequested cycle;
  const std::string id(100, 'x');
  for (int i = 0; i < 100; ++i) cycle.add_candidates()->set_job_id(id);
  for (int i = 0; i < 50'000; ++i) cycle.add_stoppable()->mutable_key()->set_job_id(id);
  cycle.mutable_candidates(0)->set_stoppable(std::string(50'000 / 8, '\xff'));
  Fit(&cycle);
  EXPECT_LE(cycle.ByteSizeLong(), kMostCycleBytes);
  EXPECT_EQ(cycle.candidates_size(), 100);
  EXPECT_GT(cycle.stoppable_size(), 20'000);
  const std::string& bits = cycle.candidates(0).stoppable();
  EXPECT_TRUE(HasBit(bits, cycle.stoppable_size() - 1));
  EXPECT_FALSE(HasBit(bits, cycle.stoppable_size()));

  for (int i = 0; i < 50'000; ++i) cycle.add_candidates()->set_job_id(id);
  Fit(&cycle);
  EXPECT_LE(cycle.ByteSizeLong(), kMostCycleBytes);
  EXPECT_EQ(cycle.stoppable_size(), 0);
  EXPECT_GT(cycle.candidates_size(), 20'000);
  EXPECT_TRUE(cycle.candidates(0).stoppable().empty());
}

TEST(CycleSizeTest, WhatFitsStaysAsItIs) {
  events::v1::CycleRequested cycle;
  cycle.add_candidates()->set_stoppable("\x01");
  const std::string before = cycle.SerializeAsString();
  Fit(&cycle);
  EXPECT_EQ(cycle.SerializeAsString(), before);
}

}  // namespace
}  // namespace fluxqueue::queue_core
