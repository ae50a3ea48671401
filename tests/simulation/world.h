// The world of one run: time, the log and the database, which safety is missing, what has happened.
// It looks at each record that is appended:
//   - who appended it has committed it before (a message never says what did not happen)
//   - a number of a stream is one message's: what comes again is the same
#pragma once

#include <map>
#include <set>
#include <string>

#include "libs/delivery/faults.h"
#include "tests/simulation/scheduler.h"
#include "tests/simulation/sim_bus.h"
#include "tests/simulation/sim_database.h"
#include "tests/simulation/trial.h"

namespace fluxqueue::simulation {

constexpr int kPartitions = 12;
inline constexpr const char* kDeadTopic = "dead";

class World {
 public:
  explicit World(const Trial& trial);
  virtual ~World() = default;
  World(const World&) = delete;
  World& operator=(const World&) = delete;

  Scheduler& scheduler() { return scheduler_; }
  SimBus& bus() { return bus_; }
  Database& database() { return database_; }
  bool lacks(Without safety) const { return without_ == safety; }
  const std::string& error() const { return error_; }
  Counts& counts() { return counts_; }

  // The first is kept.
  void Fail(std::string what);
  bool tells() const { return static_cast<bool>(tell_); }
  void Say(const std::string& line) const;
  // A message had an effect. Fails where it had one before.
  void Handled(const std::string& message);
  void LoseCommits(size_t commits);

  Outcome Finish();

 protected:
  // The database has gone back: what was seen of it does not count any more.
  virtual void Forget() {}

 private:
  void Appended(const std::string& topic, const kafka::Message& message);
  bool IsCommitted(const std::string& topic,
                   int partition,
                   const std::string& stream,
                   uint64_t sequence);

  Scheduler scheduler_;
  SimBus bus_;
  Database database_;
  const Without without_;
  const Tell tell_;
  std::string error_;
  Counts counts_;
  uint64_t hash_ = kHashBegin;
  std::map<std::string, std::string> values_;  // by topic, partition, stream and sequence
  std::set<std::string> handled_;
  bool went_back_ = false;
};

// Takes out what the loops can do without.
class Lacking final : public delivery::FaultInjector {
 public:
  explicit Lacking(const World& world) : world_(world) {}
  bool Lacks(delivery::Safety safety) const override;

 private:
  const World& world_;
};

}  // namespace fluxqueue::simulation
