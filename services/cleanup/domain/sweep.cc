#include "services/cleanup/domain/sweep.h"

#include "libs/model/workload.h"

namespace fluxqueue::cleanup {

LiveIndex IndexOf(const std::vector<LiveJob>& live) {
  LiveIndex index;
  index.reserve(live.size());
  for (const LiveJob& job : live) index.emplace(job.job_id, &job);
  return index;
}

bool IsOver(std::string_view job_id, uint32_t attempt, const LiveIndex& live) {
  const auto job = live.find(job_id);
  if (job == live.end()) return true;
  return !job->second->holding || job->second->attempt > attempt;
}

Suspects Compare(const std::vector<LiveJob>& live, const Observer& observer) {
  Suspects suspects;
  for (const LiveJob& job : live) {
    // Until they are bound the pods of a group are not in the picture, and there is no object of
    // it.
    const bool expected = model::IsGroup(job.kind) ? job.running : job.holding;
    if (expected && !observer.Shows(job.job_id)) suspects.gone.push_back(job);
  }
  const LiveIndex index = IndexOf(live);
  observer.ForEachOwnPod([&](const std::string& job_id, uint32_t attempt, const std::string& uid) {
    if (IsOver(job_id, attempt, index)) suspects.orphans.push_back({job_id, attempt, uid});
  });
  return suspects;
}

}  // namespace fluxqueue::cleanup
