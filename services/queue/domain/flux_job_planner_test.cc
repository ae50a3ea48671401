#include "services/queue/domain/flux_job_planner.h"

#include <set>
#include <string>
#include <utility>

#include <gtest/gtest.h>

namespace fluxqueue::queue {
namespace {

using events::v1::JobFact;

JobFact Fact(const std::string& id, uint64_t version, events::v1::JobState state) {
  JobFact fact;
  fact.set_job_id(id);
  fact.set_version(version);
  fact.set_state(state);
  return fact;
}

TEST(FluxJobPlannerTest, AQuickJobCostsOneWrite) {
  FluxJobPlanner planner({.first_delay = Millis{300}});
  planner.Observe(Fact("a", 1, events::v1::JOB_STATE_PENDING), 1, Millis(0));
  planner.Observe(Fact("a", 2, events::v1::JOB_STATE_ALLOCATED), 0, Millis(50));
  planner.Observe(Fact("a", 3, events::v1::JOB_STATE_SUCCEEDED), 0, Millis(200));
  EXPECT_TRUE(planner.TakeDue(Millis(299), 10).empty());
  const auto writes = planner.TakeDue(Millis(300), 10);
  ASSERT_EQ(writes.size(), 1);
  EXPECT_EQ(writes[0].version, 3);
  EXPECT_EQ(writes[0].resource_version, "");
  planner.Written("a", 3, "7", Millis(310));
  EXPECT_EQ(planner.size(), 0);
  EXPECT_FALSE(planner.NextDue().has_value());
}

TEST(FluxJobPlannerTest, AClaimHasNoObject) {
  FluxJobPlanner planner({.first_delay = Millis{300}});
  JobFact fact = Fact("a", 3, events::v1::JOB_STATE_RUNNING);
  fact.mutable_workload()->set_kind("Claim");
  planner.Observe(fact, 0, Millis(0));
  EXPECT_EQ(planner.size(), 0);
  EXPECT_FALSE(planner.NextDue().has_value());
}

TEST(FluxJobPlannerTest, AtMostOneWriteAnInterval) {
  FluxJobPlanner planner({.first_delay = Millis{300}});
  planner.Observe(Fact("a", 1, events::v1::JOB_STATE_PENDING), 1, Millis(0));
  ASSERT_EQ(planner.TakeDue(Millis(300), 10).size(), 1);
  planner.Written("a", 1, "7", Millis(300));
  planner.Observe(Fact("a", 2, events::v1::JOB_STATE_ALLOCATED), 0, Millis(400));
  EXPECT_TRUE(planner.TakeDue(Millis(1299), 10).empty());
  const auto writes = planner.TakeDue(Millis(1300), 10);
  ASSERT_EQ(writes.size(), 1);
  EXPECT_EQ(writes[0].resource_version, "7");
}

TEST(FluxJobPlannerTest, WritesGrowFewWhereTheApiServerGrowsSlow) {
  FluxJobPlanner planner({.first_delay = Millis{0}, .writes_per_second = 500});
  for (int i = 0; i < 2000; ++i) {
    planner.Observe(Fact("a" + std::to_string(i), 1, events::v1::JOB_STATE_PENDING), 1, Millis(0));
  }
  planner.Took(std::chrono::milliseconds(1));
  EXPECT_EQ(planner.TakeDue(Millis(0), 128).size(), 128);
  EXPECT_EQ(planner.NextDue(), Millis(256)) << "the configured rate";
  for (int i = 0; i < 200; ++i) planner.Took(std::chrono::milliseconds(100));
  EXPECT_EQ(planner.TakeDue(Millis(256), 128).size(), 10) << "of a second";
  EXPECT_NEAR(static_cast<double>(planner.NextDue()->count()), 1256, 1);
  for (int i = 0; i < 200; ++i) planner.Took(std::chrono::seconds(4));
  EXPECT_EQ(planner.TakeDue(Millis(1300), 128).size(), 1) << "it goes on, however slow it is";
  for (int i = 0; i < 200; ++i) planner.Took(std::chrono::milliseconds(1));
  EXPECT_EQ(planner.TakeDue(Millis(9000), 128).size(), 128) << "it is quick again";
}

TEST(FluxJobPlannerTest, TheFirstWriteWaitsLongerWhereTheApiServerIsSlow) {
  FluxJobPlanner planner({.first_delay = Millis{1000}});
  for (int i = 0; i < 200; ++i) planner.Took(std::chrono::milliseconds(10));
  planner.Observe(Fact("a", 1, events::v1::JOB_STATE_PENDING), 1, Millis(0));
  EXPECT_EQ(planner.NextDue(), Millis(1000)) << "it is as it always was";
  for (int i = 0; i < 200; ++i) planner.Took(std::chrono::milliseconds(60));
  planner.Observe(Fact("b", 1, events::v1::JOB_STATE_PENDING), 1, Millis(1000));
  ASSERT_EQ(planner.TakeDue(Millis(1000), 10).size(), 1);
  EXPECT_GE(planner.NextDue(), Millis(2500));
  EXPECT_LE(planner.NextDue(), Millis(6000));
}

TEST(FluxJobPlannerTest, EndsAreWrittenWhenTheApiServerIsAtLeisure) {
  FluxJobPlanner planner({.first_delay = Millis{0}});
  for (int i = 0; i < 1000; ++i) {
    planner.Observe(
        Fact("e" + std::to_string(i), 1, events::v1::JOB_STATE_SUCCEEDED), 0, Millis(0));
  }
  Millis now{0};
  // How many of the ended jobs, and of one more that runs each time, are written in ten seconds.
  const auto written = [&](Millis took) {
    int ended = 0;
    int running = 0;
    for (const Millis until = now + Millis(10'000); now < until;) {
      const std::string id = "r" + std::to_string(now.count());
      planner.Observe(Fact(id, 1, events::v1::JOB_STATE_RUNNING), 0, now);
      for (const FluxJobWrite& write : planner.TakeDue(now, 1)) {
        ++(write.job_id.starts_with('r') ? running : ended);
        planner.Took(took);
        planner.Written(write.job_id, 1, "7", now);
      }
      now = std::max(now + Millis(1), *planner.NextDue());
    }
    return std::pair(ended, running);
  };
  const auto [ended_at_leisure, beside] = written(Millis(20));
  EXPECT_GT(ended_at_leisure, 100);
  EXPECT_GT(beside, 100) << "both have their part";
  for (int i = 0; i < 100; ++i) planner.Took(Millis(100));
  const auto [ended_in_a_rush, shown] = written(Millis(100));
  EXPECT_GE(ended_in_a_rush, 10) << "one a second, however busy it is";
  EXPECT_LE(ended_in_a_rush, 30);
  EXPECT_GT(shown, 60) << "what people look at now goes on";
}

TEST(FluxJobPlannerTest, OfJobsThatEndFasterThanTheyAreWrittenTheOldestGetNoObject) {
  FluxJobPlanner planner({.first_delay = Millis{0}, .most_ended = 3});
  planner.Observe(Fact("seen", 1, events::v1::JOB_STATE_RUNNING), 0, Millis(0));
  planner.TakeDue(Millis(0), 10);
  planner.Written("seen", 1, "7", Millis(0));
  planner.Observe(Fact("live", 1, events::v1::JOB_STATE_RUNNING), 0, Millis(0));
  planner.Observe(Fact("seen", 2, events::v1::JOB_STATE_SUCCEEDED), 0, Millis(0));
  planner.Observe(Fact("under way", 1, events::v1::JOB_STATE_SUCCEEDED), 0, Millis(0));
  const auto under_way = planner.TakeDue(Millis(100), 10);
  ASSERT_EQ(under_way.size(), 2) << "live, and under way";
  for (const char* id : {"a", "b", "c", "d", "e"}) {
    planner.Observe(Fact(id, 1, events::v1::JOB_STATE_FAILED), 0, Millis(200));
  }
  EXPECT_EQ(planner.left_out(), 2);
  planner.Failed("under way", Millis(200));
  planner.Observe(Fact("f", 1, events::v1::JOB_STATE_FAILED), 0, Millis(200));
  EXPECT_EQ(planner.left_out(), 4) << "c and d";
  std::set<std::string> written;
  for (const FluxJobWrite& write : planner.TakeDue(Millis(60'000), 100)) {
    written.insert(write.job_id);
  }
  EXPECT_EQ(written, (std::set<std::string>{"seen", "under way", "e", "f"}))
      << "an object that there is shows the end";
}

TEST(FluxJobPlannerTest, AnObjectThatShowsAnOlderStateThanTheEndIsNotLeftOut) {
  FluxJobPlanner planner({.most_ended = 1});
  for (const char* id : {"a", "b", "c"}) {
    planner.ObserveShown(Fact(id, 4, events::v1::JOB_STATE_SUCCEEDED), 3, "7", Millis(0));
  }
  EXPECT_EQ(planner.left_out(), 0);
  const auto writes = planner.TakeDue(Millis(0), 10);
  ASSERT_EQ(writes.size(), 3);
  EXPECT_EQ(writes[0].resource_version, "7");
  EXPECT_FALSE(writes[0].shown);
}

TEST(FluxJobPlannerTest, AnApiServerThatWasAwaySlowsWritesForSecondsOnly) {
  FluxJobPlanner planner({.first_delay = Millis{0}});
  for (int i = 0; i < 200; ++i) {
    planner.Observe(Fact("a" + std::to_string(i), 1, events::v1::JOB_STATE_PENDING), 1, Millis(0));
  }
  for (int i = 0; i < 200; ++i) planner.Took(std::chrono::seconds(30));
  Millis now{0};
  for (int i = 0; i < 100; ++i) {
    now = std::max(now, planner.NextDue().value());
    for (size_t left = planner.TakeDue(now, 1).size(); left > 0; --left) {
      planner.Took(std::chrono::milliseconds(3));
    }
  }
  EXPECT_LT(now, Millis(30'000)) << "100 writes and their Events";
}

TEST(FluxJobPlannerTest, AFactThatComesDuringAWriteIsWrittenAfterIt) {
  FluxJobPlanner planner({.first_delay = Millis{300}});
  planner.Observe(Fact("a", 1, events::v1::JOB_STATE_PENDING), 1, Millis(0));
  ASSERT_EQ(planner.TakeDue(Millis(300), 10).size(), 1);
  planner.Observe(Fact("a", 2, events::v1::JOB_STATE_SUCCEEDED), 0, Millis(310));
  EXPECT_TRUE(planner.TakeDue(Millis(5000), 10).empty()) << "it is in flight";
  planner.Written("a", 1, "7", Millis(5000));
  EXPECT_EQ(planner.size(), 1) << "its end is not shown yet";
  EXPECT_EQ(planner.TakeDue(Millis(6000), 10).size(), 1);
}

TEST(FluxJobPlannerTest, OlderVersionsAreIgnored) {
  FluxJobPlanner planner({.first_delay = Millis{300}});
  planner.Observe(Fact("a", 2, events::v1::JOB_STATE_ALLOCATED), 0, Millis(0));
  planner.Observe(Fact("a", 1, events::v1::JOB_STATE_PENDING), 1, Millis(0));
  EXPECT_EQ(planner.TakeDue(Millis(300), 10).at(0).version, 2);
}

TEST(FluxJobPlannerTest, PositionsAreRefreshedSeldom) {
  FluxJobPlanner planner({.first_delay = Millis{300}, .told_after = Millis{60'000}});
  planner.Observe(Fact("a", 1, events::v1::JOB_STATE_PENDING), 7, Millis(0));
  ASSERT_EQ(planner.TakeDue(Millis(300), 10).size(), 1);
  planner.Written("a", 1, "7", Millis(300));
  planner.Move("a", 3, Millis(1000));
  EXPECT_EQ(planner.NextDue(), Millis(10300));
  planner.Move("a", 7, Millis(2000));
  EXPECT_EQ(planner.NextDue(), Millis(60'000)) << "it is back where it was shown";
  planner.Move("unknown", 1, Millis(2000));
}

// Takes what is due at `now` as if it were written at once.
std::vector<FluxJobWrite> WriteAt(FluxJobPlanner* planner, Millis now) {
  std::vector<FluxJobWrite> writes = planner->TakeDue(now, 10);
  for (const FluxJobWrite& write : writes) {
    planner->Written(write.job_id, write.version, "7", now);
  }
  return writes;
}

TEST(FluxJobPlannerTest, NothingIsToldOfAJobThatStartsAtOnce) {
  FluxJobPlanner planner({.first_delay = Millis{300}});
  planner.Observe(Fact("a", 1, events::v1::JOB_STATE_PENDING), 1, Millis(0));
  EXPECT_EQ(WriteAt(&planner, Millis(300)).at(0).step, JobStep::kNone);
  planner.Observe(Fact("a", 2, events::v1::JOB_STATE_RUNNING), 0, Millis(9'000));
  EXPECT_EQ(WriteAt(&planner, Millis(9'000)).at(0).step, JobStep::kNone);
  EXPECT_FALSE(planner.NextDue().has_value());
}

TEST(FluxJobPlannerTest, EachStepOfAJobThatWaitsIsToldOnce) {
  FluxJobPlanner planner({.first_delay = Millis{300}});
  planner.Observe(Fact("a", 1, events::v1::JOB_STATE_PENDING), 7, Millis(0));
  EXPECT_EQ(WriteAt(&planner, Millis(300)).at(0).step, JobStep::kNone);
  ASSERT_EQ(planner.NextDue(), Millis(10'000));
  const auto queued = WriteAt(&planner, Millis(10'000));
  EXPECT_EQ(queued.at(0).step, JobStep::kQueued);
  EXPECT_TRUE(queued.at(0).shown) << "the object has not changed";
  EXPECT_FALSE(planner.NextDue().has_value());

  JobFact reserved = Fact("a", 2, events::v1::JOB_STATE_PENDING);
  reserved.set_start_ms(1'000'000);
  planner.Observe(reserved, 7, Millis(11'000));
  EXPECT_EQ(WriteAt(&planner, Millis(11'000)).at(0).step, JobStep::kNone) << "no promise";
  reserved.set_version(3);
  reserved.set_firm(true);
  planner.Observe(reserved, 7, Millis(20'000));
  EXPECT_EQ(WriteAt(&planner, Millis(20'000)).at(0).step, JobStep::kReserved);
  planner.Observe(Fact("a", 4, events::v1::JOB_STATE_PENDING), 7, Millis(30'000));
  EXPECT_EQ(WriteAt(&planner, Millis(30'000)).at(0).step, JobStep::kNone);

  planner.Observe(Fact("a", 5, events::v1::JOB_STATE_ALLOCATED), 0, Millis(40'000));
  planner.Observe(Fact("a", 6, events::v1::JOB_STATE_BOUND), 0, Millis(40'000));
  EXPECT_EQ(WriteAt(&planner, Millis(40'000)).at(0).step, JobStep::kBound) << "the last of them";
  planner.Observe(Fact("a", 7, events::v1::JOB_STATE_RUNNING), 0, Millis(50'000));
  EXPECT_EQ(WriteAt(&planner, Millis(50'000)).at(0).step, JobStep::kNone);
}

TEST(FluxJobPlannerTest, WhereARequeuedJobRunsIsTold) {
  FluxJobPlanner planner({.first_delay = Millis{300}});
  planner.Observe(Fact("a", 1, events::v1::JOB_STATE_RUNNING), 0, Millis(0));
  EXPECT_EQ(WriteAt(&planner, Millis(300)).at(0).step, JobStep::kNone);
  JobFact again = Fact("a", 2, events::v1::JOB_STATE_RUNNING);
  again.set_attempt(2);
  planner.Observe(again, 0, Millis(2'000));
  EXPECT_EQ(WriteAt(&planner, Millis(2'000)).at(0).step, JobStep::kBound);
}

TEST(FluxJobPlannerTest, AJobThatHasItsNodesForLongAndDoesNotRunIsToldOf) {
  FluxJobPlanner planner({.first_delay = Millis{300}, .not_started_after = Millis{60'000}});
  planner.Observe(Fact("a", 1, events::v1::JOB_STATE_PENDING), 1, Millis(0));
  planner.Observe(Fact("a", 2, events::v1::JOB_STATE_ALLOCATED), 0, Millis(100));
  EXPECT_EQ(WriteAt(&planner, Millis(300)).at(0).step, JobStep::kNone);
  planner.Observe(Fact("a", 3, events::v1::JOB_STATE_BOUND), 0, Millis(20'000));
  EXPECT_EQ(WriteAt(&planner, Millis(20'000)).at(0).step, JobStep::kNone);
  ASSERT_EQ(planner.NextDue(), Millis(60'100));
  EXPECT_EQ(WriteAt(&planner, Millis(60'100)).at(0).step, JobStep::kNotStarted);
  EXPECT_FALSE(planner.NextDue().has_value());
  planner.Observe(Fact("a", 4, events::v1::JOB_STATE_RUNNING), 0, Millis(70'000));
  EXPECT_EQ(WriteAt(&planner, Millis(70'000)).at(0).step, JobStep::kNone);
}

// After a restart nothing may come of a job to which nothing happens.
TEST(FluxJobPlannerTest, WhatIsShownAlreadyIsToldOfAllTheSame) {
  FluxJobPlanner planner({.first_delay = Millis{300}, .not_started_after = Millis{60'000}});
  planner.ObserveShown(Fact("a", 3, events::v1::JOB_STATE_BOUND), 3, "7", Millis(0));
  ASSERT_EQ(planner.NextDue(), Millis(60'000));
  const auto told = WriteAt(&planner, Millis(60'000));
  EXPECT_EQ(told.at(0).step, JobStep::kNotStarted);
  EXPECT_TRUE(told.at(0).shown);
  JobFact running = Fact("b", 3, events::v1::JOB_STATE_RUNNING);
  running.set_attempt(2);
  planner.ObserveShown(running, 3, "7", Millis(60'000));
  running.set_version(4);
  planner.Observe(running, 0, Millis(70'000));
  EXPECT_EQ(WriteAt(&planner, Millis(70'000)).at(0).step, JobStep::kNone) << "told before";
}

TEST(FluxJobPlannerTest, AStepWhoseWriteFailsIsToldWithTheNext) {
  FluxJobPlanner planner({.first_delay = Millis{300}, .told_after = Millis{0}});
  planner.Observe(Fact("a", 1, events::v1::JOB_STATE_PENDING), 7, Millis(0));
  EXPECT_EQ(planner.TakeDue(Millis(300), 10).at(0).step, JobStep::kQueued);
  planner.Failed("a", Millis(300));
  EXPECT_EQ(planner.TakeDue(Millis(60'000), 10).at(0).step, JobStep::kQueued);
}

// A row may be ahead of what the planner was told.
TEST(FluxJobPlannerTest, ALaterVersionThatWasWrittenIsNotWrittenAgain) {
  FluxJobPlanner planner({.first_delay = Millis{0}, .told_after = Millis{0}});
  const auto observe = [&](uint64_t version, events::v1::JobState state, Millis now) {
    JobFact fact = Fact("a", version, state);
    fact.set_attempt(2);
    planner.Observe(fact, 0, now);
  };
  observe(1, events::v1::JOB_STATE_PENDING, Millis(0));
  EXPECT_EQ(planner.TakeDue(Millis(0), 10).at(0).step, JobStep::kQueued);
  planner.Written("a", 3, "7", Millis(0));
  const FluxJobWrite again = planner.TakeDue(Millis(1000), 10).at(0);
  EXPECT_EQ(again.step, JobStep::kQueued) << "the row was a later one: it was not told";
  EXPECT_TRUE(again.shown);
  planner.Written("a", 3, "7", Millis(1000));
  observe(3, events::v1::JOB_STATE_BOUND, Millis(1001));
  const FluxJobWrite told = planner.TakeDue(Millis(2000), 10).at(0);
  EXPECT_EQ(told.step, JobStep::kBound);
  EXPECT_TRUE(told.shown);
  planner.Written("a", 5, "8", Millis(2000));
  observe(5, events::v1::JOB_STATE_SUCCEEDED, Millis(2001));
  EXPECT_EQ(planner.size(), 0);
}

TEST(FluxJobPlannerTest, AnotherShowsTheJobsOfAPoolThatIsLostButForTheirEnds) {
  FluxJobPlanner planner({.first_delay = Millis{300}});
  const auto observe = [&](const std::string& id, const char* pool, events::v1::JobState state) {
    JobFact fact = Fact(id, 1, state);
    fact.set_pool(pool);
    planner.Observe(fact, 1, Millis(0));
  };
  observe("waits", "lost", events::v1::JOB_STATE_PENDING);
  observe("flies", "lost", events::v1::JOB_STATE_PENDING);
  observe("ended", "lost", events::v1::JOB_STATE_SUCCEEDED);
  observe("other", "kept", events::v1::JOB_STATE_PENDING);
  EXPECT_EQ(planner.TakeDue(Millis(300), 1).at(0).job_id, "ended");
  EXPECT_EQ(planner.TakeDue(Millis(310), 1).at(0).job_id, "flies");
  planner.Failed("ended", Millis(320));
  planner.Lost({"lost"});
  planner.Written("flies", 1, "7", Millis(330));
  const auto writes = planner.TakeDue(Millis(5000), 10);
  ASSERT_EQ(writes.size(), 2);
  EXPECT_EQ(writes[0].job_id, "other");
  EXPECT_EQ(writes[1].job_id, "ended");
}

TEST(FluxJobPlannerTest, WhatIsGoneIsForgottenButForALaterFact) {
  FluxJobPlanner planner({.first_delay = Millis{300}});
  for (const char* id : {"gone", "goes-on"}) {
    planner.Observe(Fact(id, 1, events::v1::JOB_STATE_PENDING), 1, Millis(0));
  }
  ASSERT_EQ(planner.TakeDue(Millis(300), 10).size(), 2);
  planner.Observe(Fact("goes-on", 2, events::v1::JOB_STATE_SUCCEEDED), 0, Millis(310));
  for (const char* id : {"gone", "goes-on"}) planner.Gone(id, 1, Millis(320));
  EXPECT_EQ(planner.size(), 1);
  const auto writes = planner.TakeDue(Millis(1320), 10);
  ASSERT_EQ(writes.size(), 1);
  EXPECT_EQ(writes[0].version, 2);
  EXPECT_EQ(writes[0].resource_version, "") << "it is looked at again";
}

TEST(FluxJobPlannerTest, APositionWhoseWriteFailsIsWrittenAgain) {
  FluxJobPlanner planner({.first_delay = Millis{300}, .told_after = Millis{60'000}});
  planner.Observe(Fact("a", 1, events::v1::JOB_STATE_PENDING), 7, Millis(0));
  WriteAt(&planner, Millis(300));
  planner.Move("a", 3, Millis(1000));
  EXPECT_FALSE(planner.TakeDue(Millis(20'000), 10).at(0).shown);
  planner.Failed("a", Millis(20'000));
  EXPECT_FALSE(planner.TakeDue(Millis(30'000), 10).at(0).shown);
}

TEST(FluxJobPlannerTest, AnEventCountsAsAWrite) {
  FluxJobPlanner planner(
      {.first_delay = Millis{0}, .told_after = Millis{0}, .writes_per_second = 100});
  planner.Observe(Fact("a", 1, events::v1::JOB_STATE_PENDING), 1, Millis(0));
  ASSERT_EQ(planner.TakeDue(Millis(0), 3).size(), 1);
  planner.Observe(Fact("b", 1, events::v1::JOB_STATE_PENDING), 1, Millis(0));
  EXPECT_EQ(planner.NextDue(), Millis(20));
}

TEST(FluxJobPlannerTest, WaitingJobsNearestToTheirTurnFirst) {
  FluxJobPlanner planner({.first_delay = Millis{300}});
  planner.Observe(Fact("third", 1, events::v1::JOB_STATE_PENDING), 3, Millis(0));
  planner.Observe(Fact("first", 1, events::v1::JOB_STATE_PENDING), 1, Millis(0));
  planner.Observe(Fact("runs", 1, events::v1::JOB_STATE_RUNNING), 0, Millis(0));
  EXPECT_EQ(planner.Waiting(1), std::vector<std::string>{"first"});
  EXPECT_EQ(planner.Waiting(10), (std::vector<std::string>{"first", "third"}));
}

TEST(FluxJobPlannerTest, FailuresBackOff) {
  FluxJobPlanner planner({.first_delay = Millis{300}});
  planner.Observe(Fact("a", 1, events::v1::JOB_STATE_PENDING), 1, Millis(0));
  ASSERT_EQ(planner.TakeDue(Millis(300), 10).size(), 1);
  planner.Failed("a", Millis(300));
  EXPECT_EQ(planner.NextDue(), Millis(800));
  ASSERT_EQ(planner.TakeDue(Millis(800), 10).size(), 1);
  planner.Failed("a", Millis(800));
  EXPECT_EQ(planner.NextDue(), Millis(1800));
}

TEST(FluxJobPlannerTest, TakesNoMoreThanAskedLongestDueFirst) {
  FluxJobPlanner planner({.first_delay = Millis{300}});
  planner.Observe(Fact("late", 1, events::v1::JOB_STATE_PENDING), 1, Millis(100));
  planner.Observe(Fact("early", 1, events::v1::JOB_STATE_PENDING), 2, Millis(0));
  const auto writes = planner.TakeDue(Millis(1000), 1);
  ASSERT_EQ(writes.size(), 1);
  EXPECT_EQ(writes[0].job_id, "early");
}

TEST(FluxJobPlannerTest, AllJobsTogetherHaveARate) {
  FluxJobPlanner planner({.first_delay = Millis{0}, .writes_per_second = 100});
  for (const char* id : {"a", "b", "c", "d", "e"}) {
    planner.Observe(Fact(id, 1, events::v1::JOB_STATE_PENDING), 1, Millis(0));
  }
  EXPECT_EQ(planner.TakeDue(Millis(0), 3).size(), 3);
  EXPECT_EQ(planner.NextDue(), Millis(30));
  EXPECT_TRUE(planner.TakeDue(Millis(29), 3).empty());
  EXPECT_EQ(planner.TakeDue(Millis(30), 3).size(), 2);
}

}  // namespace
}  // namespace fluxqueue::queue
