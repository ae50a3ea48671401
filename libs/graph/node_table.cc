#include "libs/graph/node_table.h"

#include <algorithm>
#include <set>
#include <utility>

#include "libs/base/check.h"
#include "libs/graph/jobspec.h"

namespace fluxqueue::graph {

size_t NodeTable::Number(std::string_view resource) {
  const auto found = numbers_.find(resource);
  if (found != numbers_.end()) return found->second;
  const size_t number = resources_.size();
  resources_.emplace_back(resource);
  numbers_.emplace(resource, number);
  for (auto& [name, node] : nodes_) Load(node.get());
  return number;
}

std::optional<std::vector<Need>> NodeTable::NeedsOf(const Amounts& request) const {
  std::vector<Need> needs;
  needs.reserve(request.size());
  for (const Amount& amount : request) {
    const auto number = numbers_.find(amount.resource);
    if (number == numbers_.end()) return std::nullopt;
    needs.push_back({number->second, amount.amount});
  }
  return needs;
}

Node* NodeTable::Find(std::string_view name) const {
  const auto found = nodes_.find(name);
  return found == nodes_.end() ? nullptr : found->second.get();
}

Node* NodeTable::Add(NodeSpec spec) {
  auto node = std::make_unique<Node>();
  node->spec = std::move(spec);
  for (const Amounts* amounts : {&node->spec.resources, &node->spec.foreign}) {
    for (const Amount& amount : *amounts) Number(amount.resource);
  }
  Node* added = node.get();
  PutBack(std::move(node));
  return added;
}

void NodeTable::PutBack(std::unique_ptr<Node> owned) {
  Node* node = owned.get();
  Load(node);
  const bool inserted = nodes_.emplace(node->spec.name, std::move(owned)).second;
  CHECK(inserted, "node {} is there already", node->spec.name);
  by_ordinal_.emplace(node->spec.ordinal, node);
  CountLabels(node->spec, 1);
  if (node->spec.schedulable) ++schedulable_;
  ++version_;
}

std::unique_ptr<Node> NodeTable::Take(Node* node) {
  const auto found = nodes_.find(node->spec.name);
  std::unique_ptr<Node> owned = std::move(found->second);
  nodes_.erase(found);
  by_ordinal_.erase(node->spec.ordinal);
  CountLabels(node->spec, -1);
  if (node->spec.schedulable) --schedulable_;
  ++version_;
  return owned;
}

void NodeTable::Replace(Node* node, NodeSpec spec) {
  for (const Amounts* amounts : {&spec.resources, &spec.foreign}) {
    for (const Amount& amount : *amounts) Number(amount.resource);
  }
  const NodeSpec& before = node->spec;
  if (spec.labels != before.labels || spec.taints != before.taints ||
      spec.resources != before.resources) {
    ++version_;
  }
  schedulable_ += (spec.schedulable ? 1 : 0) - (node->spec.schedulable ? 1 : 0);
  CountLabels(before, -1);
  node->spec = std::move(spec);
  CountLabels(node->spec, 1);
  Load(node);
}

void NodeTable::SetLevels(std::vector<Level> levels) {
  levels_ = std::move(levels);
  labelled_.clear();
  for (const auto& [ordinal, node] : by_ordinal_) CountLabels(node->spec, 1);
  ++version_;
}

std::vector<Level> NodeTable::LevelsInUse() const {
  std::vector<Level> in_use;
  for (const Level& level : levels_) {
    if (labelled_.contains(level.label)) in_use.push_back(level);
  }
  return in_use;
}

std::vector<LevelGroup> NodeTable::Groups() const {
  std::vector<LevelGroup> groups;
  const std::vector<Level> in_use = LevelsInUse();
  for (size_t depth = 0; depth < in_use.size(); ++depth) {
    const auto levels = std::span(in_use).first(depth + 1);
    std::set<std::string, decltype(&NaturallyBefore)> named(&NaturallyBefore);
    std::vector<LevelGroup> unnamed;
    for (const auto& [ordinal, node] : by_ordinal_) {
      std::string name = GroupOf(node->spec, levels);
      if (LabelOf(node->spec, in_use[depth].label) == nullptr) {
        unnamed.push_back({std::move(name), depth, node});
      } else {
        named.insert(std::move(name));
      }
    }
    for (const std::string& name : named) groups.push_back({name, depth});
    groups.insert(groups.end(), unnamed.begin(), unnamed.end());
  }
  return groups;
}

void NodeTable::CountLabels(const NodeSpec& spec, int direction) {
  for (const Level& level : levels_) {
    if (LabelOf(spec, level.label) == nullptr) continue;
    uint32_t& count = labelled_[level.label];
    count += static_cast<uint32_t>(direction);
    if (count == 0) labelled_.erase(level.label);
  }
}

int64_t NodeTable::Largest(std::string_view resource) const {
  const auto number = numbers_.find(resource);
  if (number == numbers_.end()) return 0;
  int64_t largest = 0;
  for (const auto& [ordinal, node] : by_ordinal_) {
    largest = std::max(largest, node->capacity[number->second]);
  }
  return largest;
}

void NodeTable::Hold(Node* node, std::span<const Need> needs, int64_t slots) {
  for (const Need& need : needs) node->held[need.resource] += need.amount * slots;
  node->live_slots = static_cast<uint32_t>(node->live_slots + slots);
  CountFree(node);
}

void NodeTable::HoldDevices(Node* node, std::span<const uint32_t> devices, int64_t amount) {
  for (const uint32_t device : devices) {
    if (node->device_held.size() <= device) node->device_held.resize(device + 1, 0);
    node->device_held[device] += amount;
  }
  if (!devices.empty()) CountFreeDevices(node);
}

// Amounts by name become amounts by number; what is held stays.
void NodeTable::Load(Node* node) const {
  const auto load = [this](const Amounts& amounts, std::vector<int64_t>* by_number) {
    by_number->assign(resources_.size(), 0);
    for (const Amount& amount : amounts) {
      const auto number = numbers_.find(amount.resource);
      // One that comes next has no number yet: Number() loads all nodes again.
      if (number == numbers_.end()) continue;
      (*by_number)[number->second] = std::clamp<int64_t>(amount.amount, 0, kMaxAmount);
    }
  };
  load(node->spec.resources, &node->capacity);
  load(node->spec.foreign, &node->foreign);
  node->held.resize(resources_.size(), 0);
  node->free.resize(resources_.size(), 0);
  node->leaves.resize(resources_.size());
  CountFree(node);
}

void NodeTable::CountFree(Node* node) const {
  for (size_t i = 0; i < resources_.size(); ++i) {
    node->free[i] = std::max<int64_t>(0, node->capacity[i] - node->foreign[i] - node->held[i]);
  }
  CountFreeDevices(node);
}

// Nobody says which devices others use: the first ones that we have left something of.
void NodeTable::CountFreeDevices(Node* node) {
  if (node->capacity.size() <= kGpus) return;
  const auto devices =
      static_cast<size_t>(std::min(node->capacity[kGpus] / kWholeDevice, kMaxDevices));
  node->device_foreign.assign(devices, 0);
  node->device_free.assign(devices, 0);
  int64_t foreign = node->foreign[kGpus];
  for (size_t i = 0; i < devices; ++i) {
    const int64_t ours = i < node->device_held.size() ? node->device_held[i] : 0;
    const int64_t left = std::max<int64_t>(0, kWholeDevice - ours);
    node->device_foreign[i] = std::min(foreign, left);
    node->device_free[i] = left - node->device_foreign[i];
    foreign -= node->device_foreign[i];
  }
}

}  // namespace fluxqueue::graph
