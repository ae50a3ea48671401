// The schema `matcher` in memory.
#pragma once

#include <string>
#include <tuple>
#include <utility>

#include "libs/matcher_core/rows.h"
#include "tests/simulation/sim_database.h"

namespace fluxqueue::simulation {

struct MatcherTables {
  explicit MatcherTables(Undo& undo)
      : pools(undo),
        allocations(undo),
        nodes(undo),
        specs(undo),
        reservations(undo),
        answers(undo) {}

  struct Pool {
    int partition = 0;
    std::string row;
    std::string forecast;
  };
  struct Allocation {
    std::string pool;
    matcher_core::AllocationRow row;
    Millis released_at{0};
  };
  struct Spec {
    std::string pool;
    matcher_core::SpecRow row;
  };
  struct Reservation {
    std::string pool;
    matcher_core::ReservationRow row;
  };
  using Key = std::tuple<std::string, uint32_t, uint32_t>;  // job, attempt, part
  static Key KeyOf(const matcher_core::AllocationKey& key) {
    return {key.job_id, key.attempt, key.part};
  }

  Table<std::string, Pool> pools;
  Table<Key, Allocation> allocations;
  Table<std::pair<std::string, std::string>, matcher_core::NodeRow> nodes;  // pool, name
  Table<std::pair<std::string, uint32_t>, Spec> specs;                      // job, part
  Table<Key, Reservation> reservations;
  Table<std::pair<std::string, uint64_t>, std::string> answers;  // pool, cycle
};

}  // namespace fluxqueue::simulation
