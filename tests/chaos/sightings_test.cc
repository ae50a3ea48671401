#include "tests/chaos/sightings.h"

#include <gtest/gtest.h>

namespace fluxqueue::chaos {
namespace {

TEST(SightingsTest, OnlyABoundPodOfAnOwnerIsOne) {
  const auto bound = ParseBound("job-7-x2f4k   job-7   node-3");
  ASSERT_TRUE(bound.has_value());
  EXPECT_EQ(bound->pod, "job-7-x2f4k");
  EXPECT_EQ(bound->owner, "job-7");
  EXPECT_FALSE(ParseBound("pod-1 <none> node-3").has_value());
  EXPECT_FALSE(ParseBound("job-7-x2f4k job-7 <none>").has_value());
  EXPECT_FALSE(ParseBound("").has_value());
}

}  // namespace
}  // namespace fluxqueue::chaos
