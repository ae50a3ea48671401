#include "tools/fluxqueue/pool_view.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

namespace fluxqueue::cli {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

PoolView View() {
  PoolView view{.pool = "gpu", .time_ms = 90'000};
  view.waiting.push_back({.id = "2",
                          .name = "team/wide",
                          .queue = "easy",
                          .position = 1,
                          .state = "Pending",
                          .reason = "Busy",
                          .message = "cpu: a slot needs 8",
                          .slots = 4,
                          .submitted_ms = 60'000});
  view.allocations.push_back({.id = "1",
                              .attempt = 2,
                              .name = "team/train",
                              .queue = "easy",
                              .state = "Running",
                              .since_ms = 30'000,
                              .nodes = {{"n1", 2}, {"n2", 1}}});
  view.usage = {{"cpu", 8000, 3000, 1000, 4000}};
  view.nodes = {{"n1", true, 2, {{"cpu", 4000, 2000, 0, 2000}}},
                {"n2", false, 1, {{"cpu", 4000, 1000, 1000, 2000}}}};
  return view;
}

TEST(PoolViewTest, ForEyes) {
  EXPECT_THAT(FormatView(View(), 0, false),
              AllOf(HasSubstr("1 waiting, 1 held, 2 nodes"),
                    HasSubstr("Busy    cpu: a slot needs 8"),
                    HasSubstr("n1 x2, n2"),
                    HasSubstr("cpu       8      3     1       4"),
                    HasSubstr("n2    no   1      cpu 2/4")));
}

TEST(PoolViewTest, ForPrograms) {
  const nlohmann::json json = ToJson(View());
  EXPECT_EQ(json["timeMs"], 90'000);
  EXPECT_EQ(json["waiting"][0]["position"], 1);
  EXPECT_EQ(json["allocations"][0]["nodes"][0]["slots"], 2);
  EXPECT_EQ(json["usage"]["cpu"]["foreign"], 1000);
  EXPECT_EQ(json["nodes"][1]["schedulable"], false);
}

TEST(PoolViewTest, SlotsThatWereGivenBackAreNotHeld) {
  graph::Placement placement;
  placement.slots = {{0, "n1"}, {1, "n2"}, {2, "n1"}, {3, "n3", /*released=*/true}};
  EXPECT_EQ(NodesText(SlotsByNode(placement)), "n1 x2, n2");
}

}  // namespace
}  // namespace fluxqueue::cli
