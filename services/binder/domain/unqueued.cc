#include "services/binder/domain/unqueued.h"

#include <algorithm>
#include <set>
#include <utility>

#include <fmt/format.h>

#include "libs/kubernetes/ownership.h"

namespace fluxqueue::binder {
namespace {

constexpr std::string_view kBefore =
    "is not in the queue of its namespace: it was made before the namespace was managed";

Unqueued OfJob(const kubernetes::ObjectMeta& job) {
  return {"Job",
          job.name,
          job.uid,
          fmt::format("{} {}, and the pods that are made of it go past the queue. To have it "
                      "queued, delete it and make it again",
                      job.name,
                      kBefore)};
}

Unqueued OfPod(const kubernetes::ObjectMeta& pod) {
  const kubernetes::OwnerReference* owner = pod.Controller();
  const std::string again =
      owner == nullptr ? "and make it again"
                       : fmt::format("and {} {} makes another, which is", owner->kind, owner->name);
  return {"Pod",
          pod.name,
          pod.uid,
          fmt::format("{} {}, and its scheduler places it past the queue. To have it queued, "
                      "delete it {}",
                      pod.name,
                      kBefore,
                      again)};
}

// The pod of a Job is told of with it, one of a DaemonSet belongs to its node.
bool IsNamed(const kubernetes::ObjectMeta& pod) {
  const kubernetes::OwnerReference* owner = pod.Controller();
  return pod.deleted_ms == 0 && !kubernetes::NodesOwn(pod).has_value() &&
         (owner == nullptr || owner->kind != "Job");
}

template <typename Object, typename Name>
void SortByName(std::vector<Object>* objects, const Name& name) {
  std::sort(objects->begin(), objects->end(), [&name](const Object& a, const Object& b) {
    return name(a) < name(b);
  });
}

}  // namespace

std::vector<Unqueued> UnqueuedOf(const kubernetes::Namespace& space,
                                 std::vector<kubernetes::ObjectMeta> pods,
                                 std::vector<kubernetes::Job> jobs) {
  SortByName(&jobs, [](const kubernetes::Job& job) { return job.meta.name; });
  SortByName(&pods, [](const kubernetes::ObjectMeta& pod) { return pod.name; });
  std::vector<Unqueued> named;
  for (const kubernetes::Job& job : jobs) {
    const bool over = job.Ended() || job.meta.deleted_ms != 0;
    if (!over && !kubernetes::Declined(job, space).has_value()) named.push_back(OfJob(job.meta));
  }
  std::set<std::string> owners;
  for (const kubernetes::ObjectMeta& pod : pods) {
    if (!IsNamed(pod)) continue;
    const kubernetes::OwnerReference* owner = pod.Controller();
    if (owner == nullptr || owners.insert(owner->uid).second) named.push_back(OfPod(pod));
  }
  if (named.size() > kMostNamed) {
    const size_t others = named.size() - kMostNamed;
    named.resize(kMostNamed);
    named.back().note += fmt::format(". So are {} others of the namespace", others);
  }
  return named;
}

}  // namespace fluxqueue::binder
