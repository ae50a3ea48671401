// Told of what the queue's loop has committed.
#pragma once

#include <cstdint>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "fluxqueue/events/v1/events.pb.h"

namespace fluxqueue::queue {

// A job as it became, for those who show it.
struct JobSeen {
  events::v1::JobFact fact;
  int64_t position = 0;  // in its queue, from 1; 0: not in line
};

// On the loop's thread. Must not block.
class JobObserver {
 public:
  virtual ~JobObserver() = default;
  virtual void Changed(std::vector<JobSeen> jobs) = 0;
  // More pools are ours than before: all that are, are `pools`. Their rows may hold what was not
  // shown yet.
  virtual void PoolsGained(const std::set<std::string>& pools) = 0;
  // Another shows their jobs from now on.
  virtual void PoolsLost(const std::set<std::string>& pools) = 0;
  // Jobs whose place in line should be looked at again; asked every now and then.
  virtual std::vector<std::string> Waiting() = 0;
  virtual void Moved(const std::vector<std::pair<std::string, int64_t>>& positions) = 0;
};

}  // namespace fluxqueue::queue
