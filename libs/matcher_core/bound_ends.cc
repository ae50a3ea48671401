#include "libs/matcher_core/bound_ends.h"

#include <algorithm>
#include <limits>

#include "libs/graph/planned_end.h"

namespace fluxqueue::matcher_core {
namespace {

constexpr int64_t kNever = std::numeric_limits<int64_t>::max();

// When it is ended, whatever it does.
int64_t SureEnd(const graph::Placement& placement, int64_t now_s) {
  if (!placement.enforced) return kNever;
  const int64_t end_s = placement.start_s + std::max(placement.duration_s, placement.bound_s);
  // It should have been, and was not.
  return end_s <= now_s ? kNever : end_s;
}

}  // namespace

BoundEnds::BoundEnds(const graph::Engine& engine,
                     const std::map<graph::AllocationKey, graph::Placement>& reservations,
                     int64_t now_s) {
  for (const graph::AllocationKey& key : engine.Keys()) Add(*engine.Find(key), now_s);
  for (const auto& [key, reservation] : reservations) Add(reservation, now_s);
}

void BoundEnds::Add(const graph::Placement& placement, int64_t now_s) {
  if (placement.duration_s == 0) return;
  const Unsure unsure{graph::PlannedEnd(placement, now_s), SureEnd(placement, now_s)};
  if (unsure.sure_s <= unsure.planned_s) return;
  std::string_view last;
  for (const graph::PlacedSlot& slot : placement.slots) {
    if (slot.released || slot.node == last) continue;
    last = slot.node;
    unsure_[slot.node].push_back(unsure);
  }
}

bool BoundEnds::IsFirm(const graph::Placement& promise) const {
  return std::all_of(promise.slots.begin(), promise.slots.end(), [&](const auto& slot) {
    const auto here = unsure_.find(slot.node);
    return here == unsure_.end() ||
           std::none_of(here->second.begin(), here->second.end(), [&](const Unsure& one) {
             return one.planned_s <= promise.start_s && promise.start_s < one.sure_s;
           });
  });
}

}  // namespace fluxqueue::matcher_core
