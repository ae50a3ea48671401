#include "libs/matcher_core/removal.h"

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
  graph::Placement placed = Left(part.holder);
  if (holders_[part.holder].out) {
    for (graph::PlacedSlot& slot : placed.slots) slot.released = true;
  }
  if (part.slots.empty()) return placed;
  graph::Placement some = placed;
  for (graph::PlacedSlot& slot : some.slots) slot.released = true;
  for (const uint32_t slot : part.slots) some.slots[slot].released = placed.slots[slot].released;
  return some;
}

void Removal::Restore(size_t holder) {
  const absl::Status restored = engine_->Restore(holders_[holder].key, Left(holder));
  CHECK(restored.ok(), "{}", Message(restored));
}

void Removal::Set(size_t i, bool out) {
  Part& part = parts_[i];
  if (part.out == out) return;
  part.out = out;
  Holder& holder = holders_[part.holder];
  if (part.slots.empty()) {
    holder.out = out;
    if (out) {
      engine_->Release(holder.key);
    } else {
      Restore(part.holder);
    }
    return;
  }
  if (holder.out) return;
  engine_->Release(holder.key);
  Restore(part.holder);
}

void Removal::TakeOutAll() {
  for (size_t i = 0; i < parts_.size(); ++i) Set(i, true);
}

void Removal::PutBack() {
  for (size_t i = parts_.size(); i-- > 0;) Set(i, false);
}

bool Removal::Fits(const graph::MatchRequest& request) {
  if (engine_->Match(request).kind != graph::OutcomeKind::kAllocated) return false;
  engine_->Release(request.key);
  return true;
}

bool Removal::FindBeginning(const graph::MatchRequest& request, std::span<const size_t> order) {
  const auto take_out = [&](size_t count) {
    for (size_t i = order.size(); i-- > count;) Set(order[i], false);
    for (const size_t i : order.first(count)) Set(i, true);
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
