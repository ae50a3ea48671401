// A run: faults strike at their times, then all is well, and what was begun must come to its end.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "tests/simulation/fault.h"
#include "tests/simulation/place.h"
#include "tests/simulation/world.h"

namespace fluxqueue::simulation {

// What only some worlds have: it happens to nodes, or to the cluster.
using StrikeOthers = std::function<void(const Fault& fault)>;

// At its time each of them will happen.
void Strike(World& world,
            Places& places,
            const std::vector<Fault>& faults,
            const StrikeOthers& others);

struct Ending {
  std::function<bool()> done;
  std::function<std::string()> what_is_left;
};
// Until all is done and no fault can strike any more, or something failed.
void RunToEnd(World& world, Places& places, const Ending& ending);

}  // namespace fluxqueue::simulation
