#include "libs/graph/node_slots.h"

#include <algorithm>
#include <bit>

#include "libs/graph/candidate_choice.h"
#include "libs/graph/candidates.h"

namespace fluxqueue::graph {
namespace {

uint32_t HighestBit(uint64_t bits) {
  return static_cast<uint32_t>(std::bit_width(bits) - 1);
}

// Leaves are taken whole.
uint64_t LeavesPerSlot(const LeafGroup& group, const SearchPlan::Part& part) {
  const auto size = static_cast<uint64_t>(group.size);
  return (part.count + size - 1) / size;
}

}  // namespace

uint64_t NodeSlots::Count(SiteId node) const {
  uint64_t slots = UINT64_MAX;
  for (const SearchPlan::Part& part : plan_->parts) {
    uint64_t leaves = 0;
    uint64_t per_slot = 1;
    for (const LeafGroup& group : GroupsOf(node)) {
      if (group.type != part.type) continue;
      leaves += static_cast<uint64_t>(std::popcount(Usable(group)));
      per_slot = LeavesPerSlot(group, part);
    }
    if (const auto pools = PoolsOf(node, part); !pools.empty()) {
      for (const Pool& pool : pools) leaves += PicksOf(pool, part);
      per_slot = PicksPerSlot(pools, part);
    }
    slots = std::min(slots, leaves / per_slot);
  }
  return slots;
}

std::optional<int64_t> NodeSlots::RoomFrom(SiteId node,
                                           uint64_t slots,
                                           int64_t time,
                                           int64_t duration) const {
  // What one part has from some time on another may not have yet: each is asked until all agree.
  int64_t from = time;
  for (size_t agree = 0, i = 0; agree < plan_->parts.size(); ++i) {
    const SearchPlan::Part& part = plan_->parts[i % plan_->parts.size()];
    ++agree;
    const auto pools = PoolsOf(node, part);
    if (pools.size() != 1 || !IsShareOf(pools, part)) continue;
    int64_t amount = 0;
    if (__builtin_mul_overflow(slots, part.count, &amount)) return std::nullopt;
    const auto room = state_.HeldAt(pools.front().vertex).FirstFrom(from, duration, amount);
    if (!room.has_value()) return std::nullopt;
    if (*room != from) agree = 1;
    from = *room;
  }
  return from;
}

bool NodeSlots::MayShare(SiteId node) const {
  return std::any_of(plan_->parts.begin(), plan_->parts.end(), [&](const SearchPlan::Part& part) {
    const auto pools = PoolsOf(node, part);
    return !pools.empty() && IsShareOf(pools, part);
  });
}

// An amount that is more than any of them has is so many whole ones.
bool NodeSlots::IsShareOf(std::span<const Pool> pools, const SearchPlan::Part& part) const {
  return part.count <= static_cast<uint64_t>(graph_.vertex(pools.front().vertex).size);
}

uint64_t NodeSlots::PicksPerSlot(std::span<const Pool> pools, const SearchPlan::Part& part) const {
  if (IsShareOf(pools, part)) return 1;
  const auto size = static_cast<uint64_t>(graph_.vertex(pools.front().vertex).size);
  return size == 0 ? part.count : (part.count + size - 1) / size;
}

uint64_t NodeSlots::PicksOf(const Pool& pool, const SearchPlan::Part& part) const {
  const Vertex& vertex = graph_.vertex(pool.vertex);
  if (window_.kind != Window::Kind::kEver && !vertex.up) return 0;
  const int64_t free = state_.FreeDuring(pool.vertex, window_.at_s, window_.duration_s);
  if (free <= 0) return 0;
  if (IsShareOf({&pool, 1}, part)) return static_cast<uint64_t>(free) / part.count;
  return free == vertex.size ? 1 : 0;
}

int64_t NodeSlots::AmountOf(const Pool& pool, const SearchPlan::Part& part) const {
  return IsShareOf({&pool, 1}, part) ? static_cast<int64_t>(part.count)
                                     : graph_.vertex(pool.vertex).size;
}

void NodeSlots::PickPools(std::span<const Pool> pools,
                          const SearchPlan::Part& part,
                          uint32_t slots) {
  const uint64_t per_slot = PicksPerSlot(pools, part);
  const uint64_t most = SlotsWanted() * per_slot;
  uint64_t found = 0;
  picks_.clear();
  for (auto pool = pools.rbegin(); pool != pools.rend(); ++pool) {
    // As a walk that stops at the first match.
    if (policy_.stop_on_first && found >= most) break;
    const uint64_t picks = std::min(PicksOf(*pool, part), most);
    picks_.insert(picks_.end(), picks, &*pool);
    found += picks;
  }
  if (policy_.TakesLeast()) std::reverse(picks_.begin(), picks_.end());
  if (policy_.order == MatchPolicy::Order::kPacked && packing_.IsGpu(pools.front().vertex)) {
    std::ranges::stable_sort(
        picks_, {}, [this](const Pool* pool) { return packing_.GpuScore(pool->vertex, window_); });
  }
  picks_.resize(slots * per_slot);
}

uint64_t NodeSlots::Usable(const LeafGroup& group) const {
  uint64_t leaves = group.present & ~group.HeldDuring(window_.at_s, window_.duration_s);
  if (window_.kind != Window::Kind::kEver) leaves &= group.up;
  // A job beyond its end still holds what it holds.
  if (window_.kind == Window::Kind::kNow) leaves &= ~group.Allocated();
  return leaves;
}

void NodeSlots::PutInOrder(SiteId node, const SearchPlan::Part& part) {
  leaves_.clear();
  const auto groups = GroupsOf(node);
  size_t most = SIZE_MAX;
  for (size_t g = groups.size(); g-- > 0;) {
    const LeafGroup& group = groups[g];
    if (group.type != part.type) continue;
    if (policy_.stop_on_first) most = SlotsWanted() * LeavesPerSlot(group, part);
    for (uint64_t usable = Usable(group); usable != 0 && leaves_.size() < most;) {
      const uint32_t bit = HighestBit(usable);
      usable &= ~(uint64_t{1} << bit);
      leaves_.push_back({static_cast<uint32_t>(g), bit});
    }
  }
  if (policy_.TakesLeast()) std::reverse(leaves_.begin(), leaves_.end());
}

// Which equals are taken is up to std::sort, as in a walk: it orders all leaves, and then all slots
// that they make.
void NodeSlots::PickLeavesByClass(SiteId node, uint32_t wanted) {
  const auto groups = GroupsOf(node);
  std::vector<ScoredLeaf> leaves;  // of all parts
  std::vector<SlotsOfPart> parts;
  size_t slots = SIZE_MAX;
  for (const SearchPlan::Part& part : plan_->parts) {
    const size_t first = leaves.size();
    AddUsable(node, part.type, &leaves);
    std::sort(leaves.begin() + static_cast<ptrdiff_t>(first),
              leaves.end(),
              [](const ScoredLeaf& a, const ScoredLeaf& b) { return a.score > b.score; });
    const uint64_t each = LeavesPerSlot(groups[leaves[first].leaf.group], part);
    parts.push_back({first, each});
    slots = std::min(slots, (leaves.size() - first) / each);
  }
  std::vector<std::pair<int64_t, size_t>> by_score;  // score and number of the slot
  for (size_t slot = 0; slot < slots; ++slot) {
    int64_t score = kMet;
    for (const SlotsOfPart& part : parts) {
      for (size_t i = 0; i < part.each; ++i)
        score += leaves[part.first + slot * part.each + i].score;
    }
    by_score.emplace_back(score, slot);
  }
  std::sort(by_score.begin(), by_score.end(), [](const auto& a, const auto& b) {
    return a.first < b.first;
  });
  for (size_t k = 0; k < wanted; ++k) {
    for (const SlotsOfPart& part : parts) {
      for (size_t i = 0; i < part.each; ++i) {
        const LeafRef leaf = leaves[part.first + by_score[k].second * part.each + i].leaf;
        picked_[leaf.group] |= uint64_t{1} << leaf.bit;
      }
    }
  }
}

void NodeSlots::AddUsable(SiteId node, TypeId type, std::vector<ScoredLeaf>* leaves) const {
  const auto groups = GroupsOf(node);
  for (const LeafRun& run : topology_.LeavesOf(node)) {
    if (run.group == LeafRun::kNoGroup || groups[run.group].type != type) continue;
    const uint64_t usable = Usable(groups[run.group]);
    for (uint32_t i = 0; i < run.count; ++i) {
      const uint32_t bit = run.place + i;
      if ((usable >> bit & 1) == 0) continue;
      leaves->push_back({VertexScore(policy_, graph_.vertex(run.vertex + i), 0), {run.group, bit}});
    }
  }
}

std::vector<int64_t> NodeSlots::Scores(SiteId node, uint32_t slots) {
  if (policy_.order == MatchPolicy::Order::kPacked) return Costs(node, slots);
  const auto groups = GroupsOf(node);
  const int64_t node_score = NodeScore(policy_, graph_.vertex(topology_.site(node).vertex));
  std::vector<int64_t> scores(slots, kMet);
  for (const SearchPlan::Part& part : plan_->parts) {
    if (const auto pools = PoolsOf(node, part); !pools.empty()) {
      PickPools(pools, part, slots);
      const size_t per_slot = PicksPerSlot(pools, part);
      for (size_t i = 0; i < picks_.size(); ++i) {
        scores[i / per_slot] += VertexScore(policy_, graph_.vertex(picks_[i]->vertex), node_score);
      }
      continue;
    }
    PutInOrder(node, part);
    const uint64_t per_slot = LeavesPerSlot(groups[leaves_.front().group], part);
    for (size_t i = 0; i < size_t{slots} * per_slot; ++i) {
      const VertexId leaf = groups[leaves_[i].group].leaves[leaves_[i].bit];
      scores[i / per_slot] += VertexScore(policy_, graph_.vertex(leaf), node_score);
    }
  }
  return scores;
}

std::vector<int64_t> NodeSlots::Costs(SiteId node, uint32_t slots) {
  struct Pick {
    VertexId leaf;
    int64_t amount;
  };
  std::vector<std::vector<Pick>> picks(slots);
  for (const SearchPlan::Part& part : plan_->parts) {
    if (const auto pools = PoolsOf(node, part); !pools.empty()) {
      PickPools(pools, part, slots);
      const size_t per_slot = PicksPerSlot(pools, part);
      for (size_t i = 0; i < picks_.size(); ++i) {
        picks[i / per_slot].push_back({picks_[i]->vertex, AmountOf(*picks_[i], part)});
      }
      continue;
    }
    PutInOrder(node, part);
    const LeafGroup& group = GroupsOf(node)[leaves_.front().group];
    const auto amount = static_cast<int64_t>(LeavesPerSlot(group, part)) * group.size;
    for (auto& slot : picks) slot.push_back({group.leaves.front(), amount});
  }
  Packing::Filling filling = packing_.Fill(topology_.site(node).vertex, window_);
  std::vector<int64_t> costs;
  for (const std::vector<Pick>& slot : picks) {
    for (const Pick& pick : slot) filling.Take(pick.leaf, pick.amount);
    if (takes_whole_nodes()) filling.TakeAll();
    costs.push_back(filling.FinishSlot());
  }
  return costs;
}

void NodeSlots::Collect(SiteId node, uint32_t slots, HeldVertices* held) {
  const LeafGroup* groups = GroupsOf(node).data();
  const bool whole = takes_whole_nodes();
  if (!whole) PickLeaves(node, slots);
  for (const LeafRun& run : topology_.LeavesOf(node)) {
    if (run.group == LeafRun::kNoGroup) {
      const int64_t amount = whole ? graph_.vertex(run.vertex).size : of_pools_[run.place];
      if (amount > 0) held->push_back({run.vertex, run.edge, amount, true});
      continue;
    }
    const LeafGroup& group = groups[run.group];
    const uint64_t mine = ~uint64_t{0} >> (64 - run.count);
    const uint64_t bits = ((whole ? group.present : picked_[run.group]) >> run.place) & mine;
    for (int first = std::countr_zero(bits); first < static_cast<int>(run.count);) {
      const int count = std::countr_one(bits >> first);
      const auto offset = static_cast<uint32_t>(first);
      held->Append({{run.vertex + offset, run.edge + offset, group.size, true},
                    static_cast<uint32_t>(count)});
      first += count;
      if (first < static_cast<int>(run.count)) first += std::countr_zero(bits >> first);
    }
  }
}

void NodeSlots::PickLeaves(SiteId node, uint32_t slots) {
  const auto groups = GroupsOf(node);
  const auto all = topology_.PoolsOf(node);
  picked_.assign(groups.size(), 0);
  of_pools_.assign(all.size(), 0);
  if (plan_->by_class) return PickLeavesByClass(node, slots);
  for (const SearchPlan::Part& part : plan_->parts) {
    if (const auto pools = PoolsOf(node, part); !pools.empty()) {
      PickPools(pools, part, slots);
      for (const Pool* pool : picks_) {
        of_pools_[static_cast<size_t>(pool - all.data())] += AmountOf(*pool, part);
      }
      continue;
    }
    PutInOrder(node, part);
    const size_t count = size_t{slots} * LeavesPerSlot(groups[leaves_.front().group], part);
    for (size_t i = 0; i < count; ++i) {
      picked_[leaves_[i].group] |= uint64_t{1} << leaves_[i].bit;
    }
  }
}

}  // namespace fluxqueue::graph
