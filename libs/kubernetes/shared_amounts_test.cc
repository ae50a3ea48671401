#include "libs/kubernetes/shared_amounts.h"

#include <gtest/gtest.h>

namespace fluxqueue::kubernetes {
namespace {

TEST(SharedAmountsTest, IsAValue) {
  const SharedAmounts none;
  EXPECT_TRUE(none->empty());
  EXPECT_EQ(none, SharedAmounts(Amounts()));
  const SharedAmounts one = Amounts{{"cpu", 1000}};
  SharedAmounts other = Amounts{{"cpu", 1000}};
  EXPECT_EQ(one, other);
  EXPECT_NE(&*one, &*other);
  other = Amounts{{"cpu", 2000}};
  EXPECT_NE(one, other);
  EXPECT_NE(one, none);
  EXPECT_EQ(one->at("cpu"), 1000);
}

TEST(AmountsPoolTest, EqualOnesHaveOneCopy) {
  AmountsPool pool;
  SharedAmounts one = Amounts{{"cpu", 1000}};
  SharedAmounts same = Amounts{{"cpu", 1000}};
  SharedAmounts other = Amounts{{"cpu", 2000}};
  SharedAmounts none;
  for (SharedAmounts* amounts : {&one, &same, &other, &none, &one}) pool.Share(amounts);
  EXPECT_EQ(&*one, &*same);
  EXPECT_EQ(one->at("cpu"), 1000);
  EXPECT_EQ(other->at("cpu"), 2000);
  EXPECT_TRUE(none->empty());
  EXPECT_EQ(pool.size(), 2);
}

TEST(AmountsPoolTest, WhatNoOneHasGoes) {
  AmountsPool pool;
  SharedAmounts kept = Amounts{{"cpu", -1}};
  pool.Share(&kept);
  for (int64_t i = 0; i < 100'000; ++i) {
    SharedAmounts passing = Amounts{{"cpu", i}};
    pool.Share(&passing);
    ASSERT_LE(pool.size(), Interner<Amounts>::kLeast);
  }
  SharedAmounts again = Amounts{{"cpu", -1}};
  pool.Share(&again);
  EXPECT_EQ(&*again, &*kept);
}

}  // namespace
}  // namespace fluxqueue::kubernetes
