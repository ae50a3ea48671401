#include "libs/scheduling/strategy.h"

#include <algorithm>
#include <array>
#include <limits>

#include "libs/scheduling/adaptive.h"

namespace fluxqueue::scheduling {
namespace {

constexpr uint32_t kAll = std::numeric_limits<uint32_t>::max();

constexpr std::array<Strategy, 5> kStrategies = {{
    {.name = "fcfs", .stops_at_first_blocked = true},
    {.name = "easy", .most_reservations = 1},
    {.name = "conservative", .most_reservations = kAll, .takes_depth = true},
    {.name = "hybrid", .most_reservations = kDefaultReservationDepth, .takes_depth = true},
    {.name = "adaptive", .most_reservations = kAdaptiveReservations, .is_adaptive = true},
}};

}  // namespace

const Strategy* FindStrategy(std::string_view name) {
  if (name.empty()) return kStrategies.data();
  const auto* found =
      std::find_if(kStrategies.begin(), kStrategies.end(), [name](const Strategy& strategy) {
        return strategy.name == name;
      });
  return found == kStrategies.end() ? nullptr : found;
}

std::string StrategyNames() {
  std::string names;
  for (const Strategy& strategy : kStrategies) {
    if (!names.empty()) names += ", ";
    names += strategy.name;
  }
  return names;
}

}  // namespace fluxqueue::scheduling
