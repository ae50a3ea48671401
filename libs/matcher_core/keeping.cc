#include "libs/matcher_core/keeping.h"

#include <algorithm>
#include <limits>
#include <map>
#include <span>
#include <string_view>
#include <tuple>
#include <unordered_map>
#include <utility>

#include "libs/matcher_core/pool_config.h"

namespace fluxqueue::matcher_core {
namespace {

using graph::Amount;
using graph::Amounts;
using graph::NodeSpec;

constexpr int64_t kNever = std::numeric_limits<int64_t>::max();

using Free = std::map<std::string, int64_t>;

void Change(Free* free, const Amounts& amounts, int64_t times) {
  for (const Amount& amount : amounts) (*free)[amount.resource] += times * amount.amount;
}

int64_t TimesIn(const Free& free, const Amounts& request) {
  int64_t times = kNever;
  for (const Amount& amount : request) {
    const auto it = free.find(amount.resource);
    const int64_t has = it == free.end() ? 0 : it->second;
    times = std::min(times, std::max<int64_t>(has, 0) / amount.amount);
  }
  return times;
}

// A node and what is held on it.
struct Room {
  const NodeSpec* node = nullptr;
  Free now;  // beside all that is held
  std::vector<std::pair<int64_t, const Amounts*>>
      ends;  // planned; those that have none are not here

  // The first planned end at which the request fits, `kNever`: at none.
  int64_t SoonestFor(const Amounts& request) const {
    Free free = now;
    if (TimesIn(free, request) > 0) return 0;
    for (const auto& [end_s, amounts] : ends) {
      Change(&free, *amounts, 1);
      if (TimesIn(free, request) > 0) return end_s;
    }
    return kNever;
  }
  Free AfterAllEnds() const {
    Free free = now;
    for (const auto& [end_s, amounts] : ends) Change(&free, *amounts, 1);
    return free;
  }
};

bool MayUse(const graph::Jobspec& jobspec, const NodeSpec& node) {
  return node.schedulable && jobspec.constraint.Matches(node) &&
         graph::FirstUntolerated(node.taints, jobspec.tolerations, /*lasting=*/false) == nullptr;
}

std::vector<Room> RoomsFor(const graph::Engine& engine,
                           const std::vector<NodeSpec>& nodes,
                           const graph::Jobspec& jobspec) {
  std::vector<Room> rooms;
  std::unordered_map<std::string_view, size_t> by_name;
  for (const NodeSpec& node : nodes) {
    if (!MayUse(jobspec, node)) continue;
    by_name[node.name] = rooms.size();
    Room& room = rooms.emplace_back();
    room.node = &node;
    Change(&room.now, node.resources, 1);
    Change(&room.now, node.foreign, -1);
  }
  for (const graph::AllocationKey& key : engine.Keys()) {
    const graph::Placement& placement = *engine.Find(key);
    size_t slot = 0;
    for (const graph::SlotGroup& group : placement.groups) {
      for (uint32_t i = 0; i < group.slots && slot < placement.slots.size(); ++i, ++slot) {
        const graph::PlacedSlot& placed = placement.slots[slot];
        const auto found = by_name.find(placed.node);
        if (placed.released || found == by_name.end()) continue;
        Room& room = rooms[found->second];
        Change(&room.now, group.request, -1);
        if (placement.duration_s == 0) continue;
        room.ends.emplace_back(placement.start_s + placement.duration_s, &group.request);
      }
    }
  }
  for (Room& room : rooms) {
    std::stable_sort(room.ends.begin(), room.ends.end(), [](const auto& a, const auto& b) {
      return a.first < b.first;
    });
  }
  return rooms;
}

// What some nodes have for the job.
struct Keep {
  int64_t slots = 0;
  int64_t soonest_s = 0;  // from when on, the last of them
  std::vector<const NodeSpec*> nodes;
};

Keep KeepOf(const std::vector<const Room*>& rooms, const graph::Jobspec& jobspec) {
  Keep keep;
  std::map<uint64_t, std::pair<const Room*, Free>> taken;  // by ordinal: what is left there
  for (const graph::SlotGroup& group : jobspec.groups) {
    std::vector<std::tuple<int64_t, uint64_t, const Room*>> order;
    for (const Room* room : rooms) {
      const int64_t soonest = room->SoonestFor(group.request);
      if (soonest != kNever) order.emplace_back(soonest, room->node->ordinal, room);
    }
    std::sort(order.begin(), order.end());
    int64_t wanted = group.slots;
    for (const auto& [soonest, ordinal, room] : order) {
      if (wanted == 0) break;
      const auto [it, first] = taken.try_emplace(ordinal, room, Free());
      if (first) it->second.second = room->AfterAllEnds();
      int64_t times = std::min(wanted, TimesIn(it->second.second, group.request));
      if (jobspec.one_per_node) times = std::min<int64_t>(times, 1);
      if (times == 0) continue;
      Change(&it->second.second, group.request, -times);
      wanted -= times;
      keep.slots += times;
      keep.soonest_s = std::max(keep.soonest_s, soonest);
    }
  }
  for (const auto& [ordinal, room] : taken) keep.nodes.push_back(room.first->node);
  return keep;
}

}  // namespace

std::vector<std::string> NodesToKeep(const graph::Engine& engine,
                                     const std::vector<graph::Level>& levels,
                                     const graph::Jobspec& jobspec) {
  const std::vector<NodeSpec> nodes = engine.Nodes();
  const std::vector<Room> rooms = RoomsFor(engine, nodes, jobspec);
  const std::span<const graph::Level> below_one = LevelsTo(levels, jobspec.required_level);
  std::map<std::string, std::vector<const Room*>> by_place;
  for (const Room& room : rooms) {
    by_place[graph::GroupOf(*room.node, below_one)].push_back(&room);
  }
  Keep best;
  for (const auto& [place, members] : by_place) {
    Keep keep = KeepOf(members, jobspec);
    const bool better =
        std::tuple(-keep.slots, keep.soonest_s) < std::tuple(-best.slots, best.soonest_s);
    if (better) best = std::move(keep);
  }
  std::vector<std::string> names;
  for (const NodeSpec* node : best.nodes) names.push_back(node->name);
  return names;
}

}  // namespace fluxqueue::matcher_core
