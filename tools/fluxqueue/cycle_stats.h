// What the scheduling cycles of a pool were, from its log: how long they took, how deep they
// looked, what they started and how much of that was backfilled. As Slurm's sdiag tells it. Pure.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "fluxqueue/events/v1/events.pb.h"

#include "libs/base/clock.h"
#include "libs/verify/event_line.h"

namespace fluxqueue::cli {

class CycleStats {
 public:
  // The records of one pool, in the order of its log.
  void Take(const verify::EventLine& line);

  bool empty() const { return times_ms_.empty(); }
  std::string Text(const std::string& pool, bool colour) const;
  nlohmann::json Json() const;

 private:
  // Of one queue; sums over the cycles. Jobs that hold slots and would have more are left out.
  struct OfQueue {
    uint64_t candidates = 0;
    uint64_t tried = 0;
    uint64_t started = 0;
    // Of the started: behind one of the queue that could not start.
    uint64_t backfilled = 0;
    uint64_t reserved = 0;
    uint64_t busy = 0;
    uint64_t unsatisfiable = 0;
    uint64_t stops = 0;  // of others, asked for so that it may start
  };
  struct Summary {
    double mean = 0;
    int64_t median = 0;
    int64_t p95 = 0;
    int64_t most = 0;
  };

  void TakeAnswer(const events::v1::CycleAnswered& answer, Millis now);
  static Summary SummaryOf(std::vector<int64_t> values);
  OfQueue Sum() const;
  double CyclesAMinute() const;

  events::v1::CycleRequested asked_;  // in flight, if asked_at_ is not 0
  Millis asked_at_{0};
  Millis first_{0};
  Millis last_{0};
  std::vector<int64_t> times_ms_;  // from the request to the answer
  std::vector<int64_t> depths_;    // candidates
  uint64_t asked_again_ = 0;
  uint64_t submitted_ = 0;
  uint64_t ended_ = 0;
  std::map<std::string, OfQueue> queues_;
};

}  // namespace fluxqueue::cli
