#include "services/cleanup/domain/proof.h"

#include <algorithm>

#include "libs/base/text.h"
#include "libs/kubernetes/ownership.h"

namespace fluxqueue::cleanup {

std::vector<std::string> JobHints(const kubernetes::Pod& pod) {
  std::vector<std::string> hints;
  const auto add = [&hints](const std::string& job_id) {
    if (IsUid(job_id) && std::ranges::find(hints, job_id) == hints.end()) hints.push_back(job_id);
  };
  if (!IsUid(pod.meta.uid)) return hints;
  add(pod.meta.Annotation(kubernetes::kJobIdAnnotation));  // hint: the row of a slot is the proof
  if (pod.spec.scheduler_name == kubernetes::kSchedulerName) add(kubernetes::JobIdOf(pod));
  return hints;
}

}  // namespace fluxqueue::cleanup
