// Why a job waits, for people: sentences made of what the core knows, when somebody asks.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "fluxqueue/events/v1/events.pb.h"

namespace fluxqueue::queue_core {

// Of those ahead of a job, that an explanation names.
inline constexpr size_t kMostAhead = 5;

// What a place is decided by; of two that differ in one, those before it being equal, the one with
// the better value goes first: the higher priority, the smaller share, the earlier submission.
struct PlaceFactor {
  std::string factor;  // "queue priority"
  std::string of;      // the queue, the user or the job
  std::string value;
};

struct Explanation {
  // In the line of its queue, from 1; 0: it is not in line.
  size_t position = 0;
  size_t in_line = 0;
  // The first ones of the line that stand ahead of it, as they are.
  std::vector<events::v1::JobFact> ahead;
  // The most important first.
  std::vector<std::string> why;
  // 0: nothing is promised.
  int64_t expected_start_ms = 0;
  std::string assumption;
  // What would let it start sooner.
  std::vector<std::string> sooner;
  // In the order in which they decide. None: it is not in line.
  std::vector<PlaceFactor> factors;
};

}  // namespace fluxqueue::queue_core
