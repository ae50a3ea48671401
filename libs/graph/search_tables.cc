#include "libs/graph/search_tables.h"

#include <algorithm>
#include <iterator>
#include <utility>

namespace fluxqueue::graph {
namespace {

// Tables are kept for so many sites in all, and for so many requests.
constexpr size_t kMaxTableSites = 4'000'000;
constexpr size_t kMinTables = 4;
constexpr size_t kMaxTables = 1024;

// Of a node, where anything is.
RoomTimes::Wanted WantedOfNode(const SearchPlan& plan, int64_t duration) {
  RoomTimes::Wanted wanted;
  wanted.duration_s = duration;
  for (const SearchPlan::Part& part : plan.parts) {
    const uint64_t slots = plan.least_slots();
    uint64_t amount = 0;
    if (__builtin_mul_overflow(slots, part.count, &amount)) amount = UINT64_MAX;
    wanted.amounts.emplace_back(part.type, amount);
  }
  std::sort(wanted.amounts.begin(), wanted.amounts.end());
  return wanted;
}

}  // namespace

size_t SearchTables::KeyHash::operator()(const Key& key) const {
  const auto time = static_cast<uint64_t>(key.window.at_s ^ (key.window.duration_s << 20));
  return key.plan * 0x9E3779B97F4A7C15 ^ time;
}

void SearchTables::Clear() {
  by_key_.clear();
  tables_.clear();
  layouts_.clear();
  rooms_.Clear(0);
}

// Policies that stop at the first match go from vertex to vertex; for others what is below a vertex
// that the request does not name is as good as below the vertex above.
const SearchLayout& SearchTables::LayoutFor(const SearchPlan& plan) {
  std::vector<bool> gathers(topology_.node_depth() + 1, policy_.stop_on_first);
  gathers.front() = true;
  for (const SearchPlan::Stage& stage : plan.stages) gathers[stage.depth] = true;
  gathers.back() = false;
  for (const SearchLayout& layout : layouts_) {
    if (layout.gathers == gathers && layout.ranks_all == plan.by_class &&
        layout.ranks_at_root == plan.by_runs) {
      return layout;
    }
  }
  SearchLayout& layout = layouts_.emplace_back();
  layout.gathers = std::move(gathers);
  layout.ranks_at_root = plan.by_runs;
  layout.ranks_all = plan.by_class;
  Fill(&layout);
  return layout;
}

void SearchTables::Fill(SearchLayout* filled) const {
  SearchLayout& layout = *filled;
  const auto sites = topology_.sites();
  layout.group_at.assign(sites.size(), SearchLayout::kNoGroup);
  layout.group_of.assign(sites.size(), SearchLayout::kNoGroup);
  layout.place_in.assign(sites.size(), 0);
  std::vector<std::vector<SiteId>> members;
  for (SiteId s = 0; s < sites.size(); ++s) {
    const uint32_t depth = sites[s].depth;
    if (layout.gathers[depth]) {
      layout.group_at[s] = static_cast<uint32_t>(members.size());
      members.emplace_back();
    }
    if (depth == 0 || (!layout.gathers[depth] && depth != topology_.node_depth())) continue;
    SiteId above = sites[s].parent;
    while (!layout.gathers[sites[above].depth]) above = sites[above].parent;
    layout.group_of[s] = layout.group_at[above];
    members[layout.group_at[above]].push_back(s);
  }
  // Among equals the last one is taken.
  const auto before = [&](SiteId a, SiteId b) {
    const Vertex& left = graph_.vertex(sites[a].vertex);
    const Vertex& right = graph_.vertex(sites[b].vertex);
    if (policy_.stop_on_first) {
      return std::pair(left.uniq_id, sites[a].edge) < std::pair(right.uniq_id, sites[b].edge);
    }
    return policy_.TakesLeast() ? left.id > right.id : left.id < right.id;
  };
  for (std::vector<SiteId>& of_group : members) {
    if (!layout.Ranks(static_cast<uint32_t>(layout.groups.size()))) {
      std::sort(of_group.begin(), of_group.end(), before);
    }
    const auto first = static_cast<uint32_t>(layout.members.size());
    layout.groups.push_back({layout.tree_length, first, static_cast<uint32_t>(of_group.size())});
    layout.tree_length += Tournament::Length(of_group.size());
    for (const SiteId site : of_group) {
      layout.place_in[site] = static_cast<uint32_t>(layout.members.size()) - first;
      layout.members.push_back(site);
    }
  }
}

SearchTable* SearchTables::Find(const SearchPlan& plan, const Window& window) {
  const auto known = by_key_.find({plan.number, window});
  if (known == by_key_.end()) return nullptr;
  tables_.splice(tables_.begin(), tables_, known->second);
  Update(&tables_.front());
  return &tables_.front();
}

SearchTable& SearchTables::Make(const SearchPlan& plan, const Window& window) {
  const size_t most = std::clamp(kMaxTableSites / topology_.sites().size(), kMinTables, kMaxTables);
  if (tables_.size() < most) {
    tables_.emplace_front();
  } else {
    by_key_.erase({tables_.back().plan, tables_.back().window});
    tables_.splice(tables_.begin(), tables_, std::prev(tables_.end()));
  }
  SearchTable& table = tables_.front();
  table.window = window;
  Begin(plan, &table);
  by_key_.emplace(Key{plan.number, window}, tables_.begin());
  return table;
}

void SearchTables::Begin(const SearchPlan& plan, SearchTable* table) {
  table->plan = plan.number;
  table->layout = &LayoutFor(plan);
  table->slots_compete = !plan.names_nodes && !policy_.stop_on_first;
  Reset(table);
}

SearchTable& SearchTables::BeginSweep(const SearchPlan& plan, int64_t time, int64_t duration) {
  others_ = {};
  mores_ = {};
  swept_s_ = time;
  ForgetRooms();
  rooms_.BeginSweep(WantedOfNode(plan, duration), time);
  Begin(plan, &sweep_);
  return sweep_;
}

// Of sites that have changed since the last sweep.
void SearchTables::ForgetRooms() {
  const size_t sites = topology_.sites().size();
  if (rooms_.sites() != sites || rooms_seen_ < state_.changes_begin()) {
    rooms_.Clear(sites);
  } else {
    for (const auto& change : state_.changes().subspan(rooms_seen_ - state_.changes_begin())) {
      const SiteId first = topology_.SiteOf(change.vertex);
      if (first == kNoSite) continue;
      const SiteId end = change.below ? topology_.site(first).end : first + 1;
      for (SiteId site = first; site < end; ++site) rooms_.Forget(site);
    }
  }
  rooms_seen_ = state_.changes_end();
}

void SearchTables::Expect(SiteId site, const Turn& turn) {
  if (turn.other_s != Turn::kNever) others_.emplace(turn.other_s, site);
  if (turn.more_s != Turn::kNever) mores_.push(turn.more_s);
}

void SearchTables::SweepTo(int64_t time) {
  for (; !others_.empty() && others_.top().first <= time; others_.pop()) {
    Mark(&sweep_, others_.top().second, false);
  }
  rooms_.ForEachIn(swept_s_, time, [this](SiteId site) { Mark(&sweep_, site, false); });
  while (!mores_.empty() && mores_.top() <= time) mores_.pop();
  swept_s_ = time;
}

std::optional<int64_t> SearchTables::NextRoom() const {
  const std::optional<int64_t> room = rooms_.NextAfter(swept_s_);
  if (mores_.empty()) return room;
  return std::min(mores_.top(), room.value_or(Turn::kNever));
}

uint64_t SearchTables::FirstPriority(const SearchTable& table, SiteId site) const {
  const Site& here = topology_.site(site);
  if (policy_.stop_on_first) return std::min(state_.Weight(here.edge), UINT64_MAX - 1) + 1;
  const bool unknown = policy_.order == MatchPolicy::Order::kPacked ||
                       table.layout->Ranks(table.layout->group_of[site]) ||
                       (table.slots_compete && here.depth == topology_.node_depth());
  return unknown ? SearchTable::kUnknownPriority : 1;
}

void SearchTables::Reset(SearchTable* table) const {
  const SearchLayout& layout = *table->layout;
  table->seen = state_.changes_end();
  table->slots.assign(topology_.sites().size(), SearchTable::kUnknown);
  table->trees.assign(layout.tree_length, Tournament::kOut);
  table->rankings.assign(layout.groups.size(), {});
  for (uint32_t group = 0; group < layout.groups.size(); ++group) {
    auto [tree, members] = table->OfGroup(group);
    for (size_t place = 0; place < members.size(); ++place) {
      if (IsKnownFull(*table, members[place])) continue;
      tree.Place(place, FirstPriority(*table, members[place]));
    }
    tree.Build();
  }
}

void SearchTables::Update(SearchTable* table) const {
  if (table->seen < state_.changes_begin()) {
    Reset(table);
    return;
  }
  const auto changes = state_.changes();
  for (size_t i = table->seen - state_.changes_begin(); i < changes.size(); ++i) {
    const SiteId site = topology_.SiteOf(changes[i].vertex);
    if (site != kNoSite) Mark(table, site, changes[i].below);
  }
  table->seen = state_.changes_end();
}

void SearchTables::Mark(SearchTable* table, SiteId site, bool below) const {
  const SearchLayout& layout = *table->layout;
  const auto may_fit = [&](SiteId s) {
    if (layout.group_of[s] == SearchLayout::kNoGroup) return;
    table->OfGroup(layout.group_of[s]).tree.Set(layout.place_in[s], FirstPriority(*table, s));
  };
  const SiteId end = below ? topology_.site(site).end : site + 1;
  for (SiteId s = site; s < end; ++s) {
    table->slots[s] = SearchTable::kUnknown;
    may_fit(s);
  }
  for (SiteId s = topology_.site(site).parent; s != kNoSite; s = topology_.site(s).parent) {
    may_fit(s);
  }
}

}  // namespace fluxqueue::graph
