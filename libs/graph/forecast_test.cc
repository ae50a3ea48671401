// What is expected by what came: what is old counts less, and no tenant steers what is kept for all
// others.
#include "libs/graph/forecast.h"

#include <map>
#include <optional>
#include <string>
#include <vector>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>
#include <rapidcheck/gtest.h>

namespace fluxqueue::graph {
namespace {

WorkloadShape Slots(uint64_t count, int64_t gpu, const std::string& model = "") {
  WorkloadShape shape{{{"cpu", 1000}, {std::string(kGpuMilli), gpu}}, {}, count};
  if (!model.empty()) shape.constraint = Constraint::HasLabel("model", model);
  return shape;
}

// Of slots that want so much.
uint64_t CountOf(Forecast& forecast, int64_t gpu) {
  uint64_t count = 0;
  for (const WorkloadShape& shape : forecast.Shapes()) {
    if (shape.amounts.back().amount == gpu) count += shape.count;
  }
  return count;
}

// `slots` of them, one by one, of eight tenants in turn.
void Come(Forecast* forecast, int slots, int64_t gpu, int64_t now_s = 0) {
  for (int i = 0; i < slots; ++i) forecast->Arrive(std::to_string(i % 8), Slots(1, gpu), now_s);
}

TEST(ForecastTest, ExpectsWhatCame) {
  Forecast forecast;
  EXPECT_TRUE(forecast.Shapes().empty());
  forecast.Arrive("a", Slots(64, 500), 0);
  forecast.Arrive("b", Slots(32, 4000, "T4"), 0);
  EXPECT_TRUE(forecast.changed());
  const Workload shapes = forecast.Shapes();
  EXPECT_FALSE(forecast.changed());
  ASSERT_EQ(shapes.size(), 2u);
  // More gpus together first.
  EXPECT_EQ(shapes[0].amounts, Slots(1, 4000).amounts);
  EXPECT_EQ(shapes[0].constraint.ToString(), "model=T4");
  EXPECT_EQ(shapes[1].count, 2 * shapes[0].count);
}

TEST(ForecastTest, WhatComesNoMoreIsForgotten) {
  Forecast forecast;
  Come(&forecast, 8192, 500);
  const uint64_t before = CountOf(forecast, 500);
  Come(&forecast, 8192, 1000);
  EXPECT_LE(CountOf(forecast, 500), before / 2);
  EXPECT_GE(CountOf(forecast, 1000), 2 * CountOf(forecast, 500));
  Come(&forecast, 10 * 8192, 1000);
  EXPECT_EQ(CountOf(forecast, 500), 0u);
}

TEST(ForecastTest, EachDayCountsHalf) {
  Forecast forecast;
  Come(&forecast, 1024, 500);
  EXPECT_EQ(CountOf(forecast, 500), 1024 * Forecast::kOneSlot);
  Come(&forecast, 128, 1000, Forecast::kHalfLifeS - 1);
  EXPECT_EQ(CountOf(forecast, 500), 1024 * Forecast::kOneSlot);
  Come(&forecast, 128, 1000, 3 * Forecast::kHalfLifeS);
  EXPECT_EQ(CountOf(forecast, 500), 128 * Forecast::kOneSlot);
  Come(&forecast, 1, 1000, 1000 * Forecast::kHalfLifeS);
  EXPECT_EQ(CountOf(forecast, 500), 0u);
}

// A tenant's hundred thousand slots leave what others sent as it was.
TEST(ForecastTest, OneTenantDoesNotSteerAll) {
  Forecast forecast;
  Come(&forecast, 4096, 500);
  const uint64_t others = CountOf(forecast, 500);
  for (int i = 0; i < 100'000; ++i) forecast.Arrive("flood", Slots(1, 8000), 0);
  EXPECT_EQ(CountOf(forecast, 500), others);
  EXPECT_LE(CountOf(forecast, 8000), others / 2);
  // In one job.
  forecast.Arrive("flood", Slots(100'000, 4000), 0);
  EXPECT_EQ(CountOf(forecast, 500), others);
}

TEST(ForecastTest, ATenantsThousandShapesLeaveThoseOfOthers) {
  Forecast forecast;
  Come(&forecast, 256, 500);
  for (int i = 0; i < 2000; ++i) forecast.Arrive("many", Slots(1, 2000, std::to_string(i)), 0);
  const Workload shapes = forecast.Shapes();
  EXPECT_LE(shapes.size(), Forecast::kMostShapesOfTenant + 1);
  EXPECT_EQ(CountOf(forecast, 500), 256 * Forecast::kOneSlot);
}

TEST(ForecastTest, OfManyShapesThoseThatCountMostAreRemembered) {
  Forecast forecast;
  forecast.Arrive("many", Slots(30, 4000), 0);
  for (int i = 0; i < 100; ++i) forecast.Arrive("many", Slots(1, 2000, std::to_string(i)), 0);
  EXPECT_EQ(CountOf(forecast, 4000), 32 * Forecast::kOneSlot);
  EXPECT_GT(CountOf(forecast, 2000), 0u);
}

TEST(ForecastTest, WhatNoNodeHasOrNobodyCanReadIsNotRemembered) {
  Forecast forecast;
  forecast.Arrive("a", Slots(1, (Forecast::kMostGpusOfSlot + 1) * 1000), 0);
  forecast.Arrive("a", Slots(1, 1000, std::string(Forecast::kMostConstraintBytes, 'x')), 0);
  EXPECT_TRUE(forecast.remembered().empty());
  std::optional<std::vector<Toleration>> none;
  for (const char* text : {R"({"ranks":["[0-3]","7"]})", R"({"hostlist":["n[1-2]","m"]})"}) {
    WorkloadShape shape = Slots(16, 1000);
    shape.constraint = Constraint::Parse(nlohmann::json::parse(text), "", &none).value();
    forecast.Arrive("a", shape, 0);
    forecast.Arrive("a", shape, 0);
  }
  EXPECT_EQ(forecast.remembered().size(), 2u);
  EXPECT_EQ(Forecast::Restore(forecast.remembered(), 0).Shapes(), forecast.Shapes());
}

TEST(ForecastTest, NoMoreShapesThanCanBeWeighed) {
  Forecast forecast;
  for (int i = 0; i < 1000; ++i) {
    forecast.Arrive(std::to_string(i % 50), Slots(1, 2000, std::to_string(i)), 0);
  }
  EXPECT_EQ(forecast.Shapes().size(), Forecast::kMostShapes);
}

// Of any arrivals no tenant counts for more than the bound, nor all together; and a forecast that
// is restored goes on as the one that was not.
RC_GTEST_PROP(ForecastProperty, BoundsHoldAndRowsSayAll, ()) {
  const auto any = [](int64_t from, int64_t to) { return *rc::gen::inRange(from, to + 1); };
  Forecast forecast;
  Forecast restored;
  int64_t now_s = 0;
  const int64_t arrivals = any(1, 60);
  for (int64_t i = 0; i < arrivals; ++i) {
    now_s += any(0, 3) == 0 ? any(0, 2 * Forecast::kHalfLifeS) : 0;
    const auto count = static_cast<uint64_t>(any(0, 2000));
    const WorkloadShape shape = Slots(count, 1000 * any(1, 3), any(0, 1) == 0 ? "" : "T4");
    const std::string tenant = std::to_string(any(0, 5));
    restored = Forecast::Restore(forecast.remembered(), forecast.halved_s());
    forecast.Arrive(tenant, shape, now_s);
    restored.Arrive(tenant, shape, now_s);
    RC_ASSERT(forecast.Shapes() == restored.Shapes());
    std::map<std::string, uint64_t> tenants;
    uint64_t all = 0;
    for (const Forecast::Remembered& one : forecast.remembered()) {
      for (const auto& [name, share] : one.by_tenant) {
        tenants[name] += share.counts;
        all += share.counts;
      }
    }
    for (const auto& [name, counts] : tenants) {
      RC_ASSERT(counts <= Forecast::kMostSlotsOfTenant * Forecast::kOneSlot);
    }
    RC_ASSERT(all <= Forecast::kMostSlots * Forecast::kOneSlot);
  }
}

}  // namespace
}  // namespace fluxqueue::graph
