// The schema `queue` in memory.
#pragma once

#include <map>
#include <string>
#include <tuple>
#include <utility>

#include "libs/queue_core/rows.h"
#include "tests/simulation/sim_database.h"

namespace fluxqueue::simulation {

struct QueueTables {
  explicit QueueTables(Undo& undo)
      : pools(undo),
        queues(undo),
        jobs(undo),
        events(undo),
        promises(undo),
        usage(undo),
        cycles(undo),
        commands(undo),
        lack_nodes(undo),
        attempts(undo) {}

  struct Pool {
    int partition = 0;
    std::string row;
  };
  struct Job {
    std::string pool;
    queue_core::JobChange job;
    bool live() const { return !model::IsTerminal(job.state); }
    bool holds() const {
      using enum model::JobState;
      return job.state == kAllocated || job.state == kBound || job.state == kRunning ||
             job.state == kStopping;
    }
  };
  struct Cycle {
    std::string requested;
    bool answered = false;
  };
  struct Command {
    std::string job_id;
    Millis accepted{0};
  };
  Table<std::string, Pool> pools;
  Table<std::pair<std::string, std::string>, std::string> queues;  // pool, queue
  Table<std::string, Job> jobs;
  Table<std::pair<std::string, uint64_t>, queue_core::JobEvent> events;
  Table<std::pair<std::string, uint64_t>, queue_core::PromiseRecord> promises;
  Table<std::tuple<std::string, std::string, std::string>, std::string> usage;
  Table<std::pair<std::string, uint64_t>, Cycle> cycles;
  Table<std::string, Command> commands;
  Table<std::string, std::string> lack_nodes;
  Table<std::tuple<int64_t, std::string, uint32_t>, queue_core::AttemptRecord> attempts;
};

}  // namespace fluxqueue::simulation
