// A search at one time after the other, for the first one at which a request fits.
#include <algorithm>

#include "libs/graph/indexed_search.h"

namespace fluxqueue::graph {

IndexedSearch::Answer IndexedSearch::SearchNext(const SearchPlan& plan,
                                                const Window& window,
                                                Selection* selection) {
  swept_ = window;
  root_pruned_ = IsRootPruned(plan, window);
  if (root_pruned_) return Answer::kNothingFits;
  if (sweep_ == nullptr) {
    sweep_ = &tables_.BeginSweep(plan, window.at_s, window.duration_s);
  } else {
    tables_.SweepTo(window.at_s);
  }
  return SearchIn(sweep_, window, selection);
}

std::optional<int64_t> IndexedSearch::NextTime() const {
  return root_pruned_ ? state_.JobsAt(graph_.root()).PointAfter(swept_.at_s) : tables_.NextRoom();
}

// When something next begins or ends at the node, or at a vertex that is passed on the way to it.
int64_t IndexedSearch::PointAfter(SiteId node, int64_t time) const {
  using Turn = SearchTables::Turn;
  const VertexId v = topology_.site(node).vertex;
  int64_t first = state_.JobsAt(v).PointAfter(time).value_or(Turn::kNever);
  SiteId above = topology_.site(node).parent;
  for (; !table_->GathersAt(above); above = topology_.site(above).parent) {
    const Timeline& held = state_.HeldAt(topology_.site(above).vertex);
    first = std::min(first, held.PointAfter(time).value_or(Turn::kNever));
  }
  return first;
}

// In a sweep the window leaves times behind and gains others. Only where it leaves a point behind
// can there be more room; where it gains one, there can be less.
uint32_t IndexedSearch::CountSlotsInSweep(SiteId node) {
  using Turn = SearchTables::Turn;
  if (!pruner_.IsOffered(topology_.site(node).vertex)) return 0;
  const auto [at, duration, kind] = swept_;
  // Most nodes are full: that is seen without a look at all of it.
  const int64_t room =
      slots_.RoomFrom(node, plan_->least_slots(), at, duration).value_or(Turn::kNever);
  if (room > at) {
    tables_.ExpectRoom(node, room);
    return 0;
  }
  const uint32_t slots = CountSlots(node);
  if (slots == 0) {
    const int64_t more = PointAfter(node, at);
    tables_.Expect(node, {more, more});
    return 0;
  }
  const int64_t left_behind = PointAfter(node, at);
  const int64_t gained = PointAfter(node, at + duration - 1);
  Turn turn;
  turn.other_s = std::min(left_behind, gained == Turn::kNever ? gained : gained - duration + 1);
  const bool has_all = plan_->names_nodes || slots >= plan_->stages.back().wanted;
  if (!has_all && left_behind != Turn::kNever) {
    turn.more_s = slots_.RoomFrom(node, slots + 1, left_behind, duration).value_or(Turn::kNever);
  }
  tables_.Expect(node, turn);
  return slots;
}

void IndexedSearch::ExpectOfPruned(SiteId site) {
  const VertexId v = topology_.site(site).vertex;
  if (!pruner_.IsOffered(v)) return;
  const auto next = state_.JobsAt(v).PointAfter(swept_.at_s);
  if (next.has_value()) tables_.Expect(site, {*next, *next});
}

}  // namespace fluxqueue::graph
