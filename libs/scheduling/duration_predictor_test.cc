#include "libs/scheduling/duration_predictor.h"

#include <gtest/gtest.h>
#include <rapidcheck.h>
#include <rapidcheck/gtest.h>

namespace fluxqueue::scheduling {
namespace {

// Nothing: none.
std::optional<int64_t> Mean(const DurationPredictor& predictor, uint64_t shape) {
  const auto prediction = predictor.Predict("ann", shape);
  return prediction.has_value() ? std::optional(prediction->duration_ms) : std::nullopt;
}

bool IsTrusted(const DurationPredictor& predictor) {
  const auto prediction = predictor.Predict("ann", 1);
  return prediction.has_value() && prediction->trusted;
}

TEST(DurationPredictorTest, TheMeanOfTheLastTwo) {
  DurationPredictor predictor;
  EXPECT_EQ(Mean(predictor, 1), std::nullopt);
  predictor.Learn("ann", 1, 1000, 0);
  EXPECT_EQ(Mean(predictor, 1), std::nullopt);
  predictor.Learn("ann", 1, 2001, 0);
  EXPECT_EQ(Mean(predictor, 1), 1501);  // rounded up
  predictor.Learn("ann", 1, 4001, 0);
  EXPECT_EQ(Mean(predictor, 1), 3001);
  EXPECT_EQ(Mean(predictor, 2), std::nullopt);
  EXPECT_EQ(predictor.Predict("bob", 1), std::nullopt);
  predictor.Learn("ann", 3, INT64_MAX, INT64_MAX);
  predictor.Learn("ann", 3, INT64_MAX, 1);
  EXPECT_EQ(Mean(predictor, 3), INT64_MAX);
  predictor.Learn("ann", 4, -5, -5);
  predictor.Learn("ann", 4, 0, 0);
  EXPECT_EQ(Mean(predictor, 4), 1);
}

TEST(DurationPredictorTest, IsTrustedWhileItIsNearerThanWhatWasDeclared) {
  DurationPredictor predictor;
  for (const int64_t run : {600, 620}) predictor.Learn("ann", 1, run, 3600);
  EXPECT_TRUE(IsTrusted(predictor));
  // Its jobs repeat themselves no more: 100 was predicted as 610, then as 360, and so on.
  for (const int64_t run : {100, 9000, 100, 9000}) predictor.Learn("ann", 1, run, run * 2);
  EXPECT_FALSE(IsTrusted(predictor));
  // And do again.
  for (int i = 0; i < 20; ++i) predictor.Learn("ann", 1, 500, 1000);
  EXPECT_TRUE(IsTrusted(predictor));
}

TEST(DurationPredictorTest, IsNeverTrustedWhereWhatIsDeclaredIsExact) {
  DurationPredictor predictor;
  for (const int64_t run : {600, 600, 600, 620, 600, 600}) predictor.Learn("ann", 1, run, run);
  EXPECT_FALSE(IsTrusted(predictor));
}

TEST(DurationPredictorTest, IsTrustedWhereNothingIsDeclared) {
  DurationPredictor predictor;
  for (const int64_t run : {100, 9000, 100, 9000}) predictor.Learn("ann", 1, run, 0);
  EXPECT_TRUE(IsTrusted(predictor));
}

TEST(DurationPredictorTest, TheOldestIsForgotten) {
  DurationPredictor predictor(/*kept=*/2);
  for (const uint64_t shape : {1, 2, 1, 2, 1, 3}) predictor.Learn("ann", shape, 10, 20);
  EXPECT_EQ(Mean(predictor, 1), 10);
  EXPECT_EQ(Mean(predictor, 2), std::nullopt);
  EXPECT_EQ(predictor.All().size(), 2U);
}

// Rolled back it is as before; made again from what changed it is the same.
RC_GTEST_PROP(DurationPredictorTest, RollbackAndRestore, ()) {
  DurationPredictor predictor(/*kept=*/5);
  DurationPredictor copy(/*kept=*/5);
  std::map<std::pair<std::string, uint64_t>, History> rows;
  for (int batch = 0; batch < 8; ++batch) {
    const std::vector<History> before = predictor.All();
    const bool lost = *rc::gen::arbitrary<bool>();
    for (const int n : *rc::gen::container<std::vector<int>>(rc::gen::inRange(0, 12))) {
      predictor.Learn(n % 2 == 0 ? "ann" : "bob", static_cast<uint64_t>(n / 2), 100 + n, 200 - n);
    }
    if (lost) {
      predictor.Rollback();
      RC_ASSERT(predictor.All() == before);
      RC_ASSERT(predictor.Changes().empty());
      continue;
    }
    for (const auto& change : predictor.Changes()) {
      const std::pair key{change.history.user, change.history.shape};
      if (change.forgotten) {
        rows.erase(key);
      } else {
        rows[key] = change.history;
      }
    }
    predictor.Commit();
    copy.Clear();
    for (const auto& [key, history] : rows) copy.Set(history);
    RC_ASSERT(copy.All() == predictor.All());
  }
}

}  // namespace
}  // namespace fluxqueue::scheduling
