#include "libs/graph/booked_engine.h"

#include <algorithm>
#include <set>

#include "libs/base/check.h"
#include "libs/base/status_macros.h"
#include "libs/graph/cluster_graph.h"
#include "libs/graph/planned_end.h"
#include "libs/graph/preferred_placement.h"

namespace fluxqueue::graph {
namespace {

// More of any resource in `after`; both sorted by name.
bool AnyGrew(const Amounts& before, const Amounts& after) {
  return std::any_of(after.begin(), after.end(), [&before](const Amount& now) {
    const auto was = std::find_if(before.begin(), before.end(), [&now](const Amount& amount) {
      return amount.resource == now.resource;
    });
    return now.amount > (was == before.end() ? 0 : was->amount);
  });
}

// By slot, the group that it is in.
std::vector<uint32_t> GroupsOfSlots(const std::vector<SlotGroup>& groups) {
  std::vector<uint32_t> of_slot;
  for (uint32_t group = 0; group < groups.size(); ++group) {
    of_slot.insert(of_slot.end(), groups[group].slots, group);
  }
  return of_slot;
}

// How much a slot has of each of its devices.
int64_t OfEachDevice(const std::vector<Need>& needs) {
  for (const Need& need : needs) {
    if (need.resource == NodeTable::kGpus) return DevicesFor(need.amount).of_each;
  }
  return 0;
}

// Planned; 0: none.
int64_t EndOf(const Placement& placement) {
  return placement.duration_s == 0 ? 0 : placement.start_s + placement.duration_s;
}

// Without its slots.
Placement NewPlacement(const MatchRequest& request, int64_t start_s) {
  Placement placement{.slots = {},
                      .groups = request.jobspec.groups,
                      .start_s = start_s,
                      .duration_s = request.duration_s,
                      .corrected = request.corrected,
                      .bound_s = request.bound_s,
                      .enforced = request.enforced};
  placement.slots.reserve(request.jobspec.slots);
  return placement;
}

void AddSlots(const Placer::Share& share, Placement* placement) {
  for (int64_t i = 0; i < share.slots; ++i) {
    const auto slot = static_cast<uint32_t>(placement->slots.size());
    placement->slots.push_back({slot, share.node->spec.name, false});
    if (share.devices.empty()) continue;
    const auto each = static_cast<int64_t>(share.devices.size()) / share.slots;
    const auto first = share.devices.begin() + i * each;
    placement->slots.back().devices.assign(first, first + each);
  }
}

// `nodes`: of each slot; null: it is released.
Placer::Shares SharesOf(const Placement& placement, const std::vector<Node*>& nodes) {
  const std::vector<uint32_t> group_of = GroupsOfSlots(placement.groups);
  // By group of slots and ordinal.
  std::map<std::pair<uint32_t, uint64_t>, Placer::Share> by_node;
  for (size_t slot = 0; slot < nodes.size(); ++slot) {
    Node* node = nodes[slot];
    if (node == nullptr) continue;
    const uint32_t group = group_of[slot];
    Placer::Share& share =
        by_node.try_emplace({group, node->spec.ordinal}, Placer::Share{node, group, 0})
            .first->second;
    ++share.slots;
    const std::vector<uint32_t>& devices = placement.slots[slot].devices;
    share.devices.insert(share.devices.end(), devices.begin(), devices.end());
  }
  Placer::Shares shares;
  for (const auto& [where, share] : by_node) shares.push_back(share);
  return shares;
}

size_t DevicesOf(const SlotGroup& slots) {
  for (const Amount& amount : slots.request) {
    if (amount.resource == kGpuMilli) return DevicesFor(amount.amount).devices;
  }
  return 0;
}

}  // namespace

std::unique_ptr<Engine> MakeNativeEngine() {
  return std::make_unique<BookedEngine>(MakeClusterGraph);
}

BookedEngine::BookedEngine(const MakePlacer& make) : placer_(make(&table_, &expected_)) {}

// ---- the graph

Placer& BookedEngine::UpToDate() {
  if (placer_->is_stale()) {
    placer_->Rebuild();
    for (const auto& [key, allocation] : allocations_) HoldInPlacer(allocation);
    closed_for_.reset();
  }
  if (closed_for_ != table_.version()) {
    placer_->SetClosures(closures_);
    closed_for_ = table_.version();
  }
  return *placer_;
}

absl::Status BookedEngine::SetPolicy(std::string_view policy) {
  UndoPolicy undo{placer_->policy()};
  RETURN_IF_ERROR(placer_->SetPolicy(policy));
  Record(std::move(undo));
  return absl::OkStatus();
}

absl::Status BookedEngine::SetLevels(const std::vector<std::string>& levels) {
  ASSIGN_OR_RETURN(std::vector<Level> parsed, ParseLevels(levels));
  if (parsed == table_.levels()) return absl::OkStatus();
  Record(UndoLevels{table_.levels()});
  table_.SetLevels(std::move(parsed));
  placer_->LevelsChanged();
  return absl::OkStatus();
}

void BookedEngine::Expect(const Jobspec& jobspec, int64_t jobs) {
  Record(UndoExpect{jobspec, jobs});
  expected_.Add(jobspec, jobs);
}

void BookedEngine::SetForecast(std::optional<Workload> forecast) {
  Record(UndoForecast{expected_.forecast()});
  expected_.SetForecast(std::move(forecast));
}

void BookedEngine::HeedPreferences(bool heeds) {
  Record(UndoHeed{heeds_preferences_});
  heeds_preferences_ = heeds;
}

absl::Status BookedEngine::AddNode(NodeSpec node) {
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
  placer_->Add(table_.Add(std::move(node)));
  return absl::OkStatus();
}

absl::StatusOr<NodeChange> BookedEngine::UpdateNode(NodeSpec spec) {
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
  NodeSpec replaced = before;
  table_.Replace(node, std::move(spec));
  UpdateInPlacer(node, replaced);
  Record(UndoUpdate{std::move(replaced)});
  return change;
}

absl::StatusOr<std::vector<AllocationKey>> BookedEngine::RemoveNode(std::string_view name) {
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
      HoldSlot(allocation, i, node, -1);
      allocation.nodes[i] = nullptr;
      allocation.placement.slots[i].released = true;
      undo.slots.emplace_back(key, i);
      if (broken.empty() || broken.back() != key) broken.push_back(key);
    }
  }
  undo.node = table_.Take(node);
  placer_->Remove(node);
  Record(std::move(undo));
  return broken;
}

// ---- the match

std::optional<std::vector<std::vector<Need>>> BookedEngine::NeedsOf(const Jobspec& jobspec) const {
  std::vector<std::vector<Need>> needs;
  for (const SlotGroup& group : jobspec.groups) {
    std::optional<std::vector<Need>> of_slot = table_.NeedsOf(group.request);
    if (!of_slot) return std::nullopt;
    needs.push_back(*std::move(of_slot));
  }
  return needs;
}

std::vector<std::vector<Need>> BookedEngine::NeedsOf(const Placement& placement) {
  std::vector<std::vector<Need>> needs;
  for (const SlotGroup& group : placement.groups) {
    std::vector<Need>& of_slot = needs.emplace_back();
    for (const Amount& amount : group.request) {
      of_slot.push_back({table_.Number(amount.resource), amount.amount});
    }
  }
  return needs;
}

std::optional<Placer::Place> BookedEngine::Place(JobNumber first,
                                                 const MatchRequest& request,
                                                 std::span<const std::vector<Need>> needs,
                                                 const Placer::When& when) {
  Placer& placer = UpToDate();
  const Jobspec& jobspec = request.jobspec;
  const bool heeds = heeds_preferences_ && !request.anywhere;
  PreferenceTiers* tiers = heeds ? preferred_.TiersOf(jobspec, table_) : nullptr;
  if (tiers == nullptr) return placer.Match(first, jobspec, when);
  return PlaceByPreference(
      {.first = first, .jobspec = jobspec, .when = when, .needs = needs}, tiers, table_, &placer);
}

Outcome BookedEngine::Match(const MatchRequest& request) {
  const bool allocates = request.operation != Operation::kSatisfiability;
  if (allocates) {
    if (const Placement* held = Find(request.key); held != nullptr) {
      return {OutcomeKind::kAllocated, held};
    }
  }
  std::optional<std::vector<std::vector<Need>>> needs = NeedsOf(request.jobspec);
  if (allocates && needs) {
    DropReservation(request.key);
    AdvanceTo(request.now_s);
    Placer::When when{.now_s = request.now_s,
                      .duration_s = request.duration_s,
                      .may_reserve = request.operation == Operation::kAllocateOrReserve};
    if (request.before_s != 0) when.before_s = request.before_s;
    const auto place = Place(next_number_, request, *needs, when);
    if (place && place->at_s == Placer::kNever) return {.waits_for_unending = true};
    if (place && place->at_s > request.now_s) {
      return {OutcomeKind::kReserved, &Reserve(request, *place), place->at_s};
    }
    if (place) {
      return {OutcomeKind::kAllocated, &Allocate(request, *std::move(needs), place->shares)};
    }
  }
  if (request.operation == Operation::kAllocate) return {OutcomeKind::kBusy, nullptr};
  if (!needs || !UpToDate().CouldEver(request.jobspec)) {
    return {OutcomeKind::kUnsatisfiable, nullptr};
  }
  return {allocates ? OutcomeKind::kBusy : OutcomeKind::kAllocated, nullptr};
}

void BookedEngine::SetClosures(std::vector<Closure> closures) {
  if (closures == closures_) return;
  closures_ = std::move(closures);
  closed_for_.reset();
}

void BookedEngine::Plan(const AllocationKey& key, const Allocation& allocation) {
  if (allocation.end_s == 0) return;
  ends_.emplace(std::pair(allocation.end_s, allocation.number), key);
  first_ends_.emplace(std::pair(EndOf(allocation.placement), allocation.number), key);
}

void BookedEngine::Unplan(const Allocation& allocation) {
  ends_.erase({allocation.end_s, allocation.number});
  first_ends_.erase({EndOf(allocation.placement), allocation.number});
}

void BookedEngine::Replan(const AllocationKey& key, Allocation* allocation, int64_t end_s) {
  Unplan(*allocation);
  allocation->end_s = end_s;
  Plan(key, *allocation);
  placer_->Replan(allocation->number, allocation->needs.size(), end_s);
}

void BookedEngine::AdvanceTo(int64_t now_s) {
  while (!ends_.empty() && ends_.begin()->first.first <= now_s) {
    const AllocationKey key = ends_.begin()->second;
    Allocation& allocation = allocations_.at(key);
    Record(UndoExtend{key, allocation.end_s});
    Replan(key, &allocation, PlannedEnd(allocation.placement, now_s));
  }
}

// ---- reservations

const Placement& BookedEngine::Reserve(const MatchRequest& request, const Placer::Place& place) {
  Reservation& reservation = reservations_[request.key];
  reservation.number = next_number_;
  next_number_ += request.jobspec.groups.size();
  reservation.placement = NewPlacement(request, place.at_s);
  for (const Placer::Share& share : place.shares) AddSlots(share, &reservation.placement);
  return reservation.placement;
}

bool BookedEngine::Reserve(const AllocationKey& key, const Placement& placement) {
  std::vector<Node*> nodes;
  for (const PlacedSlot& slot : placement.slots) {
    Node* node = table_.Find(slot.node);
    if (node == nullptr || !node->spec.schedulable) return false;
    nodes.push_back(node);
  }
  UpToDate().Hold(next_number_,
                  SharesOf(placement, nodes),
                  NeedsOf(placement),
                  {.reserved_s = placement.start_s, .end_s = EndOf(placement)});
  reservations_.emplace(key, Reservation{next_number_, placement});
  next_number_ += placement.groups.size();
  return true;
}

void BookedEngine::DropReservation(const AllocationKey& key) {
  const auto found = reservations_.find(key);
  if (found == reservations_.end()) return;
  placer_->Release(found->second.number, found->second.placement.groups.size());
  reservations_.erase(found);
}

void BookedEngine::DropReservations() {
  while (!reservations_.empty()) DropReservation(AllocationKey(reservations_.begin()->first));
}

// ---- allocations

const Placement& BookedEngine::Allocate(const MatchRequest& request,
                                        std::vector<std::vector<Need>> needs,
                                        const Placer::Shares& shares) {
  Allocation& allocation = allocations_[request.key];
  allocation.number = next_number_;
  next_number_ += needs.size();
  allocation.placement = NewPlacement(request, request.now_s);
  allocation.end_s = EndOf(allocation.placement);
  Plan(request.key, allocation);
  allocation.nodes.reserve(request.jobspec.slots);
  allocation.needs = std::move(needs);
  Append(shares, &allocation);
  Record(UndoAllocate{request.key});
  return allocation.placement;
}

void BookedEngine::Append(const Placer::Shares& shares, Allocation* allocation) {
  for (const Placer::Share& share : shares) {
    const std::vector<Need>& needs = allocation->needs[share.group];
    table_.Hold(share.node, needs, share.slots);
    table_.HoldDevices(share.node, share.devices, OfEachDevice(needs));
    placer_->Reorder(share.node);
    AddSlots(share, &allocation->placement);
    allocation->nodes.resize(allocation->placement.slots.size(), share.node);
  }
}

// ---- what is held

void BookedEngine::HoldSlot(const Allocation& allocation,
                            size_t slot,
                            Node* node,
                            int64_t direction) {
  size_t group = 0;
  for (size_t behind = allocation.placement.groups[0].slots; slot >= behind;) {
    behind += allocation.placement.groups[++group].slots;
  }
  table_.Hold(node, allocation.needs[group], direction);
  const std::vector<uint32_t>& devices = allocation.placement.slots[slot].devices;
  table_.HoldDevices(node, devices, direction * OfEachDevice(allocation.needs[group]));
}

void BookedEngine::HoldLive(const Allocation& allocation, int64_t direction) {
  for (size_t slot = 0; slot < allocation.nodes.size(); ++slot) {
    Node* node = allocation.nodes[slot];
    if (node == nullptr) continue;
    HoldSlot(allocation, slot, node, direction);
    placer_->Reorder(node);
  }
  if (direction > 0) {
    HoldInPlacer(allocation);
  } else {
    placer_->Release(allocation.number, allocation.needs.size());
  }
}

void BookedEngine::HoldInPlacer(const Allocation& allocation) {
  placer_->Hold(allocation.number,
                SharesOf(allocation.placement, allocation.nodes),
                allocation.needs,
                {.end_s = allocation.end_s});
}

void BookedEngine::UpdateInPlacer(Node* node, const NodeSpec& before) {
  if (!placer_->Update(node, before) || node->live_slots == 0) return;
  for (const auto& [key, allocation] : allocations_) {
    const auto& nodes = allocation.nodes;
    if (std::find(nodes.begin(), nodes.end(), node) != nodes.end()) HoldInPlacer(allocation);
  }
}

bool BookedEngine::Release(const AllocationKey& key) {
  const auto found = allocations_.find(key);
  if (found == allocations_.end()) return false;
  HoldLive(found->second, -1);
  Unplan(found->second);
  Record(UndoRelease{key, std::move(found->second)});
  allocations_.erase(found);
  return true;
}

std::vector<uint32_t> BookedEngine::ReleaseSlots(const AllocationKey& key,
                                                 const std::vector<uint32_t>& slots) {
  std::vector<uint32_t> released;
  const auto found = allocations_.find(key);
  if (found == allocations_.end()) return released;
  Allocation& allocation = found->second;
  UndoReleaseSlots undo{key, {}};
  for (const uint32_t slot : slots) {
    if (slot >= allocation.nodes.size() || allocation.nodes[slot] == nullptr) continue;
    Node* node = std::exchange(allocation.nodes[slot], nullptr);
    HoldSlot(allocation, slot, node, -1);
    placer_->Reorder(node);
    allocation.placement.slots[slot].released = true;
    undo.slots.emplace_back(slot, node);
    released.push_back(slot);
  }
  if (released.empty()) return released;
  HoldInPlacer(allocation);
  Record(std::move(undo));
  return released;
}

absl::Status BookedEngine::Restore(const AllocationKey& key, const Placement& placement) {
  const auto fail = [&key](std::string_view what) {
    return MakeStatus(absl::StatusCode::kFailedPrecondition,
                      "job {} attempt {} part {}: {}",
                      key.job_id,
                      key.attempt,
                      key.part,
                      what);
  };
  if (allocations_.contains(key)) return fail("holds something already");
  Allocation allocation{.placement = placement, .nodes = {}, .needs = {}, .number = next_number_};
  if (GroupsOfSlots(placement.groups).size() != placement.slots.size()) {
    return fail(fmt::format("{} slots are not those of its groups", placement.slots.size()));
  }
  const std::vector<uint32_t> group_of = GroupsOfSlots(placement.groups);
  for (size_t i = 0; i < placement.slots.size(); ++i) {
    const PlacedSlot& slot = placement.slots[i];
    if (slot.devices.size() != DevicesOf(placement.groups[group_of[i]])) {
      return fail(fmt::format("slot {} has {} devices, and asks for {}",
                              i,
                              slot.devices.size(),
                              DevicesOf(placement.groups[group_of[i]])));
    }
    std::set<uint32_t> devices(slot.devices.begin(), slot.devices.end());
    if (devices.size() != slot.devices.size() ||
        (!devices.empty() && *devices.rbegin() >= kMaxDevices)) {
      return fail(fmt::format("slot {} has the devices {}: each once, below {}",
                              i,
                              fmt::join(slot.devices, ","),
                              kMaxDevices));
    }
    if (slot.slot != i) return fail(fmt::format("slot {} stands at index {}", slot.slot, i));
    Node* node = slot.released ? nullptr : table_.Find(slot.node);
    if (node == nullptr && !slot.released) {
      return fail(fmt::format("slot {} is on node {}, which is not in the graph", i, slot.node));
    }
    allocation.nodes.push_back(node);
  }
  allocation.needs = NeedsOf(placement);
  next_number_ += placement.groups.size();
  Allocation& held = allocations_.emplace(key, std::move(allocation)).first->second;
  held.end_s = EndOf(placement);
  Plan(key, held);
  HoldLive(held, 1);
  Record(UndoAllocate{key});
  return absl::OkStatus();
}

}  // namespace fluxqueue::graph
