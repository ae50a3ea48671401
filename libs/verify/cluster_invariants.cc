// 4, 5: what runs in the cluster against what was given out.
#include <fmt/format.h>

#include "libs/model/job_state.h"
#include "libs/verify/invariants.h"

namespace fluxqueue::verify::internal {
namespace {

constexpr char kNoCluster[] = "the cluster was not looked at: kubernetes.kubeconfig is not set";

struct Place {
  const AllocationRow* allocation = nullptr;  // null: no row
  const events::v1::Placement::Slot* slot = nullptr;
};

Place FindPlace(const Snapshot& snapshot, const AllocationKey& key, uint32_t slot) {
  const auto found = snapshot.allocations.find(key);
  if (found == snapshot.allocations.end()) return {};
  Place place{&found->second, nullptr};
  for (const events::v1::Placement::Slot& candidate : found->second.placement.slots()) {
    if (candidate.slot() == slot) place.slot = &candidate;
  }
  return place;
}

AllocationKey KeyOf(const PodView& pod) {
  return {pod.job_id, pod.slot->attempt, pod.slot->part};
}

// Its node is lost, and its deletion was accepted: it counts as stopped.
bool Stopped(const Cluster& cluster, const PodView& pod) {
  const auto node = cluster.nodes.find(pod.node);
  return pod.deleting && (node == cluster.nodes.end() || !node->second);
}

void CheckPod(const Snapshot& snapshot, const PodView& pod, Check* check) {
  const Place place = FindPlace(snapshot, KeyOf(pod), pod.slot->slot);
  const std::string key = pod.name + " " + pod.uid;
  const std::string name = JobName(snapshot, pod.job_id);
  if (place.allocation == nullptr || place.slot == nullptr) {
    // Released rows are forgotten after a day.
    if (pod.ended) return;
    check->findings.push_back(
        {"none " + key,
         fmt::format("pod {} runs on node {} for {}, and attempt {} was never "
                     "given a slot {}",
                     pod.name,
                     pod.node,
                     name,
                     pod.slot->attempt,
                     pod.slot->slot)});
    return;
  }
  if (place.slot->node() != pod.node) {
    check->findings.push_back(
        {"node " + key,
         fmt::format("pod {} of {} is on node {}, and its slot {} is on node {}",
                     pod.name,
                     name,
                     pod.node,
                     pod.slot->slot,
                     place.slot->node())});
  }
  const auto slots = static_cast<uint32_t>(place.allocation->placement.slots_size());
  // An elastic job may have grown since, and one that lost slots has others.
  const auto job = snapshot.jobs.find(pod.job_id);
  const bool varies =
      job != snapshot.jobs.end() && (job->second.most_slots != 0 || slots > job->second.slots);
  if (varies ? pod.slot->slots > slots : pod.slot->slots != slots) {
    check->findings.push_back(
        {"slots " + key,
         fmt::format("pod {} of {} was bound as one of {}, and the allocation "
                     "has {} slots",
                     pod.name,
                     name,
                     pod.slot->slots,
                     slots)});
  }
}

}  // namespace

Check PodsOnTheirNodes(const Snapshot& snapshot) {
  Check check{.number = 4, .title = "a pod of ours runs only on a node of its allocation"};
  for (const SlotRow& row : snapshot.slots) {
    const Place place = FindPlace(snapshot, row.key, row.slot);
    if (place.slot != nullptr && place.slot->node() == row.node) continue;
    check.findings.push_back(
        {fmt::format("row {} {}", KeyText(row.key), row.slot),
         fmt::format("{}: slot {} was taken by pod {} for node {}, and was given {}",
                     JobName(snapshot, row.key.job_id),
                     row.slot,
                     row.pod,
                     row.node,
                     place.slot == nullptr ? "no node" : "node " + place.slot->node())});
  }
  check.checked = fmt::format("{} slots with pods", snapshot.slots.size());
  if (!snapshot.cluster.has_value()) {
    check.not_checked = kNoCluster;
    return check;
  }
  std::map<std::pair<AllocationKey, uint32_t>, const PodView*> holders;
  size_t bound = 0;
  for (const PodView& pod : snapshot.cluster->pods) {
    if (pod.node.empty() || !pod.slot.has_value()) continue;
    ++bound;
    CheckPod(snapshot, pod, &check);
    if (pod.ended || Stopped(*snapshot.cluster, pod)) continue;
    const auto [holder, added] = holders.try_emplace({KeyOf(pod), pod.slot->slot}, &pod);
    if (added) continue;
    check.findings.push_back({"two " + pod.uid,
                              fmt::format("{}: pods {} and {} both run in slot {} of attempt {}",
                                          JobName(snapshot, pod.job_id),
                                          holder->second->name,
                                          pod.name,
                                          pod.slot->slot,
                                          pod.slot->attempt)});
  }
  check.checked += fmt::format(", {} bound pods", bound);
  return check;
}

Check EndedHoldNothing(const Snapshot& snapshot) {
  Check check{.number = 5,
              .title = "an ended job holds nothing, and nothing is released that still runs"};
  const auto ended = [&snapshot](const std::string& id) {
    const auto job = snapshot.jobs.find(id);
    if (job == snapshot.jobs.end()) return false;
    const auto state = model::ParseJobState(job->second.state);
    return state.has_value() && model::IsTerminal(*state);
  };
  for (const auto& [key, allocation] : snapshot.allocations) {
    if (allocation.released || !ended(key.job_id)) continue;
    check.findings.push_back(
        {"held " + KeyText(key),
         fmt::format("{} has ended ({}), and its attempt {} still holds {} slots",
                     JobName(snapshot, key.job_id),
                     snapshot.jobs.at(key.job_id).state,
                     key.attempt,
                     allocation.placement.slots_size())});
  }
  for (const SlotRow& row : snapshot.slots) {
    if (!ended(row.key.job_id)) continue;
    check.findings.push_back(
        {fmt::format("slot {} {}", KeyText(row.key), row.slot),
         fmt::format("{} has ended, and the binder still keeps slot {} for pod {} ({})",
                     JobName(snapshot, row.key.job_id),
                     row.slot,
                     row.pod,
                     row.state)});
  }
  size_t jobs = 0;
  for (const auto& [id, job] : snapshot.jobs) jobs += ended(id) ? 1 : 0;
  check.checked = fmt::format("{} ended jobs, {} allocations", jobs, snapshot.allocations.size());
  if (!snapshot.cluster.has_value()) {
    check.not_checked = kNoCluster;
    return check;
  }
  size_t running = 0;
  for (const PodView& pod : snapshot.cluster->pods) {
    if (pod.node.empty() || !pod.slot.has_value() || pod.ended) continue;
    ++running;
    const Place place = FindPlace(snapshot, KeyOf(pod), pod.slot->slot);
    if (place.slot == nullptr || Stopped(*snapshot.cluster, pod)) continue;
    if (!place.allocation->released && !place.slot->released()) continue;
    check.findings.push_back(
        {"runs " + pod.uid,
         fmt::format("pod {} of {} still runs on node {}, and its slot {} has been given back",
                     pod.name,
                     JobName(snapshot, pod.job_id),
                     pod.node,
                     pod.slot->slot)});
  }
  check.checked += fmt::format(", {} pods that run", running);
  return check;
}

}  // namespace fluxqueue::verify::internal
