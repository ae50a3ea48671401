#include "services/queue/adapters/rpc/claims_under_way.h"

#include <thread>
#include <vector>

#include <gtest/gtest.h>

namespace fluxqueue::queue {
namespace {

TEST(ClaimsUnderWayTest, CountWhatHasNotGone) {
  ClaimsUnderWay claims;
  auto first = claims.Enter("ann", 100);
  EXPECT_EQ(first.all.claims, 1);
  EXPECT_EQ(first.all.bytes, 100);
  auto second = claims.Enter("ann", 20);
  EXPECT_EQ(second.all.claims, 2);
  EXPECT_EQ(second.all.bytes, 120);
  EXPECT_EQ(claims.Enter("bob", 7).all.bytes, 7);
  const std::shared_ptr<void> copy = first.place;
  first.place.reset();
  EXPECT_EQ(claims.Enter("ann", 0).all.bytes, 120);
}

TEST(ClaimsUnderWayTest, OutliveTheirCounter) {
  ClaimsUnderWay::Entered left;
  {
    ClaimsUnderWay claims;
    left = claims.Enter("ann", 1);
    std::vector<std::jthread> threads;
    for (int i = 0; i < 4; ++i) {
      threads.emplace_back([&claims] {
        for (int j = 0; j < 1000; ++j) claims.Enter("ann", 1).place.reset();
      });
    }
    threads.clear();
    EXPECT_EQ(claims.Enter("ann", 1).all.claims, 2);
  }
  left.place.reset();
}

}  // namespace
}  // namespace fluxqueue::queue
