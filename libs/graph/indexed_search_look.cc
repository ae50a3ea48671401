// What a search would answer a request that has no table, by a look at the nodes that may have room
// (room_index.h): that nothing fits, or, where it does not matter what fits, that something does.
#include <algorithm>
#include <cstdint>

#include "libs/graph/indexed_search.h"

namespace fluxqueue::graph {
namespace {

// A table costs as much as looks at this part of the nodes; of few nodes all are looked at.
constexpr size_t kPartOfTable = 16;
constexpr size_t kFewNodes = 64;

// How many vertices of one depth must have enough below them, and what is enough: slots, or nodes.
struct Wanted {
  explicit Wanted(const SearchPlan& plan) : below(plan.stages.back().wanted) {
    for (size_t i = 0; i + 1 < plan.stages.size(); ++i) {
      depth = plan.stages[i].depth;
      if (__builtin_mul_overflow(vertices, plan.stages[i].wanted, &vertices)) vertices = UINT64_MAX;
    }
  }

  uint32_t depth = 0;
  uint64_t vertices = 1;
  uint64_t below = 0;
};

}  // namespace

std::optional<IndexedSearch::Answer> IndexedSearch::Look(bool selects) {
  if (window_.kind == Window::Kind::kLater) return std::nullopt;
  RoomIndex& room = window_.kind == Window::Kind::kNow ? free_ : capacity_;
  room.AdvanceTo(window_.at_s);
  slots_.Begin(plan_, window_);
  const std::optional<bool> has_room = HasRoom(room);
  if (has_room == false) return Answer::kNothingFits;
  // Where three levels are named, those that have enough may not stand together.
  const bool is_enough = has_room == true && plan_->stages.size() <= 2;
  return is_enough && !selects ? std::optional(Answer::kFound) : std::nullopt;
}

// Nothing: too many nodes would have to be looked at.
std::optional<bool> IndexedSearch::HasRoom(const RoomIndex& room) {
  const SearchLayout& layout = tables_.LayoutFor(*plan_);
  Wanted wanted(*plan_);
  size_t looks = std::max(kFewNodes, room.nodes() / kPartOfTable);
  std::optional<bool> has_room = false;
  SiteId parent = kNoSite;  // of the last node
  bool reached = false;     // by a search
  SiteId end = 0;           // behind the vertex that the last node counts for
  uint64_t found = 0;       // there
  room.ForEach(*plan_, [&](SiteId node) {
    if (looks-- == 0) {
      has_room.reset();
      return false;
    }
    if (topology_.site(node).parent != parent) {
      parent = topology_.site(node).parent;
      reached = IsReached(node, layout);
    }
    if (node >= end) {
      end = topology_.site(Above(node, wanted.depth)).end;
      found = 0;
    }
    const uint32_t slots = reached ? CountSlotsOfNode(node) : 0;
    const bool had_enough = found >= wanted.below;
    found += plan_->names_nodes ? std::min<uint32_t>(slots, 1) : slots;
    if (!had_enough && found >= wanted.below) has_room = --wanted.vertices == 0;
    return has_room == false;
  });
  return has_room;
}

SiteId IndexedSearch::Above(SiteId site, uint32_t depth) const {
  while (topology_.site(site).depth > depth) site = topology_.site(site).parent;
  return site;
}

// Whether a search comes to the node: as VisitMember and MayReach say.
bool IndexedSearch::IsReached(SiteId node, const SearchLayout& layout) const {
  for (SiteId s = topology_.site(node).parent; s != 0; s = topology_.site(s).parent) {
    const Site& here = topology_.site(s);
    const auto stage = std::find_if(
        plan_->stages.begin(), plan_->stages.end(), [&here](const SearchPlan::Stage& one) {
          return one.depth >= here.depth;
        });
    const bool passed = layout.gathers[here.depth]
                            ? !pruner_.Prune(here.vertex, *stage->levels, false)
                            : MayPass(s);
    if (!passed) return false;
  }
  return true;
}

}  // namespace fluxqueue::graph
