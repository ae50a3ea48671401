#include "libs/matcher_core/removal.h"

#include <algorithm>
#include <numeric>
#include <utility>

#include "libs/base/check.h"
#include "libs/base/status_macros.h"

namespace fluxqueue::matcher_core {

Removal::Holder* Removal::HolderOf(const graph::AllocationKey& key) {
  const auto known = places_.find(key);
  if (known != places_.end()) return &holders_[known->second];
  const graph::Placement* placement = engine_->Find(key);
  if (placement == nullptr) return nullptr;
  places_.emplace(key, holders_.size());
  return &holders_.emplace_back(Holder{.key = key, .placement = *placement});
}

bool Removal::Add(const graph::AllocationKey& key) {
  Holder* holder = HolderOf(key);
  if (holder == nullptr || holder->listed) return false;
  holder->listed = true;
  parts_.push_back({.holder = places_.at(key), .slots = {}});
  return true;
}

bool Removal::AddSlots(const graph::AllocationKey& key, const std::vector<uint32_t>& slots) {
  const Holder* holder = HolderOf(key);
  if (holder == nullptr) return false;
  std::vector<uint32_t> held;
  for (const uint32_t slot : slots) {
    const auto& placed = holder->placement.slots;
    if (slot < placed.size() && !placed[slot].released) held.push_back(slot);
  }
  if (held.empty()) return false;
  const size_t place = places_.at(key);
  split_[place].push_back(parts_.size());
  parts_.push_back({.holder = place, .slots = std::move(held)});
  return true;
}

graph::Placement Removal::Left(size_t holder) const {
  graph::Placement left = holders_[holder].placement;
  const auto split = split_.find(holder);
  if (split == split_.end()) return left;
  for (const size_t i : split->second) {
    if (!parts_[i].out) continue;
    for (const uint32_t slot : parts_[i].slots) left.slots[slot].released = true;
  }
  return left;
}

graph::Placement Removal::Placed(size_t i) const {
  const Part& part = parts_[i];
  const Holder& holder = holders_[part.holder];
  if (part.slots.empty()) {
    graph::Placement placed = Left(part.holder);
    for (graph::PlacedSlot& slot : placed.slots) slot.released = slot.released || holder.out;
    return placed;
  }
  const graph::Placement& whole = holder.placement;
  graph::Placement placed{.slots = {},
                          .groups = {whole.groups.front()},
                          .start_s = whole.start_s,
                          .duration_s = whole.duration_s,
                          .corrected = whole.corrected,
                          .bound_s = whole.bound_s,
                          .enforced = whole.enforced};
  placed.groups.front().slots = static_cast<uint32_t>(part.slots.size());
  for (const uint32_t slot : part.slots) {
    placed.slots.push_back(whole.slots[slot]);
    placed.slots.back().released = part.out || holder.out;
  }
  return placed;
}

void Removal::Restore(size_t holder) {
  const absl::Status restored = engine_->Restore(holders_[holder].key, Left(holder));
  CHECK(restored.ok(), "{}", Message(restored));
}

void Removal::SetAll(std::span<const size_t> parts, bool out) {
  std::set<size_t> split;  // holders of which some slots change
  for (const size_t i : parts) {
    Part& part = parts_[i];
    if (part.out == out) continue;
    part.out = out;
    Holder& holder = holders_[part.holder];
    if (!part.slots.empty()) {
      split.insert(part.holder);
      continue;
    }
    holder.out = out;
    split.erase(part.holder);
    if (out) {
      engine_->Release(holder.key);
    } else {
      Restore(part.holder);
    }
  }
  for (const size_t holder : split) {
    if (holders_[holder].out) continue;
    engine_->Release(holders_[holder].key);
    Restore(holder);
  }
}

std::vector<size_t> Removal::Backwards() const {
  std::vector<size_t> order(parts_.size());
  std::iota(order.rbegin(), order.rend(), 0);
  return order;
}

void Removal::TakeOutAll() {
  std::vector<size_t> order = Backwards();
  std::reverse(order.begin(), order.end());
  SetAll(order, true);
}

void Removal::PutBack() {
  SetAll(Backwards(), false);
}

bool Removal::Fits(const graph::MatchRequest& request) {
  graph::MatchRequest trial = request;
  trial.anywhere = true;
  if (engine_->Match(trial).kind != graph::OutcomeKind::kAllocated) return false;
  engine_->Release(request.key);
  return true;
}

bool Removal::FindBeginning(const graph::MatchRequest& request, std::span<const size_t> order) {
  const auto take_out = [&](size_t count) {
    std::vector<size_t> rest(order.begin() + static_cast<std::ptrdiff_t>(count), order.end());
    std::reverse(rest.begin(), rest.end());
    SetAll(rest, false);
    SetAll(order.first(count), true);
  };
  const auto fits_without = [&](size_t count) {
    take_out(count);
    return Fits(request);
  };
  size_t enough = order.size();
  if (!fits_without(enough)) return false;
  for (size_t least = 0; least + 1 < enough;) {
    const size_t half = (least + enough) / 2;
    (fits_without(half) ? enough : least) = half;
  }
  take_out(enough);
  return true;
}

void Removal::Spare(const graph::MatchRequest& request, std::span<const size_t> order) {
  for (const size_t i : order) {
    if (!parts_[i].out) continue;
    Set(i, false);
    if (!Fits(request)) Set(i, true);
  }
}

}  // namespace fluxqueue::matcher_core
