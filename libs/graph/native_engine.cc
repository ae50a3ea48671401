#include "libs/graph/native_engine.h"

#include <algorithm>
#include <array>
#include <limits>
#include <optional>

#include "libs/base/check.h"
#include "libs/base/status_macros.h"
#include "libs/graph/explanation.h"
#include "libs/graph/fnv.h"

namespace fluxqueue::graph {
namespace {

// The trees are asked when at least one node in so many meets the constraints.
constexpr size_t kFewNodes = 16;

constexpr std::array<std::string_view, 3> kPolicies = {"first", "lonode", "hinode"};

bool Few(const std::vector<size_t>& positions, const NodeTable& table) {
  return positions.size() * kFewNodes < table.positions().size();
}

// More of any resource in `after`; both sorted by name.
bool AnyGrew(const Amounts& before, const Amounts& after) {
  return std::any_of(after.begin(), after.end(), [&before](const Amount& now) {
    const auto was = std::find_if(before.begin(), before.end(), [&now](const Amount& amount) {
      return amount.resource == now.resource;
    });
    return now.amount > (was == before.end() ? 0 : was->amount);
  });
}

}  // namespace

std::unique_ptr<Engine> MakeNativeEngine() {
  return std::make_unique<NativeEngine>();
}

// ---- the graph

absl::Status NativeEngine::SetPolicy(std::string_view policy) {
  const auto found = std::find(kPolicies.begin(), kPolicies.end(), policy);
  if (found == kPolicies.end()) {
    return InvalidArgument(
        "policy \"{}\": the native engine knows {}", policy, fmt::join(kPolicies, ", "));
  }
  Record(UndoPolicy{policy_});
  ApplyPolicy(static_cast<Policy>(found - kPolicies.begin()));
  return absl::OkStatus();
}

void NativeEngine::ApplyPolicy(Policy policy) {
  policy_ = policy;
  table_.SetApart(policy == Policy::kFirst);
}

absl::Status NativeEngine::AddNode(NodeSpec node) {
  if (table_.Find(node.name) != nullptr) {
    return MakeStatus(
        absl::StatusCode::kFailedPrecondition, "node {} is in the graph already", node.name);
  }
  if (table_.HasOrdinal(node.ordinal)) {
    return MakeStatus(absl::StatusCode::kFailedPrecondition,
                      "node {}: the ordinal {} is another node's",
                      node.name,
                      node.ordinal);
  }
  Record(UndoAdd{node.name});
  table_.Add(std::move(node));
  return absl::OkStatus();
}

absl::StatusOr<NodeChange> NativeEngine::UpdateNode(NodeSpec spec) {
  Node* node = table_.Find(spec.name);
  if (node == nullptr) {
    return MakeStatus(absl::StatusCode::kNotFound, "node {} is not in the graph", spec.name);
  }
  const NodeSpec& before = node->spec;
  if (before.ordinal != spec.ordinal) {
    return MakeStatus(absl::StatusCode::kFailedPrecondition,
                      "node {}: has the ordinal {}, which cannot become {}",
                      spec.name,
                      before.ordinal,
                      spec.ordinal);
  }
  if (before == spec) return NodeChange{};
  NodeChange change{.changed = true};
  change.grew =
      spec.schedulable &&
      (!before.schedulable || before.labels != spec.labels || before.taints != spec.taints ||
       AnyGrew(before.resources, spec.resources) || AnyGrew(spec.foreign, before.foreign));
  Record(UndoUpdate{before});
  table_.Replace(node, std::move(spec));
  return change;
}

absl::StatusOr<std::vector<AllocationKey>> NativeEngine::RemoveNode(std::string_view name) {
  Node* node = table_.Find(name);
  if (node == nullptr) {
    return MakeStatus(absl::StatusCode::kNotFound, "node {} is not in the graph", name);
  }
  std::vector<AllocationKey> broken;
  UndoRemove undo;
  // Nodes go rarely: looking at every slot is dearer here and cheaper everywhere else.
  for (auto& [key, allocation] : allocations_) {
    for (size_t i = 0; node->live_slots > 0 && i < allocation.nodes.size(); ++i) {
      if (allocation.nodes[i] != node) continue;
      table_.Hold(node, allocation.needs, -1);
      allocation.nodes[i] = nullptr;
      allocation.placement.slots[i].released = true;
      undo.slots.emplace_back(key, i);
      if (broken.empty() || broken.back() != key) broken.push_back(key);
    }
  }
  undo.node = table_.Take(node);
  Record(std::move(undo));
  return broken;
}

// --------------------------------------------------------------------------------------- the match

bool NativeEngine::Before(const Node& a, const Node& b) const {
  switch (policy_) {
    case Policy::kLonode:
      return a.position < b.position;
    case Policy::kHinode:
      return a.position > b.position;
    case Policy::kFirst: {
      const auto rank = [](const Node& node) {
        return node.live_slots == 0 ? std::numeric_limits<int64_t>::max()
                                    : node.free[NodeTable::kCpu];
      };
      return std::pair(rank(a), a.position) > std::pair(rank(b), b.position);
    }
  }
  return false;
}

template <typename Visit>
void NativeEngine::WalkFew(std::span<const Need> needs,
                           const MatchingNodes& matching,
                           const Visit& visit) const {
  std::vector<Node*> fitting;
  for (const size_t position : matching.now) {
    Node* node = table_.positions()[position];
    if (node->spec.schedulable && SlotsIn(node->free, needs) > 0) fitting.push_back(node);
  }
  std::sort(fitting.begin(), fitting.end(), [this](const Node* a, const Node* b) {
    return Before(*a, *b);
  });
  for (Node* node : fitting) {
    if (!visit(node)) return;
  }
}

template <typename Visit>
void NativeEngine::Walk(std::span<const Need> needs,
                        const MatchingNodes& matching,
                        const Visit& visit) {
  if (Few(matching.now, table_)) return WalkFew(needs, matching, visit);
  if (policy_ == Policy::kFirst) return WalkFirst(needs, matching, visit);
  const auto accept = [&matching](size_t leaf) {
    return (matching.flags[leaf] & MatchingNodes::kNow) != 0;
  };
  const MaxTree& tree = table_.untouched();
  const bool up = policy_ == Policy::kLonode;
  size_t edge = up ? 0 : tree.leaves();
  while (true) {
    const size_t leaf = up ? tree.FindUp(edge, needs, accept) : tree.FindDown(edge, needs, accept);
    if (leaf == MaxTree::kNone || !visit(table_.positions()[leaf])) return;
    edge = up ? leaf + 1 : leaf;
  }
}

template <typename Visit>
void NativeEngine::WalkFirst(std::span<const Need> needs,
                             const MatchingNodes& matching,
                             const Visit& visit) {
  const auto accept = [&matching](size_t leaf) {
    return (matching.flags[leaf] & MatchingNodes::kNow) != 0;
  };
  size_t edge = table_.untouched().leaves();
  while (true) {
    const size_t leaf = table_.untouched().FindDown(edge, needs, accept);
    if (leaf == MaxTree::kNone) break;
    if (!visit(table_.positions()[leaf])) return;
    edge = leaf;
  }
  std::vector<Node*> visited;
  while (true) {
    const size_t leaf = table_.touched().FindGreatest(NodeTable::kCpu, needs, accept);
    if (leaf == MaxTree::kNone) break;
    Node* node = table_.positions()[leaf];
    if (!visit(node)) break;
    table_.Hide(*node);
    visited.push_back(node);
  }
  for (Node* node : visited) table_.Refresh(node);
}

std::vector<NativeEngine::Share> NativeEngine::Choose(std::span<const Need> needs,
                                                      const MatchingNodes& matching,
                                                      int64_t slots) {
  std::vector<Share> shares;
  if (!table_.untouched().MayFit(needs) && !table_.touched().MayFit(needs)) return shares;
  Walk(needs, matching, [&](Node* node) {
    const int64_t here = std::min(slots, SlotsIn(node->free, needs));
    shares.push_back({node, here});
    slots -= here;
    return slots > 0;
  });
  if (slots > 0) shares.clear();
  return shares;
}

bool NativeEngine::CouldEverFit(std::span<const Need> needs,
                                const MatchingNodes& matching,
                                int64_t slots) const {
  if (!table_.capacity().MayFit(needs)) return false;
  if (Few(matching.ever, table_)) {
    for (const size_t position : matching.ever) {
      slots -= SlotsIn(table_.positions()[position]->capacity, needs);
      if (slots <= 0) return true;
    }
    return false;
  }
  const auto accept = [&matching](size_t leaf) {
    return (matching.flags[leaf] & MatchingNodes::kEver) != 0;
  };
  size_t leaf = table_.capacity().FindUp(0, needs, accept);
  while (leaf != MaxTree::kNone) {
    slots -= SlotsIn(table_.positions()[leaf]->capacity, needs);
    if (slots <= 0) return true;
    leaf = table_.capacity().FindUp(leaf + 1, needs, accept);
  }
  return false;
}

Outcome NativeEngine::Match(const MatchRequest& request) {
  const bool allocates = request.operation != Operation::kSatisfiability;
  if (allocates) {
    if (const Placement* held = Find(request.key); held != nullptr) {
      return {OutcomeKind::kAllocated, held};
    }
  }
  const int64_t slots = request.jobspec.slots;
  std::optional<std::vector<Need>> needs = table_.NeedsOf(request.jobspec.request);
  const MatchingNodes* matching = needs ? &matching_.Get(request.jobspec) : nullptr;
  if (allocates && needs) {
    const std::vector<Share> shares = Choose(*needs, *matching, slots);
    if (!shares.empty()) {
      return {OutcomeKind::kAllocated, &Allocate(request, *std::move(needs), shares)};
    }
  }
  if (request.operation == Operation::kAllocate) return {OutcomeKind::kBusy, nullptr};
  if (!needs || !CouldEverFit(*needs, *matching, slots)) {
    return {OutcomeKind::kUnsatisfiable, nullptr};
  }
  return {allocates ? OutcomeKind::kBusy : OutcomeKind::kAllocated, nullptr};
}

const Placement& NativeEngine::Allocate(const MatchRequest& request,
                                        std::vector<Need> needs,
                                        const std::vector<Share>& shares) {
  Allocation& allocation = allocations_[request.key];
  allocation.placement.requests = request.jobspec.request;
  allocation.placement.start_s = request.now_s;
  allocation.placement.duration_s = request.duration_s;
  allocation.placement.slots.reserve(request.jobspec.slots);
  allocation.nodes.reserve(request.jobspec.slots);
  for (const Share& share : shares) {
    table_.Hold(share.node, needs, share.slots);
    for (int64_t i = 0; i < share.slots; ++i) {
      const uint32_t slot = static_cast<uint32_t>(allocation.nodes.size());
      allocation.placement.slots.push_back({slot, share.node->spec.name, false});
      allocation.nodes.push_back(share.node);
    }
  }
  allocation.needs = std::move(needs);
  Record(UndoAllocate{request.key});
  return allocation.placement;
}

Explanation NativeEngine::Explain(const Jobspec& jobspec) const {
  return ExplainShortfall(jobspec, table_, matching_.Get(jobspec));
}

// ---- what is held

// direction 1: holds every live slot; -1: gives them back.
void NativeEngine::HoldLive(const Allocation& allocation, int64_t direction) {
  for (Node* node : allocation.nodes) {
    if (node != nullptr) table_.Hold(node, allocation.needs, direction);
  }
}

bool NativeEngine::Release(const AllocationKey& key) {
  const auto found = allocations_.find(key);
  if (found == allocations_.end()) return false;
  HoldLive(found->second, -1);
  Record(UndoRelease{key, std::move(found->second)});
  allocations_.erase(found);
  return true;
}

std::vector<uint32_t> NativeEngine::ReleaseSlots(const AllocationKey& key,
                                                 const std::vector<uint32_t>& slots) {
  std::vector<uint32_t> released;
  const auto found = allocations_.find(key);
  if (found == allocations_.end()) return released;
  Allocation& allocation = found->second;
  UndoReleaseSlots undo{key, {}};
  for (const uint32_t slot : slots) {
    if (slot >= allocation.nodes.size() || allocation.nodes[slot] == nullptr) continue;
    Node* node = std::exchange(allocation.nodes[slot], nullptr);
    table_.Hold(node, allocation.needs, -1);
    allocation.placement.slots[slot].released = true;
    undo.slots.emplace_back(slot, node);
    released.push_back(slot);
  }
  if (!released.empty()) Record(std::move(undo));
  return released;
}

absl::Status NativeEngine::Restore(const AllocationKey& key, const Placement& placement) {
  const auto fail = [&key](std::string_view what) {
    return MakeStatus(absl::StatusCode::kFailedPrecondition,
                      "job {} attempt {} part {}: {}",
                      key.job_id,
                      key.attempt,
                      key.part,
                      what);
  };
  if (allocations_.contains(key)) return fail("holds something already");
  Allocation allocation{.placement = placement, .nodes = {}, .needs = {}};
  for (size_t i = 0; i < placement.slots.size(); ++i) {
    const PlacedSlot& slot = placement.slots[i];
    if (slot.slot != i) return fail(fmt::format("slot {} stands at index {}", slot.slot, i));
    Node* node = slot.released ? nullptr : table_.Find(slot.node);
    if (node == nullptr && !slot.released) {
      return fail(fmt::format("slot {} is on node {}, which is not in the graph", i, slot.node));
    }
    allocation.nodes.push_back(node);
  }
  for (const Amount& amount : placement.requests) {
    allocation.needs.push_back({table_.Number(amount.resource), amount.amount});
  }
  HoldLive(allocation, 1);
  allocations_.emplace(key, std::move(allocation));
  Record(UndoAllocate{key});
  return absl::OkStatus();
}

const Placement* NativeEngine::Find(const AllocationKey& key) const {
  const auto found = allocations_.find(key);
  return found == allocations_.end() ? nullptr : &found->second.placement;
}

std::vector<AllocationKey> NativeEngine::KeysOf(std::string_view job_id) const {
  std::vector<AllocationKey> keys;
  auto next = allocations_.lower_bound(AllocationKey{std::string(job_id), 0, 0});
  for (; next != allocations_.end() && next->first.job_id == job_id; ++next) {
    keys.push_back(next->first);
  }
  return keys;
}

// -------------------------------------------------------------------------------------------- undo

void NativeEngine::Record(Undo undo) {
  if (recording_) journal_.push_back(std::move(undo));
}

void NativeEngine::Checkpoint() {
  CHECK(!recording_, "Checkpoint within a checkpoint");
  recording_ = true;
}

void NativeEngine::Commit() {
  recording_ = false;
  journal_.clear();
}

void NativeEngine::Rollback() {
  recording_ = false;
  while (!journal_.empty()) {
    std::visit([this](auto& undo) { TakeBack(undo); }, journal_.back());
    journal_.pop_back();
  }
}

void NativeEngine::TakeBack(UndoPolicy& undo) {
  ApplyPolicy(undo.before);
}

void NativeEngine::TakeBack(UndoAdd& undo) {
  table_.Take(table_.Find(undo.name));
}

void NativeEngine::TakeBack(UndoUpdate& undo) {
  Node* node = table_.Find(undo.before.name);
  table_.Replace(node, std::move(undo.before));
}

void NativeEngine::TakeBack(UndoRemove& undo) {
  Node* node = undo.node.get();
  table_.PutBack(std::move(undo.node));
  for (const auto& [key, slot] : undo.slots) {
    Allocation& allocation = allocations_.at(key);
    allocation.nodes[slot] = node;
    allocation.placement.slots[slot].released = false;
    table_.Hold(node, allocation.needs, 1);
  }
}

void NativeEngine::TakeBack(UndoAllocate& undo) {
  const auto found = allocations_.find(undo.key);
  HoldLive(found->second, -1);
  allocations_.erase(found);
}

void NativeEngine::TakeBack(UndoRelease& undo) {
  HoldLive(undo.allocation, 1);
  allocations_.emplace(undo.key, std::move(undo.allocation));
}

void NativeEngine::TakeBack(UndoReleaseSlots& undo) {
  Allocation& allocation = allocations_.at(undo.key);
  for (const auto& [slot, node] : undo.slots) {
    allocation.nodes[slot] = node;
    allocation.placement.slots[slot].released = false;
    table_.Hold(node, allocation.needs, 1);
  }
}

}  // namespace fluxqueue::graph
