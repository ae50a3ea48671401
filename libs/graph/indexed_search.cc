#include "libs/graph/indexed_search.h"

#include <algorithm>

#include "libs/graph/candidate_choice.h"
#include "libs/graph/candidates.h"

namespace fluxqueue::graph {
namespace {

// Priorities of nodes by the score of their next slot; above any score.
constexpr int64_t kScoreBias = int64_t{1} << 61;

}  // namespace

IndexedSearch::IndexedSearch(const ResourceGraph& graph,
                             const GraphState& state,
                             const MatchPolicy& policy,
                             const Packing& packing)
    : graph_(graph),
      state_(state),
      policy_(policy),
      pruner_(graph, state, TraverserKind::kSimple),
      topology_(graph, state),
      slots_(graph, state, policy, packing, topology_),
      tables_(graph, state, policy, topology_),
      free_(graph, state, topology_, RoomIndex::Of::kNow),
      capacity_(graph, state, topology_, RoomIndex::Of::kEver) {}

void IndexedSearch::GraphChanged() {
  tables_.Clear();
  free_.Clear();
  capacity_.Clear();
  pruner_.GraphChanged();
  topology_ = Topology(graph_, state_);
}

std::optional<SearchPlan> IndexedSearch::PlanFor(const ResolvedRequest& request) {
  std::optional<SearchPlan> plan = PlanSearch(topology_, policy_, request);
  if (plan.has_value()) plan->number = ++plans_;
  return plan;
}

// What is free only becomes more between the times at which something begins to be held. So all
// windows that end between the same two of them are alike.
Window IndexedSearch::Canonical(const Window& window) const {
  if (window.kind == Window::Kind::kEver) return window;
  Window canonical = window;
  const int64_t end = window.at_s + window.duration_s;
  const std::optional<int64_t> first = state_.FirstStartFrom(window.at_s + 1);
  if (!first.has_value() || *first >= end) {
    canonical.duration_s = 1;
  } else {
    canonical.duration_s = state_.FirstStartFrom(end).value_or(Timeline::kEnd) - window.at_s;
  }
  return canonical;
}

IndexedSearch::Answer IndexedSearch::Search(const SearchPlan& plan,
                                            const Window& window,
                                            Selection* selection) {
  sweep_ = nullptr;
  if (IsRootPruned(plan, window)) return Answer::kNothingFits;
  Window kept = window_;
  // Who fits now fits until something changes, and changes are told.
  if (kept.kind == Window::Kind::kNow && kept.duration_s == 1) kept.at_s = 0;
  SearchTable* table = tables_.Find(plan, kept);
  if (table == nullptr) {
    if (const auto answer = Look(selection != nullptr); answer.has_value()) return *answer;
    table = &tables_.Make(plan, kept);
  }
  return SearchIn(table, window, selection);
}

bool IndexedSearch::IsRootPruned(const SearchPlan& plan, const Window& window) {
  plan_ = &plan;
  window_ = Canonical(window);
  pruner_.Begin(plan.request->job, window_);
  return pruner_.Prune(graph_.root(), plan.request->levels, false);
}

IndexedSearch::Answer IndexedSearch::SearchIn(SearchTable* table,
                                              const Window& window,
                                              Selection* selection) {
  const SearchPlan& plan = *plan_;
  table_ = table;
  slots_.Begin(&plan, window_);
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
  if (pruner_.Prune(here.vertex, *wanted.levels, false)) {
    if (table_ == sweep_) ExpectOfPruned(site);
    return 0;
  }
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
    const std::vector<int64_t> of_node = slots_.Scores(taken_[i].node, taken_[i].slots);
    scores.insert(scores.end(), of_node.begin(), of_node.end());
  }
  return MeanScore(scores);
}

// Slots of different nodes compete: the node whose next slot is the best goes first.
uint32_t IndexedSearch::GatherSlotsByScore(SiteId at, uint32_t wanted) {
  SearchTable::Gathering gathering = table_->At(at);
  Tournament& tree = gathering.tree;
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
    const SiteId site = gathering.members[place];
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
    shares = shares || slots_.MayShare(taken_[i].node);
    for (const int64_t score : slots_.Scores(taken_[i].node, taken_[i].slots)) {
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
  for (const int64_t score : slots_.Scores(site, slots)) {
    priorities.push_back(static_cast<uint64_t>(low ? kScoreBias - score : score));
  }
  return priorities;
}

uint32_t IndexedSearch::SlotsOn(SiteId site) {
  uint32_t& slots = table_->slots[site];
  if (slots == SearchTable::kUnknown) {
    slots = table_ == sweep_ ? CountSlotsInSweep(site) : CountSlots(site);
  }
  return slots;
}

uint32_t IndexedSearch::CountSlots(SiteId site) {
  return MayReach(site) ? CountSlotsOfNode(site) : 0;
}

uint32_t IndexedSearch::CountSlotsOfNode(SiteId site) {
  const VertexId node = topology_.site(site).vertex;
  const Levels& levels = *plan_->stages.back().levels;
  if (pruner_.Prune(node, levels, plan_->exclusive_nodes)) return 0;
  const uint64_t slots = std::min<uint64_t>(slots_.Count(site), SearchTable::kUnknown - 1);
  if (!plan_->names_nodes) return static_cast<uint32_t>(slots);
  return slots >= plan_->slots_per_node ? plan_->slots_per_node : 0;
}

// Whether the vertices between the node and where it is gathered can be passed.
bool IndexedSearch::MayReach(SiteId site) const {
  SiteId above = topology_.site(site).parent;
  for (; !table_->GathersAt(above); above = topology_.site(above).parent) {
    if (!MayPass(above)) return false;
  }
  return true;
}

bool IndexedSearch::MayPass(SiteId site) const {
  const VertexId v = topology_.site(site).vertex;
  if (window_.kind != Window::Kind::kEver && !graph_.vertex(v).up) return false;
  return state_.FreeDuring(v, window_.at_s, window_.duration_s) > 0;
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
    slots_.Collect(taken.node, taken.slots, &selection->holding.vertices);
    CollectSite(taken.node, slots_.takes_whole_nodes(), selection);
  }
  for (; !open.empty(); open.pop_back()) CollectSite(open.back(), false, selection);
}

void IndexedSearch::CollectSite(SiteId site, bool exclusive, Selection* selection) const {
  const Site& here = topology_.site(site);
  selection->holding.vertices.push_back({here.vertex, here.edge, 1, exclusive});
  if (here.edge != kNoEdge) selection->used.push_back(here.edge);
}

}  // namespace fluxqueue::graph
