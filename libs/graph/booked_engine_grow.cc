// More slots for what runs.
//
// They are matched as a job of their own, and then added to the one that has them: the placer holds
// it anew with all of its slots. So a restored engine, which knows only the whole, is the same.
#include "libs/graph/booked_engine.h"

namespace fluxqueue::graph {
namespace {

bool AreAlike(const std::vector<SlotGroup>& held, const std::vector<SlotGroup>& asked) {
  return held.size() == 1 && asked.size() == 1 && held[0].request == asked[0].request;
}

}  // namespace

Outcome BookedEngine::Grow(const MatchRequest& request) {
  const auto found = allocations_.find(request.key);
  if (found == allocations_.end()) return {};
  Allocation& allocation = found->second;
  Placement& placement = allocation.placement;
  const bool over = placement.duration_s != 0 &&
                    placement.start_s + placement.duration_s <= request.now_s && !request.outlasts;
  if (over || !AreAlike(placement.groups, request.jobspec.groups)) return {};
  AdvanceTo(request.now_s);
  const int64_t left_s = allocation.end_s == 0 ? 0 : allocation.end_s - request.now_s;
  const JobNumber number = next_number_;
  const auto place =
      Place(number, request, allocation.needs, {.now_s = request.now_s, .duration_s = left_s});
  if (!place) return {};
  ++next_number_;
  placer_->Release(number, 1);
  Record(UndoGrow{request.key, allocation.nodes.size()});
  Append(place->shares, &allocation);
  placement.groups[0].slots += request.jobspec.slots;
  HoldInPlacer(allocation);
  return {OutcomeKind::kAllocated, &placement};
}

void BookedEngine::TakeBack(UndoGrow& undo) {
  Allocation& allocation = allocations_.at(undo.key);
  Placement& placement = allocation.placement;
  while (allocation.nodes.size() > undo.slots) {
    Node* node = allocation.nodes.back();
    HoldSlot(allocation, allocation.nodes.size() - 1, node, -1);
    placer_->Reorder(node);
    allocation.nodes.pop_back();
    placement.slots.pop_back();
  }
  placement.groups[0].slots = static_cast<uint32_t>(undo.slots);
  HoldInPlacer(allocation);
}

}  // namespace fluxqueue::graph
