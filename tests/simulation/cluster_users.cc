#include "tests/simulation/cluster_users.h"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "libs/base/check.h"
#include "libs/kubernetes/group.h"
#include "libs/kubernetes/labels.h"
#include "services/admission/domain/webhook.h"

namespace fluxqueue::simulation {
namespace {

using kubernetes::kJobs;
using kubernetes::kPods;

constexpr Millis kLook{10'000};
constexpr int kMostMends = 3;

json OneContainer(int64_t cpu) {
  const json requests = {{"cpu", fmt::format("{}m", cpu)}};
  return json::array({{{"name", "main"}, {"resources", {{"requests", requests}}}}});
}

// A volume of a claim needs kube-scheduler's last step.
json PodSpec(const JobTraits& traits) {
  json spec = {{"schedulerName", kubernetes::kDefaultScheduler},
               {"restartPolicy", "Never"},
               {"containers", OneContainer(traits.cpu)}};
  if (traits.pinned) {
    spec["volumes"] =
        json::array({{{"name", "data"}, {"persistentVolumeClaim", {{"claimName", "data"}}}}});
  }
  return spec;
}

json OwnedByJobSet(const std::string& name) {
  return json::array({{{"apiVersion", "jobset.x-k8s.io/v1alpha2"},
                       {"kind", "JobSet"},
                       {"name", name},
                       {"uid", name},
                       {"controller", true}}});
}

std::string PodName(const std::string& id, uint32_t index) {
  return fmt::format("{}-{}", id, index);
}

std::string GroupOf(const SimCluster::Object& pod) {
  const auto group =
      kubernetes::ParseGroup(TextAt(pod.body, "/metadata/annotations/fluxqueue.io~1group"));
  return group ? group->name : "";
}

bool IsBound(const SimCluster::Stored& pod) {
  return !pod->node.empty();
}

}  // namespace

bool IsOfGang(const SimCluster::Object& pod) {
  return !GroupOf(pod).empty();
}

std::string WorkloadOf(const SimCluster::Object& pod) {
  if (pod.space != kSpace) return "";
  if (!pod.owner.empty()) return pod.owner;
  const std::string group = GroupOf(pod);
  return group.empty() ? pod.uid : group;
}

std::string JobIdOf(const SimCluster::Object& pod) {
  return IsOfGang(pod) ? TextAt(pod.body, "/metadata/annotations/fluxqueue.io~1job-id")
                       : WorkloadOf(pod);
}

Users::Users(SimCluster& cluster, Counts& counts, const Workloads& workloads)
    : cluster_(cluster), counts_(counts), workloads_(workloads) {
  json space;
  space["metadata"] = {{"name", kSpace}, {"labels", {{kubernetes::kManagedLabel, "true"}}}};
  facts_.Upsert(*kubernetes::ParseNamespace(space.dump()));
  cluster_.Put(kubernetes::kNamespaces, std::move(space));
  json queue;
  queue["metadata"]["name"] = kubernetes::kDefaultQueue;
  queue["spec"]["pool"] = "main";
  facts_.Upsert(*kubernetes::ParseFluxQueue(queue.dump()));
  cluster_.Put(kubernetes::kFluxQueues, std::move(queue));
}

void Users::Make(const std::string& id) {
  const JobTraits& traits = workloads_.at(id);
  if (traits.gang) return MakeGang(id);
  if (traits.bare) return MakePod(id);
  MakeJob(id);
}

json Users::Admitted(json object, const JobTraits& traits) const {
  const bool is_pod = object["kind"] == "Pod";
  admission::Review review;
  review.operation = "CREATE";
  review.group = is_pod ? "" : "batch";
  review.resource = is_pod ? "pods" : "jobs";
  review.space = kSpace;
  review.user = "ann";
  review.object = object.dump();
  admission::WebhookOptions options;
  if (traits.suspended) options.hold_pods = 0;
  const admission::Verdict verdict = admission::Decide(review, facts_, options);
  CHECK(verdict.kind == admission::Verdict::Kind::kHold, "not held: {}", verdict.message);
  return object.patch(json::parse(verdict.patch));
}

json Users::Metadata(const std::string& name) const {
  return {{"name", name},
          {"namespace", kSpace},
          {"creationTimestamp", FormatSeconds(WallTime(cluster_.scheduler()))}};
}

void Users::MakePod(const std::string& id) {
  const JobTraits& traits = workloads_.at(id);
  json pod = {{"kind", "Pod"}, {"metadata", Metadata(id)}, {"spec", PodSpec(traits)}};
  pod["metadata"]["uid"] = id;
  pod["status"]["phase"] = "Pending";
  cluster_.Put(kPods, Admitted(std::move(pod), traits));
  ++counts_["bare pods made"];
}

void Users::MakeJob(const std::string& id) {
  const JobTraits& traits = workloads_.at(id);
  json job = {{"kind", "Job"}, {"metadata", Metadata(id)}};
  job["metadata"]["uid"] = id;
  job["metadata"]["generation"] = 1;
  if (traits.controlled) job["metadata"]["ownerReferences"] = OwnedByJobSet("set-" + id);
  job["spec"] = {{"parallelism", traits.slots},
                 {"completions", traits.slots},
                 {"suspend", false},
                 {"completionMode", traits.indexed ? "Indexed" : "NonIndexed"}};
  job["spec"]["template"] = {{"metadata", json::object()}, {"spec", PodSpec(traits)}};
  job["status"]["done"] = json::array();
  cluster_.Put(kJobs, Admitted(std::move(job), traits));
  ++counts_[traits.slots == 1 ? "Jobs of one pod made"
            : traits.indexed  ? "Indexed Jobs of several pods made"
                              : "Jobs of several pods made"];
}

void Users::MakeGang(const std::string& id) {
  const JobTraits& traits = workloads_.at(id);
  for (uint32_t index = 0; index + 1 < traits.slots; ++index) MakePodOfGang(id, index);
  gangs_[id] = {};
  cluster_.scheduler().After(traits.late, [this, id, last = traits.slots - 1] {
    Gang& gang = gangs_.at(id);
    gang.made = true;
    if (!gang.unwanted) MakePodOfGang(id, last);
  });
  cluster_.scheduler().After(traits.late + kLook, [this, id] { LookAfter(id); });
  ++counts_[traits.late > Millis(0) ? "gangs whose last pod comes late" : "gangs made"];
}

void Users::MakePodOfGang(const std::string& id, uint32_t index) {
  const JobTraits& traits = workloads_.at(id);
  json pod = {
      {"kind", "Pod"}, {"metadata", Metadata(PodName(id, index))}, {"spec", PodSpec(traits)}};
  pod["metadata"]["labels"] = {{kubernetes::kGroupNameKey, id},
                               {kubernetes::kGroupSizeKey, std::to_string(traits.slots)}};
  pod["status"]["phase"] = "Pending";
  cluster_.Put(kPods, Admitted(std::move(pod), traits));
}

Users::Pods Users::PodsOf(const std::string& id) const {
  Pods pods = cluster_.All(kPods);
  std::erase_if(pods, [&](const SimCluster::Stored& pod) {
    return pod->Finished() || WorkloadOf(*pod) != id;
  });
  return pods;
}

void Users::DeleteAll(const Pods& pods) {
  for (const SimCluster::Stored& pod : pods) {
    cluster_.Delete(kPods, kSpace, pod->name, {}).IgnoreError();
  }
}

void Users::Delete(const std::string& id) {
  const JobTraits& traits = workloads_.at(id);
  if (traits.gang) {
    gangs_.at(id).unwanted = true;
    const Pods pods = PodsOf(id);
    if (pods.empty()) return;
    DeleteAll(pods);
    ++counts_[std::ranges::any_of(pods, IsBound) ? "gangs that run deleted by users"
                                                 : "gangs that wait deleted by users"];
    return;
  }
  if (!cluster_.Delete(traits.bare ? kPods : kJobs, kSpace, id, {}).ok()) return;
  ++counts_[traits.bare ? "bare pods deleted by users" : "Jobs deleted by users"];
}

void Users::DeletePod(const std::string& id) {
  Pods pods = PodsOf(id);
  std::erase_if(pods, [](const SimCluster::Stored& pod) { return pod->going; });
  if (pods.empty() || workloads_.at(id).bare) return;
  const SimCluster::Stored& pod = pods[cluster_.scheduler().chance().Pick(pods.size())];
  DeleteAll({pod});
  ++counts_[!workloads_.at(id).gang ? "pods of Jobs deleted by users"
            : IsBound(pod)          ? "bound pods of gangs deleted by users"
                                    : "waiting pods of gangs deleted by users"];
}

void Users::GiveUp(const std::string& gang) {
  gangs_.at(gang).unwanted = true;
}

bool Users::IsOver(const std::string& gang) const {
  const auto known = gangs_.find(gang);
  return known != gangs_.end() && known->second.made && PodsOf(gang).empty();
}

bool Users::HasMended(const std::string& gang) const {
  return gangs_.at(gang).mends > 0;
}

// A gang of which a pod has gone before all have started waits for another one. Where none has gone
// all start, and it is not for the user to see to it.
void Users::LookAfter(const std::string& id) {
  cluster_.scheduler().After(kLook, [this, id] { LookAfter(id); });
  if (!cluster_.scheduler().chance().OneIn(3)) return;
  Gang& gang = gangs_.at(id);
  const Pods pods = PodsOf(id);
  if (pods.empty() || std::ranges::any_of(pods, IsBound)) return;
  const bool whole = pods.size() == workloads_.at(id).slots;
  size_t there = 0;
  for (uint32_t index = 0; index < workloads_.at(id).slots; ++index) {
    if (cluster_.Find(kPods, kSpace, PodName(id, index)) != nullptr) ++there;
  }
  const bool broken = !whole && (there < workloads_.at(id).slots || gang.mends > 0);
  const bool gives_up = broken && gang.mends == kMostMends;
  if (gang.unwanted || gives_up) {
    ++counts_["gangs given up by users"];
    DeleteAll(pods);
  } else if (broken) {
    ++gang.mends;
    Mend(id);
  }
}

void Users::Mend(const std::string& id) {
  ++counts_["gangs made whole again by users"];
  for (uint32_t index = 0; index < workloads_.at(id).slots; ++index) {
    const SimCluster::Stored pod = cluster_.Find(kPods, kSpace, PodName(id, index));
    if (pod != nullptr && !pod->Finished()) continue;
    cluster_.Remove(kPods, kSpace, PodName(id, index));
    MakePodOfGang(id, index);
  }
}

}  // namespace fluxqueue::simulation
