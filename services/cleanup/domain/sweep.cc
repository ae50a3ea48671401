#include "services/cleanup/domain/sweep.h"

#include "libs/model/workload.h"

namespace fluxqueue::cleanup {

bool IsOrphan(const Observer::OwnPod& pod, const std::unordered_map<std::string, LiveJob>& live) {
  const auto job = live.find(pod.job_id);
  if (job == live.end()) return true;
  return !job->second.holding || job->second.attempt > pod.attempt;
}

Suspects Compare(const std::vector<LiveJob>& live, const Observer& observer) {
  Suspects suspects;
  std::unordered_map<std::string, LiveJob> by_id;
  for (const LiveJob& job : live) {
    // Until they are bound the pods of a group are not in the picture, and there is no object of
    // it.
    const bool expected = model::IsGroup(job.kind) ? job.running : job.holding;
    if (expected && !observer.Shows(job.job_id)) suspects.gone.push_back(job);
    by_id.emplace(job.job_id, job);
  }
  for (Observer::OwnPod& pod : observer.OwnPods()) {
    if (IsOrphan(pod, by_id)) suspects.orphans.push_back(std::move(pod));
  }
  return suspects;
}

}  // namespace fluxqueue::cleanup
