#include "tests/simulation/cluster_standins.h"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "libs/kubernetes/labels.h"

namespace fluxqueue::simulation {
namespace {

using kubernetes::kJobs;
using kubernetes::kNodes;
using kubernetes::kPods;

constexpr Millis kTick{200};

std::string Now(SimCluster& cluster) {
  return FormatSeconds(WallTime(cluster.scheduler()));
}

json PodOf(const SimCluster::Object& job, bool indexed, uint32_t index) {
  const json& of = job.body["spec"]["template"];
  json pod = {{"metadata", of["metadata"]}, {"spec", of["spec"]}};
  pod["metadata"]["name"] = fmt::format("{}-{}", job.name, index);
  pod["metadata"]["namespace"] = kSpace;
  pod["metadata"]["ownerReferences"] = json::array({{{"apiVersion", "batch/v1"},
                                                     {"kind", "Job"},
                                                     {"name", job.name},
                                                     {"uid", job.uid},
                                                     {"controller", true}}});
  if (indexed) {
    pod["metadata"]["annotations"]["batch.kubernetes.io/job-completion-index"] =
        std::to_string(index);
  }
  pod["status"]["phase"] = "Pending";
  return pod;
}

uint32_t IndexOf(const SimCluster::Object& pod) {
  return static_cast<uint32_t>(std::stoul(pod.name.substr(pod.name.rfind('-') + 1)));
}

json Condition(const char* type, const std::string& status, const std::string& since) {
  return {{"type", type}, {"status", status}, {"lastTransitionTime", since}};
}

}  // namespace

int64_t CpuOf(const SimCluster::Object& pod) {
  return std::stoll(TextAt(pod.body, "/spec/containers/0/resources/requests/cpu"));
}

Standins::Standins(SimCluster& cluster,
                   Counts& counts,
                   int64_t node_cpu,
                   const Workloads& workloads)
    : cluster_(cluster), counts_(counts), node_cpu_(node_cpu), workloads_(workloads) {
  cluster_.scheduler().After(kTick, [this] { Tick(); });
}

void Standins::AddPoison(const std::string& node, int64_t cpu) {
  json pod;
  pod["metadata"] = {{"name", kPoison}, {"namespace", "others"}};
  pod["metadata"]["annotations"][std::string(kubernetes::kJobIdAnnotation)] = kPoison;
  const json requests = {{"cpu", fmt::format("{}m", cpu)}};
  const json container = {{"name", "main"}, {"resources", {{"requests", requests}}}};
  pod["spec"] = {{"nodeName", node}, {"containers", json::array({container})}};
  pod["status"]["phase"] = "Running";
  cluster_.Put(kPods, std::move(pod));
}

void Standins::AddNode(const std::string& name) {
  cluster_.Remove(kNodes, "", name);
  silent_.erase(name);
  json node;
  node["metadata"] = {{"name", name}, {"labels", {{kubernetes::kPoolLabel, "main"}}}};
  node["status"]["allocatable"] = {{"cpu", fmt::format("{}m", node_cpu_)}, {"pods", "110"}};
  node["status"]["conditions"] = json::array({Condition("Ready", "True", Now(cluster_))});
  cluster_.Put(kNodes, std::move(node));
}

void Standins::RemoveNode(const std::string& name) {
  cluster_.Remove(kNodes, "", name);
  std::erase_if(running_, [&](const auto& pod) { return pod.second.node == name; });
  const SimCluster::Stored poison = cluster_.Find(kPods, "others", kPoison);
  if (poison != nullptr && poison->node == name) cluster_.Remove(kPods, "others", kPoison);
}

void Standins::Silence(const std::string& name, bool silent) {
  const SimCluster::Stored known = cluster_.Find(kNodes, "", name);
  if (known == nullptr) return;
  if (silent) {
    silent_.insert(name);
  } else {
    silent_.erase(name);
  }
  json node = known->body;
  node["status"]["conditions"] =
      json::array({Condition("Ready", silent ? "Unknown" : "True", Now(cluster_))});
  cluster_.Put(kNodes, std::move(node));
}

bool Standins::Works(const std::string& node) const {
  return !silent_.contains(node) && cluster_.Find(kNodes, "", node) != nullptr;
}

void Standins::Forget() {
  std::erase_if(ended_, [this](const auto& job) {
    const SimCluster::Stored known = cluster_.Find(kJobs, kSpace, job.first);
    return known == nullptr ||
           known->body["status"]["done"].size() < workloads_.at(job.first).slots;
  });
  std::set<std::string> bound;
  for (const SimCluster::Stored& pod : cluster_.All(kPods)) {
    if (pod->phase == "Running") bound.insert(pod->uid);
  }
  std::erase_if(running_, [&](const auto& pod) { return !bound.contains(pod.first); });
}

void Standins::Tick() {
  Chance& chance = cluster_.scheduler().chance();
  for (const SimCluster::Stored& job : cluster_.All(kJobs)) {
    if (chance.OneIn(2)) SyncJob(*job);
  }
  for (const SimCluster::Stored& pod : cluster_.All(kPods)) {
    if (pod->space == kSpace && chance.OneIn(2)) SyncPod(*pod);
  }
  cluster_.scheduler().After(kTick, [this] { Tick(); });
}

void Standins::SyncJob(const Object& job) {
  if (ended_.contains(job.name)) return EndJob(job.name);
  if (Count(job) >= workloads_.at(job.name).slots) {
    ended_[job.name] = cluster_.scheduler().now();
  } else if (job.body["spec"]["suspend"].get<bool>()) {
    StopPods(job.name);
  } else {
    MakePods(job);
  }
}

// Each index whose pod has succeeded is done, for ever.
size_t Standins::Count(const Object& job) {
  std::set<uint32_t> done = job.body["status"]["done"];
  const size_t before = done.size();
  for (const SimCluster::Stored& pod : cluster_.All(kPods)) {
    if (pod->owner == job.uid && pod->phase == "Succeeded") done.insert(IndexOf(*pod));
  }
  if (done.size() == before) return before;
  json after = job.body;
  after["status"]["done"] = done;
  after["status"]["succeeded"] = done.size();
  if (done.size() >= workloads_.at(job.name).slots) {
    after["status"]["conditions"] = json::array({Condition("Complete", "True", Now(cluster_))});
  }
  cluster_.Put(kJobs, std::move(after));
  return done.size();
}

void Standins::MakePods(const Object& job) {
  const JobTraits& traits = workloads_.at(job.name);
  const std::set<uint32_t> done = cluster_.Find(kJobs, kSpace, job.name)->body["status"]["done"];
  for (uint32_t index = 0; index < traits.slots; ++index) {
    if (done.contains(index)) continue;
    const std::string name = fmt::format("{}-{}", job.name, index);
    const SimCluster::Stored pod = cluster_.Find(kPods, kSpace, name);
    if (pod == nullptr) {
      cluster_.Put(kPods, PodOf(job, traits.indexed, index));
    } else if (pod->phase == "Failed") {
      cluster_.Remove(kPods, kSpace, name);
    }
  }
}

void Standins::StopPods(const std::string& id) {
  for (const SimCluster::Stored& pod : cluster_.All(kPods)) {
    if (pod->owner != id || pod->Finished()) continue;
    cluster_.Delete(kPods, kSpace, pod->name, {}).IgnoreError();
  }
}

void Standins::EndJob(const std::string& id) {
  const Millis keep = workloads_.at(id).keep;
  if (keep == Millis(0) || cluster_.scheduler().now() < ended_.at(id) + keep) return;
  cluster_.Remove(kJobs, kSpace, id);
}

void Standins::SyncPod(const Object& pod) {
  const bool orphan = !pod.owner.empty() && cluster_.Find(kJobs, kSpace, pod.owner) == nullptr;
  if (pod.node.empty() || pod.Finished()) {
    if (orphan) return cluster_.Remove(kPods, kSpace, pod.name);
    if (!pod.Finished()) Schedule(pod);
    return;
  }
  if (cluster_.Find(kNodes, "", pod.node) == nullptr) {
    // The controller of nodes is slow.
    if (cluster_.scheduler().chance().OneIn(10)) cluster_.Remove(kPods, kSpace, pod.name);
    return;
  }
  if (!Works(pod.node)) return;
  if (orphan || pod.going) {
    running_.erase(pod.uid);
    return cluster_.Remove(kPods, kSpace, pod.name);
  }
  if (pod.phase == "Pending") return StartPod(pod);
  const auto running = running_.find(pod.uid);
  // Its node came back without it.
  if (running == running_.end()) return SetPhase(pod, "Failed");
  if (running->second.end > cluster_.scheduler().now()) return;
  running_.erase(running);
  SetPhase(pod, "Succeeded");
}

void Standins::Schedule(const Object& pod) {
  const std::string node =
      TextAt(pod.body,
             "/spec/affinity/nodeAffinity/requiredDuringSchedulingIgnoredDuringExecution/"
             "nodeSelectorTerms/0/matchFields/0/values/0");
  if (node.empty() || !Works(node)) return;
  int64_t used = CpuOf(pod);
  for (const SimCluster::Stored& other : cluster_.All(kPods)) {
    if (other->node == node && !other->Finished()) used += CpuOf(*other);
  }
  if (used > node_cpu_) return;
  ++counts_["pods bound by kube-scheduler"];
  json bound = pod.body;
  bound["spec"]["nodeName"] = node;
  cluster_.Put(kPods, std::move(bound));
}

void Standins::StartPod(const Object& pod) {
  const int64_t cpu = CpuOf(pod);
  int64_t used = cpu;
  for (const auto& [uid, running] : running_) {
    if (running.node == pod.node) used += running.cpu;
  }
  if (used > node_cpu_) {
    ++counts_["pods turned away by their node"];
    return SetPhase(pod, "Failed", "OutOfcpu");
  }
  running_[pod.uid] = {
      pod.node, cpu, cluster_.scheduler().now() + workloads_.at(WorkloadOf(pod)).run};
  SetPhase(pod, "Running");
}

void Standins::SetPhase(const Object& pod, const char* phase, const char* reason) {
  json after = pod.body;
  after["status"]["phase"] = phase;
  if (*reason != '\0') after["status"]["reason"] = reason;
  if (!after["status"].contains("startTime")) after["status"]["startTime"] = Now(cluster_);
  cluster_.Put(kPods, std::move(after));
}

}  // namespace fluxqueue::simulation
