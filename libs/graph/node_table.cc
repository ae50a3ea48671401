#include "libs/graph/node_table.h"

#include <algorithm>
#include <utility>

#include "libs/base/check.h"
#include "libs/graph/jobspec.h"

namespace fluxqueue::graph {

int64_t SlotsIn(std::span<const int64_t> amounts, std::span<const Need> needs) {
  int64_t slots = kMaxSlots;
  for (const Need& need : needs) {
    slots = std::min(slots, amounts[need.resource] / need.amount);
  }
  return slots;
}

NodeTable::NodeTable() {
  Number("cpu");
  Renumber(nullptr);
}

size_t NodeTable::Number(std::string_view resource) {
  const auto found = numbers_.find(resource);
  if (found != numbers_.end()) return found->second;
  const size_t number = resources_.size();
  resources_.emplace_back(resource);
  numbers_.emplace(resource, number);
  for (auto& [name, node] : nodes_) Load(node.get());
  if (number > kCpu) Renumber(nullptr);
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

bool NodeTable::HasOrdinal(uint64_t ordinal) const {
  if (positions_.empty() || ordinal > last_ordinal_) return false;
  return std::any_of(positions_.begin(), positions_.end(), [ordinal](const Node* node) {
    return node != nullptr && node->spec.ordinal == ordinal;
  });
}

Node* NodeTable::Add(NodeSpec spec) {
  auto node = std::make_unique<Node>();
  node->spec = std::move(spec);
  for (const Amounts* amounts : {&node->spec.resources, &node->spec.foreign}) {
    for (const Amount& amount : *amounts) Number(amount.resource);
  }
  Load(node.get());
  Node* added = node.get();
  PutBack(std::move(node));
  return added;
}

void NodeTable::PutBack(std::unique_ptr<Node> owned) {
  Node* node = owned.get();
  Load(node);
  const bool inserted = nodes_.emplace(node->spec.name, std::move(owned)).second;
  CHECK(inserted, "node {} is there already", node->spec.name);
  if (node->spec.schedulable) ++schedulable_;
  ++version_;
  Place(node);
}

std::unique_ptr<Node> NodeTable::Take(Node* node) {
  const auto found = nodes_.find(node->spec.name);
  std::unique_ptr<Node> owned = std::move(found->second);
  nodes_.erase(found);
  if (node->spec.schedulable) --schedulable_;
  ++version_;
  positions_[node->position] = nullptr;
  untouched_.Clear(node->position);
  touched_.Clear(node->position);
  capacity_.Clear(node->position);
  return owned;
}

void NodeTable::Replace(Node* node, NodeSpec spec) {
  for (const Amounts* amounts : {&spec.resources, &spec.foreign}) {
    for (const Amount& amount : *amounts) Number(amount.resource);
  }
  if (spec.labels != node->spec.labels || spec.taints != node->spec.taints) ++version_;
  schedulable_ += (spec.schedulable ? 1 : 0) - (node->spec.schedulable ? 1 : 0);
  node->spec = std::move(spec);
  Load(node);
  Index(node);
}

void NodeTable::Hold(Node* node, std::span<const Need> needs, int64_t slots) {
  for (const Need& need : needs) node->held[need.resource] += need.amount * slots;
  node->live_slots = static_cast<uint32_t>(node->live_slots + slots);
  Refresh(node);
}

void NodeTable::SetApart(bool apart) {
  apart_ = apart;
  Renumber(nullptr);
}

// At the end when that is where its ordinal belongs and there is room, else all anew.
void NodeTable::Place(Node* node) {
  const bool last = positions_.empty() || node->spec.ordinal > last_ordinal_;
  if (!last || positions_.size() == untouched_.leaves()) return Renumber(node);
  node->position = positions_.size();
  positions_.push_back(node);
  last_ordinal_ = node->spec.ordinal;
  Index(node);
}

void NodeTable::Renumber(Node* added) {
  std::erase(positions_, nullptr);
  if (added != nullptr) positions_.push_back(added);
  std::sort(positions_.begin(), positions_.end(), [](const Node* a, const Node* b) {
    return a->spec.ordinal < b->spec.ordinal;
  });
  last_ordinal_ = positions_.empty() ? 0 : positions_.back()->spec.ordinal;
  ++version_;
  // Room for as many again, so that a growing cluster is not renumbered at each node.
  const size_t leaves = std::max<size_t>(16, 2 * positions_.size());
  untouched_.Reset(leaves, resources_.size());
  touched_.Reset(leaves, resources_.size());
  capacity_.Reset(leaves, resources_.size());
  for (size_t i = 0; i < positions_.size(); ++i) {
    positions_[i]->position = i;
    Index(positions_[i]);
  }
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
}

void NodeTable::Index(Node* node) {
  capacity_.Set(node->position, node->capacity);
  Refresh(node);
}

void NodeTable::Refresh(Node* node) {
  for (size_t i = 0; i < resources_.size(); ++i) {
    node->free[i] = std::max<int64_t>(0, node->capacity[i] - node->foreign[i] - node->held[i]);
  }
  const bool touched = apart_ && node->live_slots > 0;
  MaxTree& in = touched ? touched_ : untouched_;
  MaxTree& out = touched ? untouched_ : touched_;
  out.Clear(node->position);
  if (node->spec.schedulable) {
    in.Set(node->position, node->free);
  } else {
    in.Clear(node->position);
  }
}

}  // namespace fluxqueue::graph
