#include "libs/graph/room_index.h"

#include <algorithm>
#include <set>
#include <utility>

namespace fluxqueue::graph {

void RoomIndex::AdvanceTo(int64_t now_s) {
  const auto [earlier, later] = std::minmax({std::exchange(now_s_, now_s), now_s});
  if (IsOutdated(earlier, later)) {
    LoadAll();
  } else {
    LoadChanged();
  }
  seen_ = state_.changes_end();
}

// Something began or ended in between, of which the log says nothing; or it says too much.
bool RoomIndex::IsOutdated(int64_t earlier_s, int64_t later_s) const {
  if (nodes_.empty() || seen_ < state_.changes_begin()) return true;
  if (state_.changes_end() - seen_ > nodes_.size()) return true;
  if (of_ == Of::kEver) return false;
  const auto point = state_.JobsAt(graph_.root()).PointAfter(earlier_s);
  return point.has_value() && *point <= later_s;
}

void RoomIndex::LoadAll() {
  nodes_.clear();
  std::set<TypeId> types;
  for (SiteId site = 0; site < topology_.sites().size(); ++site) {
    if (topology_.site(site).depth != topology_.node_depth()) continue;
    nodes_.push_back(site);
    for (const Pool& pool : topology_.PoolsOf(site)) types.insert(pool.type);
    for (const LeafGroup& group : state_.GroupsOf(topology_.site(site).vertex)) {
      types.insert(group.type);
    }
  }
  types_.assign(types.begin(), types.end());
  amounts_.assign(blocks() * columns() * kBlock, 0);
  most_.assign(blocks() * columns(), 0);
  for (size_t node = 0; node < nodes_.size(); ++node) Load(node);
  for (size_t block = 0; block < blocks(); ++block) FindMost(block);
}

void RoomIndex::LoadChanged() {
  std::vector<size_t> changed;
  for (const auto& change : state_.changes().subspan(seen_ - state_.changes_begin())) {
    const SiteId first = topology_.SiteOf(change.vertex);
    if (first == kNoSite) continue;
    const SiteId end = change.below ? topology_.site(first).end : first + 1;
    auto node = std::lower_bound(nodes_.begin(), nodes_.end(), first);
    for (; node != nodes_.end() && *node < end; ++node) {
      changed.push_back(static_cast<size_t>(node - nodes_.begin()));
    }
  }
  std::sort(changed.begin(), changed.end());
  changed.erase(std::unique(changed.begin(), changed.end()), changed.end());
  for (size_t i = 0; i < changed.size(); ++i) {
    Load(changed[i]);
    const size_t block = changed[i] / kBlock;
    if (i + 1 == changed.size() || changed[i + 1] / kBlock != block) FindMost(block);
  }
}

void RoomIndex::Load(size_t node) {
  int64_t* amounts = &amounts_[node / kBlock * columns() * kBlock + node % kBlock];
  for (size_t column = 0; column < columns(); ++column) amounts[column * kBlock] = 0;
  const auto add = [&](TypeId type, int64_t amount) {
    const auto column = std::lower_bound(types_.begin(), types_.end(), type) - types_.begin();
    amounts[static_cast<size_t>(column) * kBlock] += std::max<int64_t>(0, amount);
  };
  const VertexId vertex = topology_.site(nodes_[node]).vertex;
  const bool now = of_ == Of::kNow;
  if (now && !graph_.vertex(vertex).up) return;
  if (now && state_.FreeDuring(vertex, now_s_, 1) <= 0) return;
  for (const Pool& pool : topology_.PoolsOf(nodes_[node])) {
    add(pool.type,
        now ? state_.FreeDuring(pool.vertex, now_s_, 1) : graph_.vertex(pool.vertex).size);
  }
  for (const LeafGroup& group : state_.GroupsOf(vertex)) {
    const uint64_t leaves = group.present & ~(now ? group.HeldDuring(now_s_, 1) : 0);
    add(group.type, std::popcount(leaves) * group.size);
  }
}

void RoomIndex::FindMost(size_t block) {
  for (size_t column = 0; column < columns(); ++column) {
    const auto first =
        amounts_.begin() + static_cast<ptrdiff_t>((block * columns() + column) * kBlock);
    most_[block * columns() + column] = *std::max_element(first, first + kBlock);
  }
}

bool RoomIndex::FindNeeds(const SearchPlan& plan, std::vector<Need>* needs) const {
  for (const SearchPlan::Part& part : plan.parts) {
    const auto type = std::lower_bound(types_.begin(), types_.end(), part.type);
    Need need{.column = static_cast<size_t>(type - types_.begin())};
    const bool known = type != types_.end() && *type == part.type;
    if (!known || __builtin_mul_overflow(part.count, plan.least_slots(), &need.amount)) {
      return false;
    }
    needs->push_back(need);
  }
  return true;
}

uint64_t RoomIndex::ThoseWith(size_t block, std::span<const Need> needs) const {
  const int64_t* most = &most_[block * columns()];
  const bool passed = std::any_of(needs.begin(), needs.end(), [most](const Need& need) {
    return most[need.column] < need.amount;
  });
  if (passed) return 0;
  uint64_t those = UINT64_MAX;
  for (const Need& need : needs) {
    const int64_t* amounts = &amounts_[(block * columns() + need.column) * kBlock];
    uint64_t with = 0;
    for (size_t place = 0; place < kBlock; ++place) {
      with |= uint64_t{amounts[place] >= need.amount} << place;
    }
    those &= with;
  }
  return those;
}

}  // namespace fluxqueue::graph
