#include "tests/simulation/strike.h"

#include <fmt/format.h>

namespace fluxqueue::simulation {
namespace {

// The last fault begins within the first minute, and lasts 12 seconds at most (fault.h).
constexpr Millis kCalm{80'000};
constexpr Millis kPatience{900'000};

std::vector<std::string> NamesOf(const Places& places) {
  std::vector<std::string> names;
  for (const auto& place : places) names.push_back(place->owner().name);
  return names;
}

class Striker {
 public:
  Striker(World& world, Places& places, const StrikeOthers& others)
      : world_(world), scheduler_(world.scheduler()), places_(places), others_(others) {}

  void Strike(const Fault& fault) {
    ++world_.counts()["fault: " + std::string(Name(fault.kind))];
    if (world_.tells()) world_.Say("fault: " + Describe(fault, NamesOf(places_)));
    switch (fault.kind) {
      case Fault::Kind::kEnd:
        return EndPlace(fault);
      case Fault::Kind::kFreeze:
      case Fault::Kind::kFreezeInCommit:
        return Freeze(fault);
      case Fault::Kind::kBrokersAway:
        world_.bus().faults().away_until = scheduler_.now() + fault.time;
        return;
      case Fault::Kind::kDatabaseAway:
        world_.database().faults().away_until = scheduler_.now() + fault.time;
        return;
      case Fault::Kind::kProducersFail:
        return FailProducers(fault);
      case Fault::Kind::kCommitsFail:
        return FailCommits(fault);
      case Fault::Kind::kFenced:
        return world_.bus().Fence();
      case Fault::Kind::kNodeAway:
      case Fault::Kind::kNodeSilent:
      case Fault::Kind::kClusterAway:
      case Fault::Kind::kCallsFail:
      case Fault::Kind::kWatchesCut:
      case Fault::Kind::kWatchesExpire:
      case Fault::Kind::kWatchesLag:
      case Fault::Kind::kClusterBack:
        return others_(fault);
      case Fault::Kind::kCommitsLost:
        return world_.LoseCommits(fault.commits);
    }
  }

 private:
  void EndPlace(const Fault& fault) {
    Place& place = *places_[fault.place];
    place.End();
    scheduler_.After(fault.time, [&place] { place.Start(); });
  }

  void Freeze(const Fault& fault) {
    Place& place = *places_[fault.place];
    if (!place.lives()) return;
    if (fault.kind == Fault::Kind::kFreeze) {
      scheduler_.Freeze(place.owner(), fault.time);
    } else {
      place.owner().freeze_in_commit = fault.time;
    }
  }

  void FailProducers(const Fault& fault) {
    SimBus::Faults& faults = world_.bus().faults();
    faults.fail_one_in = 5;
    faults.latest_append = Millis(2000);
    faults.latest_answer = Millis(4000);
    scheduler_.After(fault.time, [&faults] {
      const SimBus::Faults none;
      faults.fail_one_in = none.fail_one_in;
      faults.latest_append = none.latest_append;
      faults.latest_answer = none.latest_answer;
    });
  }

  void FailCommits(const Fault& fault) {
    Database::Faults& faults = world_.database().faults();
    faults.fail_one_in = 3;
    faults.unsaid_one_in = 3;
    scheduler_.After(fault.time, [&faults] { faults.fail_one_in = faults.unsaid_one_in = 0; });
  }

  World& world_;
  Scheduler& scheduler_;
  Places& places_;
  const StrikeOthers& others_;
};

std::string Describe(World& world, const Places& places) {
  std::string text;
  for (const auto& place : places) text += place->Describe();
  return text + world.bus().Describe();
}

}  // namespace

void Strike(World& world,
            Places& places,
            const std::vector<Fault>& faults,
            const StrikeOthers& others) {
  for (const Fault& fault : faults) {
    world.scheduler().After(fault.at, [&world, &places, others, fault] {
      Striker(world, places, others).Strike(fault);
    });
  }
}

void RunToEnd(World& world, Places& places, const Ending& ending) {
  Scheduler& scheduler = world.scheduler();
  const TimePoint calm = scheduler.now() + kCalm;
  bool called = false;
  while (world.error().empty() && (scheduler.now() < calm || !ending.done())) {
    if (scheduler.now() > calm && !called) {
      called = true;
      for (auto& place : places) place->Start();
    }
    if (scheduler.now() > calm + kPatience) {
      world.Fail(
          fmt::format("does not end: {}; {}", ending.what_is_left(), Describe(world, places)));
    }
    if (!scheduler.Step()) world.Fail("nothing happens any more");
  }
  for (auto& place : places) place->End();
}

}  // namespace fluxqueue::simulation
