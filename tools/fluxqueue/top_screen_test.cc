#include "tools/fluxqueue/top_screen.h"

#include <cstdlib>
#include <ctime>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tools/fluxqueue/screen.h"

namespace fluxqueue::cli {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

TopView View(size_t jobs) {
  TopView view;
  view.now_ms = 100'000;
  for (size_t i = 0; i < jobs; ++i) {
    view.jobs.push_back({.queue = "batch",
                         .space = "team",
                         .name = "j" + std::to_string(i),
                         .state = "Pending",
                         .reason = "Busy",
                         .slots = 2,
                         .created_ms = 40'000,
                         .position = i + 1});
  }
  view.states["Pending"] = static_cast<int64_t>(jobs);
  NodeView node;
  node.name = "n1";
  node.state = "up";
  view.nodes = {node};
  view.pipeline.consumers = {{"queue", "t", 0, "h", 3}, {"queue", "t", 1, "h", 4}};
  view.pipeline.outboxes = {{"binder", 12'345}};
  return view;
}

TEST(TopScreenTest, FillsTheScreenAndNoMore) {
  TopState state;
  const std::string text =
      DrawTop(View(3), Throughput(), {.columns = 80, .rows = 20}, false, &state);
  EXPECT_EQ(Lines(text).size(), 20U);
  EXPECT_THAT(text, HasSubstr("3 wait   0 start   0 run"));
  EXPECT_THAT(text, HasSubstr("queue 7"));
  EXPECT_THAT(text, HasSubstr("binder 12,345"));
  EXPECT_THAT(text, HasSubstr("2         team/j1  batch  2     Pending  Busy    -      1m0s"));
}

TEST(TopScreenTest, ScrollsToTheLastJobAndNoFurther) {
  TopState state{.first = 1000};
  const std::string text =
      DrawTop(View(50), Throughput(), {.columns = 80, .rows = 20}, false, &state);
  EXPECT_THAT(text, HasSubstr("team/j49"));
  EXPECT_THAT(text, Not(HasSubstr("team/j0 ")));
  EXPECT_LT(state.first, 50U);
  EXPECT_THAT(text, HasSubstr(" to 50 of 50 jobs"));
}

TEST(TopScreenTest, CountsAllJobsAndNotOnlyThoseListed) {
  TopView view = View(3);
  view.states = {{"Pending", 100'000}, {"Submitted", 1}, {"Bound", 2}, {"Running", 1500}};
  TopState state;
  const std::string text = DrawTop(view, Throughput(), {.columns = 100, .rows = 20}, false, &state);
  EXPECT_THAT(text, HasSubstr("100,001 wait   2 start   1,500 run   0 stop"));
  EXPECT_THAT(text, HasSubstr("1 to 3 of 3 listed, of 101,503 jobs"));
}

TEST(ThroughputTest, CountsWhatEndedInTheLastTenSeconds) {
  Throughput throughput;
  throughput.MoveTo(100'000);
  for (int i = 0; i < 20; ++i) throughput.Add("Succeeded", 95'000);
  throughput.Add("Running", 99'500);
  throughput.Add("Pending", 99'500);
  throughput.Add("Failed", 10'000);
  EXPECT_DOUBLE_EQ(throughput.EndedRate(), 2.0);
  EXPECT_DOUBLE_EQ(throughput.StartedRate(), 0.1);
  throughput.MoveTo(110'000);
  EXPECT_DOUBLE_EQ(throughput.EndedRate(), 0.0);
  EXPECT_THAT(throughput.Sparkline(), HasSubstr("█"));
  throughput.MoveTo(200'000);
  EXPECT_THAT(throughput.Sparkline(), Not(HasSubstr("█")));
}

// A terminal may send several at once.
TEST(KeyTest, ArrowsAndLettersOneByOne) {
  std::string typed = "jk\033[B\033OA\033[24~\033[5~q\x03";
  std::vector<Key> keys;
  while (!typed.empty()) keys.push_back(TakeKey(&typed));
  EXPECT_THAT(keys,
              ::testing::ElementsAre(Key::kDown,
                                     Key::kUp,
                                     Key::kDown,
                                     Key::kUp,
                                     Key::kNone,
                                     Key::kPageUp,
                                     Key::kQuit,
                                     Key::kQuit));
}

}  // namespace
}  // namespace fluxqueue::cli
