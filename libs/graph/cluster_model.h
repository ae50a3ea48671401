// What the native engine must answer, by its definition and without any index. For tests.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "libs/graph/closure.h"
#include "libs/graph/constraint.h"
#include "libs/graph/holding.h"
#include "libs/graph/jobspec.h"
#include "libs/graph/levels.h"
#include "libs/graph/planned_end.h"
#include "libs/graph/types.h"

namespace fluxqueue::graph {

inline int64_t AmountOf(const Amounts& amounts, const std::string& resource) {
  for (const Amount& amount : amounts) {
    if (amount.resource == resource) return amount.amount;
  }
  return 0;
}

struct Model {
  std::string policy = "first";
  std::vector<std::string> levels;
  std::map<std::string, NodeSpec> nodes;
  std::map<AllocationKey, Placement> held;
  std::vector<Jobspec> expected;
  // Time, and what is kept for later until all of that is dropped.
  struct Reserved {
    int64_t at_s = 0;
    int64_t end_s = 0;
    Amounts request;                 // of a slot
    std::vector<std::string> slots;  // their nodes
  };
  struct During {
    int64_t at_s = 0;
    int64_t end_s = 0;
  };
  int64_t now_s = 7;
  int64_t asked_s = 0;  // how long what is matched now is to be held; 0: unlimited
  std::vector<Reserved> reserved;
  std::vector<Closure> closures;
  // What is free is what is free at all of these times, rather than what is free of what is held.
  std::optional<During> during;

  int64_t HeldOn(const std::string& node, const std::string& resource) const {
    int64_t sum = 0;
    for (const auto& [key, placement] : held) {
      size_t group = 0;
      size_t behind = placement.groups[0].slots;
      for (const PlacedSlot& slot : placement.slots) {
        while (slot.slot >= behind) behind += placement.groups[++group].slots;
        if (slot.released || slot.node != node) continue;
        sum += AmountOf(placement.groups[group].request, resource);
      }
    }
    return sum;
  }

  bool Touched(const std::string& node) const {
    for (const auto& [key, placement] : held) {
      for (const PlacedSlot& slot : placement.slots) {
        if (!slot.released && slot.node == node) return true;
      }
    }
    return false;
  }

  int64_t FreeOf(const NodeSpec& node, const std::string& resource) const {
    return std::max<int64_t>(0,
                             AmountOf(node.resources, resource) - AmountOf(node.foreign, resource) -
                                 HeldOn(node.name, resource));
  }

  static int64_t EndOf(int64_t at_s, int64_t duration_s) {
    return at_s + (duration_s == 0 ? kForever : duration_s);
  }
  int64_t PlannedEnd(const Placement& placement) const {
    const int64_t end = graph::PlannedEnd(placement, now_s);
    return end == 0 ? kForever : end;
  }

  int64_t HeldAt(int64_t time, const std::string& node, const std::string& resource) const {
    int64_t sum = 0;
    for (const auto& [key, placement] : held) {
      if (PlannedEnd(placement) <= time) continue;
      size_t group = 0;
      size_t behind = placement.groups[0].slots;
      for (const PlacedSlot& slot : placement.slots) {
        while (slot.slot >= behind) behind += placement.groups[++group].slots;
        if (slot.released || slot.node != node) continue;
        sum += AmountOf(placement.groups[group].request, resource);
      }
    }
    for (const Reserved& one : reserved) {
      if (one.at_s > time || one.end_s <= time) continue;
      sum += std::count(one.slots.begin(), one.slots.end(), node) * AmountOf(one.request, resource);
    }
    return sum;
  }

  // At some time of what is matched.
  bool IsClosed(const NodeSpec& node) const {
    const auto [at_s, end_s] = during.value_or(During{now_s, EndOf(now_s, asked_s)});
    return std::any_of(closures.begin(), closures.end(), [&](const Closure& closure) {
      return closure.nodes.Matches(node) && closure.from_s < end_s && closure.to_s > at_s;
    });
  }

  // The least at any time that counts.
  int64_t FreeThen(const NodeSpec& node, const std::string& resource) const {
    if (!during.has_value()) return FreeOf(node, resource);
    int64_t most_held = HeldAt(during->at_s, node.name, resource);
    for (const Reserved& one : reserved) {
      if (one.at_s <= during->at_s || one.at_s >= during->end_s) continue;
      most_held = std::max(most_held, HeldAt(one.at_s, node.name, resource));
    }
    return std::max<int64_t>(
        0, AmountOf(node.resources, resource) - AmountOf(node.foreign, resource) - most_held);
  }

  // When it can begin, and where: now, or else from the first time on at which something ends or
  // begins and it fits; nothing: at none of them.
  struct Begin {
    int64_t at_s = 0;
    std::vector<std::string> slots;
  };
  std::optional<Begin> MatchOrReserve(const Jobspec& spec, int64_t duration_s) {
    const auto match_at = [&](int64_t time) -> std::optional<Begin> {
      during = During{time, EndOf(time, duration_s)};
      auto slots = Match(spec, time > now_s);
      during.reset();
      if (!slots.has_value()) return std::nullopt;
      return Begin{time, *std::move(slots)};
    };
    std::set<int64_t> times;
    for (const auto& [key, placement] : held) times.insert(PlannedEnd(placement));
    for (const Reserved& one : reserved) times.insert({one.at_s, one.end_s});
    for (const Closure& closure : closures) times.insert({closure.from_s, closure.to_s});
    if (auto now = match_at(now_s)) return now;
    for (const int64_t time : times) {
      if (time <= now_s || time >= kForever) continue;
      if (auto later = match_at(time)) return later;
    }
    return std::nullopt;
  }

  // With all given back, even by others.
  bool FitsEmpty(const Jobspec& spec) const {
    Model empty = *this;
    empty.held.clear();
    empty.reserved.clear();
    empty.closures.clear();
    for (auto& [name, node] : empty.nodes) node.foreign.clear();
    return empty.Match(spec, /*asks_least=*/true).has_value();
  }

  // Of one slot of the group; 0: it asks for no devices.
  static DevicesPerSlot DevicesOf(const SlotGroup& group) {
    const int64_t amount = AmountOf(group.request, std::string(kGpuMilli));
    return amount == 0 ? DevicesPerSlot{} : DevicesFor(amount);
  }

  std::vector<int64_t> HeldOfDevices(const std::string& node, size_t devices) const {
    std::vector<int64_t> amounts(devices, 0);
    for (const auto& [key, placement] : held) {
      size_t group = 0;
      size_t behind = placement.groups[0].slots;
      for (const PlacedSlot& slot : placement.slots) {
        while (slot.slot >= behind) behind += placement.groups[++group].slots;
        if (slot.released || slot.node != node) continue;
        for (const uint32_t device : slot.devices) {
          if (device < devices) amounts[device] += DevicesOf(placement.groups[group]).of_each;
        }
      }
    }
    return amounts;
  }

  // The devices that slots of such a size get on the node, one slot's after the other's.
  std::vector<uint32_t> Devices(const NodeSpec& node, const DevicesPerSlot& wanted) const {
    const std::string gpus(kGpuMilli);
    const auto count = static_cast<size_t>(AmountOf(node.resources, gpus) / kWholeDevice);
    const std::vector<int64_t> ours = HeldOfDevices(node.name, count);
    std::vector<int64_t> free;
    int64_t foreign = AmountOf(node.foreign, gpus);
    for (const int64_t held_here : ours) {
      const int64_t left = std::max<int64_t>(0, kWholeDevice - held_here);
      free.push_back(left - std::min(foreign, left));
      foreign -= left - free.back();
    }
    std::vector<uint32_t> devices;
    for (size_t i = 0; i < count; ++i) {
      const size_t device = policy == "lonode" ? i : count - 1 - i;
      const int64_t picks = free[device] / wanted.of_each;
      devices.insert(devices.end(), static_cast<size_t>(picks), static_cast<uint32_t>(device));
    }
    return devices;
  }

  std::vector<Level> LevelsInUse() const {
    std::vector<Level> in_use;
    for (const std::string& name : levels) {
      const bool used = std::any_of(nodes.begin(), nodes.end(), [&name](const auto& entry) {
        return LabelOf(entry.second, name) != nullptr;
      });
      if (used) in_use.push_back({name, name});
    }
    return in_use;
  }

  // Where it stands among the nodes, or among the vertices of its level: lesser ones come first.
  using Rank = std::pair<int64_t, int64_t>;

  Rank RankOf(bool touched, int64_t free, int64_t order) const {
    if (policy == "first") return {touched ? -free : INT64_MIN, -order};
    return {0, policy == "lonode" ? order : -order};
  }

  // Of the vertices of the last of `above`, by GroupOf.
  std::map<std::string, Rank> RanksOf(std::span<const Level> above) const {
    // Those that labels name in their natural order, then those of nodes without the label.
    const auto before = [](const auto& a, const auto& b) {
      if (a.first != b.first) return a.first < b.first;
      return NaturallyBefore(a.second, b.second);
    };
    std::set<std::pair<uint64_t, std::string>, decltype(before)> groups(before);
    for (const auto& [name, node] : nodes) {
      const bool named = LabelOf(node, above.back().label) != nullptr;
      groups.emplace(named ? 0 : node.ordinal + 1, GroupOf(node, above));
    }
    std::map<std::string, Rank> ranks;
    for (const auto& [own, group] : groups) {
      bool touched = false;
      int64_t free = 0;
      for (const auto& [name, node] : nodes) {
        if (GroupOf(node, above) != group) continue;
        touched = touched || Touched(name);
        free += FreeOf(node, "cpu");
      }
      ranks[group] = RankOf(touched, free, static_cast<int64_t>(ranks.size()));
    }
    return ranks;
  }

  using InOrder = std::map<std::vector<Rank>, const NodeSpec*>;

  InOrder NodesInOrder(const std::vector<Level>& in_use) const {
    std::vector<std::map<std::string, Rank>> levels_ranks;
    for (size_t depth = 1; depth <= in_use.size(); ++depth) {
      levels_ranks.push_back(RanksOf(std::span(in_use).first(depth)));
    }
    InOrder order;
    for (const auto& [name, node] : nodes) {
      std::vector<Rank> ranks;
      for (size_t depth = 1; depth <= in_use.size(); ++depth) {
        ranks.push_back(levels_ranks[depth - 1].at(GroupOf(node, std::span(in_use).first(depth))));
      }
      ranks.push_back(
          RankOf(Touched(name), FreeOf(node, "cpu"), static_cast<int64_t>(node.ordinal)));
      order[ranks] = &node;
    }
    return order;
  }

  int64_t SlotsOn(const NodeSpec& node, const Jobspec& spec) const {
    if (!node.schedulable || !spec.constraint.Matches(node) || IsClosed(node)) return 0;
    if (FirstUntolerated(node.taints, spec.tolerations, false) != nullptr) return 0;
    int64_t fit = spec.one_per_node ? 1 : INT64_MAX;
    for (const Amount& need : spec.groups[0].request) {
      if (need.resource == kGpuMilli) continue;
      fit = std::min(fit, FreeThen(node, need.resource) / need.amount);
    }
    if (const DevicesPerSlot wanted = DevicesOf(spec.groups[0]); wanted.devices > 0) {
      const size_t slots = Devices(node, wanted).size() / wanted.devices;
      fit = std::min(fit, static_cast<int64_t>(slots));
    }
    return fit;
  }

  // Of what the node has for the slots, the greatest first. `first` takes what it finds until it is
  // enough, and of that the slots on the last devices; to the others a node counts for more.
  std::vector<int64_t> SlotScores(const NodeSpec& node, const Jobspec& spec) const {
    const DevicesPerSlot wanted = DevicesOf(spec.groups[0]);
    const size_t slots = static_cast<size_t>(std::min<int64_t>(SlotsOn(node, spec), spec.slots));
    std::vector<int64_t> scores(slots, 0);
    if (policy != "first" || wanted.devices == 0) return scores;
    const std::vector<uint32_t> devices = Devices(node, wanted);
    for (size_t i = 0; i < slots * wanted.devices; ++i) scores[i / wanted.devices] += devices[i];
    return scores;
  }

  // The nodes of the slots below that vertex, or nothing.
  std::optional<std::vector<std::string>> MatchWithin(const std::string& group,
                                                      std::span<const Level> above,
                                                      const Jobspec& spec) const {
    const std::vector<Level> in_use = LevelsInUse();
    // Only `first` goes from vertex to vertex.
    const InOrder tried = NodesInOrder(policy == "first" ? in_use : std::vector<Level>());
    const int64_t wanted = spec.slots;
    std::vector<std::pair<int64_t, std::string>> found;
    // Whether all vertices from the group down to the node still look for more.
    const auto is_tried = [&](const NodeSpec& node) {
      for (size_t depth = above.size(); policy == "first" && depth <= in_use.size(); ++depth) {
        const auto here = std::span(in_use).first(depth);
        const auto below = std::span(in_use).first(std::min(depth + 1, in_use.size()));
        const auto counts = [&](const auto& slot) {
          const NodeSpec& other = nodes.at(slot.second);
          const bool in_child =
              depth < in_use.size() && GroupOf(other, below) == GroupOf(node, below);
          return GroupOf(other, here) == GroupOf(node, here) && !in_child;
        };
        if (std::count_if(found.begin(), found.end(), counts) >= wanted) return false;
      }
      return policy == "first" || std::ssize(found) < wanted;
    };
    for (const auto& [ranks, node] : tried) {
      if (GroupOf(*node, above) != group || !is_tried(*node)) continue;
      for (const int64_t score : SlotScores(*node, spec)) found.emplace_back(score, node->name);
    }
    if (std::ssize(found) < wanted) return std::nullopt;
    std::stable_sort(
        found.begin(), found.end(), [](const auto& a, const auto& b) { return a.first > b.first; });
    std::map<std::string, int64_t> taken;
    for (int64_t i = 0; i < wanted; ++i) ++taken[found[static_cast<size_t>(i)].second];
    std::vector<std::string> slots;
    for (const auto& [ranks, node] : NodesInOrder(in_use)) {
      slots.insert(slots.end(), static_cast<size_t>(taken[node->name]), node->name);
    }
    return slots;
  }

  // How many of the levels in use are above the slots, for each way that is tried.
  std::vector<size_t> Ways(const Jobspec& spec) const {
    const std::vector<Level> in_use = LevelsInUse();
    const auto place = [](const auto& list, const std::string& name) {
      size_t at = 0;
      while (at < list.size() && list[at] != name) ++at;
      return at;
    };
    std::vector<std::string> used;
    for (const Level& level : in_use) used.push_back(level.name);
    std::vector<size_t> ways;
    const bool required = !spec.required_level.empty();
    if (required && place(used, spec.required_level) == used.size()) return ways;
    for (size_t depth = in_use.size(); depth > 0; --depth) {
      const size_t here = place(levels, used[depth - 1]);
      const bool preferred = place(levels, spec.preferred_level) < levels.size() &&
                             here <= place(levels, spec.preferred_level);
      const bool inside = !required || here > place(levels, spec.required_level);
      if (preferred && inside) ways.push_back(depth);
    }
    ways.push_back(required ? place(used, spec.required_level) + 1 : 0);
    return ways;
  }

  // The nodes of the slots, or nothing. `asks_least`: only the last way is tried.
  std::optional<std::vector<std::string>> Match(const Jobspec& spec,
                                                bool asks_least = false) const {
    const std::vector<Level> in_use = LevelsInUse();
    std::vector<size_t> ways = Ways(spec);
    if (asks_least && !ways.empty()) ways = {ways.back()};
    for (const size_t depth : ways) {
      const auto above = std::span(in_use).first(depth);
      std::vector<std::string> groups = {""};
      if (depth > 0) {
        // `first` goes through the levels one after the other; the others look at one.
        const size_t from = policy == "first" ? 1 : depth;
        std::map<std::vector<Rank>, std::string> in_order;
        for (const auto& [name, node] : nodes) {
          std::vector<Rank> ranks;
          for (size_t d = from; d <= depth; ++d) {
            ranks.push_back(RanksOf(above.first(d)).at(GroupOf(node, above.first(d))));
          }
          in_order[ranks] = GroupOf(node, above);
        }
        groups.clear();
        for (const auto& [ranks, group] : in_order) groups.push_back(group);
      }
      for (const std::string& group : groups) {
        if (auto slots = MatchWithin(group, above, spec)) return slots;
      }
    }
    return std::nullopt;
  }

  bool CouldEverFit(const Jobspec& spec) const {
    const std::vector<size_t> ways = Ways(spec);
    if (ways.empty()) return false;
    const std::vector<Level> in_use = LevelsInUse();
    std::map<std::string, int64_t> slots;
    for (const auto& [name, node] : nodes) {
      if (!spec.constraint.Matches(node)) continue;
      if (FirstUntolerated(node.taints, spec.tolerations, true) != nullptr) continue;
      int64_t fit = spec.one_per_node ? 1 : INT64_MAX;
      for (const Amount& need : spec.groups[0].request) {
        if (need.resource == kGpuMilli) continue;
        fit = std::min(fit, AmountOf(node.resources, need.resource) / need.amount);
      }
      if (const DevicesPerSlot wanted = DevicesOf(spec.groups[0]); wanted.devices > 0) {
        const int64_t all = AmountOf(node.resources, std::string(kGpuMilli)) / kWholeDevice;
        fit = std::min(
            fit, all * (kWholeDevice / wanted.of_each) / static_cast<int64_t>(wanted.devices));
      }
      slots[GroupOf(node, std::span(in_use).first(ways.back()))] += fit;
    }
    return std::any_of(slots.begin(), slots.end(), [&spec](const auto& entry) {
      return entry.second >= static_cast<int64_t>(spec.slots);
    });
  }
};

}  // namespace fluxqueue::graph
