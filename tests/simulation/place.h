// Processes, and the places where they are, again and again.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "libs/delivery/handler.h"
#include "libs/delivery/partition_loop.h"
#include "libs/delivery/shard_loop.h"
#include "libs/delivery/stats.h"
#include "tests/simulation/watched.h"
#include "tests/simulation/world.h"

namespace fluxqueue::simulation {

// One life: it begins with what the tables have.
class Process {
 public:
  virtual ~Process() = default;
  virtual absl::Status Run() = 0;
  virtual absl::Status Ready() const = 0;
  virtual const delivery::Stats& stats() const = 0;
};

delivery::LoopOptions OptionsOf(World& world, Owner& owner, const std::string& service);

class PartitionProcess final : public Process {
 public:
  // The handler is the process': it is made with its clock.
  using Make = std::function<std::shared_ptr<delivery::PartitionHandler>(const Clock&)>;

  PartitionProcess(World& world,
                   Owner& owner,
                   const std::string& service,
                   const std::string& topic,
                   const Make& make);
  absl::Status Run() override { return loop_.Run(stop_.get_token()); }
  absl::Status Ready() const override { return loop_.Ready(); }
  const delivery::Stats& stats() const override { return loop_.stats(); }

 private:
  SimClock clock_;
  Lacking lacking_;
  std::stop_source stop_;
  Watched handler_;
  delivery::PartitionLoop loop_;
};

class ShardProcess final : public Process {
 public:
  using Make = std::function<std::shared_ptr<delivery::ShardHandler>(const Clock&)>;

  ShardProcess(World& world, Owner& owner, const std::string& service, const Make& make);
  absl::Status Run() override { return loop_.Run(stop_.get_token()); }
  absl::Status Ready() const override { return loop_.Ready(); }
  const delivery::Stats& stats() const override { return loop_.stats(); }

 private:
  SimClock clock_;
  Lacking lacking_;
  std::stop_source stop_;
  std::shared_ptr<delivery::ShardHandler> handler_;
  delivery::ShardLoop loop_;
};

class Place {
 public:
  using Make = std::function<std::unique_ptr<Process>(Owner&)>;

  Place(World& world, std::string name, Make make);
  ~Place() { End(); }
  Place(const Place&) = delete;
  Place& operator=(const Place&) = delete;

  Owner& owner() { return owner_; }
  bool lives() const { return process_ != nullptr; }
  // Does nothing where a process lives.
  void Start();
  // Where it stands: nothing is drained.
  void End();
  std::string Describe() const;

 private:
  World& world_;
  const Make make_;
  Owner owner_;
  std::unique_ptr<Process> process_;
};

using Places = std::vector<std::unique_ptr<Place>>;

// A process begins in each. `make` goes by the owner's name.
Places StartPlaces(World& world, const std::vector<std::string>& names, const Place::Make& make);

}  // namespace fluxqueue::simulation
