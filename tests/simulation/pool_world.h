// A pool of nodes and the jobs that are submitted to it: what is real, whatever the services think
// of it. And what must hold of the services' tables, whenever they change:
//   - a node holds no more than it has
//   - nothing is released that runs, nothing runs twice
//   - a job has versions 1, 2, 3 …, and does not leave the state that it ended in
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <string>

#include "libs/model/job_state.h"
#include "tests/simulation/matcher_tables.h"
#include "tests/simulation/queue_tables.h"
#include "tests/simulation/world.h"

namespace fluxqueue::simulation {

class PoolWorld : public World {
 public:
  static constexpr int kNodes = 5;
  static constexpr int kJobs = 20;
  static constexpr int kPoolPartition = 3;
  static constexpr int64_t kCpu = 4000;  // of a node

  struct Job {
    uint32_t slots = 1;
    int64_t cpu = 1000;  // of a slot
    Millis run{0};
    Millis submit_at{0};
    bool submitted = false;
    bool ended = false;
    uint32_t attempt = 0;  // that runs; 0: none
  };
  struct Node {
    int generation = 0;
    bool away = false;
  };

  static std::map<std::string, Job> DrawJobs(Chance& chance);

  // They are submitted at their times.
  PoolWorld(const Trial& trial, std::map<std::string, Job> jobs);

  const std::map<std::string, Job>& jobs() const { return jobs_; }
  const Node& node(int number) const { return nodes_[static_cast<size_t>(number)]; }
  // REQUIRES: it is of kNodeAway.
  void StrikeNode(const Fault& fault);
  // 0: it is stopped.
  void StartJob(const std::string& id, uint32_t attempt);

  virtual bool Done();
  virtual std::string WhatIsLeft();

 protected:
  void Forget() override { states_.clear(); }
  Job& JobOf(const std::string& id) { return jobs_.at(id); }
  virtual void Submit(const std::string& id);
  // Of what was submitted, and is this job of the queue.
  virtual const std::string& NameOf(const std::string& id) { return id; }
  // It has ended, and the queue knows that.
  virtual bool IsOver(const std::string& id);
  // Something of that attempt runs.
  virtual bool Runs(const std::string& id, uint32_t attempt);

  virtual void TakeNode(int number, bool away);
  // After each commit.
  virtual void Check();
  // The queue has it in another state now.
  virtual void Changed(const std::string& id, model::JobState state) {
    static_cast<void>(id), static_cast<void>(state);
  }

 private:
  void CheckStates();
  void CheckVersions();
  void CheckRoom();
  void CheckReleased(const MatcherTables::Key& key);

  std::map<std::string, Job> jobs_;
  std::array<Node, kNodes> nodes_;
  std::map<std::string, model::JobState> states_;
};

}  // namespace fluxqueue::simulation
