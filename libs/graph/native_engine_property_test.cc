#include <gtest/gtest.h>

#include "libs/graph/cluster_graph.h"
#include "libs/graph/engine_world.h"

namespace fluxqueue::graph {
namespace {

World MakeWorld() {
  return {MakeClusterGraph, {.policies = {"first", "lonode", "hinode", "packed"}}};
}

TEST(NativeEngineProperties, EqualsTheModel) {
  EXPECT_TRUE(rc::check("random histories", [](const std::vector<uint32_t>& steps) {
    World world = MakeWorld();
    world.Step(0);
    for (const uint32_t step : steps) {
      world.Step(step);
      world.Check();
    }
    world.CheckRestored();
  }));
}

TEST(NativeEngineProperties, EqualsTheModelOverLongHistories) {
  for (uint32_t seed = 1; seed <= 20; ++seed) {
    Random random(seed);
    World world = MakeWorld();
    for (int i = 0; i < 200; ++i) world.Step(static_cast<uint32_t>(random()));
    world.Check();
    world.CheckRestored();
  }
}

// With reservations: when, and whom they let pass. Which devices are kept for later the model does
// not know, nor what `packed` prefers.
World MakeWorldOfCycles() {
  return {MakeClusterGraph,
          {.policies = {"first", "lonode", "hinode"}, .gpu_parts = false, .reserves = true}};
}

// The same, and nodes that are closed for a time.
World MakeWorldOfClosures() {
  return {MakeClusterGraph,
          {.policies = {"first", "lonode", "hinode"},
           .gpu_parts = false,
           .reserves = true,
           .closes = true}};
}

TEST(NativeEngineProperties, ReservesAsTheModel) {
  EXPECT_TRUE(rc::check("random histories", [](const std::vector<uint32_t>& steps) {
    World world = MakeWorldOfCycles();
    world.Step(1);
    for (const uint32_t step : steps) {
      world.Step(step);
      world.Check();
    }
    world.CheckRestored();
  }));
}

TEST(NativeEngineProperties, ReservesAsTheModelOverLongHistories) {
  for (uint32_t seed = 1; seed <= 5; ++seed) {
    Random random(seed);
    World world = MakeWorldOfCycles();
    for (int i = 0; i < 100; ++i) world.Step(static_cast<uint32_t>(random()));
    world.Check();
    world.CheckRestored();
  }
}

TEST(NativeEngineProperties, ClosesNodesAsTheModel) {
  EXPECT_TRUE(rc::check("random histories", [](const std::vector<uint32_t>& steps) {
    World world = MakeWorldOfClosures();
    world.Step(1);
    for (const uint32_t step : steps) {
      world.Step(step);
      world.Check();
    }
    world.CheckRestored();
  }));
}

TEST(NativeEngineProperties, ClosesNodesAsTheModelOverLongHistories) {
  for (uint32_t seed = 1; seed <= 5; ++seed) {
    Random random(seed);
    World world = MakeWorldOfClosures();
    for (int i = 0; i < 100; ++i) world.Step(static_cast<uint32_t>(random()));
    world.Check();
    world.CheckRestored();
  }
}

}  // namespace
}  // namespace fluxqueue::graph
