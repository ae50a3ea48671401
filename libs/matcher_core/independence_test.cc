// Queues are independent: a job that cannot start stops its own queue's line at most.
#include <gmock/gmock.h>

#include "libs/matcher_core/core_fixture.h"

namespace fluxqueue::matcher_core {
namespace {

using events::v1::CycleAnswered;
using events::v1::Outcome;
using testing::ElementsAre;
using testing::EndsWith;
using testing::HasSubstr;

std::vector<std::string> Jobs(const CycleAnswered& answer) {
  std::vector<std::string> jobs;
  for (const Outcome& outcome : answer.outcomes()) {
    jobs.push_back(outcome.job_id() + " " +
                   Outcome::Kind_Name(outcome.kind()).substr(std::string_view("KIND_").size()));
  }
  return jobs;
}

class IndependenceTest : public MatcherCoreTest {
 protected:
  // A job without an end holds node-0 of three; each has 4 cores.
  IndependenceTest() {
    for (const char* name : {"node-0", "node-1", "node-2"}) {
      events::v1::Node node = MakeNode(name, 4000);
      events::v1::Label* label = node.add_labels();
      label->set_key("kubernetes.io/hostname");
      label->set_value(name);
      Feed(Upserted(node));
    }
    Feed(Synced());
    Feed(Submitted("endless", 1, OnNode(0)));
    Ask(Backfill(1, {{"endless", 0}}));
  }
  static std::string OnNode(int node, int64_t cpu = 4000) {
    return JobspecText(1, cpu, fmt::format("kubernetes.io/hostname=node-{}", node));
  }
};

TEST_F(IndependenceTest, ABusyJobStopsItsOwnLineOnly) {
  Feed(Submitted("a1", 1, OnNode(0)));
  Feed(Submitted("a2", 1, OnNode(1)));
  Feed(Submitted("b1", 1, OnNode(2)));
  EXPECT_THAT(Jobs(Ask(OfTwoQueues(2,
                                   {{.job = "a1", .may_reserve = false},
                                    {.job = "a2", .may_reserve = false},
                                    {.job = "b1", .rule = 1}}))),
              ElementsAre("a1 BUSY", "b1 ALLOCATED"));
}

TEST_F(IndependenceTest, ByRules1ItEndsTheCycle) {
  Feed(Submitted("a1", 1, OnNode(0)));
  Feed(Submitted("b1", 1, OnNode(2)));
  Envelope cycle = OfTwoQueues(2, {{.job = "a1", .may_reserve = false}, {.job = "b1", .rule = 1}});
  cycle.mutable_cycle_requested()->clear_version();
  EXPECT_THAT(Jobs(Ask(cycle)), ElementsAre("a1 BUSY"));
  cycle = OfTwoQueues(3, {{.job = "a1", .rule = 1}, {.job = "b1", .rule = 1}});
  cycle.mutable_cycle_requested()->set_version(1);
  EXPECT_THAT(Jobs(Ask(cycle)), ElementsAre("a1 BUSY"));
}

// It waits for something without an end, so no time can be named: that concerns no other job.
TEST_F(IndependenceTest, WhatWaitsForSomethingWithoutAnEndHoldsUpNobody) {
  Feed(Submitted("a1", 1, OnNode(0)));
  Feed(Submitted("b1", 1, OnNode(2)));
  Feed(Submitted("b2", 1, OnNode(2)));
  EXPECT_THAT(Jobs(Ask(OfTwoQueues(2,
                                   {{.job = "a1", .rule = 1},
                                    {.job = "b1", .duration_s = 50, .rule = 1},
                                    {.job = "b2", .duration_s = 50, .rule = 1}}))),
              ElementsAre("a1 BUSY", "b1 ALLOCATED", "b2 RESERVED"));
}

TEST_F(IndependenceTest, OneThatIsOverdueReservesWhateverItsRuleSays) {
  Feed(Submitted("b1", 1, OnNode(2)));
  Ask(OfTwoQueues(2, {{.job = "b1", .duration_s = 50, .rule = 1}}));
  Feed(Submitted("a1", 1, OnNode(2)));
  Feed(Submitted("a2", 1, OnNode(1)));
  Feed(Submitted("b2", 1, OnNode(2, 100)));
  const std::vector<Tried> tried = {{.job = "a1", .duration_s = 60, .overdue = true},
                                    {.job = "a2", .duration_s = 60, .may_reserve = false},
                                    {.job = "b2", .duration_s = 900, .rule = 1}};
  // Its line has stopped all the same.
  CycleAnswered answer = Ask(OfTwoQueues(3, tried));
  EXPECT_THAT(Jobs(answer), ElementsAre("a1 RESERVED", "b2 RESERVED"));
  EXPECT_EQ(answer.outcomes(0).at_s(), 152);
  EXPECT_GE(answer.outcomes(1).at_s(), 212);
  // It has the same in the next cycle.
  answer = Ask(OfTwoQueues(4, tried));
  EXPECT_THAT(Jobs(answer), ElementsAre("a1 RESERVED", "b2 RESERVED"));
  EXPECT_EQ(answer.outcomes(0).at_s(), 152);
}

// Two nodes are wanted; one has an endless job, the other two have none.
TEST_F(IndependenceTest, NodesAreKeptFromJobsWithoutAnEnd) {
  Feed(Submitted("wide", 3, 4000));
  Feed(Submitted("endless-too", 1, OnNode(1)));
  Feed(Submitted("bounded", 1, OnNode(1)));
  CycleAnswered answer = Ask(OfTwoQueues(2,
                                         {{.job = "wide", .duration_s = 60, .overdue = true},
                                          {.job = "endless-too", .rule = 1},
                                          {.job = "bounded", .duration_s = 500, .rule = 1}}));
  EXPECT_THAT(Jobs(answer), ElementsAre("wide BUSY", "endless-too BUSY", "bounded ALLOCATED"));
  EXPECT_THAT(answer.outcomes(0).reason(),
              EndsWith("; 2 nodes are kept for it from jobs without an end"));
  EXPECT_THAT(answer.outcomes(1).reason(),
              HasSubstr("2 of the nodes are kept from jobs without an end for job wide"));
  // Once nothing without an end is in its way it has a time.
  Give(Release("endless"));
  answer = Ask(OfTwoQueues(
      3, {{.job = "wide", .duration_s = 60, .overdue = true}, {.job = "endless-too", .rule = 1}}));
  EXPECT_EQ(answer.outcomes(0).kind(), Outcome::KIND_RESERVED);
  EXPECT_EQ(answer.outcomes(0).at_s(), 602);
}

// What was kept in one cycle is no part of the next.
TEST_F(IndependenceTest, WhatIsKeptIsFoundInEachCycle) {
  Feed(Submitted("wide", 3, 4000));
  Feed(Submitted("endless-too", 1, OnNode(1)));
  Ask(OfTwoQueues(
      2, {{.job = "wide", .duration_s = 60, .overdue = true}, {.job = "endless-too", .rule = 1}}));
  EXPECT_THAT(Jobs(Ask(OfTwoQueues(3, {{.job = "endless-too", .rule = 1}}))),
              ElementsAre("endless-too ALLOCATED"));
}

}  // namespace
}  // namespace fluxqueue::matcher_core
