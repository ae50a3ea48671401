// What others may look at: who holds what, explanations, usage for metrics and people, the
// fingerprint for tests and replay.
#include <algorithm>
#include <map>

#include "libs/base/status_macros.h"
#include "libs/graph/booked_engine.h"
#include "libs/graph/explanation.h"
#include "libs/graph/fnv.h"

namespace fluxqueue::graph {
namespace {

constexpr size_t kMostHolders = 10;

int64_t SaturatingAdd(int64_t a, int64_t b) {
  int64_t sum = 0;
  return __builtin_add_overflow(a, b, &sum) ? INT64_MAX : sum;
}

void HashAmounts(const Amounts& amounts, Fnv* hash) {
  hash->Add(amounts.size());
  for (const Amount& amount : amounts) {
    hash->Add(amount.resource);
    hash->Add(static_cast<uint64_t>(amount.amount));
  }
}

void HashNode(const NodeSpec& node, Fnv* hash) {
  hash->Add(node.name);
  hash->Add(node.uid);
  hash->Add(node.ordinal);
  hash->Add(uint64_t{node.schedulable});
  HashAmounts(node.resources, hash);
  HashAmounts(node.foreign, hash);
  hash->Add(node.labels.size());
  for (const auto& [key, value] : node.labels) {
    hash->Add(key);
    hash->Add(value);
  }
  hash->Add(node.taints.size());
  for (const Taint& taint : node.taints) {
    hash->Add(taint.key);
    hash->Add(taint.value);
    hash->Add(taint.effect);
  }
}

void HashPlacement(const AllocationKey& key, const Placement& placement, Fnv* hash) {
  hash->Add(key.job_id);
  hash->Add(key.attempt);
  hash->Add(key.part);
  hash->Add(placement.groups.size());
  for (const SlotGroup& group : placement.groups) {
    hash->Add(group.slots);
    HashAmounts(group.request, hash);
  }
  hash->Add(static_cast<uint64_t>(placement.start_s));
  hash->Add(static_cast<uint64_t>(placement.duration_s));
  hash->Add(uint64_t{placement.corrected});
  hash->Add(static_cast<uint64_t>(placement.bound_s));
  hash->Add(uint64_t{placement.enforced});
  hash->Add(placement.slots.size());
  for (const PlacedSlot& slot : placement.slots) {
    hash->Add(slot.slot);
    hash->Add(slot.node);
    hash->Add(uint64_t{slot.released});
    for (const uint32_t device : slot.devices) hash->Add(device);
  }
}

std::vector<ResourceUsage> UsageOf(const Node& node, const std::vector<std::string>& resources) {
  std::vector<ResourceUsage> usage;
  for (size_t i = 0; i < resources.size(); ++i) {
    if (node.capacity[i] == 0 && node.held[i] == 0 && node.foreign[i] == 0) continue;
    const int64_t free = node.spec.schedulable ? node.free[i] : 0;
    usage.push_back({resources[i], node.capacity[i], node.held[i], node.foreign[i], free});
  }
  std::sort(usage.begin(), usage.end(), [](const auto& a, const auto& b) {
    return a.resource < b.resource;
  });
  return usage;
}

Amounts HeldOn(const Node& node, const std::vector<std::string>& resources) {
  Amounts held;
  for (size_t i = 0; i < node.held.size(); ++i) {
    if (node.held[i] != 0) held.push_back({resources[i], node.held[i]});
  }
  std::sort(held.begin(), held.end(), [](const Amount& a, const Amount& b) {
    return a.resource < b.resource;
  });
  return held;
}

}  // namespace

const Placement* BookedEngine::Find(const AllocationKey& key) const {
  const auto found = allocations_.find(key);
  return found == allocations_.end() ? nullptr : &found->second.placement;
}

std::vector<AllocationKey> BookedEngine::Keys() const {
  std::vector<AllocationKey> keys;
  for (const auto& [key, allocation] : allocations_) keys.push_back(key);
  return keys;
}

std::vector<AllocationKey> BookedEngine::KeysOf(std::string_view job_id) const {
  std::vector<AllocationKey> keys;
  auto next = allocations_.lower_bound(AllocationKey{std::string(job_id), 0, 0});
  for (; next != allocations_.end() && next->first.job_id == job_id; ++next) {
    keys.push_back(next->first);
  }
  return keys;
}

std::vector<AllocationKey> BookedEngine::Overran(int64_t now_s) const {
  std::vector<AllocationKey> keys;
  for (const auto& [end, key] : first_ends_) {
    if (end.first > now_s) break;
    keys.push_back(key);
  }
  std::sort(keys.begin(), keys.end());
  return keys;
}

Explanation BookedEngine::Explain(const Jobspec& jobspec, Wording wording) const {
  Explanation why = ExplainShortfall(
      placer_->AsTaken(jobspec), table_, table_.levels(), table_.LevelsInUse(), wording);
  if (!placer_->remark().empty()) why.sentence += fmt::format("; {}", placer_->remark());
  return why;
}

std::vector<Holder> BookedEngine::HoldersOf(const Jobspec& jobspec, const Explanation& why) const {
  std::vector<Holder> holders;
  if (why.resource.empty()) return holders;
  const auto counts = [&](const Node* node) {
    return node != nullptr && (why.nearest.empty() || node->spec.name == why.nearest) &&
           jobspec.constraint.Matches(node->spec);
  };
  for (const auto& [key, allocation] : allocations_) {
    const Placement& placement = allocation.placement;
    Holder holder{.key = key};
    size_t slot = 0;
    for (const SlotGroup& group : placement.groups) {
      const auto amount =
          std::find_if(group.request.begin(), group.request.end(), [&why](const Amount& one) {
            return one.resource == why.resource;
          });
      for (const size_t end = slot + group.slots; slot < end; ++slot) {
        const bool holds = amount != group.request.end() && counts(allocation.nodes[slot]);
        if (holds) holder.amount += amount->amount;
      }
    }
    if (holder.amount == 0) continue;
    if (placement.duration_s > 0) holder.until_s = placement.start_s + placement.duration_s;
    holders.push_back(std::move(holder));
  }
  std::stable_sort(holders.begin(), holders.end(), [](const Holder& a, const Holder& b) {
    return a.amount > b.amount;
  });
  if (holders.size() > kMostHolders) holders.resize(kMostHolders);
  return holders;
}

std::vector<NodeSpec> BookedEngine::Nodes() const {
  std::vector<NodeSpec> nodes;
  for (const auto& [ordinal, node] : table_.nodes()) nodes.push_back(node->spec);
  return nodes;
}

std::vector<NodeUsage> BookedEngine::UsageByNode() const {
  std::vector<NodeUsage> usage;
  for (const auto& [ordinal, node] : table_.nodes()) {
    usage.push_back({node->spec.name,
                     node->spec.schedulable,
                     node->live_slots,
                     UsageOf(*node, table_.resources())});
  }
  return usage;
}

std::vector<ResourceUsage> BookedEngine::Usage() const {
  std::map<std::string, ResourceUsage> sums;
  for (const NodeUsage& node : UsageByNode()) {
    for (const ResourceUsage& one : node.resources) {
      ResourceUsage& sum = sums[one.resource];
      sum.resource = one.resource;
      sum.total = SaturatingAdd(sum.total, one.total);
      sum.held = SaturatingAdd(sum.held, one.held);
      sum.foreign = SaturatingAdd(sum.foreign, one.foreign);
      sum.free = SaturatingAdd(sum.free, one.free);
    }
  }
  std::vector<ResourceUsage> usage;
  for (auto& [name, sum] : sums) usage.push_back(std::move(sum));
  return usage;
}

uint64_t BookedEngine::Fingerprint() const {
  Fnv hash;
  hash.Add(expected_.Fingerprint());
  hash.Add(placer_->policy());
  hash.Add(static_cast<uint64_t>(heeds_preferences_));
  for (const Level& level : table_.levels()) {
    hash.Add(level.name);
    hash.Add(level.label);
  }
  for (const auto& [ordinal, node] : table_.nodes()) {
    HashNode(node->spec, &hash);
    // Follows from the allocations; here so that a defect in the books shows.
    hash.Add(node->live_slots);
    HashAmounts(HeldOn(*node, table_.resources()), &hash);
    for (const int64_t free : node->device_free) hash.Add(static_cast<uint64_t>(free));
  }
  for (const auto& [key, allocation] : allocations_) {
    HashPlacement(key, allocation.placement, &hash);
  }
  return hash.value();
}

}  // namespace fluxqueue::graph
