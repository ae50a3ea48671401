// 1, 2, 3: what the matcher gives out.
#include <algorithm>
#include <set>

#include <fmt/format.h>

#include "libs/matcher_core/codec.h"
#include "libs/model/host_ports.h"
#include "libs/model/job_state.h"
#include "libs/model/workload.h"
#include "libs/verify/invariants.h"

namespace fluxqueue::verify {

std::map<std::pair<std::string, std::string>, NodeUse> UseByNode(const Snapshot& snapshot) {
  std::map<std::pair<std::string, std::string>, NodeUse> uses;
  for (const auto& [key, allocation] : snapshot.allocations) {
    if (allocation.released) continue;
    const events::v1::Placement& placement = allocation.placement;
    int next = 0;
    for (const events::v1::Placement::Group& group : placement.groups()) {
      const int end = std::min(next + static_cast<int>(group.slots()), placement.slots_size());
      for (; next < end; ++next) {
        const events::v1::Placement::Slot& slot = placement.slots(next);
        if (slot.released()) continue;
        NodeUse& use = uses[{allocation.pool, slot.node()}];
        ++use.jobs[key.job_id];
        for (const events::v1::Amount& amount : group.requests()) {
          use.ours[amount.resource()] += amount.amount();
        }
      }
    }
  }
  return uses;
}

namespace internal {
namespace {

size_t Live(const Snapshot& snapshot) {
  return static_cast<size_t>(std::count_if(
      snapshot.allocations.begin(), snapshot.allocations.end(), [](const auto& entry) {
        return !entry.second.released;
      }));
}

// That were not given back before the rest.
size_t LiveSlots(const AllocationRow& allocation) {
  const auto& slots = allocation.placement.slots();
  return static_cast<size_t>(
      std::count_if(slots.begin(), slots.end(), [](const auto& slot) { return !slot.released(); }));
}

// The matcher has given an elastic job more, or one that lost slots others in their place, of which
// the queue has not heard yet, or which it did not want any more: then it goes with the rest.
bool HasGrown(const AllocationRow& allocation, const JobRow& job) {
  const size_t live = LiveSlots(allocation);
  const auto all = static_cast<size_t>(allocation.placement.slots_size());
  if (job.most_slots == 0) {
    return all > std::max(job.held_slots, job.slots) && live <= job.slots;
  }
  return live > job.slots && live <= job.most_slots;
}

// Of a job that holds something: what the queue says it holds must be there.
void CheckHolder(const Snapshot& snapshot, const JobRow& job, Check* check) {
  const auto state = model::ParseJobState(job.state);
  if (!state.has_value() || !model::kHoldingStates.Has(*state) || job.placement_hash == 0) return;
  const AllocationKey key{job.id, job.attempt, 0};
  const auto found = snapshot.allocations.find(key);
  const std::string name = JobName(snapshot, job.id);
  if (found == snapshot.allocations.end() || found->second.released) {
    check->findings.push_back(
        {"missing " + KeyText(key),
         fmt::format("{} is {} and attempt {} holds no allocation", name, job.state, job.attempt)});
  } else if (found->second.placement_hash != job.placement_hash && !HasGrown(found->second, job)) {
    check->findings.push_back({"hash " + KeyText(key),
                               fmt::format("{}: the placement of attempt {} is not the one that "
                                           "the queue was told of (hash {:016x}, not "
                                           "{:016x})",
                                           name,
                                           job.attempt,
                                           found->second.placement_hash,
                                           job.placement_hash)});
  }
}

}  // namespace

Check Capacity(const Snapshot& snapshot) {
  Check check{.number = 1, .title = "no node holds more than it has"};
  const auto uses = UseByNode(snapshot);
  std::map<std::pair<std::string, std::string>, const NodeRow*> nodes;
  for (const NodeRow& row : snapshot.nodes) {
    if (row.present) nodes[{row.pool, row.node.name()}] = &row;
  }
  for (const auto& [where, use] : uses) {
    const auto& [pool, name] = where;
    const auto node = nodes.find(where);
    if (node == nodes.end()) {
      check.findings.push_back(
          {fmt::format("gone {}/{}", pool, name),
           fmt::format("node {} is not in the graph of pool {}, and {} holds slots on it",
                       name,
                       pool,
                       JobName(snapshot, use.jobs.begin()->first))});
      continue;
    }
    std::map<std::string, int64_t> has;
    for (const events::v1::Amount& amount : node->second->node.allocatable()) {
      has[amount.resource()] += amount.amount();
    }
    for (const auto& [resource, amount] : use.ours) {
      if (model::IsHostPort(resource)) has[resource] = 1;
      if (amount <= has[resource]) continue;
      check.findings.push_back(
          {fmt::format("over {}/{} {}", pool, name, resource),
           fmt::format("node {}: {} jobs hold {} of {}, and it has {} (did it shrink under them?)",
                       name,
                       use.jobs.size(),
                       amount,
                       resource,
                       has[resource])});
    }
  }
  check.checked = fmt::format("{} nodes, {} of them hold slots, {} live allocations",
                              nodes.size(),
                              uses.size(),
                              Live(snapshot));
  return check;
}

Check WholeParts(const Snapshot& snapshot) {
  Check check{.number = 2, .title = "a part of a job has all of its slots or none"};
  std::map<std::pair<std::string, uint32_t>, const SpecRow*> specs;
  for (const SpecRow& spec : snapshot.specs) specs[{spec.job_id, spec.part}] = &spec;
  std::map<AllocationKey, uint32_t> bound;
  for (const SlotRow& slot : snapshot.slots) bound[slot.key] += slot.bound_once ? 1 : 0;

  for (const auto& [key, allocation] : snapshot.allocations) {
    const auto slots = static_cast<uint32_t>(allocation.placement.slots_size());
    const std::string name = JobName(snapshot, key.job_id);
    const auto find = [&](const std::string& what) {
      check.findings.push_back(
          {KeyText(key) + what, fmt::format("{} attempt {}: {}", name, key.attempt, what)});
    };
    if (!allocation.decodes) find("its placement does not decode");
    uint32_t next = 0;
    for (const events::v1::Placement::Slot& slot : allocation.placement.slots()) {
      if (slot.slot() != next++)
        find(fmt::format("slot {} stands where {} should", slot.slot(), next - 1));
      if (slot.node().empty()) find(fmt::format("slot {} is on no node", slot.slot()));
    }
    if (allocation.released) continue;
    // A later revision may ask for another number while the old allocation is being given back.
    const auto spec = specs.find({key.job_id, key.part});
    const auto job = snapshot.jobs.find(key.job_id);
    const bool elastic = job != snapshot.jobs.end() && job->second.most_slots != 0;
    const bool asks = spec != specs.end() && spec->second->revision == 1;
    // An elastic one has had others, which it gave back for other jobs; and so has one that lost
    // some.
    const bool varies = elastic || (job != snapshot.jobs.end() && slots > job->second.slots);
    const size_t held = varies ? LiveSlots(allocation) : slots;
    if (asks && (varies ? held > spec->second->slots : held != spec->second->slots)) {
      find(fmt::format("it asks for {} slots and holds {}", spec->second->slots, held));
    }
    // JobBound is said of the slots that a job began with; of a group without those whose pods had
    // gone before, and of a pod without its places, for pods that it makes later.
    const bool group = job != snapshot.jobs.end() && model::IsGroup(job->second.kind);
    const bool pod = job != snapshot.jobs.end() && job->second.kind == "Pod";
    const bool all = pod ? bound[key] > 0 : bound[key] == slots;
    if (job != snapshot.jobs.end() && !varies && !group && job->second.state == "Bound" &&
        job->second.attempt == key.attempt && !all) {
      find(fmt::format(
          "the job is Bound, and {} of its {} slots have had their pod", bound[key], slots));
    }
  }
  check.checked = fmt::format("{} allocations, {} jobspecs, {} slots with pods",
                              snapshot.allocations.size(),
                              specs.size(),
                              snapshot.slots.size());
  return check;
}

Check OneAllocation(const Snapshot& snapshot) {
  Check check{
      .number = 3,
      .title = "a (job, attempt, part) has at most one allocation, an allocation one of them"};
  const AllocationKey* last = nullptr;  // the last live one; keys are sorted
  for (const auto& [key, allocation] : snapshot.allocations) {
    if (allocation.released) continue;
    const std::string name = JobName(snapshot, key.job_id);
    if (last != nullptr && last->job_id == key.job_id && last->attempt != key.attempt) {
      check.findings.push_back(
          {"two " + KeyText(key),
           fmt::format("{} holds what attempt {} was given, and what attempt {} was given",
                       name,
                       last->attempt,
                       key.attempt)});
    }
    last = &key;
    const auto job = snapshot.jobs.find(key.job_id);
    if (job == snapshot.jobs.end()) {
      check.findings.push_back(
          {"unknown " + KeyText(key),
           fmt::format("{} holds an allocation (attempt {}), and the queue does not know it",
                       name,
                       key.attempt)});
    } else if (key.attempt > job->second.attempt) {
      check.findings.push_back(
          {"ahead " + KeyText(key),
           fmt::format("{} holds an allocation of attempt {}, and is at attempt {}",
                       name,
                       key.attempt,
                       job->second.attempt)});
    }
    if (allocation.decodes &&
        matcher_core::PlacementHash(allocation.placement) != allocation.placement_hash) {
      check.findings.push_back(
          {"content " + KeyText(key),
           fmt::format("{} attempt {}: its placement is not what was decided (its hash differs)",
                       name,
                       key.attempt)});
    }
  }
  for (const auto& [id, job] : snapshot.jobs) CheckHolder(snapshot, job, &check);
  check.checked = fmt::format("{} live allocations, {} jobs", Live(snapshot), snapshot.jobs.size());
  return check;
}

}  // namespace internal
}  // namespace fluxqueue::verify
