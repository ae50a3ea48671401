// The engine's property test on Fluxion's library: in this process, and in another that is killed
// again and again. Amounts are whole granules, so that the model of the native engine is the model
// of this one.
#include <csignal>
#include <fstream>
#include <memory>
#include <string>

#include <gtest/gtest.h>
#include <unistd.h>

#include "libs/base/status_macros.h"
#include "libs/fluxion/child_context.h"
#include "libs/fluxion/placer.h"
#include "libs/graph/engine_world.h"

namespace fluxqueue::fluxion {
namespace {

using graph::Random;
using graph::World;

constexpr Granules kGranules = {.cpu = 500, .bytes = 1};

World MakeWorld(PlacerOptions options) {
  const graph::MakePlacer make = [options = std::move(options)](graph::NodeTable* table,
                                                                graph::ExpectedWork*) {
    return std::make_unique<FluxionPlacer>(table, options);
  };
  return {make,
          {.policies = {"lonode", "hinode"}, .gpu_parts = false, .reserves = true, .closes = true}};
}

PlacerOptions InThisProcess() {
  const auto library = Library::Open(FLUXQUEUE_REAPI_LIBRARY);
  RC_ASSERT(library.ok());
  PlacerOptions options;
  options.open = [library = *library](const std::string& jgf, const Context::Settings& settings) {
    return MakeContext(library, jgf, settings);
  };
  options.granules = kGranules;
  // Nothing is lost here.
  options.lost = [](const absl::Status& why) { RC_FAIL(Message(why)); };
  options.failed = options.lost;
  return options;
}

TEST(FluxionPlacerProperties, EqualsTheModel) {
  const PlacerOptions options = InThisProcess();
  EXPECT_TRUE(rc::check("random histories", [&options](const std::vector<uint32_t>& steps) {
    World world = MakeWorld(options);
    world.Step(0);
    for (const uint32_t step : steps) {
      world.Step(step);
      world.Check();
    }
    world.CheckRestored();
  }));
}

TEST(FluxionPlacerProperties, EqualsTheModelOverLongHistories) {
  const PlacerOptions options = InThisProcess();
  for (uint32_t seed = 1; seed <= 5; ++seed) {
    Random random(seed);
    World world = MakeWorld(options);
    for (int i = 0; i < 200; ++i) world.Step(static_cast<uint32_t>(random()));
    world.Check();
    world.CheckRestored();
  }
}

TEST(FluxionPlacerProperties, EqualsTheModelThoughItsProcessIsKilledAHundredTimes) {
  int lost = 0;
  PlacerOptions options;
  options.open = [](const std::string& jgf, const Context::Settings& settings) {
    return MakeChildContext(
        {.host = FLUXQUEUE_FLUXION_HOST, .library = FLUXQUEUE_REAPI_LIBRARY}, jgf, settings);
  };
  options.granules = kGranules;
  options.lost = [&lost](const absl::Status& why) {
    EXPECT_TRUE(absl::IsUnavailable(why)) << why;
    ++lost;
  };
  options.failed = [](const absl::Status& why) { FAIL() << why; };
  for (uint32_t seed = 1; lost < 100; ++seed) {
    Random random(seed);
    World world = MakeWorld(options);
    for (int i = 0; i < 100; ++i) {
      std::ifstream children("/proc/self/task/" + std::to_string(getpid()) + "/children");
      pid_t child = 0;
      while (random() % 4 == 0 && children >> child) kill(child, SIGKILL);
      world.Step(static_cast<uint32_t>(random()));
    }
    world.Check();
    world.CheckRestored();
  }
}

}  // namespace
}  // namespace fluxqueue::fluxion
