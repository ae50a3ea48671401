// What an indexed search (indexed_search.h) keeps from one like request to the next: who may fit.
//
// For each plan and time there is a table: below each site that candidates are gathered at, a
// tournament of those that may fit, in the policy's order; and how many slots each node has room
// for. Who was looked at and did not fit is out until GraphState's log says that he changed.
//
// A sweep has a table of its own, which goes from one time to the next: who answers otherwise there
// is told beforehand, and is looked at again when that time has come. Who is full at its beginning
// is mostly known from the sweeps before it (room_times.h).
//
// Not thread-safe.
#pragma once

#include <cstdint>
#include <functional>
#include <list>
#include <optional>
#include <queue>
#include <span>
#include <unordered_map>
#include <utility>
#include <vector>

#include "libs/graph/graph_state.h"
#include "libs/graph/match_policy.h"
#include "libs/graph/pruner.h"
#include "libs/graph/resource_graph.h"
#include "libs/graph/room_times.h"
#include "libs/graph/search_plan.h"
#include "libs/graph/topology.h"
#include "libs/graph/tournament.h"

namespace fluxqueue::graph {

// At which sites candidates are gathered, and which sites are candidates there.
struct SearchLayout {
  static constexpr uint32_t kNoGroup = UINT32_MAX;

  struct Group {
    size_t tree = 0;  // where its tournament begins
    uint32_t first = 0;
    uint32_t size = 0;
  };
  std::vector<bool> gathers;  // by depth
  // Candidates stand in the order of a walk and are ranked: those at the root, or all.
  bool ranks_at_root = false;
  bool ranks_all = false;
  std::vector<Group> groups;
  std::vector<uint32_t> group_at;  // by site: the group that is gathered there
  std::vector<uint32_t> group_of;  // by site: the group that it is a member of
  std::vector<uint32_t> place_in;  // by site: where in that group
  std::vector<SiteId> members;     // by group
  size_t tree_length = 0;

  bool Ranks(uint32_t group) const { return ranks_all || (ranks_at_root && group == 0); }
};

struct SearchTable {
  static constexpr uint32_t kUnknown = UINT32_MAX;
  // Of nodes whose best slot is not known yet, under `packed` of all whose cost is not, and of
  // those that are ranked: they are looked at before any is taken.
  static constexpr uint64_t kUnknownPriority = UINT64_MAX;

  // Those that are gathered at one site; a tournament's places are places among the members.
  struct Gathering {
    Tournament tree;
    std::span<const SiteId> members;
  };
  Gathering At(SiteId site) { return OfGroup(layout->group_at[site]); }
  Gathering OfGroup(uint32_t number) {
    const SearchLayout::Group& group = layout->groups[number];
    return {{trees.data() + group.tree, group.size},
            std::span(layout->members).subspan(group.first, group.size)};
  }
  bool GathersAt(SiteId site) const { return layout->group_at[site] != SearchLayout::kNoGroup; }

  // In a group that stands in the order of a walk: by place, and who fits in the order in which
  // they are taken.
  struct Ranking {
    static constexpr int64_t kOut = INT64_MIN;

    bool valid = false;
    std::vector<int64_t> scores;
    std::vector<uint32_t> order;
  };

  uint64_t plan = 0;
  Window window;
  const SearchLayout* layout = nullptr;
  bool slots_compete = false;  // nodes are ordered by the best slot that they can make
  uint64_t seen = 0;           // of the state's changes
  std::vector<uint64_t> trees;
  std::vector<uint32_t> slots;    // by site: how many a node has room for; kUnknown
  std::vector<Ranking> rankings;  // by group
};

class SearchTables {
 public:
  SearchTables(const ResourceGraph& graph,
               const GraphState& state,
               const MatchPolicy& policy,
               const Topology& topology)
      : graph_(graph), state_(state), policy_(policy), topology_(topology) {}

  // The policy or the topology is another.
  void Clear();

  // Where candidates of the plan are gathered. Until the next call of Clear.
  const SearchLayout& LayoutFor(const SearchPlan& plan);

  // Of what is now; null: there is none. Until the next call of Make or Clear.
  SearchTable* Find(const SearchPlan& plan, const Window& window);
  // In which all may fit. REQUIRES: there is none.
  SearchTable& Make(const SearchPlan& plan, const Window& window);

  // The sweep's table, in which all may fit but those that are known not to; until the next call of
  // BeginSweep or Clear. REQUIRES: nothing changes until the sweep is over.
  SearchTable& BeginSweep(const SearchPlan& plan, int64_t time, int64_t duration);
  // When a site that was looked at answers otherwise, and when it may have room for more.
  struct Turn {
    static constexpr int64_t kNever = Timeline::kEnd;

    int64_t other_s = kNever;
    int64_t more_s = kNever;
  };
  void Expect(SiteId site, const Turn& turn);
  // The site has no room from the last time until this one.
  void ExpectRoom(SiteId site, int64_t room) { rooms_.Note(site, swept_s_, room); }
  // All that answer otherwise by then may fit again. REQUIRES: not before the last time.
  void SweepTo(int64_t time);
  // The next time at which some site may have room for more, if there is one.
  std::optional<int64_t> NextRoom() const;

 private:
  void Fill(SearchLayout* filled) const;
  void Begin(const SearchPlan& plan, SearchTable* table);
  void Reset(SearchTable* table) const;
  bool IsKnownFull(const SearchTable& table, SiteId site) const {
    return &table == &sweep_ && rooms_.IsFullAt(site, swept_s_);
  }
  void Update(SearchTable* table) const;
  void ForgetRooms();
  void Mark(SearchTable* table, SiteId site, bool below) const;
  uint64_t FirstPriority(const SearchTable& table, SiteId site) const;

  const ResourceGraph& graph_;
  const GraphState& state_;
  const MatchPolicy& policy_;
  const Topology& topology_;
  std::list<SearchLayout> layouts_;
  std::list<SearchTable> tables_;  // the last asked for first
  struct Key {
    uint64_t plan = 0;
    Window window;

    friend bool operator==(const Key&, const Key&) = default;
  };
  struct KeyHash {
    size_t operator()(const Key& key) const;
  };
  std::unordered_map<Key, std::list<SearchTable>::iterator, KeyHash> by_key_;

  // Of the sweep. The earliest first.
  template <typename T>
  using Earliest = std::priority_queue<T, std::vector<T>, std::greater<>>;
  SearchTable sweep_;
  int64_t swept_s_ = 0;  // the last time
  RoomTimes rooms_;
  uint64_t rooms_seen_ = 0;  // of the state's changes
  Earliest<std::pair<int64_t, SiteId>> others_;
  Earliest<int64_t> mores_;
};

}  // namespace fluxqueue::graph
