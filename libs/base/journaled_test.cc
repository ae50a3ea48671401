#include "libs/base/journaled.h"

#include <map>
#include <set>
#include <string>
#include <unordered_map>

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

namespace fluxqueue {
namespace {

using Model = std::map<int, int>;

TEST(JournaledTest, AKeyThatIsTouchedTwiceIsRememberedAsItWasFirst) {
  Journaled<std::map<std::string, int>> map;
  map.Put("a", 1);
  map.Commit();
  map.Put("a", 2);
  map.Erase("a");
  map.Put("a", 3);
  ASSERT_EQ(map.Changes().size(), 1U);
  EXPECT_EQ(*map.Changes().front().before, 1);
  EXPECT_EQ(*map.Changes().front().now, 3);
  map.Rollback();
  EXPECT_EQ(*map.Find("a"), 1);
  EXPECT_TRUE(map.Changes().empty());
}

TEST(JournaledTest, WhatIsAsItWasIsNoChange) {
  Journaled<std::map<std::string, int>> map;
  map.Put("a", 1);
  map.Commit();
  map.Put("a", 2);
  map.Put("a", 1);
  map.Put("b", 1);
  map.Erase("b");
  EXPECT_FALSE(map.Erase("c"));
  EXPECT_TRUE(map.Changes().empty());
}

TEST(JournaledTest, TouchedAreAlsoThoseThatAreAsTheyWere) {
  Journaled<std::map<std::string, int>> map;
  map.Restore("a", 1);
  map.Restore("b", 2);
  map.Put("a", 1);
  ASSERT_EQ(map.Touched().size(), 1U);
  EXPECT_EQ(map.Touched().front().key, "a");
}

TEST(JournaledTest, WhatIsEditedInPassingStaysAfterARollback) {
  Journaled<std::map<std::string, int>> map;
  map.Restore("a", 1);
  *map.EditInPassing("a") = 2;
  EXPECT_EQ(map.EditInPassing("b"), nullptr);
  EXPECT_TRUE(map.Touched().empty());
  map.Rollback();
  EXPECT_EQ(*map.Find("a"), 2);
}

TEST(JournaledTest, WhatIsRestoredOrClearedCannotBeTakenBack) {
  Journaled<std::map<std::string, int>> map;
  map.Restore("a", 1);
  EXPECT_TRUE(map.Changes().empty());
  map.Rollback();
  EXPECT_TRUE(map.Has("a"));
  map.EraseAll();
  EXPECT_TRUE(map.empty());
  map.Rollback();
  EXPECT_TRUE(map.Has("a"));
  map.Put("a", 2);
  map.Clear();
  map.Rollback();
  EXPECT_TRUE(map.empty());
}

// Random changes against a copy: after each batch it is what the copy is, kept or taken back, and
// an index that follows the two functions holds exactly the values.
template <typename Map>
void EqualsACopy() {
  Journaled<Map> map;
  Model committed, model;
  std::multiset<int> index;
  const auto put = [&](int key, std::optional<int> value) {
    if (const int* now = map.Find(key); now != nullptr) index.erase(index.find(*now));
    map.Put(key, value);
    if (value.has_value()) index.insert(*value);
    model.erase(key);
    if (value.has_value()) model[key] = *value;
  };
  const auto batches = *rc::gen::inRange(1, 8);
  for (int batch = 0; batch < batches; ++batch) {
    const auto changes = *rc::gen::inRange(0, 12);
    for (int i = 0; i < changes; ++i) {
      const int key = *rc::gen::inRange(0, 6);
      const bool erase = *rc::gen::inRange(0, 3) == 0;
      put(key, erase ? std::nullopt : std::optional(*rc::gen::inRange(0, 4)));
    }
    Model replayed = committed;
    for (const auto& change : map.Changes()) {
      const auto was = committed.find(change.key);
      RC_ASSERT((change.before == nullptr) == (was == committed.end()));
      if (change.before != nullptr) RC_ASSERT(*change.before == was->second);
      replayed.erase(change.key);
      if (change.now != nullptr) replayed[change.key] = *change.now;
    }
    RC_ASSERT(replayed == model);
    if (*rc::gen::arbitrary<bool>()) {
      map.Commit();
      committed = model;
    } else {
      map.Rollback([&](int, int value) { index.erase(index.find(value)); },
                   [&](int, int value) { index.insert(value); });
      model = committed;
    }
    RC_ASSERT(Model(map.map().begin(), map.map().end()) == model);
    std::multiset<int> values;
    for (const auto& [key, value] : model) values.insert(value);
    RC_ASSERT(index == values);
  }
}

RC_GTEST_PROP(JournaledPropertyTest, AMapEqualsACopy, ()) {
  EqualsACopy<std::map<int, int>>();
}

RC_GTEST_PROP(JournaledPropertyTest, AHashMapEqualsACopy, ()) {
  EqualsACopy<std::unordered_map<int, int>>();
}

}  // namespace
}  // namespace fluxqueue
