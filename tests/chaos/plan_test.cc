#include "tests/chaos/plan.h"

#include <map>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace fluxqueue::chaos {
namespace {

using ::testing::ElementsAre;

std::vector<Fault> Some() {
  return {{.name = "the log is lost", .targets = {"kafka"}, .loses_log = true},
          {.name = "kafka is killed", .targets = {"kafka"}},
          {.name = "queue-1 is killed", .targets = {"queue-1"}},
          {.name = "queue-2 is killed", .targets = {"queue-2"}}};
}

std::vector<std::string> Names(const Strike& strike) {
  std::vector<std::string> names;
  for (const Fault* fault : strike) names.push_back(fault->name);
  return names;
}

std::vector<std::string> Drawn(uint64_t seed, const std::vector<Fault>& faults, int strikes) {
  Decks decks(seed, faults);
  std::vector<std::string> drawn;
  for (int i = 0; i < strikes; ++i) {
    for (const std::string& name : Names(decks.Next(true))) drawn.push_back(name);
  }
  return drawn;
}

TEST(PlanTest, EachOnceAndThoseThatLoseTheLogLast) {
  const std::vector<Fault> faults = Some();
  std::vector<std::string> names;
  for (const Strike& strike : EachOnce(faults)) {
    ASSERT_EQ(strike.size(), 1);
    names.push_back(strike.front()->name);
  }
  EXPECT_THAT(
      names,
      ElementsAre("kafka is killed", "queue-1 is killed", "queue-2 is killed", "the log is lost"));
}

TEST(PlanTest, TheSameSeedGivesTheSameOrder) {
  const std::vector<Fault> faults = Some();
  EXPECT_EQ(Drawn(7, faults, 40), Drawn(7, faults, 40));
  EXPECT_NE(Drawn(7, faults, 40), Drawn(8, faults, 40));
}

TEST(PlanTest, EveryThirdStrikeIsOfTwoAtOnceAndNeverOfOneTarget) {
  const std::vector<Fault> faults = Some();
  Decks decks(1, faults);
  for (int i = 1; i <= 300; ++i) {
    const Strike strike = decks.Next(true);
    ASSERT_EQ(strike.size(), i % 3 == 0 ? 2 : 1);
    EXPECT_TRUE(strike.size() == 1 || strike[0]->targets != strike[1]->targets);
  }
}

TEST(PlanTest, TheLogIsLostOnlyWhenItMay) {
  const std::vector<Fault> faults = Some();
  Decks decks(1, faults);
  std::map<std::string, int> times;
  for (int i = 0; i < 300; ++i) {
    for (const Fault* fault : decks.Next(false)) ++times[fault->name];
  }
  EXPECT_EQ(times.size(), 3);
  EXPECT_EQ(times.count("the log is lost"), 0);
}

TEST(PlanTest, WhatIsAloneStrikesAlone) {
  const std::vector<Fault> faults = {{.name = "kafka is killed", .targets = {"kafka"}}};
  Decks decks(1, faults);
  for (int i = 0; i < 6; ++i) EXPECT_THAT(Names(decks.Next(false)), ElementsAre("kafka is killed"));
}

}  // namespace
}  // namespace fluxqueue::chaos
