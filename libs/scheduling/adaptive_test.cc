#include "libs/scheduling/adaptive.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

namespace fluxqueue::scheduling {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

constexpr int64_t kHalf = kWholePool / 2;
constexpr int64_t kSecond = 1000;
constexpr int64_t kHour = 3600 * kSecond;
constexpr int64_t kDay = 24 * kHour;

TEST(WorkHistogramTest, EdgesAreQuarterOctaves) {
  EXPECT_EQ(WorkHistogram::Edge(0), 1000);
  EXPECT_EQ(WorkHistogram::Edge(1), 1189);
  EXPECT_EQ(WorkHistogram::Edge(4), 2000);
  EXPECT_EQ(WorkHistogram::Edge(40), 1'024'000);
  for (size_t i = 0; i < WorkHistogram::kBuckets; ++i) {
    EXPECT_EQ(WorkHistogram::BucketOf(WorkHistogram::Edge(i)), i);
    if (i > 0) {
      EXPECT_EQ(WorkHistogram::BucketOf(WorkHistogram::Edge(i) - 1), i - 1);
    }
  }
  EXPECT_EQ(WorkHistogram::BucketOf(1), 0U);
  EXPECT_EQ(WorkHistogram::BucketOf(kNeverMs), WorkHistogram::kBuckets - 1);
}

TEST(WorkHistogramTest, Quantile) {
  WorkHistogram histogram;
  EXPECT_EQ(histogram.QuantileMs(3), 1000);
  histogram.Add(4 * kSecond, 3);
  histogram.Add(64 * kSecond, 9997);
  EXPECT_EQ(histogram.QuantileMs(3), 64 * kSecond);  // exactly so much is not more
  histogram.Add(4 * kSecond, 1);
  EXPECT_EQ(histogram.QuantileMs(3), 4 * kSecond);
}

TEST(AccuracyTest, RawThenScaledWithHysteresis) {
  Accuracy accuracy;
  EXPECT_TRUE(accuracy.raw);
  accuracy.Learn(kHalf, 100 * kSecond, 86 * kSecond, true);  // 14 % off: it stays good
  EXPECT_TRUE(accuracy.raw);
  accuracy.Learn(kHalf, 100 * kSecond, 80 * kSecond, true);  // 17 % on the average
  EXPECT_FALSE(accuracy.raw);
  for (int i = 0; i < 200; ++i) accuracy.Learn(kHalf, 100 * kSecond, 50 * kSecond, true);
  EXPECT_FALSE(accuracy.raw);
  EXPECT_TRUE(accuracy.scaled);  // twice what they run: by one factor they are good
  EXPECT_NEAR(
      static_cast<double>(accuracy.alpha().ran) / static_cast<double>(accuracy.alpha().estimated),
      0.5,
      0.01);
  for (int i = 0; i < 2000; ++i) {
    accuracy.Learn(kHalf, 100 * kSecond, (i % 2 == 0 ? 100 : 1) * kSecond, true);
  }
  EXPECT_FALSE(accuracy.raw);
  EXPECT_FALSE(accuracy.scaled);
}

TEST(AccuracyTest, JudgedAtTheFirstEndsAndThenNowAndThen) {
  Accuracy accuracy;
  for (int i = 0; i < 10; ++i) accuracy.Learn(kHalf, 100 * kSecond, 100 * kSecond, true);
  for (int i = 10; i < 31; ++i) accuracy.Learn(kHalf, 100 * kSecond, kSecond, true);
  EXPECT_TRUE(accuracy.raw);
  accuracy.Learn(kHalf, 100 * kSecond, kSecond, true);
  EXPECT_FALSE(accuracy.raw);  // the 32nd
  Accuracy shut;
  for (int i = 0; i < 64; ++i) shut.Learn(kHalf, 100 * kSecond, kSecond, false);
  EXPECT_TRUE(shut.raw);
}

class AdaptiveTest : public ::testing::Test {
 protected:
  AdaptiveTest() { adaptive_.Turn(true); }

  // The whole pool ran for ten hours: short is what runs for seconds.
  void DoWork() {
    Run(1000, 0, 10 * kHour);
    Run(1001, 10 * kHour, 10 * kHour + 32 * kSecond);
  }
  void Run(uint64_t submission, int64_t from_ms, int64_t to_ms) {
    adaptive_.Wait({0, submission}, kWholePool, to_ms - from_ms, from_ms);
    adaptive_.Choose(from_ms, kWholePool, 10);
    adaptive_.Start({0, submission}, kWholePool, to_ms - from_ms, from_ms, from_ms);
    adaptive_.End(submission, to_ms);
  }
  void Wait(uint64_t submission, int64_t size, int64_t seconds, int64_t now_ms, int64_t rank = 0) {
    adaptive_.Wait({rank, submission}, size, seconds * kSecond, now_ms);
  }
  static std::vector<uint64_t> Numbers(const std::vector<OrderKey>& keys) {
    std::vector<uint64_t> numbers;
    for (const OrderKey& key : keys) numbers.push_back(key.submission);
    return numbers;
  }
  std::vector<uint64_t> PassersAt(int64_t now_ms, int64_t free = kWholePool, size_t most = 10) {
    return Numbers(adaptive_.Choose(now_ms, free, most).passers);
  }
  std::vector<uint64_t> PinnedAt(int64_t now_ms, size_t most = 10) {
    return Numbers(adaptive_.Choose(now_ms, 0, most).pinned);
  }

  static constexpr int64_t kThen = 20 * kHour;  // all that DoWork did is over
  Adaptive adaptive_;
};

TEST_F(AdaptiveTest, PassesWhenItsExpansionFactorIsHighEnough) {
  DoWork();
  // More than 0.0003 of the work is shorter than 45 s, where its bucket begins at 32: c = 0.32 s.
  Wait(1, 1, 10, kThen);  // e²/c - e = 302.5 s
  EXPECT_THAT(PassersAt(kThen + 302 * kSecond), IsEmpty());
  EXPECT_THAT(PassersAt(kThen + 303 * kSecond), ElementsAre(1));
  Wait(2, 1, 60, kThen);  // 11,190 s
  EXPECT_THAT(PassersAt(kThen + 11'189 * kSecond), ElementsAre(1));
  EXPECT_THAT(PassersAt(kThen + 11'190 * kSecond), ElementsAre(1, 2));
  Wait(3, 1, 0, kThen);                                      // unlimited: never
  EXPECT_THAT(PassersAt(kThen + 10'000 * kDay), IsEmpty());  // and the valve is shut
}

TEST_F(AdaptiveTest, ShortestFirstWithinWhatIsFree) {
  DoWork();
  Wait(1, kHalf, 9, kThen);
  Wait(2, kHalf + 1, 8, kThen);
  Wait(3, kHalf, 7, kThen);
  Wait(4, 1, 10, kThen);
  const int64_t later = kThen + kHour;
  EXPECT_THAT(PassersAt(later), ElementsAre(3, 1));
  EXPECT_THAT(PassersAt(later, kHalf), ElementsAre(3));
  EXPECT_THAT(PassersAt(later, kHalf - 1), ElementsAre(4));
  EXPECT_THAT(PassersAt(later, kWholePool, 1), ElementsAre(3));
  EXPECT_THAT(PassersAt(later, 0), IsEmpty());
}

TEST_F(AdaptiveTest, PinnedAreInTheOrderOfTheirVirtualStarts) {
  Wait(1, kWholePool, 100, 0);
  Wait(2, kWholePool, 100, 0);
  Wait(3, kHalf, 100, 0);
  Wait(4, kHalf, 100, 0);
  EXPECT_THAT(PinnedAt(0), ElementsAre(1));
  EXPECT_THAT(PinnedAt(250 * kSecond), ElementsAre(1, 2, 3, 4));
  EXPECT_THAT(PinnedAt(250 * kSecond, 2), ElementsAre(1, 2));
  Wait(5, kHalf, 100, 250 * kSecond, /*rank=*/1);
  EXPECT_THAT(PinnedAt(400 * kSecond), ElementsAre(5, 1, 2, 3, 4));
  adaptive_.Leave(2, 400 * kSecond);
  EXPECT_THAT(PinnedAt(400 * kSecond), ElementsAre(5, 1, 3, 4));
}

TEST_F(AdaptiveTest, NobodyIsPinnedWhereEstimatesAreBad) {
  Wait(1, kWholePool, 100, 0);
  EXPECT_THAT(PinnedAt(0), ElementsAre(1));
  for (uint64_t job = 10; job < 30; ++job) {
    adaptive_.Start({0, job}, kHalf, 100 * kSecond, 0, 0);
    adaptive_.End(job, job % 2 == 0 ? kSecond : 100 * kSecond);
  }
  EXPECT_THAT(PinnedAt(200 * kSecond), IsEmpty());
}

TEST_F(AdaptiveTest, PlansByTheFactorWhereEstimatesAreUniformlyTooLong) {
  EXPECT_EQ(adaptive_.PlanOf(1, 1000), 1000);
  for (uint64_t job = 10; job < 100; ++job) {
    const auto at = static_cast<int64_t>(job) * kHour;
    adaptive_.Start({0, job}, kHalf, 100 * kSecond, at, at);
    adaptive_.End(job, at + 50 * kSecond);
  }
  EXPECT_EQ(adaptive_.PlanOf(1, 1000), 500);
  EXPECT_EQ(adaptive_.PlanOf(1, 0), 0);  // unlimited stays unlimited
}

TEST_F(AdaptiveTest, TheValveShutsForWhoWaitsMuchLongerThanVirtually) {
  DoWork();
  Wait(1, kWholePool, 1000, kThen);  // starts virtually at once
  Wait(2, 1, 1, kThen);
  EXPECT_THAT(PassersAt(kThen + kDay), ElementsAre(2));
  EXPECT_FALSE(adaptive_.state().shut);
  EXPECT_THAT(PassersAt(kThen + kDay + 1), IsEmpty());
  EXPECT_TRUE(adaptive_.state().shut);
  adaptive_.Start({0, 1}, kWholePool, 1000 * kSecond, kThen + kDay + 2, kThen + kDay + 2);
  adaptive_.End(1, kThen + kDay + 1002 * kSecond);
  Wait(3, 1, 1, kThen + 2 * kDay);
  adaptive_.Leave(2, kThen + 2 * kDay);
  EXPECT_THAT(PassersAt(kThen + 3 * kDay), ElementsAre(3));
}

// Ten-second jobs for ever, and one that wants all of the machine: it is not passed for ever.
TEST_F(AdaptiveTest, AStreamOfShortJobsStarvesNobody) {
  adaptive_.SetCapacity(kWholePool, 0);
  int64_t now = 0;
  Wait(1, kWholePool, 3600, now);
  bool first = false;
  for (uint64_t job = 2; job < 20'000 && !first; ++job) {
    now += 10 * kSecond;
    Wait(job, kHalf, 10, now);
    const Adaptive::Choice choice = adaptive_.Choose(now, kWholePool, 10);
    first = choice.passers.empty();
    ASSERT_FALSE(choice.pinned.empty());
    ASSERT_EQ(choice.pinned.front().submission, 1U);
  }
  EXPECT_TRUE(first);
}

TEST_F(AdaptiveTest, OffForgetsAll) {
  Wait(1, kHalf, 1, 0);
  adaptive_.Commit();
  adaptive_.Turn(false);
  EXPECT_FALSE(adaptive_.on());
  EXPECT_EQ(adaptive_.machine().Changes().front().now, nullptr);
  adaptive_.Rollback();
  EXPECT_TRUE(adaptive_.on());
  EXPECT_TRUE(adaptive_.Knows(1));
}

class AdaptiveHindsightTest : public AdaptiveTest {
 protected:
  AdaptiveHindsightTest() { adaptive_.SetHindsight(true); }

  // Declared to take 10 s, and took this.
  void RunOf(const std::string& user, uint64_t submission, int64_t seconds, bool succeeded = true) {
    const auto at = static_cast<int64_t>(submission) * kHour;
    adaptive_.Wait({0, submission}, 1, 10 * kSecond, at, user);
    adaptive_.Choose(at, kWholePool, 10);
    adaptive_.Start({0, submission}, 1, 10 * kSecond, at, at);
    adaptive_.End(submission, at + seconds * kSecond, user, succeeded);
  }
  int64_t PriceOf(const std::string& user, uint64_t submission) {
    const auto at = static_cast<int64_t>(submission) * kHour;
    adaptive_.Wait({0, submission}, 1, 10 * kSecond, at, user);
    return adaptive_.machine().Find(submission)->price_ms;
  }
};

TEST_F(AdaptiveHindsightTest, WhoDeclaresTooLittlePaysForItAndIsPlannedWithIt) {
  for (uint64_t job = 1; job < 20; ++job) {
    RunOf("honest", 2 * job, 10);
    RunOf("liar", 2 * job + 1, 1000);
  }
  EXPECT_EQ(PriceOf("honest", 100), 10 * kSecond);
  EXPECT_EQ(PriceOf("new", 101), 10 * kSecond);
  EXPECT_GT(PriceOf("liar", 102), 900 * kSecond);
  EXPECT_EQ(adaptive_.PlanOf(100, 10 * kSecond), 10 * kSecond);
  EXPECT_EQ(adaptive_.PlanOf(102, 10 * kSecond), adaptive_.machine().Find(102)->price_ms);
}

TEST_F(AdaptiveHindsightTest, CrashesAreNotLearnt) {
  for (uint64_t job = 1; job < 20; ++job) RunOf("unlucky", job, 1, /*succeeded=*/false);
  EXPECT_EQ(PriceOf("unlucky", 100), 10 * kSecond);
  EXPECT_EQ(adaptive_.state().accuracy.ends, 0U);
}

TEST_F(AdaptiveHindsightTest, AllArePinnedWhateverEstimatesAre) {
  Wait(1, kWholePool, 100, 0);
  for (uint64_t job = 10; job < 30; ++job) {
    adaptive_.Start({0, job}, kHalf, 100 * kSecond, 0, 0);
    adaptive_.End(job, job % 2 == 0 ? kSecond : 100 * kSecond);
  }
  EXPECT_THAT(PinnedAt(200 * kSecond), ElementsAre(1));
}

TEST_F(AdaptiveHindsightTest, ItIsRolledBackWithTheBatch) {
  RunOf("user", 1, 1000);
  adaptive_.Commit();
  const auto before = adaptive_.reliability().records();
  RunOf("user", 2, 10);
  RunOf("other", 3, 10);
  EXPECT_NE(adaptive_.reliability().records(), before);
  adaptive_.Rollback();
  EXPECT_EQ(adaptive_.reliability().records(), before);
}

}  // namespace
}  // namespace fluxqueue::scheduling
