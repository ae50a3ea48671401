// The real queue and matcher (loops, handlers, cores), two of each, in a world that does its worst.
#include <memory>
#include <string>
#include <vector>

#include "tests/simulation/driver.h"
#include "tests/simulation/place.h"
#include "tests/simulation/pool_processes.h"
#include "tests/simulation/pool_standins.h"
#include "tests/simulation/pool_world.h"
#include "tests/simulation/strike.h"

namespace fluxqueue::simulation {
namespace {

constexpr uint64_t kPlanSalt = 0x5eed;

const std::vector<std::string>& PlaceNames() {
  static const std::vector<std::string> names = {
      "queue-0", "queue-1", "matcher-0", "matcher-1", "starter-0", "teller-0"};
  return names;
}

std::unique_ptr<Process> MakeProcess(PoolWorld& world, Owner& owner) {
  if (owner.name.starts_with("queue")) {
    return std::make_unique<PartitionProcess>(world, owner, "queue", "pool", MakeQueue);
  }
  if (owner.name.starts_with("matcher")) {
    return std::make_unique<PartitionProcess>(world, owner, "matcher", "pool", MakeMatcher);
  }
  if (owner.name.starts_with("starter")) {
    return std::make_unique<PartitionProcess>(world, owner, "binder", "jobs", [&](const Clock&) {
      return std::make_shared<Starter>(world);
    });
  }
  return std::make_unique<ShardProcess>(world, owner, "world", [&world](const Clock& clock) {
    return std::make_shared<Teller>(world, clock);
  });
}

// The jobs are drawn first, and are the same without faults.
std::vector<Fault> Plan(uint64_t seed) {
  Chance chance(seed ^ kPlanSalt);
  PoolWorld::DrawJobs(chance);
  return DrawFaults(chance, PlaceNames().size(), PoolWorld::kNodes);
}

Outcome Run(const Trial& trial) {
  Chance chance(trial.seed ^ kPlanSalt);
  PoolWorld world(trial, PoolWorld::DrawJobs(chance));
  Places places = StartPlaces(
      world, PlaceNames(), [&world](Owner& owner) { return MakeProcess(world, owner); });
  Strike(world, places, trial.faults, [&](const Fault& fault) { world.StrikeNode(fault); });
  RunToEnd(world,
           places,
           {.done = [&world] { return world.Done(); },
            .what_is_left = [&world] { return world.WhatIsLeft(); }});
  return world.Finish();
}

Subject PoolSubject() {
  Subject subject;
  subject.program = "pool";
  subject.seeds = 10'000;
  subject.mutation_seeds = 200;
  subject.places = PlaceNames();
  subject.commits_may_be_lost = true;
  subject.plan = Plan;
  subject.run = Run;
  for (const char* change :
       {"Running to Succeeded", "Running to Stopping", "Stopping to Pending"}) {
    subject.reached.emplace_back(change);
  }
  return subject;
}

}  // namespace
}  // namespace fluxqueue::simulation

int main(int argc, char** argv) {
  return fluxqueue::simulation::Main(fluxqueue::simulation::PoolSubject(), argc, argv);
}
