#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "libs/matcher_core/codec.h"
#include "libs/matcher_core/core_fixture.h"
#include "libs/matcher_core/test_messages.h"

namespace fluxqueue::matcher_core {
namespace {

using events::v1::CycleAnswered;
using events::v1::Outcome;

// Two nodes of 4 cores; slots of one core.
class ElasticTest : public MatcherCoreTest {
 protected:
  ElasticTest() {
    Feed(Upserted(MakeNode("a", 4000)));
    Feed(Upserted(MakeNode("b", 4000)));
    Feed(Synced());
  }

  // One that says so: rigid, of so many slots.
  void Submit(const std::string& job, uint32_t slots) { Feed(Submitted(job, slots, 1000)); }
  void SubmitElastic(const std::string& job, uint32_t min, uint32_t max) {
    Feed(Submitted(job, max, ElasticText(min, max, 1000)));
  }
  // The outcomes of the next cycle: "A" with the slots that it holds, "R", "B", "U".
  std::string Ask(const std::vector<Tried>& jobs) {
    Feed(Backfill(++cycle_, jobs));
    answer_ = said_.at(0).cycle_answered();
    std::string letters;
    for (const Outcome& outcome : answer_.outcomes()) {
      switch (outcome.kind()) {
        case Outcome::KIND_ALLOCATED:
          letters += "A" + (outcome.slots() == 0 ? "" : std::to_string(outcome.slots()));
          break;
        case Outcome::KIND_RESERVED:
          letters += "R";
          break;
        case Outcome::KIND_UNSATISFIABLE:
          letters += "U";
          break;
        default:
          letters += "B";
      }
    }
    return letters;
  }
  const graph::Placement& Held(const std::string& job) { return *core_.engine().Find({job, 1, 0}); }
  int64_t Free() { return core_.engine().Usage()[0].free; }

  static Tried Grow(const std::string& job, uint32_t most = 0) {
    return {.job = job, .may_reserve = false, .grow = true, .most_slots = most};
  }

  CycleAnswered answer_;
  uint64_t cycle_ = 0;
};

TEST_F(ElasticTest, StartsWithWhatThereIs) {
  const struct {
    uint32_t in_use;
    uint32_t min;
    uint32_t max;
    uint32_t most;
    std::string answer;
  } cases[] = {
      {0, 2, 6, 0, "A6"},
      {0, 2, 6, 4, "A4"},  // as many as it may
      {0, 2, 8, 0, "A8"},
      {0, 2, 20, 0, "A8"},
      {1, 2, 20, 0, "A7"},
      {5, 2, 6, 0, "A3"},
      {6, 2, 6, 0, "A2"},
      {7, 2, 6, 0, "R"},  // as one of 2 slots
      {7, 1, 6, 0, "A1"},
      {8, 1, 100, 0, "R"},
      {0, 9, 20, 0, "U"},
      {3, 5, 5, 0, "A5"},
  };
  for (const auto& test : cases) {
    SCOPED_TRACE(::testing::Message() << test.in_use << " in use, " << test.min << " to "
                                      << test.max << ", most " << test.most);
    if (test.in_use > 0) {
      Submit("other", test.in_use);
      ASSERT_EQ(Ask({{.job = "other", .duration_s = 50}}), "A");
    }
    SubmitElastic("e", test.min, test.max);
    EXPECT_EQ(Ask({{.job = "e", .duration_s = 10, .most_slots = test.most}}), test.answer);
    if (answer_.outcomes(0).kind() == Outcome::KIND_ALLOCATED) {
      EXPECT_EQ(answer_.outcomes(0).slots(), Held("e").slots.size());
      EXPECT_EQ(answer_.outcomes(0).placement_hash(), PlacementHash(ToProto(Held("e"))));
    } else {
      EXPECT_LT(answer_.outcomes(0).slots_now(), test.min);
    }
    Feed(Release("e", {}, /*ended=*/true));
    Feed(Release("other", {}, /*ended=*/true));
    EXPECT_EQ(Free(), 8000);
  }
}

TEST_F(ElasticTest, GrowsInPlaceUpToItsMost) {
  Submit("other", 5);
  SubmitElastic("e", 2, 6);
  ASSERT_EQ(Ask({{.job = "other"}, {.job = "e", .duration_s = 100}}), "AA3");
  const uint64_t hash = answer_.outcomes(1).placement_hash();
  core_.Commit();
  EXPECT_EQ(Ask({Grow("e")}), "B") << "there is no room";
  EXPECT_TRUE(core_.TakeChanges().allocations.empty());
  Feed(Release("other", {}, /*ended=*/true));
  EXPECT_EQ(Ask({Grow("e", 4)}), "A4");
  EXPECT_NE(answer_.outcomes(0).placement_hash(), hash);
  EXPECT_EQ(Ask({Grow("e", 3)}), "B") << "it has more already";
  EXPECT_EQ(Ask({Grow("e")}), "A6");
  EXPECT_EQ(Ask({Grow("e")}), "B");
  EXPECT_EQ(Held("e").start_s + Held("e").duration_s, 201) << "its end stays";
  EXPECT_EQ(Free(), 2000);
  // Under the key that it had, all of it.
  Feed(Release("e", {3, 5}));
  EXPECT_EQ(Free(), 4000);
  EXPECT_EQ(Ask({Grow("e")}), "A8") << "two of its eight were given back";
  Feed(Release("e"));
  EXPECT_EQ(Free(), 8000);
  EXPECT_EQ(Ask({Grow("e")}), "B") << "it holds nothing";
}

TEST_F(ElasticTest, OneRowForAllOfIt) {
  SubmitElastic("e", 2, 4);
  ASSERT_EQ(Ask({{.job = "e", .most_slots = 2}}), "A2");
  ASSERT_EQ(Ask({Grow("e")}), "A4");
  const Changes changes = core_.TakeChanges();
  ASSERT_EQ(changes.allocations.size(), 1u);
  EXPECT_EQ(changes.allocations[0].placement_hash, answer_.outcomes(0).placement_hash());
  events::v1::Placement placement;
  ASSERT_TRUE(placement.ParseFromString(changes.allocations[0].placement));
  EXPECT_EQ(placement.slots_size(), 4);
  EXPECT_EQ(placement.groups(0).slots(), 4u);
}

TEST_F(ElasticTest, ARepeatedCycleGivesTheStoredAnswer) {
  SubmitElastic("e", 1, 4);
  ASSERT_EQ(Ask({{.job = "e", .most_slots = 1}}), "A1");
  ASSERT_EQ(Ask({Grow("e", 2)}), "A2");
  const std::string stored = answer_.SerializeAsString();
  --cycle_;
  EXPECT_EQ(Ask({Grow("e", 4)}), "A2");
  EXPECT_EQ(answer_.SerializeAsString(), stored);
  EXPECT_EQ(Held("e").slots.size(), 2u);
  // A held key that is asked to start is answered with what it holds.
  EXPECT_EQ(Ask({{.job = "e"}}), "A2");
}

TEST_F(ElasticTest, NobodyWhoWaitsLosesByIt) {
  Submit("long", 5);
  SubmitElastic("e", 1, 8);
  SubmitElastic("f", 1, 8);
  ASSERT_EQ(Ask({{.job = "long", .duration_s = 20},
                 {.job = "e", .duration_s = 50, .most_slots = 1},
                 {.job = "f", .duration_s = 10, .most_slots = 1}}),
            "AA1A1");
  // The core that is free is promised to `wide` from the end of `long` on.
  Submit("wide", 7);
  EXPECT_EQ(Ask({{.job = "wide", .duration_s = 10}, Grow("e")}), "RB");
  EXPECT_EQ(Ask({{.job = "wide", .duration_s = 10}, Grow("f")}), "RA2") << "it ends before that";
}

TEST_F(ElasticTest, GrowthHoldsUpNobody) {
  Submit("other", 6);
  SubmitElastic("e", 1, 4);
  SubmitElastic("f", 1, 4);
  ASSERT_EQ(Ask({{.job = "other"}, {.job = "e", .most_slots = 1}, {.job = "f", .most_slots = 1}}),
            "AA1A1");
  Envelope cycle = Backfill(++cycle_, {Grow("e"), Grow("f")});
  cycle.mutable_cycle_requested()->mutable_rules(0)->set_stop_at_first_blocked(true);
  Feed(cycle);
  EXPECT_EQ(said_.at(0).cycle_answered().outcomes_size(), 2);
}

TEST_F(ElasticTest, AsManyAsThereAreWhateverTheNumber) {
  for (uint32_t in_use = 0; in_use < 8; ++in_use) {
    if (in_use > 0) {
      Submit("other", in_use);
      ASSERT_EQ(Ask({{.job = "other"}}), "A");
    }
    for (const uint32_t max : {1u, 2u, 3u, 5u, 8u, 13u, 1000u}) {
      SubmitElastic("e", 1, max);
      EXPECT_EQ(Ask({{.job = "e"}}), "A" + std::to_string(std::min(max, 8 - in_use)));
      Feed(Release("e"));
      ASSERT_EQ(Ask({{.job = "e", .most_slots = 1}}), "A1");
      if (max > 1 && in_use < 7) {
        EXPECT_EQ(Ask({Grow("e")}), "A" + std::to_string(std::min(max, 8 - in_use)));
      }
      Feed(Release("e", {}, /*ended=*/true));
    }
    Feed(Release("other", {}, /*ended=*/true));
  }
}

TEST_F(ElasticTest, AnotherJobspecGrowsNoMore) {
  SubmitElastic("e", 1, 4);
  ASSERT_EQ(Ask({{.job = "e", .most_slots = 1}}), "A1");
  Envelope other = Updated("e", 2, 4, 500);
  other.mutable_job_updated()->mutable_spec()->set_jobspec(ElasticText(1, 4, 500));
  Feed(other);
  EXPECT_EQ(Ask({Grow("e")}), "B");
  EXPECT_EQ(Held("e").slots.size(), 1u);
  // All or nothing, and of the same slots: only the next attempt is to have all of them at once.
  Feed(Updated("e", 3, 4, 1000));
  EXPECT_EQ(Ask({Grow("e")}), "A4");
}

TEST_F(ElasticTest, VictimsAreThoseWhoseRoomTheLeastNeeds) {
  Submit("low", 3);
  Submit("lower", 4);
  SubmitElastic("e", 2, 6);
  ASSERT_EQ(Ask({{.job = "low"}, {.job = "lower"}}), "AA");
  Envelope cycle = Backfill(++cycle_, {{.job = "e"}});
  for (const char* victim : {"low", "lower"}) {
    auto* key = cycle.mutable_cycle_requested()->mutable_candidates(0)->add_victims();
    key->set_job_id(victim);
    key->set_attempt(1);
  }
  Feed(cycle);
  const Outcome& outcome = said_.at(0).cycle_answered().outcomes(0);
  EXPECT_EQ(outcome.kind(), Outcome::KIND_BUSY);
  ASSERT_EQ(outcome.victims_size(), 1);
  EXPECT_EQ(outcome.victims(0).job_id(), "low");
}

}  // namespace
}  // namespace fluxqueue::matcher_core
