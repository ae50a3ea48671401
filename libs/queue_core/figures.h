// What is counted of a queue, for metrics.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "fluxqueue/events/v1/events.pb.h"

#include "libs/base/clock.h"
#include "libs/model/job_state.h"
#include "libs/scheduling/budgets.h"
#include "libs/scheduling/resources.h"

namespace fluxqueue::queue_core {

struct QueueFigures {
  // Jobs that wait, by their reason.
  std::map<std::string, size_t> waiting{};
  // Of those in each state the oldest: since when it waits, or has been as it is.
  std::map<model::JobState, int64_t> oldest_ms{};
  scheduling::Resources held{};
  // The dominant share of the pool, with what was used before (libs/scheduling/fair_share.h).
  double share = 0;
  int32_t weight = 1;
  // In the period that is now, in hours (libs/scheduling/budgets.h).
  struct BudgetUse {
    scheduling::Budget budget;
    double used_hours = 0;
  };
  std::vector<BudgetUse> budgets{};
};

// A stage of a job that is over, and how long it was; in the log's time.
struct Timing {
  enum class Kind {
    kWait,   // from the submission to the first allocation
    kBind,   // from the allocation until all pods are bound
    kStart,  // from then on until the first one runs
    kSlip,   // by how much a start, or what is said of it, is later than the job was told
  };
  Kind kind = Kind::kWait;
  std::string queue{};
  Millis took{0};
  std::string job_id{};
  uint32_t attempt = 0;
  int64_t end_ms = 0;
  // Of a slip: why. UNSPECIFIED: it was no later than a second.
  events::v1::Slip::Cause cause = events::v1::Slip::CAUSE_UNSPECIFIED;
};

}  // namespace fluxqueue::queue_core
