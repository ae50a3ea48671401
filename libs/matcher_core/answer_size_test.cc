#include "libs/matcher_core/answer_size.h"

#include <string>
#include <vector>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "libs/matcher_core/core_fixture.h"
#include "libs/matcher_core/test_messages.h"
#include "libs/model/rules.h"

namespace fluxqueue::matcher_core {
namespace {

using events::v1::CycleAnswered;
using events::v1::Outcome;
using ::testing::HasSubstr;

constexpr size_t kLogTakes = size_t{4} << 20;

// Of a job that no node can ever run, as it names so many properties that none has.
std::string SpecOfProperties(int count) {
  std::string properties;
  for (int i = 0; i < count; ++i) {
    properties += fmt::format(R"({}"{}={}")", i == 0 ? "" : ",", std::string(100, 'p'), i);
  }
  return R"({"version":1,"resources":[{"type":"slot","count":1,"label":"pod","with":[)"
         R"({"type":"cpu","count":1}]}],"tasks":[{"command":["pod"],"slot":"pod",)"
         R"("count":{"per_slot":1}}],"attributes":{"system":{"constraints":{"properties":[)" +
         properties + "]}}}}";
}

Outcome Refused(const std::string& job, size_t bytes) {
  Outcome outcome;
  outcome.set_job_id(job);
  outcome.set_attempt(1);
  outcome.set_kind(Outcome::KIND_UNSATISFIABLE);
  outcome.set_reason(std::string(bytes, 'x'));
  return outcome;
}

class LargeAnswerTest : public MatcherCoreTest {
 protected:
  static constexpr int kJobs = 40;

  void SetUp() override {
    Feed(Upserted(MakeNode("a", 1000)));
    Feed(Synced());
    for (int i = 0; i < kJobs; ++i) {
      names_.push_back(fmt::format("j{}", i));
      // Of shapes that differ.
      Feed(Submitted(names_.back(), 1, SpecOfProperties(1000 + i)));
    }
  }

  static void ExpectAllToldWhy(const CycleAnswered& answer) {
    EXPECT_LE(answer.ByteSizeLong(), kMostAnswerBytes);
    ASSERT_EQ(answer.outcomes_size(), kJobs);
    for (const Outcome& outcome : answer.outcomes()) {
      EXPECT_EQ(outcome.kind(), Outcome::KIND_UNSATISFIABLE);
      EXPECT_FALSE(outcome.reason().empty());
    }
  }

  std::vector<std::string> names_;
};

TEST_F(LargeAnswerTest, ReasonsAreShort) {
  const CycleAnswered answer = Ask(Cycle(1, names_));
  ExpectAllToldWhy(answer);
  for (const Outcome& outcome : answer.outcomes()) EXPECT_LE(outcome.reason().size(), 1000U);
  EXPECT_LE(answer.ByteSizeLong(), 50'000U);
}

TEST_F(LargeAnswerTest, ByOlderRulesItFitsAllTheSame) {
  Envelope configured = Configured("");
  configured.mutable_pool_configured()->set_rules(model::kShortReasons - 1);
  Feed(configured);
  const CycleAnswered answer = Ask(Cycle(1, names_));
  ExpectAllToldWhy(answer);
  // The longest reasons go first: those of the last jobs.
  EXPECT_GT(answer.outcomes(0).reason().size(), 100'000U);
  EXPECT_THAT(answer.outcomes(kJobs - 1).reason(), HasSubstr("too long"));
}

TEST_F(LargeAnswerTest, OneThatAnOlderVersionKeptIsRepaired) {
  Ask(Cycle(1, names_));
  Tables tables;
  tables.Apply(core_.TakeChanges());
  core_.Commit();
  CycleAnswered kept;
  kept.set_cycle_id(1);
  for (const std::string& name : names_) *kept.add_outcomes() = Refused(name, 112'000);
  ASSERT_GT(kept.ByteSizeLong(), kLogTakes);
  Rows rows = tables.All();
  rows.answers = {{1, kept.SerializeAsString()}};
  ASSERT_TRUE(core_.Restore(rows).ok());
  ExpectAllToldWhy(Ask(Cycle(1, names_)));
}

TEST(AnswerSizeTest, WhatFitsStaysAsItIs) {
  CycleAnswered answer;
  *answer.add_outcomes() = Refused("a", kMostAnswerBytes - 100);
  const std::string before = answer.SerializeAsString();
  EXPECT_FALSE(Fit(&answer));
  EXPECT_EQ(answer.SerializeAsString(), before);
}

TEST(AnswerSizeTest, OnlyTheLongestReasonsGo) {
  CycleAnswered answer;
  *answer.add_outcomes() = Refused("a", 1'000'000);
  *answer.add_outcomes() = Refused("b", 2'000'000);
  *answer.add_outcomes() = Refused("c", 1'500'000);
  EXPECT_TRUE(Fit(&answer));
  EXPECT_EQ(answer.outcomes(0).reason().size(), 1'000'000U);
  EXPECT_LT(answer.outcomes(1).reason().size(), 100U);
  EXPECT_EQ(answer.outcomes(2).reason().size(), 1'500'000U);
}

TEST(AnswerSizeTest, WhereReasonsAreNotEnoughOutcomesGoFromTheEnd) {
  CycleAnswered answer;
  for (int i = 0; i < 60'000; ++i) *answer.add_outcomes() = Refused(fmt::format("j{}", i), 100);
  EXPECT_TRUE(Fit(&answer));
  EXPECT_LE(answer.ByteSizeLong(), kMostAnswerBytes);
  EXPECT_GT(answer.outcomes_size(), 20'000);
  EXPECT_EQ(answer.outcomes(0).job_id(), "j0");
}

}  // namespace
}  // namespace fluxqueue::matcher_core
