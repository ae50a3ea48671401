// A log is made by the real cores behind a transport that repeats records; it is replayed as it is,
// and after it was changed in one place.
#include "libs/verify/replay.h"

#include <functional>
#include <memory>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "libs/base/check.h"
#include "libs/base/status_macros.h"
#include "libs/delivery/incarnation.h"
#include "libs/matcher_core/test_messages.h"
#include "libs/queue_core/testing_story.h"

namespace fluxqueue::verify {
namespace {

using events::v1::Envelope;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

constexpr int kPartition = 3;

struct Stored {
  Millis time;
  std::string value;
};

// The services around one pool, one message at a time.
class System {
 public:
  System() {
    Envelope config = queue_core::PoolConfig(5);
    config.mutable_pool_configured()->set_engine("native");
    config.mutable_pool_configured()->set_policy("first");
    Say("admission/watch", config);
    Say("admission/watch", queue_core::QueueMade("default"));
    Say("cleanup/watch", matcher_core::Upserted(matcher_core::MakeNode("n1", 4000)));
    Say("cleanup/watch", matcher_core::Synced());
  }

  void Say(const std::string& stream, Envelope message) {
    message.set_pool(queue_core::kPool);
    message.set_stream(stream);
    message.set_sequence(++sequences_[stream]);
    message.set_time_ms(++wall_ms_);
    message.set_traceparent("00-" + stream);
    log.push_back({now_, message.SerializeAsString()});
  }

  void Submit(const std::string& id, int64_t cpu) {
    Envelope message = queue_core::Submitted(id);
    message.mutable_job_submitted()->mutable_spec()->set_jobspec(matcher_core::JobspecText(1, cpu));
    Say("admission/watch", message);
  }

  // Both services read to the end of the log.
  void Settle() {
    for (; read_ < log.size(); ++read_) {
      Envelope message;
      CHECK(message.ParseFromString(log[read_].value), "record {}", read_);
      queue_core::Outputs outputs;
      (void)queue_.Handle(message, log[read_].time, &outputs);  // poison: a dead letter
      queue_.Commit();
      std::vector<Envelope> answers;
      CHECK(matcher_->Handle(message, log[read_].time, &answers).ok(), "record {}", read_);
      matcher_->Commit();
      for (Envelope& fact : outputs.jobs) {
        fact.set_stream("queue/3");
        fact.set_sequence(++fact_sequence_);
        facts.push_back({now_, fact.SerializeAsString()});
      }
      for (Envelope& out : outputs.pool) Say("queue/3", std::move(out));
      for (Envelope& out : answers) Say("matcher/3", std::move(out));
      now_ += Millis(7);
    }
  }

  std::vector<Stored> log;
  std::vector<Stored> facts;

 private:
  queue_core::QueueCore queue_{queue_core::kPool};
  std::unique_ptr<matcher_core::MatcherCore> matcher_ =
      std::make_unique<matcher_core::MatcherCore>(queue_core::kPool);
  std::map<std::string, uint64_t> sequences_;
  uint64_t fact_sequence_ = 0;
  Millis now_{1'000'000};
  int64_t wall_ms_ = 5;
  size_t read_ = 0;
};

System Worked() {
  System system;
  system.Submit("a", 3000);
  system.Submit("b", 3000);
  system.Settle();
  system.Say("binder/1", queue_core::Bound("a", 1));
  system.Say("cleanup/watch", queue_core::Started("a", 1));
  // Of an attempt that does not exist: impossible, and so a dead letter.
  system.Say("binder/1", queue_core::Bound("b", 9));
  system.Say("cleanup/watch", queue_core::Ended("a"));
  system.Settle();
  system.Say("cleanup/watch", queue_core::Ended("b"));
  system.Settle();
  return system;
}

struct Result {
  PoolReplay pool;
  FactLog facts;
  uint64_t duplicates = 0;
};

Result Replayed(const System& system, const Replayer::Buried& buried = {}) {
  Result result;
  result.facts.BeginPartition(0, false);
  for (size_t i = 0; i < system.facts.size(); ++i) {
    result.facts.Fold({0, static_cast<int64_t>(i), system.facts[i].time, system.facts[i].value});
  }
  Replayer replayer(kPartition, result.facts, buried);
  for (size_t i = 0; i < system.log.size(); ++i) {
    const absl::Status status = replayer.Fold(
        {kPartition, static_cast<int64_t>(i), system.log[i].time, system.log[i].value});
    EXPECT_TRUE(status.ok()) << Message(status);
  }
  result.duplicates = replayer.duplicates();
  const std::vector<PoolReplay> pools = replayer.Finish();
  EXPECT_THAT(pools, SizeIs(1));
  result.pool = pools.at(0);
  return result;
}

// The first record of this kind.
size_t Find(const std::vector<Stored>& records, const std::function<bool(const Envelope&)>& is) {
  for (size_t i = 0; i < records.size(); ++i) {
    Envelope message;
    if (message.ParseFromString(records[i].value) && is(message)) return i;
  }
  ADD_FAILURE() << "no such record";
  return 0;
}

void Change(Stored& record, const std::function<void(Envelope&)>& change) {
  Envelope message;
  ASSERT_TRUE(message.ParseFromString(record.value));
  change(message);
  record.value = message.SerializeAsString();
}

TEST(ReplayTest, TheSameLogGivesTheSameDecisions) {
  const System system = Worked();
  const Result result = Replayed(system);
  EXPECT_EQ(result.pool.pool, queue_core::kPool);
  EXPECT_EQ(result.pool.total.identical, result.pool.total.decisions);
  EXPECT_EQ(result.pool.total.in_flight, 0U);
  EXPECT_EQ(result.pool.skipped, 1U);
  EXPECT_EQ(result.pool.kinds.at("job_fact").identical, system.facts.size());
  for (const char* kind : {"cycle_requested",
                           "cycle_answered",
                           "release_requested",
                           "released",
                           "inventory_changed"}) {
    EXPECT_GT(result.pool.kinds.at(kind).identical, 0U) << kind;
  }
  EXPECT_THAT(result.pool.differences, IsEmpty());
  EXPECT_EQ(result.facts.trails().at("a").last, 5U);
  EXPECT_THAT(result.facts.trails().at("a").faults, IsEmpty());
}

TEST(ReplayTest, CommandsAndClaimsAreDecidedAgain) {
  System system;
  Envelope claim = queue_core::Claimed("c", {.duration_ms = 5});
  claim.mutable_command_accepted()->mutable_submit_claim()->mutable_spec()->set_jobspec(
      matcher_core::JobspecText(1, 3000));
  system.Say("queue/3", claim);
  system.Submit("waits", 3000);
  system.Settle();
  system.Say("queue/3", queue_core::Tick());  // its time is over
  system.Say("queue/3", queue_core::PriorityCommand("waits", 7));
  system.Say("queue/3", queue_core::CancelCommand("waits"));
  system.Settle();
  system.Say("cleanup/watch", queue_core::Ended("waits"));
  system.Settle();
  const Result result = Replayed(system);
  EXPECT_EQ(result.pool.total.different(), 0U);
  EXPECT_EQ(result.pool.total.in_flight, 0U);
  EXPECT_EQ(result.pool.skipped, 0U);
  EXPECT_EQ(result.facts.trails().at("c").last, 4U);  // Pending, Allocated, Running, Succeeded
  EXPECT_GT(result.facts.trails().at("waits").last, 2U);
}

TEST(ReplayTest, DuplicatesAreDroppedAsTheServicesDropThem) {
  System system = Worked();
  const size_t answer = Find(system.log, [](const Envelope& m) { return m.has_cycle_answered(); });
  system.log.insert(system.log.begin() + static_cast<std::ptrdiff_t>(answer) + 1,
                    system.log[answer]);
  system.log.insert(system.log.begin() + 2, system.log[0]);
  system.facts.push_back(system.facts.front());
  const Result result = Replayed(system);
  EXPECT_EQ(result.duplicates, 2U);
  EXPECT_EQ(result.facts.duplicates(), 1U);
  EXPECT_EQ(result.pool.total.different(), 0U);
}

TEST(ReplayTest, ADecisionThatDiffersIsShownFromBothSides) {
  System system = Worked();
  const size_t at = Find(system.log, [](const Envelope& m) { return m.has_cycle_requested(); });
  Change(system.log[at], [](Envelope& m) { m.mutable_cycle_requested()->set_now_s(77); });
  const Result result = Replayed(system);
  ASSERT_FALSE(result.pool.differences.empty());
  const Difference& first = result.pool.differences.front();
  EXPECT_EQ(first.what, fmt::format("cycle_requested at partition 3 offset {}", at));
  const std::string text = DiffText(first);
  EXPECT_THAT(text, HasSubstr("- "));
  EXPECT_THAT(text, HasSubstr("now_s: 77"));
  EXPECT_GT(result.pool.kinds.at("cycle_requested").different(), 0U);
}

TEST(ReplayTest, AFactThatDiffersIsFound) {
  System system = Worked();
  Change(system.facts[1], [](Envelope& m) { m.mutable_job_fact()->set_reason("Forged"); });
  const Result result = Replayed(system);
  EXPECT_EQ(result.pool.total.different(), 1U);
  EXPECT_THAT(DiffText(result.pool.differences.at(0)), HasSubstr("reason: \"Forged\""));
}

TEST(ReplayTest, WhatNobodyAskedForIsADifference) {
  System system = Worked();
  Envelope forged = queue_core::ForPool();
  forged.mutable_release_requested()->mutable_key()->set_job_id("a");
  system.Say("queue/3", forged);
  const Result result = Replayed(system);
  EXPECT_EQ(result.pool.total.different(), 1U);
  EXPECT_THAT(result.pool.differences.at(0).what,
              HasSubstr("nothing before it in the log asks for it"));
  EXPECT_THAT(result.pool.differences.at(0).replayed, IsEmpty());
}

TEST(ReplayTest, WhatIsNotPublishedYetIsInFlight) {
  System system = Worked();
  // The end of the log is missing from the last decision on, and the last fact.
  Envelope last;
  do {
    ASSERT_TRUE(last.ParseFromString(system.log.back().value));
    system.log.pop_back();
  } while (!last.has_release_requested());
  system.facts.pop_back();
  const Result result = Replayed(system);
  EXPECT_EQ(result.pool.total.different(), 0U);
  EXPECT_EQ(result.pool.kinds.at("release_requested").in_flight, 1U);
  EXPECT_EQ(result.pool.kinds.at("job_fact").in_flight, 1U);
}

TEST(ReplayTest, AFactWhoseCauseIsNotInTheLogIsADifference) {
  System system = Worked();
  Change(system.facts.back(), [](Envelope&) {});
  Stored extra = system.facts.back();
  Change(extra, [](Envelope& m) {
    m.set_sequence(m.sequence() + 1);
    m.mutable_job_fact()->set_version(m.job_fact().version() + 1);
  });
  system.facts.push_back(extra);
  const Result result = Replayed(system);
  EXPECT_EQ(result.pool.total.different(), 1U);
  EXPECT_THAT(result.pool.differences.at(0).what,
              HasSubstr("nothing in the log of partition 3 asks for it"));
}

// A record that a service could not write, and buried, is as if it had not been for that service
// alone.
TEST(ReplayTest, WhatAServiceHasBuriedItHasNotFolded) {
  System with;
  with.Settle();
  const auto at = static_cast<int64_t>(with.log.size());
  with.Say("admission/watch", queue_core::Submitted("c"));
  EXPECT_EQ(Replayed(with).pool.total.in_flight, 2U);  // its fact and a cycle
  EXPECT_EQ(Replayed(with, {{"queue", at}}).pool.total.in_flight, 0U);
}

// One that is not of whom it says takes nothing of the stream whose name it bears.
TEST(ReplayTest, WhatIsUnprovenHasNoPlaceInAStream) {
  System system = Worked();
  const size_t answer = Find(system.log, [](const Envelope& m) { return m.has_cycle_answered(); });
  Stored forged = system.log[answer];
  Change(forged, [](Envelope& m) { m.mutable_cycle_answered()->set_cycle_id(4711); });
  system.log.insert(system.log.begin() + static_cast<std::ptrdiff_t>(answer), forged);
  EXPECT_NE(Replayed(system).duplicates, 0U);
  const Result result = Replayed(system, {{"", static_cast<int64_t>(answer)}});
  EXPECT_EQ(result.duplicates, 0U);
  EXPECT_EQ(result.pool.total.different(), 0U);
}

TEST(FactLogTest, GapsAndRepeatsOfVersionsAreFaults) {
  FactLog facts;
  facts.BeginPartition(0, false);
  facts.BeginPartition(1, true);
  int64_t offset = 0;
  const auto say = [&](int partition,
                       const std::string& stream,
                       uint64_t sequence,
                       const std::string& job,
                       uint64_t version) {
    Envelope message = queue_core::ForPool();
    message.set_stream(stream);
    message.set_sequence(sequence);
    message.mutable_job_fact()->set_job_id(job);
    message.mutable_job_fact()->set_version(version);
    const std::string bytes = message.SerializeAsString();
    facts.Fold({partition, offset++, Millis(1), bytes});
  };
  say(0, "queue/0", 1, "gap", 1);
  say(0, "queue/0", 2, "gap", 3);
  say(0, "queue/0", 3, "twice", 1);
  say(0, "queue/0", 4, "twice", 1);
  say(0, "queue/0", 5, "late", 2);
  say(1, "queue/0", 70, "cut", 4);  // its beginning is not kept any more
  say(1, "queue/0", 71, "cut", 5);
  facts.Fold({0, offset++, Millis(1), "junk\xff"});
  // It has its place in its stream, so what follows stands behind no gap.
  facts.Fold({0, offset++, Millis(1), "junk\xff", "queue/0", 6});
  say(0, "queue/0", 7, "after", 1);
  EXPECT_THAT(facts.trails().at("gap").faults, SizeIs(1));
  EXPECT_THAT(facts.trails().at("gap").faults[0], HasSubstr("version 3 follows 1"));
  EXPECT_THAT(facts.trails().at("twice").faults, SizeIs(1));
  EXPECT_THAT(facts.trails().at("late").faults, SizeIs(1));
  EXPECT_THAT(facts.trails().at("cut").faults, IsEmpty());
  EXPECT_EQ(facts.trails().at("cut").last, 5U);
  EXPECT_EQ(facts.trails().at("after").last, 1U);
  EXPECT_THAT(facts.unreadable(), SizeIs(2));
}

// As many missing versions as messages that the log has lost, and no more.
TEST(FactLogTest, WhatTheLogHasLostIsNoFaultOfAJob) {
  FactLog facts;
  facts.BeginPartition(0, false);
  const std::string stream = delivery::WithIncarnation("queue/0", 7);
  int64_t offset = 0;
  const auto say = [&](uint64_t sequence, const std::string& job, uint64_t version) {
    Envelope message = queue_core::ForPool();
    message.set_stream(stream);
    message.set_sequence(sequence);
    message.mutable_job_fact()->set_job_id(job);
    message.mutable_job_fact()->set_version(version);
    const std::string bytes = message.SerializeAsString();
    facts.Fold({0, offset++, Millis(1), bytes});
  };
  say(1, "a", 1);
  say(4, "b", 2);  // 2 and 3 are lost: a's second and b's first
  EXPECT_EQ(facts.lost(), 2U);
  say(5, "a", 3);
  say(6, "c", 2);
  facts.Fold({0, offset++, Millis(1), "junk\xff", stream, 7});
  say(9, "d", 1);
  EXPECT_EQ(facts.lost(), 3U) << "what does not decode is not lost";
  EXPECT_THAT(facts.trails().at("a").faults, IsEmpty());
  EXPECT_THAT(facts.trails().at("b").faults, IsEmpty());
  EXPECT_THAT(facts.trails().at("c").faults, ElementsAre(HasSubstr("version 2 follows 0")));
}

}  // namespace
}  // namespace fluxqueue::verify
