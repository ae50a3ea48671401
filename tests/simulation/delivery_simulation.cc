// The delivery loops, two feeders and two counters, in a world that does its worst.
#include <memory>
#include <string>
#include <vector>

#include "tests/simulation/delivery_world.h"
#include "tests/simulation/driver.h"
#include "tests/simulation/place.h"
#include "tests/simulation/strike.h"

namespace fluxqueue::simulation {
namespace {

const std::vector<std::string>& PlaceNames() {
  static const std::vector<std::string> names = {"feeder-0", "feeder-1", "counter-0", "counter-1"};
  return names;
}

std::unique_ptr<Process> MakeProcess(DeliveryWorld& world, Owner& owner) {
  if (owner.name.starts_with("feeder")) {
    return std::make_unique<ShardProcess>(world, owner, "feeder", [&world](const Clock& clock) {
      return std::make_shared<Feeder>(world, clock);
    });
  }
  return std::make_unique<PartitionProcess>(world, owner, "counter", "pool", [&](const Clock&) {
    return std::make_shared<Counter>(world);
  });
}

std::vector<Fault> Plan(uint64_t seed) {
  Chance chance(seed ^ 0x5eed);
  return DrawFaults(chance, PlaceNames().size(), /*nodes=*/0);
}

Outcome Run(const Trial& trial) {
  DeliveryWorld world(trial);
  Places places = StartPlaces(
      world, PlaceNames(), [&world](Owner& owner) { return MakeProcess(world, owner); });
  Strike(world, places, trial.faults, /*others=*/{});
  RunToEnd(world,
           places,
           {.done = [&world] { return world.Done(); },
            .what_is_left = [&world] { return world.WhatIsLeft(); }});
  world.CheckNumbers();
  return world.Finish();
}

Subject DeliverySubject() {
  Subject subject;
  subject.program = "delivery";
  subject.seeds = 2000;
  subject.mutation_seeds = 300;
  subject.places = PlaceNames();
  subject.plan = Plan;
  subject.run = Run;
  return subject;
}

}  // namespace
}  // namespace fluxqueue::simulation

int main(int argc, char** argv) {
  return fluxqueue::simulation::Main(fluxqueue::simulation::DeliverySubject(), argc, argv);
}
