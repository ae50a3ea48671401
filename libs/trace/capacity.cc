#include "libs/trace/capacity.h"

#include <algorithm>

namespace fluxqueue::trace {

int64_t SlotsOn(const TraceNode& node, const TraceJob& job) {
  if (!job.gpu_models.empty() &&
      std::find(job.gpu_models.begin(), job.gpu_models.end(), node.gpu_model) ==
          job.gpu_models.end()) {
    return 0;
  }
  int64_t slots = job.slots;
  for (const auto& [resource, amount] : job.requests) {
    if (amount == 0) continue;
    const auto offer = node.offers.find(resource);
    slots = std::min(slots, offer == node.offers.end() ? 0 : offer->second / amount);
  }
  return slots;
}

bool CanEverRun(const TraceJob& job, const std::vector<TraceNode>& nodes) {
  int64_t wanted = job.slots;
  for (const TraceNode& node : nodes) {
    wanted -= SlotsOn(node, job);
    if (wanted <= 0) return true;
  }
  return false;
}

Amounts TotalOffer(const std::vector<TraceNode>& nodes) {
  Amounts total;
  for (const TraceNode& node : nodes) {
    for (const auto& [resource, amount] : node.offers) total[resource] += amount;
  }
  return total;
}

}  // namespace fluxqueue::trace
