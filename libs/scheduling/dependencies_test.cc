#include "libs/scheduling/dependencies.h"

#include <map>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rapidcheck.h>
#include <rapidcheck/gtest.h>

namespace fluxqueue::scheduling {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

TEST(DependenciesTest, Table) {
  EXPECT_EQ(Judge(Condition::kAfterOk, true), Fulfilment::kMet);
  EXPECT_EQ(Judge(Condition::kAfterOk, false), Fulfilment::kNever);
  EXPECT_EQ(Judge(Condition::kAfterAny, true), Fulfilment::kMet);
  EXPECT_EQ(Judge(Condition::kAfterAny, false), Fulfilment::kMet);
  EXPECT_EQ(Judge(Condition::kAfterNotOk, true), Fulfilment::kNever);
  EXPECT_EQ(Judge(Condition::kAfterNotOk, false), Fulfilment::kMet);
  for (const Condition c : {Condition::kAfterOk, Condition::kAfterAny, Condition::kAfterNotOk}) {
    EXPECT_EQ(FindCondition(Name(c)), c);
  }
  EXPECT_EQ(FindCondition("after"), std::nullopt);
}

TEST(DependenciesTest, TheLastOfANameAndNoneThatIsTooOld) {
  Endings endings;
  endings.Add({1, "u1", "team/a", true});
  endings.Add({2, "u2", "team/a", false});
  EXPECT_EQ(endings.ById("u1")->number, 1U);
  EXPECT_EQ(endings.ByName("team/a")->id, "u2");
  endings.Commit();
  endings.Add({3, "u3", "team/a", true});
  EXPECT_EQ(endings.ByName("team/a")->id, "u3");
  endings.Rollback();
  EXPECT_EQ(endings.ByName("team/a")->id, "u2");
  EXPECT_EQ(endings.ById("u3"), nullptr);
  EXPECT_EQ(endings.last(), 2U);
  // Not known any more from the same moment on, whether or not the batch has ended.
  endings.Add({1 + kEndingsKept, "late", "team/late", true});
  EXPECT_EQ(endings.ById("u1"), nullptr);
  EXPECT_NE(endings.ById("u2"), nullptr);
  endings.Rollback();
  EXPECT_NE(endings.ById("u1"), nullptr);
  endings.Add({1 + kEndingsKept, "late", "team/late", true});
  endings.Commit();
  EXPECT_EQ(endings.ById("u1"), nullptr);
  EXPECT_EQ(endings.all().size(), 2U);
}

TEST(DependenciesTest, AnEndThatIsTakenBack) {
  Endings endings;
  endings.Add({1, "u1", "team/a", true});
  endings.Add({2, "u2", "team/a", false});
  endings.Commit();
  const std::map<uint64_t, Ending> before = endings.all();
  endings.Remove("u2");
  endings.Remove("nobody");
  EXPECT_EQ(endings.ById("u2"), nullptr);
  EXPECT_EQ(endings.ByName("team/a")->id, "u1");
  // Its number is not given again.
  EXPECT_EQ(endings.last(), 2U);
  endings.Add({3, "u2", "team/a", true});
  EXPECT_EQ(endings.ByName("team/a")->number, 3U);
  // Of the same batch.
  endings.Remove("u2");
  EXPECT_EQ(endings.ById("u2"), nullptr);
  endings.Rollback();
  EXPECT_EQ(endings.all(), before);
  EXPECT_EQ(endings.ById("u2")->number, 2U);
  EXPECT_EQ(endings.ByName("team/a")->number, 2U);
  EXPECT_EQ(endings.last(), 2U);

  endings.Remove("u2");
  endings.Commit();
  Endings restored;
  for (const auto& [number, ending] : endings.all()) restored.Restore(ending);
  restored.RestoreLast(endings.last());
  restored.Rollback();
  EXPECT_EQ(restored.all(), endings.all());
  EXPECT_EQ(restored.last(), 2U);
}

TEST(DependenciesTest, WhoWaitsForWhat) {
  Dependents dependents;
  dependents.Add("a", 5);
  dependents.Add("a", 3);
  dependents.Add("b", 3);
  EXPECT_THAT(dependents.Of("a"), ElementsAre(3, 5));
  dependents.Remove("a", 3);
  dependents.Remove("a", 99);
  dependents.Remove("c", 3);
  EXPECT_THAT(dependents.Of("a"), ElementsAre(5));
  EXPECT_THAT(dependents.Of("c"), IsEmpty());
  dependents.Remove("a", 5);
  dependents.Remove("b", 3);
  EXPECT_TRUE(dependents.empty());
}

// As long as whoever would close a cycle is refused, there is none: a topological order exists.
RC_GTEST_PROP(DependenciesTest, NoCycleIsEverClosed, ()) {
  std::map<std::string, std::vector<std::string>> waits;
  const auto targets = [&](const std::string& id) { return waits[id]; };
  const int n = 8;
  for (int i = 0; i < 60; ++i) {
    const std::string from = fmt::format("j{}", *rc::gen::inRange(0, n));
    const std::string to = fmt::format("j{}", *rc::gen::inRange(0, n));
    if (!Reaches(to, from, targets)) waits[from].push_back(to);
  }
  // Take away, again and again, who waits for nobody.
  for (int round = 0; round < n; ++round) {
    for (auto& [id, list] : waits) {
      std::erase_if(list, [&](const std::string& to) { return waits[to].empty(); });
    }
  }
  for (const auto& [id, list] : waits) RC_ASSERT(list.empty());
}

}  // namespace
}  // namespace fluxqueue::scheduling
