// The matcher's state as rows, ready for the tables of schema `matcher`: bytes are what the column
// holds. Plain values.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "libs/graph/types.h"

namespace fluxqueue::matcher_core {

using graph::AllocationKey;

struct AllocationRow {
  AllocationKey key;
  std::string placement;  // events.v1.Placement
  uint64_t placement_hash = 0;
  bool released = false;

  friend bool operator==(const AllocationRow&, const AllocationRow&) = default;
};

struct NodeRow {
  std::string name;
  std::string uid;
  uint64_t ordinal = 0;
  std::string node;  // events.v1.Node, as last said
  bool present = false;

  friend bool operator==(const NodeRow&, const NodeRow&) = default;
};

struct SpecRow {
  std::string job_id;
  uint32_t part = 0;
  uint32_t revision = 0;
  uint32_t slots = 0;
  std::string jobspec;  // JSON, as submitted, also when it is bad

  friend bool operator==(const SpecRow&, const SpecRow&) = default;
};

struct AnswerRow {
  uint64_t cycle_id = 0;
  std::string answer;  // events.v1.CycleAnswered

  friend bool operator==(const AnswerRow&, const AnswerRow&) = default;
};

struct ReservationRow {
  AllocationKey key;
  std::string placement;  // events.v1.Placement; it starts when the job is promised to

  friend bool operator==(const ReservationRow&, const ReservationRow&) = default;
};

// A pool's whole state, for Restore. The order within a vector does not matter.
struct Rows {
  std::vector<AllocationRow> allocations;  // rows already released are skipped
  std::vector<NodeRow> nodes;              // also those not present
  std::vector<SpecRow> specs;
  std::vector<ReservationRow> reservations;
  std::vector<AnswerRow> answers;       // the last is enough
  std::optional<std::string> pool;      // matcher.v1.PoolState; absent for a new pool
  std::optional<std::string> forecast;  // matcher.v1.Forecast
};

// What the messages since the last Commit or Rollback changed, to be applied from top to bottom.
// Every vector is sorted by key and names a key at most once.
struct Changes {
  std::vector<AllocationKey> released;                          // UPDATE … SET released = true
  std::vector<AllocationRow> allocations;                       // upserts
  std::vector<std::string> nodes_dropped;                       // names
  std::vector<NodeRow> nodes;                                   // upserts
  std::vector<std::pair<std::string, uint32_t>> specs_dropped;  // (job_id, part)
  std::vector<SpecRow> specs;                                   // upserts
  std::vector<AllocationKey> reservations_dropped;
  std::vector<ReservationRow> reservations;  // upserts
  std::vector<AnswerRow> answers;            // upserts
  // Answers up to and with this cycle need not be kept any longer; 0: keep all.
  uint64_t answers_dropped_through = 0;
  std::optional<std::string> pool;      // upsert
  std::optional<std::string> forecast;  // of a pool that has a row by now

  bool empty() const {
    return released.empty() && allocations.empty() && nodes_dropped.empty() && nodes.empty() &&
           specs_dropped.empty() && specs.empty() && reservations_dropped.empty() &&
           reservations.empty() && answers.empty() && !pool.has_value() && !forecast.has_value();
  }
};

}  // namespace fluxqueue::matcher_core
