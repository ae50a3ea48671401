#include "libs/access/recent_cache.h"

#include <gtest/gtest.h>

namespace fluxqueue::access {
namespace {

TEST(RecentCacheTest, AnEntryLivesForItsAge) {
  FakeClock clock;
  RecentCache<int> cache(clock, Millis(1000), 10);
  cache.Put("a", 1);
  clock.Advance(Millis(600));
  cache.Put("a", 2);  // no younger by that
  EXPECT_EQ(cache.Find("a"), 1);
  clock.Advance(Millis(400));
  EXPECT_EQ(cache.Find("a"), std::nullopt);
  cache.Put("a", 3);
  EXPECT_EQ(cache.Find("a"), 3);
}

TEST(RecentCacheTest, TheOldestGoesWhereThereAreTooMany) {
  FakeClock clock;
  RecentCache<int> cache(clock, Millis(1000), 3);
  for (int i = 0; i < 1000; ++i) {
    cache.Put(std::to_string(i), i);
    EXPECT_LE(cache.size(), 3U);
  }
  EXPECT_EQ(cache.Find("996"), std::nullopt);
  EXPECT_EQ(cache.Find("997"), 997);
  EXPECT_EQ(cache.Find("999"), 999);
}

}  // namespace
}  // namespace fluxqueue::access
