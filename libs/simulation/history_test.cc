// A log is made by the real cores; it is kept as lines, replayed, and simulated with other
// settings.
#include "libs/simulation/history.h"

#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "libs/base/check.h"
#include "libs/base/status_macros.h"
#include "libs/matcher_core/test_messages.h"
#include "libs/queue_core/testing_story.h"
#include "libs/verify/event_file.h"

namespace fluxqueue::simulation {
namespace {

using events::v1::Envelope;
using ::testing::HasSubstr;

// One node of four cpus, and a world that says when jobs start and end.
class LivePool {
 public:
  LivePool() {
    Say(queue_core::PoolConfig(5));
    Say(queue_core::QueueMade("default"));
    Say(matcher_core::Upserted(matcher_core::MakeNode("n1", 4000)));
    Say(matcher_core::Synced());
  }

  void At(int64_t seconds) {
    Settle();
    now_ = std::chrono::seconds(1000 + seconds);
  }
  void Submit(const std::string& id, int64_t cpu) {
    Envelope message = queue_core::Submitted(id);
    message.mutable_job_submitted()->mutable_spec()->set_jobspec(matcher_core::JobspecText(1, cpu));
    Say(std::move(message));
  }
  void Say(Envelope message) {
    message.set_pool(queue_core::kPool);
    log_.push_back({0, static_cast<int64_t>(log_.size()), now_, {}, std::move(message)});
  }

  std::string Lines() {
    Settle();
    std::string text;
    for (const verify::EventLine& fact : facts_) text += FormatEventLine(fact);
    for (const verify::EventLine& line : log_) text += FormatEventLine(line);
    return text;
  }

 private:
  void Settle() {
    for (; read_ < log_.size(); ++read_) {
      const verify::EventLine line = log_[read_];
      queue_core::Outputs outputs;
      std::vector<Envelope> answers;
      CHECK(queue_.Handle(line.message, line.time, &outputs).ok(), "record {}", read_);
      CHECK(matcher_.Handle(line.message, line.time, &answers).ok(), "record {}", read_);
      queue_.Commit();
      matcher_.Commit();
      for (Envelope& fact : outputs.jobs) {
        facts_.push_back({0, static_cast<int64_t>(facts_.size()), now_, {}, std::move(fact)});
      }
      for (Envelope& out : outputs.pool) Say(std::move(out));
      for (Envelope& out : answers) Say(std::move(out));
    }
  }

  queue_core::QueueCore queue_{queue_core::kPool};
  matcher_core::MatcherCore matcher_{queue_core::kPool};
  Millis now_{1'000'000};
  std::vector<verify::EventLine> log_;
  std::vector<verify::EventLine> facts_;
  size_t read_ = 0;
};

// a holds the node from 0 to 10; b, which wants all of it, and c wait; c is started only long after
// it could have been: the live binder took its time.
std::string SlowDay() {
  LivePool pool;
  pool.At(0);
  pool.Submit("a", 3000);
  pool.At(1);
  pool.Say(queue_core::Started("a"));
  pool.Submit("b", 4000);
  pool.Submit("c", 1000);
  pool.Submit("never", 9000);
  pool.At(11);
  pool.Say(queue_core::Ended("a"));
  pool.At(13);
  pool.Say(queue_core::Started("b"));
  pool.At(33);
  pool.Say(queue_core::Ended("b"));
  // Too late, here; and in a what-if for a job that has long run.
  pool.At(40);
  pool.Say(queue_core::HandedInAgain("c", 3, 1));
  pool.At(60);
  pool.Say(queue_core::Started("c"));
  pool.At(65);
  pool.Say(queue_core::Ended("c"));
  pool.At(66);
  pool.Say(queue_core::Withdrawn("c"));
  return pool.Lines();
}

TEST(HistoryTest, JobsAndTheirRunTimes) {
  const auto history = ReadHistory(SlowDay(), "log");
  ASSERT_TRUE(history.ok()) << history.status();
  EXPECT_EQ(history->pool, queue_core::kPool);
  ASSERT_EQ(history->workload.jobs.size(), 3);
  EXPECT_EQ(history->workload.without_run_time, 1);
  EXPECT_EQ(history->workload.jobs[1].name, "b");
  EXPECT_EQ(history->workload.jobs[1].submit_s, 1);
  EXPECT_EQ(history->workload.jobs[1].run_s, 20);
  EXPECT_EQ(history->run_times[2], Millis(5000));
  EXPECT_EQ(history->machine.Total("cpu"), 4000);
}

TEST(HistoryTest, AsItWasTheDecisionsAreTheSame) {
  const auto history = ReadHistory(SlowDay(), "log");
  ASSERT_TRUE(history.ok()) << history.status();
  const auto recorded = ReplayHistory(*history);
  ASSERT_TRUE(recorded.ok()) << recorded.status();
  EXPECT_GT(recorded->replay.total.decisions, 20U);
  EXPECT_EQ(recorded->replay.total.different(), 0U);
  EXPECT_EQ(recorded->replay.total.in_flight, 0U);
  const std::vector<Outcome>& outcomes = recorded->result.outcomes;
  EXPECT_EQ(WaitOf(outcomes[0]), 0);
  EXPECT_EQ(WaitOf(outcomes[1]), 10);
  EXPECT_EQ(WaitOf(outcomes[2]), 32);
}

TEST(HistoryTest, ADecisionThatWasAnotherIsFound) {
  std::string lines = SlowDay();
  const size_t at = lines.find("\"reason\":\"Busy\"");
  ASSERT_NE(at, std::string::npos);
  lines.replace(at, 15, "\"reason\":\"Late\"");
  const auto history = ReadHistory(lines, "log");
  ASSERT_TRUE(history.ok()) << history.status();
  EXPECT_EQ(ReplayHistory(*history)->replay.total.different(), 1U);
}

TEST(HistoryTest, WhatIfStartsJobsAtOnceAndRunsThemAsLong) {
  const auto history = ReadHistory(SlowDay(), "log");
  ASSERT_TRUE(history.ok()) << history.status();
  const auto result = WhatIf(*history, {.strategy = "fcfs", .policy = "lonode"}, nullptr);
  ASSERT_TRUE(result.ok()) << result.status();
  EXPECT_EQ(result->name, "fcfs, lonode");
  const std::vector<Outcome>& outcomes = result->outcomes;
  EXPECT_EQ(WaitOf(outcomes[0]), 0);
  EXPECT_EQ(outcomes[0].ended - outcomes[0].started, Millis(10'000));
  EXPECT_EQ(WaitOf(outcomes[1]), 9);   // at 10 instead of 11
  EXPECT_EQ(WaitOf(outcomes[2]), 29);  // behind b, which ran for 20 s
  EXPECT_EQ(outcomes[2].ended - outcomes[2].started, Millis(5'000));
  for (const Outcome& outcome : outcomes) EXPECT_EQ(outcome.end, Outcome::End::kEnded);
}

TEST(HistoryTest, WithMoreNodesJobsStartSooner) {
  const auto history = ReadHistory(SlowDay(), "log");
  ASSERT_TRUE(history.ok()) << history.status();
  const auto result = WhatIf(*history, {.more_nodes = 1}, nullptr);
  ASSERT_TRUE(result.ok()) << result.status();
  EXPECT_EQ(result->name, "strategy as recorded, policy as recorded, 1 more nodes");
  const std::vector<Outcome>& outcomes = result->outcomes;
  EXPECT_EQ(WaitOf(outcomes[1]), 0);
  EXPECT_EQ(WaitOf(outcomes[2]), 0);
  EXPECT_NE(outcomes[1].places, outcomes[0].places);  // on the other node
  EXPECT_EQ(outcomes[2].places, outcomes[0].places);  // beside a
}

TEST(HistoryTest, AFileThatBeginsInTheMiddleIsNotPlayed) {
  const std::string header = verify::FormatEventFileHeader({.pool = "main", .whole = false});
  EXPECT_THAT(Message(ReadHistory(header + SlowDay(), "log").status()),
              HasSubstr("log: it does not begin where its pool began"));
}

TEST(HistoryTest, Errors) {
  const auto message = [](const std::string& text) {
    return Message(ReadHistory(text, "log.jsonl").status());
  };
  EXPECT_THAT(message("{}\n"), HasSubstr("log.jsonl:1: it is no JSON object with"));
  EXPECT_THAT(message(""), HasSubstr("log.jsonl: no job in it has run"));
  const std::string of = R"({"append_ms":1,"envelope":{"tick":{},"pool":")";
  EXPECT_THAT(message(of + "a\"}}\n" + of + "b\"}}\n"),
              HasSubstr("log.jsonl:2: a record of pool b after those of pool a"));
}

}  // namespace
}  // namespace fluxqueue::simulation
