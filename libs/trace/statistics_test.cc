#include "libs/trace/statistics.h"

#include <numeric>
#include <optional>
#include <vector>

#include <gtest/gtest.h>

namespace fluxqueue::trace {
namespace {

TEST(StatisticsTest, PercentileIsTheNearestRank) {
  EXPECT_EQ(Percentile({}, 50), std::nullopt);
  EXPECT_EQ(Percentile({7}, 1), 7);
  EXPECT_EQ(Percentile({3, 1, 2}, 50), 2);
  EXPECT_EQ(Percentile({4, 3, 2, 1}, 50), 2);
  std::vector<double> values(100);
  std::iota(values.rbegin(), values.rend(), 1);
  EXPECT_EQ(Percentile(values, 99), 99);
  EXPECT_EQ(Percentile(values, 100), 100);
}

TEST(StatisticsTest, Utilisation) {
  const TraceJob wide = {"w", 0, 1, 4, {{"cpu", 1000}}, {}};
  const TraceJob gpu = {"g", 0, 1, 1, {{"cpu", 2000}, {"fluxqueue.io/gpu-milli", 500}}, {}};
  const std::vector<Use> uses = {{&wide, 5}, {&gpu, 10}};
  EXPECT_DOUBLE_EQ(*Utilisation(uses, "cpu", 8000, 10), 0.5);
  EXPECT_DOUBLE_EQ(*Utilisation(uses, "fluxqueue.io/gpu-milli", 1000, 10), 0.5);
  EXPECT_EQ(Utilisation(uses, "cpu", 8000, 0), std::nullopt);
  EXPECT_EQ(Utilisation(uses, "fpga", 0, 10), std::nullopt);
}

}  // namespace
}  // namespace fluxqueue::trace
