// What one sweep tells the next about full nodes.
#include "libs/graph/room_times.h"

#include <cstdint>
#include <optional>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace fluxqueue::graph {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using Wanted = RoomTimes::Wanted;

constexpr TypeId kCpu = 1;
constexpr TypeId kGpu = 2;

class RoomTimesTest : public ::testing::Test {
 protected:
  RoomTimesTest() { rooms_.Clear(3); }

  std::vector<SiteId> In(int64_t after, int64_t until) const {
    std::vector<SiteId> sites;
    rooms_.ForEachIn(after, until, [&sites](SiteId site) { sites.push_back(site); });
    return sites;
  }
  // Known at the beginning of such a sweep.
  bool IsFull(const Wanted& wanted, int64_t time) {
    rooms_.BeginSweep(wanted, time);
    return rooms_.IsFullAt(0, time);
  }

  RoomTimes rooms_;
};

TEST_F(RoomTimesTest, ASweepGoesFromRoomToRoom) {
  rooms_.BeginSweep({{{kCpu, 4}}, 60}, 10);
  EXPECT_FALSE(rooms_.IsFullAt(0, 10));
  EXPECT_EQ(rooms_.NextAfter(10), std::nullopt);
  rooms_.Note(0, 10, 30);
  rooms_.Note(1, 10, 20);
  rooms_.Note(2, 10, Timeline::kEnd);
  EXPECT_TRUE(rooms_.IsFullAt(0, 29));
  EXPECT_FALSE(rooms_.IsFullAt(0, 30));
  EXPECT_EQ(rooms_.NextAfter(10), 20);
  EXPECT_THAT(In(10, 20), ElementsAre(1));
  EXPECT_EQ(rooms_.NextAfter(20), 30);
  EXPECT_THAT(In(20, 40), ElementsAre(0));
  EXPECT_EQ(rooms_.NextAfter(40), std::nullopt);
}

TEST_F(RoomTimesTest, WhoWantsAsMuchOrMoreIsToldOfIt) {
  rooms_.BeginSweep({{{kCpu, 4}}, 60}, 10);
  rooms_.Note(0, 10, 30);
  EXPECT_TRUE(IsFull({{{kCpu, 4}}, 60}, 10));
  EXPECT_TRUE(IsFull({{{kCpu, 5}}, 61}, 29));
  EXPECT_TRUE(IsFull({{{kCpu, 4}, {kGpu, 1}}, 60}, 12));
}

TEST_F(RoomTimesTest, WhoWantsLessOrEarlierIsNot) {
  rooms_.BeginSweep({{{kCpu, 4}, {kGpu, 1}}, 60}, 10);
  rooms_.Note(0, 10, 30);
  EXPECT_FALSE(IsFull({{{kCpu, 3}, {kGpu, 1}}, 60}, 10));
  EXPECT_FALSE(IsFull({{{kCpu, 9}}, 60}, 10));
  EXPECT_FALSE(IsFull({{{kCpu, 4}, {kGpu, 1}}, 59}, 10));
  EXPECT_FALSE(IsFull({{{kCpu, 4}, {kGpu, 1}}, 60}, 9));
  EXPECT_FALSE(IsFull({{{kCpu, 4}, {kGpu, 1}}, 60}, 30));
}

TEST_F(RoomTimesTest, OfTimesThatWerePassedOverNothingIsKnown) {
  rooms_.BeginSweep({{{kCpu, 4}}, 60}, 10);
  rooms_.Note(0, 20, 30);
  EXPECT_FALSE(IsFull({{{kCpu, 4}}, 60}, 10));
  EXPECT_FALSE(IsFull({{{kCpu, 4}}, 60}, 19));
  // What was learnt at once, when the site had room again, is of one piece.
  rooms_.Clear(3);
  rooms_.BeginSweep({{{kCpu, 4}}, 60}, 10);
  rooms_.Note(0, 10, 20);
  rooms_.Note(0, 20, 30);
  EXPECT_TRUE(IsFull({{{kCpu, 4}}, 60}, 19));
}

TEST_F(RoomTimesTest, ASiteThatChangesIsForgotten) {
  rooms_.BeginSweep({{{kCpu, 4}}, 60}, 10);
  rooms_.Note(0, 10, 30);
  rooms_.Note(1, 10, 30);
  rooms_.Forget(0);
  rooms_.BeginSweep({{{kCpu, 4}}, 60}, 10);
  EXPECT_FALSE(rooms_.IsFullAt(0, 10));
  EXPECT_TRUE(rooms_.IsFullAt(1, 10));
  // Learnt again, it stands.
  rooms_.Note(0, 10, 25);
  EXPECT_TRUE(IsFull({{{kCpu, 4}}, 60}, 10));
}

TEST_F(RoomTimesTest, SweepsAreForgottenInTheEnd) {
  rooms_.BeginSweep({{{kCpu, 4}}, 60}, 10);
  rooms_.Note(0, 10, 30);
  for (int i = 0; i < 1000; ++i) rooms_.BeginSweep({{{kGpu, 1}}, 60}, 10);
  EXPECT_FALSE(IsFull({{{kCpu, 4}}, 60}, 10));
  rooms_.Clear(1);
  rooms_.BeginSweep({{{kGpu, 1}}, 60}, 10);
  EXPECT_THAT(In(0, 9), IsEmpty());
}

}  // namespace
}  // namespace fluxqueue::graph
