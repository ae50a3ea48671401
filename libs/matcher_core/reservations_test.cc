// What is promised: when, to whom, and what becomes of it in the cycles that follow.
#include <string>
#include <vector>

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

// Two nodes of 4 cores: `long` holds one of them until 1101, `short` the other until 201.
class ReservationTest : public MatcherCoreTest {
 protected:
  void SetUp() override {
    Feed(Upserted(MakeNode("a", 4000)));
    Feed(Upserted(MakeNode("b", 4000)));
    Feed(Synced());
    for (const char* job : {"long", "short"}) Feed(Submitted(job, 1, 4000));
    ASSERT_EQ(Answers(Backfill(1, {{"long", 1000}, {"short", 100}})), "long:now short:now");
    for (const char* wide : {"wide", "wide2"}) Feed(Submitted(wide, 2, 3000));
    for (const char* small : {"small", "small2"}) Feed(Submitted(small, 1, 1000));
    Feed(Submitted("whole", 1, 4000));
  }

  std::string Answers(const Envelope& cycle) {
    std::string line;
    answer_ = Ask(cycle);
    for (const Outcome& outcome : answer_.outcomes()) {
      if (!line.empty()) line += ' ';
      line += outcome.job_id() + ":";
      switch (outcome.kind()) {
        case Outcome::KIND_ALLOCATED:
          line += "now";
          break;
        case Outcome::KIND_RESERVED:
          line += std::to_string(outcome.at_s());
          break;
        default:
          line += outcome.kind() == Outcome::KIND_BUSY ? "busy" : "never";
      }
    }
    return line;
  }
  void Free(const std::string& job) { ASSERT_FALSE(Give(Release(job)).nothing_held()); }

  CycleAnswered answer_;
};

TEST_F(ReservationTest, TheFirstBlockedIsReservedAndNobodyDelaysIt) {
  // `wide` needs both nodes, which it has when `long` ends. `whole` would need one for itself
  // beyond that time; one that ends before may have it.
  Free("short");
  EXPECT_EQ(Answers(Backfill(2, {{"wide", 50}, {"whole", 5000}, {"small", 5000}})),
            "wide:1101 whole:busy small:now");
  EXPECT_THAT(answer_.outcomes(1).reason(), HasSubstr("it would delay job wide"));
  Free("small");
  EXPECT_EQ(Answers(Backfill(3, {{"wide", 50}, {"whole", 999}})), "wide:1101 whole:busy");
  EXPECT_EQ(Answers(Backfill(4, {{"wide", 50}, {"whole", 997}})), "wide:1101 whole:now");
}

TEST_F(ReservationTest, WhoIsNoCandidateAnyMoreHasNoReservation) {
  const uint64_t before = core_.engine().Fingerprint();
  EXPECT_EQ(Answers(Backfill(2, {{"wide", 50}})), "wide:1101");
  EXPECT_EQ(core_.engine().Fingerprint(), before);
  Free("short");
  EXPECT_EQ(Answers(Backfill(3, {{"whole", 5000}})), "whole:now");
}

// Planned anew, `small` would be given the other node and take the place of the second.
TEST_F(ReservationTest, WhatWasPromisedStaysWhereItIs) {
  const std::vector<Tried> line = {{"whole", 500}, {"wide", 50}, {"wide2", 50}};
  EXPECT_EQ(Answers(Backfill(2, line, 3)), "whole:201 wide:1101 wide2:1151");
  EXPECT_EQ(Answers(Backfill(3, line, 3)), "whole:201 wide:1101 wide2:1151");
  // Whoever comes behind them finds what they leave.
  std::vector<Tried> longer = line;
  longer.push_back({"small", 2000});
  EXPECT_EQ(Answers(Backfill(4, longer, 4)), "whole:201 wide:1101 wide2:1151 small:701");
}

TEST_F(ReservationTest, WhatComesFreeIsGivenInTheOrderOfTheLine) {
  const std::vector<Tried> line = {{"wide", 50}, {"whole", 500}, {"small", 100}};
  EXPECT_EQ(Answers(Backfill(2, line, 3)), "wide:1101 whole:201 small:701");
  Free("short");
  EXPECT_EQ(Answers(Backfill(3, line, 3)), "wide:1101 whole:now small:603");
  Free("long");
  EXPECT_EQ(Answers(Backfill(4, {{"wide", 50}, {"small", 100}}, 3)), "wide:603 small:now");
}

TEST_F(ReservationTest, WhoComesAheadHasTheFirstChoice) {
  EXPECT_EQ(Answers(Backfill(2, {{"wide", 50}, {"wide2", 50}}, 3)), "wide:1101 wide2:1151");
  // It is in nobody's way, and then it is.
  EXPECT_EQ(Answers(Backfill(3, {{"whole", 100}, {"wide", 50}, {"wide2", 50}}, 3)),
            "whole:201 wide:1101 wide2:1151");
  Feed(Submitted("first", 2, 3000));
  EXPECT_EQ(Answers(Backfill(4, {{"first", 60}, {"whole", 100}, {"wide", 50}, {"wide2", 50}}, 4)),
            "first:1101 whole:201 wide:1161 wide2:1211");
  // Who may not reserve does not take a reservation from anybody.
  EXPECT_EQ(
      Answers(Backfill(
          5,
          {{"small", 5000, false}, {"first", 60}, {"whole", 100}, {"wide", 50}, {"wide2", 50}},
          4)),
      "small:busy first:1101 whole:201 wide:1161 wide2:1211");
}

TEST_F(ReservationTest, WhoseNodeGoesIsPlannedAnew) {
  const std::vector<Tried> line = {{"whole", 100}, {"wide", 50}};
  EXPECT_EQ(Answers(Backfill(2, line, 2)), "whole:201 wide:1101");
  // More of it, and a new node: nothing is lost, and nobody need wait for `long`.
  Feed(Upserted(MakeNode("b", 8000, 2)));
  Feed(Upserted(MakeNode("c", 4000)));
  EXPECT_EQ(Answers(Backfill(3, line, 2)), "whole:now wide:201");
}

TEST_F(ReservationTest, ANodeThatIsCordonedKeepsNoPromise) {
  const std::vector<Tried> line = {{"whole", 100}};
  EXPECT_EQ(Answers(Backfill(2, line, 2)), "whole:201");
  auto node = MakeNode("a", 4000, 2);
  node.set_unschedulable(true);
  Feed(Upserted(node));
  EXPECT_EQ(Answers(Backfill(3, line, 2)), "whole:1101");
}

TEST_F(ReservationTest, AnotherDurationIsAnotherReservation) {
  EXPECT_EQ(Answers(Backfill(2, {{"whole", 100}, {"wide", 50}}, 2)), "whole:201 wide:1101");
  EXPECT_EQ(Answers(Backfill(3, {{"whole", 50}, {"wide", 50}}, 2)), "whole:201 wide:1101");
  EXPECT_EQ(Answers(Backfill(4, {{"whole", 5000}, {"wide", 50}}, 2)), "whole:201 wide:5201");
}

TEST_F(ReservationTest, AreInTheRowsAndRolledBack) {
  core_.Commit();
  EXPECT_EQ(Answers(Backfill(2, {{"wide", 50}, {"wide2", 50}}, 2)), "wide:1101 wide2:1151");
  const Changes changes = core_.TakeChanges();
  ASSERT_EQ(changes.reservations.size(), 2U);
  EXPECT_EQ(changes.reservations[1].key.job_id, "wide2");
  core_.Commit();
  const uint64_t before = core_.Fingerprint();
  EXPECT_EQ(Answers(Backfill(3, {{"wide2", 50}, {"wide", 50}}, 1)), "wide2:1101 wide:busy");
  EXPECT_THAT(core_.TakeChanges().reservations_dropped, ::testing::SizeIs(1));
  core_.Rollback();
  EXPECT_EQ(core_.Fingerprint(), before);
  EXPECT_EQ(Answers(Backfill(3, {{"wide", 50}, {"wide2", 50}}, 2)), "wide:1101 wide2:1151");
}

TEST_F(ReservationTest, ARuleHasSoManyAndNoMore) {
  const std::vector<Tried> line = {{"wide", 50}, {"wide2", 50}, {"whole", 50}};
  EXPECT_EQ(Answers(Backfill(2, line, 0)), "wide:busy wide2:busy whole:busy");
  EXPECT_EQ(Answers(Backfill(3, line, 1)), "wide:1101 wide2:busy whole:busy");
  EXPECT_EQ(Answers(Backfill(4, line, 2)), "wide:1101 wide2:1151 whole:busy");
  EXPECT_EQ(Answers(Backfill(5, line, 3)), "wide:1101 wide2:1151 whole:201");
}

TEST_F(ReservationTest, WhoOverranIsPlannedToEndInASecond) {
  EXPECT_EQ(Answers(Backfill(150, {{"whole", 10}})), "whole:251");
  EXPECT_EQ(answer_.overran(), 1U);
  EXPECT_EQ(answer_.overran_job(), "short");
  // What it holds is not given to others.
  EXPECT_EQ(Answers(Backfill(151, {{"whole", 10, false}, {"small", 10, false}})),
            "whole:busy small:busy");
  Free("short");
  EXPECT_EQ(Answers(Backfill(152, {{"whole", 10}})), "whole:now");
  EXPECT_EQ(answer_.overran(), 0U);
}

// As the last test, from version 3 of the rules on.
class CorrectedTest : public ReservationTest {
 protected:
  // `hurried` is planned for 100 s on the node of `short`, from 102 on, and may run for 700.
  void SetUp() override {
    ReservationTest::SetUp();
    Free("short");
    Feed(Submitted("hurried", 1, 4000));
    ASSERT_EQ(Answers(Corrected(2, {{.job = "hurried", .duration_s = 100, .bound_s = 700}})),
              "hurried:now");
  }

  static Envelope Corrected(uint64_t id, const std::vector<Tried>& jobs) {
    Envelope cycle = Backfill(id, jobs);
    cycle.mutable_cycle_requested()->set_version(model::kCorrectedPlans);
    return cycle;
  }
};

TEST_F(CorrectedTest, WhoOverranIsPlannedToEndByGrowingStepsUpToItsBound) {
  EXPECT_EQ(Answers(Corrected(3, {{"whole", 10}})), "whole:202");
  // From 202 on a minute, then 5 minutes more, but not beyond 802.
  EXPECT_EQ(Answers(Corrected(150, {{"whole", 10}})), "whole:262");
  EXPECT_EQ(answer_.overran(), 1U);
  EXPECT_EQ(answer_.overran_job(), "hurried");
  EXPECT_EQ(Answers(Corrected(162, {{"whole", 10}})), "whole:562");
  EXPECT_EQ(Answers(Corrected(462, {{"whole", 10}})), "whole:802");
  EXPECT_EQ(Answers(Corrected(702, {{"whole", 10}})), "whole:862");
  // What it holds is not given to others.
  EXPECT_EQ(Answers(Corrected(703, {{"whole", 10}, {"small", 10, false}})), "whole:862 small:busy");
  Free("hurried");
  EXPECT_EQ(Answers(Corrected(704, {{"whole", 10}})), "whole:now");
  EXPECT_EQ(answer_.overran(), 0U);
}

TEST_F(CorrectedTest, AnEarlyEndAfterACorrectionMovesPromisesUp) {
  EXPECT_EQ(Answers(Corrected(170, {{"whole", 10}})), "whole:562");
  Free("hurried");
  EXPECT_EQ(Answers(Corrected(171, {{"whole", 10}})), "whole:now");
}

TEST_F(CorrectedTest, IsTakenBackWithTheBatch) {
  core_.Commit();
  EXPECT_EQ(Answers(Corrected(150, {{"whole", 10}})), "whole:262");
  core_.Rollback();
  const uint64_t before = core_.Fingerprint();
  EXPECT_EQ(Answers(Corrected(155, {{"whole", 10}})), "whole:262");
  EXPECT_EQ(Answers(Corrected(170, {{"whole", 10}})), "whole:562");
  core_.Rollback();
  EXPECT_EQ(core_.Fingerprint(), before);
  EXPECT_EQ(Answers(Corrected(171, {{"whole", 10}})), "whole:562");
}

TEST_F(ReservationTest, WhatIsLeftIsTriedInTheOrderOfItsTurns) {
  Free("short");
  // Beside `long` there are 4 cores until `wide` has both nodes: room for three of 1 core.
  Feed(Submitted("three", 3, 1000));
  const auto in_turn = [](const char* job, int64_t duration_s, uint32_t turn) {
    return Tried{.job = job, .duration_s = duration_s, .backfill_turn = turn};
  };
  EXPECT_EQ(Answers(Backfill(2,
                             {in_turn("wide", 50, 1),
                              in_turn("three", 900, 4),
                              in_turn("small", 800, 3),
                              in_turn("small2", 700, 2)})),
            "wide:1101 three:busy small:now small2:now");
}

TEST_F(ReservationTest, NobodyHasATurnBeforeTheReservationsAreGiven) {
  Free("short");
  Feed(Submitted("three", 3, 1000));
  // All of them have room: the first in line goes first, whatever its turn.
  EXPECT_EQ(Answers(Backfill(2,
                             {{.job = "three", .duration_s = 900, .backfill_turn = 2},
                              {.job = "whole", .duration_s = 10, .backfill_turn = 1},
                              {.job = "small", .duration_s = 10}})),
            "three:now whole:1002 small:now");
}

TEST_F(ReservationTest, WhoCanBePromisedNothingHoldsUpNobody) {
  Free("long");
  Feed(Submitted("endless", 1, 4000));
  EXPECT_EQ(Answers(Backfill(2, {{"endless", 0}})), "endless:now");
  Free("short");
  // By rules 1 it did.
  Envelope before = Backfill(3, {{"wide", 50}, {"small", 1}});
  before.mutable_cycle_requested()->set_version(1);
  EXPECT_EQ(Answers(before), "wide:busy");
  EXPECT_EQ(Answers(Backfill(4, {{"wide", 50}, {"small", 1}})), "wide:busy small:now");
}

TEST_F(ReservationTest, GroupsOfSlotsThatDifferAreReservedTogether) {
  Feed(Submitted("groups", 3, GroupsText(3, 2500)));
  EXPECT_EQ(Answers(Backfill(2, {{"groups", 50}})), "groups:never");  // no zone has them
  for (const char* node : {"a", "b"}) {
    auto labelled = MakeNode(node, 4000, 2);
    auto* label = labelled.add_labels();
    label->set_key("topology.kubernetes.io/zone");
    label->set_value("z");
    Feed(Upserted(labelled));
  }
  Feed(Configured("lonode", {"topology.kubernetes.io/zone"}));
  EXPECT_EQ(Answers(Backfill(3, {{"groups", 50}, {"whole", 10}})), "groups:1101 whole:busy");
}

TEST_F(ReservationTest, RolledBackTimeIsTakenBack) {
  core_.Commit();
  const uint64_t before = core_.Fingerprint();
  EXPECT_EQ(Answers(Backfill(500, {{"whole", 10}})), "whole:601");
  core_.Rollback();
  EXPECT_EQ(core_.Fingerprint(), before);
  EXPECT_EQ(Answers(Backfill(2, {{"whole", 10}})), "whole:201");
}

}  // namespace
}  // namespace fluxqueue::matcher_core
