#include "tests/chaos/sightings.h"

#include <gtest/gtest.h>

namespace fluxqueue::chaos {
namespace {

using std::chrono::milliseconds;
using Time = std::chrono::steady_clock::time_point;

TEST(SightingsTest, OnlyABoundPodIsOne) {
  const auto bound = ParseBound("job-7-x2f4k   job-7   node-3");
  ASSERT_TRUE(bound.has_value());
  EXPECT_EQ(bound->pod, "job-7-x2f4k");
  EXPECT_EQ(bound->owner, "job-7");
  EXPECT_EQ(ParseBound("pod-1 <none> node-3")->owner, "");
  EXPECT_FALSE(ParseBound("job-7-x2f4k job-7 <none>").has_value());
  EXPECT_FALSE(ParseBound("").has_value());
}

TEST(SightingsTest, TheLongestPauseIsWithinTheTime) {
  const auto at = [](int ms) { return Time(milliseconds(ms)); };
  const std::vector<Time> times = {at(0), at(5000), at(5100), at(7000), at(90000)};
  // From the strike to the next binding, though the one before it was long ago.
  EXPECT_EQ(LongestPause(times, at(4000), at(7000)), milliseconds(1900));
  EXPECT_EQ(LongestPause(times, at(2000), at(7000)), milliseconds(3000));
  // Nothing after the last one.
  EXPECT_EQ(LongestPause(times, at(5050), at(20000)), milliseconds(13000));
  EXPECT_EQ(LongestPause({}, at(0), at(100)), milliseconds(100));
}

}  // namespace
}  // namespace fluxqueue::chaos
