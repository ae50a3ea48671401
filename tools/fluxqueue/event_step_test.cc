#include "tools/fluxqueue/event_step.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "tools/fluxqueue/replay_step.h"

namespace fluxqueue::cli {
namespace {

using events::v1::Envelope;
using ::testing::HasSubstr;
using ::testing::Not;

constexpr int64_t kDay = 86'400'000;
constexpr int64_t kTime = 20'000 * kDay + 43'200'123;  // of a day in 2024

verify::EventLine Answer() {
  verify::EventLine line{.partition = 3, .offset = 17, .time = Millis(kTime)};
  line.message.set_stream("matcher/3.77");
  line.message.mutable_cycle_answered()->set_cycle_id(5);
  line.message.mutable_cycle_answered()->add_outcomes()->set_kind(
      events::v1::Outcome::KIND_ALLOCATED);
  return line;
}

events::v1::JobFact Fact() {
  events::v1::JobFact fact;
  fact.set_job_id("1");
  fact.mutable_workload()->set_namespace_("team");
  fact.mutable_workload()->set_name("train");
  fact.set_version(3);
  fact.set_attempt(1);
  fact.set_state(events::v1::JOB_STATE_ALLOCATED);
  return fact;
}

EventStep Step() {
  EventStep step;
  step.Begin(Answer());
  step.Decide(Fact(), Millis(kTime), "n1 x2");
  Envelope cycle;
  cycle.mutable_cycle_requested()->set_cycle_id(6);
  step.Say(cycle);
  return step;
}

TEST(EventStepTest, SaysWhatItIsAndWhatIsDecidedByIt) {
  const std::string text = Step().Format(kTime, 100, false);
  EXPECT_THAT(text,
              HasSubstr(":00.123      17  matcher    cycle_answered  cycle 5: 1 allocated\n"
                        "    team/train  Allocated  on n1 x2\n"
                        "    cycle_requested  cycle 6: 0 candidates\n"));
  EXPECT_EQ(text.substr(12, 1), " ");
}

TEST(EventStepTest, ANewDayIsNamed) {
  EXPECT_THAT(Step().Format(kTime, 100, false), Not(HasSubstr("2024")));
  EXPECT_THAT(Step().Format(kTime - 400 * kDay, 100, false), HasSubstr("2024 Oct "));
}

TEST(EventStepTest, LinesAreCut) {
  const std::string text = Step().Format(kTime, 20, false);
  EXPECT_THAT(text, HasSubstr("\n    team/train  Allo\n"));
}

TEST(EventStepTest, IsForgottenWithTheNextEvent) {
  EventStep step = Step();
  EXPECT_TRUE(step.Names("team/train"));
  EXPECT_TRUE(step.Names("cycle 5"));
  EXPECT_FALSE(step.Names("team/other"));
  step.Begin(Answer());
  EXPECT_FALSE(step.Names("team/train"));
}

TEST(EventStepTest, AsJson) {
  const nlohmann::json json = Step().ToJson();
  EXPECT_EQ(json["timeMs"], kTime);
  EXPECT_EQ(json["offset"], 17);
  EXPECT_EQ(json["from"], "matcher");
  EXPECT_EQ(json["type"], "cycle_answered");
  EXPECT_EQ(json["jobs"][0]["job"], "team/train");
  EXPECT_EQ(json["jobs"][0]["state"], "Allocated");
  EXPECT_EQ(json["jobs"][0]["nodes"], "n1 x2");
  EXPECT_EQ(json["decisions"][0]["type"], "cycle_requested");
}

TEST(StepAnswerTest, WhatIsAsked) {
  using Kind = StepAnswer::Kind;
  EXPECT_EQ(ParseStepAnswer("").events, 1);
  EXPECT_EQ(ParseStepAnswer("20").events, 20);
  EXPECT_EQ(ParseStepAnswer("20").kind, Kind::kGo);
  EXPECT_EQ(ParseStepAnswer("/team/train").kind, Kind::kSeek);
  EXPECT_EQ(ParseStepAnswer("/team/train").text, "team/train");
  EXPECT_EQ(ParseStepAnswer("q").kind, Kind::kEnd);
  for (const char* unknown : {"0", "-1", "2x", "quit", "/", " "}) {
    EXPECT_EQ(ParseStepAnswer(unknown).kind, Kind::kUnknown) << unknown;
  }
}

}  // namespace
}  // namespace fluxqueue::cli
