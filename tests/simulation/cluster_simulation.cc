// All services that follow jobs, two of each, in a cluster that does its worst.
#include <memory>
#include <string>
#include <vector>

#include "tests/simulation/cluster_processes.h"
#include "tests/simulation/cluster_world.h"
#include "tests/simulation/driver.h"
#include "tests/simulation/place.h"
#include "tests/simulation/pool_processes.h"
#include "tests/simulation/strike.h"

namespace fluxqueue::simulation {
namespace {

constexpr uint64_t kPlanSalt = 0x5eed;

const std::vector<std::string>& PlaceNames() {
  static const std::vector<std::string> names = {"queue-0",
                                                 "queue-1",
                                                 "matcher-0",
                                                 "matcher-1",
                                                 "binder-0",
                                                 "binder-1",
                                                 "cleanup-0",
                                                 "cleanup-1",
                                                 "admission-0",
                                                 "admission-1"};
  return names;
}

std::unique_ptr<Process> MakeProcess(ClusterWorld& world, Owner& owner) {
  if (owner.name.starts_with("queue")) {
    return std::make_unique<PartitionProcess>(world, owner, "queue", "pool", MakeQueue);
  }
  if (owner.name.starts_with("matcher")) {
    return std::make_unique<PartitionProcess>(world, owner, "matcher", "pool", MakeMatcher);
  }
  if (owner.name.starts_with("binder")) return MakeBinder(world, owner);
  if (owner.name.starts_with("cleanup")) return MakeCleanup(world, owner);
  return MakeAdmission(world, owner);
}

// The jobs are drawn first, and are the same without faults.
std::vector<Fault> Plan(uint64_t seed) {
  Chance chance(seed ^ kPlanSalt);
  PoolWorld::DrawJobs(chance);
  return DrawFaults(chance, PlaceNames().size(), PoolWorld::kNodes, /*cluster=*/true);
}

Outcome Run(const Trial& trial) {
  Chance chance(trial.seed ^ kPlanSalt);
  ClusterWorld world(trial, PoolWorld::DrawJobs(chance));
  Places places = StartPlaces(
      world, PlaceNames(), [&world](Owner& owner) { return MakeProcess(world, owner); });
  Strike(world, places, trial.faults, [&](const Fault& fault) { world.StrikeCluster(fault); });
  RunToEnd(world,
           places,
           {.done = [&world] { return world.Done(); },
            .what_is_left = [&world] { return world.WhatIsLeft(); }});
  return world.Finish();
}

Subject ClusterSubject() {
  Subject subject;
  subject.program = "cluster";
  subject.seeds = 1'000;
  subject.mutation_seeds = 100;
  subject.places = PlaceNames();
  subject.safeties = {
      Without::kRow, Without::kSweep, Without::kVersion, Without::kUid, Without::kQuarantine};
  subject.cluster_may_go_back = true;
  subject.plan = Plan;
  subject.run = Run;
  for (const char* change : {"bound pods of gangs deleted by users",
                             "dead letters",
                             "gangs made whole again by users",
                             "gangs that run deleted by users",
                             "gangs that start",
                             "gangs that start from their gates",
                             "gangs that start once made whole again",
                             "gangs that wait deleted by users",
                             "gangs whose last pod comes late",
                             "Indexed Jobs of several pods made",
                             "Jobs of several pods made",
                             "pods bound",
                             "pods bound by kube-scheduler",
                             "Jobs deleted by users",
                             "pods of Jobs deleted by users",
                             "bare pods deleted by users",
                             "Running to Succeeded",
                             "Running to Stopping",
                             "Stopping to Pending",
                             "Stopping to Failed",
                             "waiting pods of gangs deleted by users"}) {
    subject.reached.emplace_back(change);
  }
  return subject;
}

}  // namespace
}  // namespace fluxqueue::simulation

int main(int argc, char** argv) {
  return fluxqueue::simulation::Main(fluxqueue::simulation::ClusterSubject(), argc, argv);
}
