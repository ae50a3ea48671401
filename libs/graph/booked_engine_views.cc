// What others may look at: usage for metrics and people, the fingerprint for tests and replay.
#include <algorithm>
#include <map>

#include "libs/graph/booked_engine.h"
#include "libs/graph/fnv.h"

namespace fluxqueue::graph {
namespace {

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
