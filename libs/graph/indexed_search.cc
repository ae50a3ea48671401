#include "libs/graph/indexed_search.h"

#include <algorithm>
#include <bit>
#include <ranges>

#include "libs/graph/candidate_choice.h"
#include "libs/graph/candidates.h"

namespace fluxqueue::graph {
namespace {

// Priorities of nodes by the score of their next slot; above any score.
constexpr int64_t kScoreBias = int64_t{1} << 61;

uint32_t HighestBit(uint64_t bits) {
  return static_cast<uint32_t>(std::bit_width(bits) - 1);
}

// Leaves are taken whole.
uint64_t LeavesPerSlot(const LeafGroup& group, const SearchPlan::Part& part) {
  const auto size = static_cast<uint64_t>(group.size);
  return (part.count + size - 1) / size;
}

}  // namespace

IndexedSearch::IndexedSearch(const ResourceGraph& graph,
                             const GraphState& state,
                             const MatchPolicy& policy,
                             const Packing& packing)
    : graph_(graph),
      state_(state),
      policy_(policy),
      packing_(packing),
      pruner_(graph, state, TraverserKind::kSimple),
      topology_(graph, state),
      tables_(graph, state, policy, topology_) {}

void IndexedSearch::GraphChanged() {
  tables_.Clear();
  pruner_.GraphChanged();
  topology_ = Topology(graph_, state_);
}

std::optional<SearchPlan> IndexedSearch::PlanFor(const ResolvedRequest& request) {
  std::optional<SearchPlan> plan = PlanSearch(topology_, policy_, request);
  if (plan.has_value()) plan->number = ++plans_;
  return plan;
}

IndexedSearch::Answer IndexedSearch::Search(const SearchPlan& plan,
                                            const Window& window,
                                            Selection* selection) {
  // When nothing is to begin later, what is free now is free for however long.
  Window canonical = window;
  if (window.kind == Window::Kind::kNow && window.at_s == 0 && !state_.HoldsLater()) {
    canonical.duration_s = 1;
  }
  plan_ = &plan;
  pruner_.Begin(plan.request->job, canonical);
  if (pruner_.Prune(graph_.root(), plan.request->levels, false)) return Answer::kNothingFits;
  table_ = &tables_.For(plan, canonical);
  ambiguous_ = false;
  taken_.clear();
  std::vector<Unit> units;
  const uint32_t found = Gather(0, 0, &units);
  if (ambiguous_) return Answer::kAskAWalk;
  if (found < plan.stages.front().wanted) return Answer::kNothingFits;
  Choose(0, 0, &units);
  if (selection == nullptr) return Answer::kFound;
  selection->holding.at_s = window.at_s;
  selection->holding.duration_s = window.duration_s;
  selection->holding.reserved = window.kind == Window::Kind::kLater;
  Collect(selection);
  return Answer::kFound;
}

uint32_t IndexedSearch::Gather(SiteId at, size_t stage, std::vector<Unit>* units) {
  if (plan_->Ranks(stage)) return GatherRanked(at, stage, units);
  const uint32_t wanted = plan_->stages[stage].wanted;
  const bool at_nodes = stage + 1 == plan_->stages.size();
  if (at_nodes && !plan_->names_nodes && !policy_.stop_on_first) {
    return GatherSlotsByScore(at, wanted);
  }
  const bool by_cost = policy_.order == MatchPolicy::Order::kPacked;
  auto [tree, members] = table_->At(at);
  std::vector<std::pair<size_t, uint64_t>> met;
  uint32_t found = 0;
  while (found < wanted) {
    const size_t place = tree.Best();
    if (place == Tournament::kNobody) break;
    const uint64_t priority = tree.Priority(place);
    if (by_cost && priority == SearchTable::kUnknownPriority) {
      tree.Set(place, PackedPriority(members[place], stage));
      continue;
    }
    tree.Set(place, Tournament::kOut);
    const uint32_t here = VisitMember(members[place], stage, units);
    // Who has nothing stays out until it changes.
    if (here > 0) met.emplace_back(place, priority);
    found += here;
  }
  for (const auto& [place, priority] : met) tree.Set(place, priority);
  return found;
}

uint32_t IndexedSearch::GatherRanked(SiteId at, size_t stage, std::vector<Unit>* units) {
  const uint32_t group = table_->layout->group_at[at];
  auto [tree, members] = table_->OfGroup(group);
  SearchTable::Ranking& ranking = table_->rankings[group];
  ranking.scores.resize(members.size(), SearchTable::Ranking::kOut);
  const size_t first = taken_.size();
  while (true) {
    const size_t place = tree.Best();
    const bool known =
        place == Tournament::kNobody || tree.Priority(place) != SearchTable::kUnknownPriority;
    if (known) break;
    std::vector<Unit> unit;
    const bool fits = VisitMember(members[place], stage, &unit) > 0;
    taken_.resize(first);
    tree.Set(place, fits ? 1 : Tournament::kOut);
    const int64_t score = fits ? unit.front().score : SearchTable::Ranking::kOut;
    ranking.valid = ranking.valid && ranking.scores[place] == score;
    ranking.scores[place] = score;
  }
  if (!ranking.valid) Rank(&ranking);
  const size_t wanted = std::min<size_t>(plan_->stages[stage].wanted, ranking.order.size());
  for (size_t i = 0; i < wanted; ++i) VisitMember(members[ranking.order[i]], stage, units);
  return static_cast<uint32_t>(wanted);
}

// By class, or by runs of adjacent ids, the highest first. Equals end up where std::sort puts them,
// as in a walk.
void IndexedSearch::Rank(SearchTable::Ranking* ranking) const {
  struct Ranked {
    int64_t score;
    uint32_t place;
  };
  std::vector<Ranked> all;
  for (uint32_t place = 0; place < ranking->scores.size(); ++place) {
    const int64_t score = ranking->scores[place];
    if (score != SearchTable::Ranking::kOut) all.push_back({score, place});
  }
  const auto less = [](const Ranked& a, const Ranked& b) { return a.score < b.score; };
  if (plan_->by_class) {
    std::sort(all.begin(), all.end(), less);
  } else {
    std::vector<Ranked> by_id = all;
    if (!std::is_sorted(by_id.begin(), by_id.end(), less)) {
      std::sort(by_id.begin(), by_id.end(), less);
    }
    std::vector<int64_t> run_of(ranking->scores.size());
    for (size_t i = 0; i < by_id.size(); ++i) {
      const bool joins = i > 0 && by_id[i].score == by_id[i - 1].score + 1;
      run_of[by_id[i].place] = joins ? run_of[by_id[i - 1].place] : by_id[i].score;
    }
    for (Ranked& one : all) one.score = run_of[one.place];
    std::sort(
        all.begin(), all.end(), [&less](const Ranked& a, const Ranked& b) { return less(b, a); });
  }
  ranking->order.clear();
  for (const Ranked& one : all) ranking->order.push_back(one.place);
  ranking->valid = true;
}

// What the member has of what the stage wants: at most that much.
uint32_t IndexedSearch::VisitMember(SiteId site, size_t stage, std::vector<Unit>* units) {
  const Site& here = topology_.site(site);
  const SearchPlan::Stage& wanted = plan_->stages[stage];
  const size_t first = taken_.size();
  const Vertex& vertex = graph_.vertex(here.vertex);
  const int64_t score = plan_->by_class ? VertexScore(policy_, vertex, 0) : vertex.id;
  if (here.depth == topology_.node_depth()) {
    const uint32_t slots = SlotsOn(site);
    if (slots == 0) return 0;
    if (!plan_->names_nodes) {
      taken_.push_back({site, std::min(slots, wanted.wanted)});
      return taken_.back().slots;
    }
    taken_.push_back({site, plan_->slots_per_node});
    units->push_back({score, first, first + 1, PackedScore({}, first)});
    return 1;
  }
  if (pruner_.Prune(here.vertex, *wanted.levels, false)) return 0;
  if (here.depth < wanted.depth) return Gather(site, stage, units);
  std::vector<Unit> below;
  if (Gather(site, stage + 1, &below) < plan_->stages[stage + 1].wanted) {
    taken_.resize(first);
    return 0;
  }
  Choose(stage + 1, first, &below);
  units->push_back({score, first, taken_.size(), PackedScore(below, first)});
  return 1;
}

uint64_t IndexedSearch::PackedPriority(SiteId site, size_t stage) {
  const size_t first = taken_.size();
  std::vector<Unit> units;
  const bool fits = VisitMember(site, stage, &units) > 0;
  taken_.resize(first);
  return fits ? static_cast<uint64_t>(kScoreBias - units.front().cost) : Tournament::kOut;
}

int64_t IndexedSearch::PackedScore(const std::vector<Unit>& below, size_t first) {
  if (policy_.order != MatchPolicy::Order::kPacked) return 0;
  std::vector<int64_t> scores;
  for (const Unit& unit : below) scores.push_back(unit.cost);
  for (size_t i = first; i < taken_.size() && below.empty(); ++i) {
    const std::vector<int64_t> of_node = SlotScores(taken_[i].node, taken_[i].slots);
    scores.insert(scores.end(), of_node.begin(), of_node.end());
  }
  return MeanScore(scores);
}

// Slots of different nodes compete: the node whose next slot is the best goes first.
uint32_t IndexedSearch::GatherSlotsByScore(SiteId at, uint32_t wanted) {
  auto [tree, members] = table_->At(at);
  struct Node {
    size_t place;
    std::vector<uint64_t> priorities;  // of its slots
    size_t taken;                      // where it is in `taken_`
  };
  std::vector<Node> nodes;
  uint64_t last = 0;
  size_t last_place = 0;
  bool several_equal = false;  // several nodes gave slots that are as good as the last one
  uint32_t found = 0;
  while (found < wanted) {
    const size_t place = tree.Best();
    if (place == Tournament::kNobody) break;
    const SiteId site = members[place];
    if (tree.Priority(place) == SearchTable::kUnknownPriority) {
      tree.Set(place, SlotsOn(site) > 0 ? SlotPriorities(site, 1).front() : Tournament::kOut);
      continue;
    }
    auto node = std::find_if(
        nodes.rbegin(), nodes.rend(), [place](const Node& known) { return known.place == place; });
    if (node == nodes.rend()) {
      nodes.push_back(
          {place, SlotPriorities(site, std::min(SlotsOn(site), wanted)), taken_.size()});
      taken_.push_back({site, 0});
      node = nodes.rbegin();
    }
    several_equal = tree.Priority(place) == last && (several_equal || place != last_place);
    last = tree.Priority(place);
    last_place = place;
    const uint32_t taken = ++taken_[node->taken].slots;
    tree.Set(place, taken < node->priorities.size() ? node->priorities[taken] : Tournament::kOut);
    ++found;
  }
  // Equals are left. If they are all of one node, it does not matter which of its slots it gives;
  // under `packed` ids decide.
  const auto leaves_equals = [&] {
    const size_t next = tree.Best();
    return next != Tournament::kNobody && tree.Priority(next) == last;
  };
  const bool by_id = policy_.order == MatchPolicy::Order::kPacked;
  if (found == wanted && !by_id && leaves_equals()) {
    tree.Set(last_place, Tournament::kOut);
    ambiguous_ = ambiguous_ || several_equal || leaves_equals();
  }
  for (const Node& node : nodes) tree.Set(node.place, node.priorities.front());
  return found;
}

// Keeps the best of what was gathered since `first`, as many as the stage wants.
void IndexedSearch::Choose(size_t stage, size_t first, std::vector<Unit>* units) {
  const uint32_t wanted = plan_->stages[stage].wanted;
  if (stage + 1 == plan_->stages.size() && !plan_->names_nodes) {
    ChooseSlots(wanted, first);
    return;
  }
  if (units->size() <= wanted) return;
  const bool low = policy_.order == MatchPolicy::Order::kLow;
  std::sort(units->begin(), units->end(), [low](const Unit& a, const Unit& b) {
    return low ? a.score < b.score : a.score > b.score;
  });
  std::vector<Taken> best;
  for (size_t i = 0; i < wanted; ++i) {
    best.insert(best.end(),
                taken_.begin() + static_cast<ptrdiff_t>((*units)[i].first),
                taken_.begin() + static_cast<ptrdiff_t>((*units)[i].last));
  }
  taken_.resize(first);
  taken_.insert(taken_.end(), best.begin(), best.end());
}

void IndexedSearch::ChooseSlots(uint32_t wanted, size_t first) {
  uint64_t found = 0;
  for (size_t i = first; i < taken_.size(); ++i) found += taken_[i].slots;
  if (found <= wanted) return;
  struct Slot {
    int64_t score;
    size_t taken;
  };
  std::vector<Slot> slots;
  bool shares = false;
  for (size_t i = first; i < taken_.size(); ++i) {
    for (const SearchPlan::Part& part : plan_->parts) {
      const auto pools = PoolsOf(taken_[i].node, part);
      shares = shares || (!pools.empty() && IsShareOf(pools, part));
    }
    for (const int64_t score : SlotScores(taken_[i].node, taken_[i].slots)) {
      slots.push_back({score, i});
    }
    taken_[i].slots = 0;
  }
  // A walk sorts its candidates like this: equals end up in the same order here and there.
  const bool low = policy_.order == MatchPolicy::Order::kLow;
  const auto before = [low](const Slot& a, const Slot& b) {
    return low ? a.score < b.score : a.score > b.score;
  };
  if (shares) {
    std::stable_sort(slots.begin(), slots.end(), before);
  } else {
    std::sort(slots.begin(), slots.end(), before);
  }
  for (size_t i = 0; i < wanted; ++i) ++taken_[slots[i].taken].slots;
  std::erase_if(taken_, [](const Taken& taken) { return taken.slots == 0; });
}

std::vector<uint64_t> IndexedSearch::SlotPriorities(SiteId site, uint32_t slots) {
  const bool low = policy_.TakesLeast();
  std::vector<uint64_t> priorities;
  for (const int64_t score : SlotScores(site, slots)) {
    priorities.push_back(static_cast<uint64_t>(low ? kScoreBias - score : score));
  }
  return priorities;
}

uint32_t IndexedSearch::SlotsOn(SiteId site) {
  uint32_t& slots = table_->slots[site];
  if (slots == SearchTable::kUnknown) slots = CountSlots(site);
  return slots;
}

uint32_t IndexedSearch::CountSlots(SiteId site) {
  const VertexId node = topology_.site(site).vertex;
  const Levels& levels = *plan_->stages.back().levels;
  if (!MayReach(site) || pruner_.Prune(node, levels, plan_->exclusive_nodes)) return 0;
  uint64_t slots = SearchTable::kUnknown - 1;
  for (const SearchPlan::Part& part : plan_->parts) {
    uint64_t leaves = 0;
    uint64_t per_slot = 1;
    for (const LeafGroup& group : state_.GroupsOf(node)) {
      if (group.type != part.type) continue;
      leaves += static_cast<uint64_t>(std::popcount(Usable(group)));
      per_slot = LeavesPerSlot(group, part);
    }
    if (const auto pools = PoolsOf(site, part); !pools.empty()) {
      for (const Pool& pool : pools) leaves += PicksOf(pool, part);
      per_slot = PicksPerSlot(pools, part);
    }
    slots = std::min(slots, leaves / per_slot);
  }
  if (!plan_->names_nodes) return static_cast<uint32_t>(slots);
  return slots >= plan_->slots_per_node ? plan_->slots_per_node : 0;
}

// An amount that is more than any of them has is so many whole ones.
bool IndexedSearch::IsShareOf(std::span<const Pool> pools, const SearchPlan::Part& part) const {
  return part.count <= static_cast<uint64_t>(graph_.vertex(pools.front().vertex).size);
}

uint64_t IndexedSearch::PicksPerSlot(std::span<const Pool> pools,
                                     const SearchPlan::Part& part) const {
  if (IsShareOf(pools, part)) return 1;
  const auto size = static_cast<uint64_t>(graph_.vertex(pools.front().vertex).size);
  return size == 0 ? part.count : (part.count + size - 1) / size;
}

uint64_t IndexedSearch::PicksOf(const Pool& pool, const SearchPlan::Part& part) const {
  const Window& window = table_->window;
  const Vertex& vertex = graph_.vertex(pool.vertex);
  if (window.kind != Window::Kind::kEver && !vertex.up) return 0;
  const int64_t free = state_.FreeDuring(pool.vertex, window.at_s, window.duration_s);
  if (free <= 0) return 0;
  if (IsShareOf({&pool, 1}, part)) return static_cast<uint64_t>(free) / part.count;
  return free == vertex.size ? 1 : 0;
}

int64_t IndexedSearch::AmountOf(const Pool& pool, const SearchPlan::Part& part) const {
  return IsShareOf({&pool, 1}, part) ? static_cast<int64_t>(part.count)
                                     : graph_.vertex(pool.vertex).size;
}

void IndexedSearch::PickPools(std::span<const Pool> pools,
                              const SearchPlan::Part& part,
                              uint32_t slots) {
  const uint64_t per_slot = PicksPerSlot(pools, part);
  const uint64_t most = SlotsWanted() * per_slot;
  uint64_t found = 0;
  picks_.clear();
  for (const Pool& pool : pools | std::views::reverse) {
    // As a walk that stops at the first match.
    if (policy_.stop_on_first && found >= most) break;
    const uint64_t picks = std::min(PicksOf(pool, part), most);
    picks_.insert(picks_.end(), picks, &pool);
    found += picks;
  }
  if (policy_.TakesLeast()) std::reverse(picks_.begin(), picks_.end());
  if (policy_.order == MatchPolicy::Order::kPacked && packing_.IsGpu(pools.front().vertex)) {
    std::ranges::stable_sort(picks_, {}, [this](const Pool* pool) {
      return packing_.GpuScore(pool->vertex, table_->window);
    });
  }
  picks_.resize(slots * per_slot);
}

// Whether the vertices between the node and where it is gathered can be passed.
bool IndexedSearch::MayReach(SiteId site) const {
  const Window& window = table_->window;
  SiteId above = topology_.site(site).parent;
  for (; !table_->GathersAt(above); above = topology_.site(above).parent) {
    const VertexId v = topology_.site(above).vertex;
    if (window.kind != Window::Kind::kEver && !graph_.vertex(v).up) return false;
    if (state_.FreeDuring(v, window.at_s, window.duration_s) <= 0) return false;
  }
  return true;
}

uint64_t IndexedSearch::Usable(const LeafGroup& group) const {
  const Window& window = table_->window;
  uint64_t leaves = group.present & ~group.HeldDuring(window.at_s, window.duration_s);
  if (window.kind != Window::Kind::kEver) leaves &= group.up;
  // A job beyond its end still holds what it holds.
  if (window.kind == Window::Kind::kNow) leaves &= ~group.Allocated();
  return leaves;
}

void IndexedSearch::PutInOrder(SiteId node, const SearchPlan::Part& part) {
  leaves_.clear();
  const auto groups = state_.GroupsOf(topology_.site(node).vertex);
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
void IndexedSearch::PickLeavesByClass(const Taken& taken) {
  const auto groups = state_.GroupsOf(topology_.site(taken.node).vertex);
  std::vector<ScoredLeaf> leaves;  // of all parts
  std::vector<SlotsOfPart> parts;
  size_t slots = SIZE_MAX;
  for (const SearchPlan::Part& part : plan_->parts) {
    const size_t first = leaves.size();
    AddUsable(taken.node, part.type, &leaves);
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
  for (size_t k = 0; k < taken.slots; ++k) {
    for (const SlotsOfPart& part : parts) {
      for (size_t i = 0; i < part.each; ++i) {
        const LeafRef leaf = leaves[part.first + by_score[k].second * part.each + i].leaf;
        picked_[leaf.group] |= uint64_t{1} << leaf.bit;
      }
    }
  }
}

void IndexedSearch::AddUsable(SiteId node, TypeId type, std::vector<ScoredLeaf>* leaves) const {
  const auto groups = state_.GroupsOf(topology_.site(node).vertex);
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

std::vector<int64_t> IndexedSearch::SlotScores(SiteId site, uint32_t slots) {
  if (policy_.order == MatchPolicy::Order::kPacked) return SlotCosts(site, slots);
  const VertexId node = topology_.site(site).vertex;
  const auto groups = state_.GroupsOf(node);
  const int64_t node_score = NodeScore(policy_, graph_.vertex(node));
  std::vector<int64_t> scores(slots, kMet);
  for (const SearchPlan::Part& part : plan_->parts) {
    if (const auto pools = PoolsOf(site, part); !pools.empty()) {
      PickPools(pools, part, slots);
      const size_t per_slot = PicksPerSlot(pools, part);
      for (size_t i = 0; i < picks_.size(); ++i) {
        scores[i / per_slot] += VertexScore(policy_, graph_.vertex(picks_[i]->vertex), node_score);
      }
      continue;
    }
    PutInOrder(site, part);
    const uint64_t per_slot = LeavesPerSlot(groups[leaves_.front().group], part);
    for (size_t i = 0; i < size_t{slots} * per_slot; ++i) {
      const VertexId leaf = groups[leaves_[i].group].leaves[leaves_[i].bit];
      scores[i / per_slot] += VertexScore(policy_, graph_.vertex(leaf), node_score);
    }
  }
  return scores;
}

std::vector<int64_t> IndexedSearch::SlotCosts(SiteId site, uint32_t slots) {
  const VertexId node = topology_.site(site).vertex;
  struct Pick {
    VertexId leaf;
    int64_t amount;
  };
  std::vector<std::vector<Pick>> picks(slots);
  for (const SearchPlan::Part& part : plan_->parts) {
    if (const auto pools = PoolsOf(site, part); !pools.empty()) {
      PickPools(pools, part, slots);
      const size_t per_slot = PicksPerSlot(pools, part);
      for (size_t i = 0; i < picks_.size(); ++i) {
        picks[i / per_slot].push_back({picks_[i]->vertex, AmountOf(*picks_[i], part)});
      }
      continue;
    }
    PutInOrder(site, part);
    const LeafGroup& group = state_.GroupsOf(node)[leaves_.front().group];
    const auto amount = static_cast<int64_t>(LeavesPerSlot(group, part)) * group.size;
    for (auto& slot : picks) slot.push_back({group.leaves.front(), amount});
  }
  Packing::Filling filling = packing_.Fill(node, table_->window);
  std::vector<int64_t> costs;
  for (const std::vector<Pick>& slot : picks) {
    for (const Pick& pick : slot) filling.Take(pick.leaf, pick.amount);
    if (HoldsWholeNodes()) filling.TakeAll();
    costs.push_back(filling.FinishSlot());
  }
  return costs;
}

// Sites below their parents, in the order of the edges: as a walk goes.
void IndexedSearch::Collect(Selection* selection) {
  std::sort(
      taken_.begin(), taken_.end(), [](const Taken& a, const Taken& b) { return a.node < b.node; });
  selection->holding.vertices.Reserve(taken_.size() * plan_->parts.size() +
                                      topology_.types().size());
  std::vector<SiteId> open = {0};
  const auto close_before = [&](SiteId node) {
    while (topology_.site(open.back()).end <= node) {
      CollectSite(open.back(), false, selection);
      open.pop_back();
    }
  };
  for (const Taken& taken : taken_) {
    close_before(taken.node);
    const size_t depth = open.size();
    for (SiteId s = topology_.site(taken.node).parent; s != open[depth - 1];
         s = topology_.site(s).parent) {
      open.insert(open.begin() + static_cast<ptrdiff_t>(depth), s);
    }
    CollectNode(taken, selection);
  }
  for (; !open.empty(); open.pop_back()) CollectSite(open.back(), false, selection);
}

void IndexedSearch::CollectNode(const Taken& taken, Selection* selection) {
  const LeafGroup* groups = state_.GroupsOf(topology_.site(taken.node).vertex).data();
  const bool whole = HoldsWholeNodes();
  if (!whole) PickLeaves(taken);
  for (const LeafRun& run : topology_.LeavesOf(taken.node)) {
    if (run.group == LeafRun::kNoGroup) {
      const int64_t amount = whole ? graph_.vertex(run.vertex).size : of_pools_[run.place];
      if (amount > 0) selection->holding.vertices.push_back({run.vertex, run.edge, amount, true});
      continue;
    }
    const LeafGroup& group = groups[run.group];
    const uint64_t mine = ~uint64_t{0} >> (64 - run.count);
    const uint64_t bits = ((whole ? group.present : picked_[run.group]) >> run.place) & mine;
    for (int first = std::countr_zero(bits); first < static_cast<int>(run.count);) {
      const int count = std::countr_one(bits >> first);
      const auto offset = static_cast<uint32_t>(first);
      selection->holding.vertices.Append(
          {{run.vertex + offset, run.edge + offset, group.size, true},
           static_cast<uint32_t>(count)});
      first += count;
      if (first < static_cast<int>(run.count)) first += std::countr_zero(bits >> first);
    }
  }
  CollectSite(taken.node, whole, selection);
}

void IndexedSearch::PickLeaves(const Taken& taken) {
  const VertexId node = topology_.site(taken.node).vertex;
  const auto groups = state_.GroupsOf(node);
  const auto all = topology_.PoolsOf(taken.node);
  picked_.assign(groups.size(), 0);
  of_pools_.assign(all.size(), 0);
  if (plan_->by_class) return PickLeavesByClass(taken);
  for (const SearchPlan::Part& part : plan_->parts) {
    if (const auto pools = PoolsOf(taken.node, part); !pools.empty()) {
      PickPools(pools, part, taken.slots);
      for (const Pool* pool : picks_) {
        of_pools_[static_cast<size_t>(pool - all.data())] += AmountOf(*pool, part);
      }
      continue;
    }
    PutInOrder(taken.node, part);
    const size_t count = size_t{taken.slots} * LeavesPerSlot(groups[leaves_.front().group], part);
    for (size_t i = 0; i < count; ++i) {
      picked_[leaves_[i].group] |= uint64_t{1} << leaves_[i].bit;
    }
  }
}

void IndexedSearch::CollectSite(SiteId site, bool exclusive, Selection* selection) const {
  const Site& here = topology_.site(site);
  selection->holding.vertices.push_back({here.vertex, here.edge, 1, exclusive});
  if (here.edge != kNoEdge) selection->used.push_back(here.edge);
}

}  // namespace fluxqueue::graph
