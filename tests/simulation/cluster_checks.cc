// What must hold whenever a pod is bound, or released.
#include <algorithm>
#include <optional>

#include <fmt/format.h>

#include "services/binder/domain/plan_context.h"
#include "tests/simulation/binder_tables.h"
#include "tests/simulation/cluster_world.h"

namespace fluxqueue::simulation {

void ClusterWorld::Check() {
  const MatcherTables& tables = database().Of<MatcherTables>();
  for (const auto& [key, row] : tables.allocations.rows()) {
    const auto& [id, attempt, part] = key;
    if (given_.contains({id, attempt, 0})) continue;
    events::v1::Placement placement;
    placement.ParseFromString(row.row.placement);
    for (const auto& slot : placement.slots()) {
      const matcher_core::NodeRow* node = tables.nodes.Find({row.pool, slot.node()});
      given_[{id, attempt, slot.slot()}] = node == nullptr ? "" : node->uid;
    }
  }
  PoolWorld::Check();
}

bool ClusterWorld::IsOnAnother(const std::string& uid, const Live& pod) {
  const auto given = given_.find({pod.id, pod.slot.attempt, pod.slot.slot});
  const SimCluster::Stored node = cluster_.Find(kubernetes::kNodes, "", pod.node);
  if (given == given_.end() || (node != nullptr && node->uid == given->second)) return false;
  const auto gone = gone_.find(given->second);
  const auto allocated = allocated_.find({pod.id, pod.slot.attempt});
  const TimePoint sent = cluster_.binding_sent();
  const bool came_late = gone == gone_.end() || gone->second >= sent || traits_.at(pod.name).pinned;
  const bool was_fresh =
      allocated != allocated_.end() && sent <= allocated->second + binder::kSureFor;
  // The next pod of a slot does not look at a node again that the binder has just seen.
  const std::optional<TimePoint> seen = cluster_.NodeSeen(given->second);
  const bool was_seen = seen.has_value() && sent <= *seen + binder::kSureFor;
  if (!came_late && !was_fresh && !was_seen) {
    Fail(fmt::format("{} is bound to {}, which is another node by now", uid, pod.node));
  }
  ++counts()[came_late   ? "pods bound late to another"
             : was_fresh ? "pods bound fresh to another"
                         : "pods bound to another that was just seen"];
  return true;
}

void ClusterWorld::PodBound(const Object& pod) {
  const Live bound = LiveOf(pod);
  ++counts()["pods bound"];
  had_pod_.insert(bound.id);
  if (tells()) {
    Say(fmt::format("{} ({}) is bound to {}, slot {}",
                    pod.name,
                    pod.uid,
                    pod.node,
                    kubernetes::FormatSlotName(bound.slot)));
  }
  CheckRow(pod.uid, bound);
  if (!traits_.at(bound.name).pinned) CheckStart(pod);
  if (IsOnAnother(pod.uid, bound)) {
    lost_.insert(pod.uid);
    live_.erase(pod.uid);
    return;
  }
  CheckAllocated(pod.uid, bound);
  CheckOthers(pod.uid, bound);
}

void ClusterWorld::CheckAllocated(const std::string& uid, const Live& pod) {
  const auto* row = database().Of<MatcherTables>().allocations.Find({pod.id, pod.slot.attempt, 0});
  events::v1::Placement placement;
  if (row == nullptr || !placement.ParseFromString(row->row.placement)) {
    return Fail(uid + " is bound, and its job has no allocation");
  }
  const bool has = std::ranges::any_of(placement.slots(), [&](const auto& placed) {
    return placed.slot() == pod.slot.slot && placed.node() == pod.node && !placed.released();
  });
  if (row->row.released || !has) {
    Fail(fmt::format("{} is bound to {}, where its job has no such slot", uid, pod.node));
  }
}

void ClusterWorld::CheckRow(const std::string& uid, const Live& pod) {
  const binder::SlotRow* row = database().Of<BinderTables>().slots.Find(
      {pod.id, pod.slot.attempt, static_cast<int>(pod.slot.slot)});
  if (row == nullptr || row->value.pod_uid != uid || !row->value.Occupied()) {
    Fail(fmt::format("{} is bound, and no row says so", uid));
  }
}

void ClusterWorld::CheckOthers(const std::string& uid, const Live& pod) {
  int64_t used = 0;
  for (const auto& [other, live] : live_) {
    if (live.node == pod.node) used += live.cpu;
    if (other != uid && live.id == pod.id && live.slot.attempt == pod.slot.attempt &&
        live.slot.slot == pod.slot.slot) {
      Fail(fmt::format("{} and {} are in one slot", uid, other));
    }
  }
  if (used > kCpu) Fail(fmt::format("{} is bound to {}, which is full", uid, pod.node));
}

}  // namespace fluxqueue::simulation
