#include "tests/simulation/place.h"

#include <fmt/format.h>

namespace fluxqueue::simulation {

delivery::LoopOptions OptionsOf(World& world, Owner& owner, const std::string& service) {
  delivery::LoopOptions options;
  options.service = service;
  options.instance = owner.name;
  options.topics = {"pool", "jobs", kDeadTopic};
  options.postgres.schema = service;
  options.idle = Millis(1000);
  options.bus = world.bus().For(owner);
  options.stores = world.database().For(owner);
  options.seed = world.scheduler().chance().Next();
  // Some loops have a machine to themselves, others one that is full.
  options.busy = [busy = options.seed % 2 == 0 ? 0.0 : 1.0] { return busy; };
  return options;
}

namespace {

void Add(Counts& counts, const delivery::Stats& stats) {
  counts["commits"] += stats.commits;
  counts["rollbacks"] += stats.rollbacks;
  counts["doubts"] += stats.doubts;
  counts["messages handled"] += stats.received;
  counts["duplicates"] += stats.duplicates;
  counts["gaps"] += stats.gaps;
  counts["partitions gained"] += stats.gained;
  counts["partitions lost"] += stats.lost;
  counts["producer restarts"] += stats.producer_restarts;
  counts["dead letters"] += stats.dead_letters;
}

}  // namespace

PartitionProcess::PartitionProcess(World& world,
                                   Owner& owner,
                                   const std::string& service,
                                   const std::string& topic,
                                   const Make& make)
    : clock_(world.scheduler()),
      lacking_(world),
      handler_(world, service, make(clock_)),
      loop_({OptionsOf(world, owner, service), topic}, handler_, clock_, &lacking_) {}

ShardProcess::ShardProcess(World& world, Owner& owner, const std::string& service, const Make& make)
    : clock_(world.scheduler()),
      lacking_(world),
      handler_(make(clock_)),
      loop_({OptionsOf(world, owner, service), "watch"}, *handler_, clock_, &lacking_) {}

Place::Place(World& world, std::string name, Make make) : world_(world), make_(std::move(make)) {
  owner_.name = std::move(name);
}

void Place::Start() {
  if (lives()) return;
  world_.Say(owner_.name + " starts");
  owner_.ended = false;
  process_ = make_(owner_);
  world_.scheduler().Spawn(owner_, owner_.name, [this] {
    const absl::Status status = process_->Run();
    if (!status.ok()) world_.Fail(fmt::format("{} ended: {}", owner_.name, status.ToString()));
  });
}

void Place::End() {
  if (!lives()) return;
  world_.Say(owner_.name + " ends");
  Add(world_.counts(), process_->stats());
  world_.scheduler().End(owner_);
  process_.reset();
}

std::string Place::Describe() const {
  if (!lives()) return owner_.name + " is not there; ";
  const delivery::Stats& stats = process_->stats();
  return fmt::format("{}: holds {}, has handled {}, {} unpublished, {}; ",
                     owner_.name,
                     stats.held.load(),
                     stats.received.load(),
                     stats.unpublished.load(),
                     process_->Ready().ToString());
}

Places StartPlaces(World& world, const std::vector<std::string>& names, const Place::Make& make) {
  Places places;
  for (const std::string& name : names) {
    places.push_back(std::make_unique<Place>(world, name, make));
    places.back()->Start();
  }
  return places;
}

}  // namespace fluxqueue::simulation
