// What a sweep looks at twice: differences between the rows of live jobs and the picture of the
// cluster. Each is only suspected here; the sweeper confirms it before anything is said. Pure.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "services/cleanup/domain/observer.h"

namespace fluxqueue::cleanup {

// A job that has not ended, as its row says. Claims are left out: there is nothing of them to be
// seen.
struct LiveJob {
  std::string job_id;
  std::string kind;  // "Job", "Pod", "PodGroup"
  std::string space;
  std::string name;
  uint32_t attempt = 0;
  bool holding = false;  // Allocated, Bound, Running or Stopping
  bool running = false;
};

// By id. Its jobs must outlive it, where they are.
using LiveIndex = std::unordered_map<std::string_view, const LiveJob*>;
LiveIndex IndexOf(const std::vector<LiveJob>& live);

struct Suspects {
  // Hold resources, but nothing of them is in the picture.
  std::vector<LiveJob> gone;
  // Pods of ours that run, while the row says that their attempt holds nothing.
  std::vector<Observer::OwnPod> orphans;

  bool empty() const { return gone.empty() && orphans.empty(); }
};

Suspects Compare(const std::vector<LiveJob>& live, const Observer& observer);

// The attempt holds nothing: its job has ended, or has moved on to a later attempt.
bool IsOver(std::string_view job_id, uint32_t attempt, const LiveIndex& live);

}  // namespace fluxqueue::cleanup
