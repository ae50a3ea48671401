#include "libs/matcher_core/removal.h"

#include "libs/base/check.h"
#include "libs/base/status_macros.h"

namespace fluxqueue::matcher_core {

bool Removal::Add(const graph::AllocationKey& key) {
  const graph::Placement* placement = engine_->Find(key);
  if (placement == nullptr || !keys_.insert(key).second) return false;
  holders_.push_back({key, *placement, false});
  return true;
}

void Removal::Set(size_t i, bool out) {
  Holder& holder = holders_[i];
  if (holder.out == out) return;
  holder.out = out;
  if (out) {
    engine_->Release(holder.key);
    return;
  }
  const absl::Status restored = engine_->Restore(holder.key, holder.placement);
  CHECK(restored.ok(), "{}", Message(restored));
}

void Removal::TakeOutAll() {
  for (size_t i = 0; i < holders_.size(); ++i) Set(i, true);
}

void Removal::PutBack() {
  for (size_t i = holders_.size(); i-- > 0;) Set(i, false);
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
    if (!holders_[i].out) continue;
    Set(i, false);
    if (!Fits(request)) Set(i, true);
  }
}

}  // namespace fluxqueue::matcher_core
