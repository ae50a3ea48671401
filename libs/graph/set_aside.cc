#include "libs/graph/set_aside.h"

#include <algorithm>
#include <cstddef>
#include <functional>
#include <map>
#include <tuple>
#include <utility>

#include "libs/base/int128.h"
#include "libs/graph/types.h"

namespace fluxqueue::graph {
namespace {

constexpr int kTimesExpected = 2;
constexpr uint64_t kMaxCount = uint64_t{1} << 20;

// Slots that need the same nodes.
struct Group {
  size_t constraint = 0;
  SlotShape each;           // enough for any one of them
  int64_t wanted = 0;       // thousandths of gpus, by count
  int64_t could_use = 0;    // of all gpus, were they free
  std::vector<int64_t> of;  // of those of one node, by kind

  bool of_several() const { return each.gpu > kWholeDevice; }
};

int64_t AllGpus(const NodeKind& kind) {
  int64_t sum = 0;
  for (const int64_t gpu : kind.room.gpus) sum += gpu;
  return sum;
}

int64_t Wanted(const ExpectedSlots& slots) {
  return static_cast<int64_t>(std::min(slots.count, kMaxCount)) * slots.shape.gpu;
}

bool EveryGpuMeets(std::span<const NodeKind> kinds, size_t constraint) {
  return std::all_of(kinds.begin(), kinds.end(), [&](const NodeKind& kind) {
    return kind.meets[constraint] || kind.room.gpus.empty();
  });
}

// By constraint, and by how many gpus they want when these are several. Of slots with one gpu at
// most only the constraint counts: they are small.
std::vector<Group> GroupsOf(std::span<const ExpectedSlots> expected,
                            std::span<const NodeKind> kinds) {
  std::map<std::pair<int64_t, size_t>, Group> groups;
  for (const ExpectedSlots& slots : expected) {
    const bool several = slots.shape.gpu > kWholeDevice;
    if (!several && EveryGpuMeets(kinds, slots.constraint)) continue;
    const int64_t gpu = several ? slots.shape.gpu : kWholeDevice;
    Group& group = groups[{gpu, slots.constraint}];
    group.constraint = slots.constraint;
    group.each.gpu = gpu;
    group.wanted += Wanted(slots);
    group.each.amounts.resize(slots.shape.amounts.size());
    for (size_t i = 0; several && i < slots.shape.amounts.size(); ++i) {
      group.each.amounts[i] = std::max(group.each.amounts[i], slots.shape.amounts[i]);
    }
  }
  std::vector<Group> all;
  for (auto& [key, group] : groups) all.push_back(std::move(group));
  return all;
}

void SetAsideExpected(std::span<const ExpectedSlots> expected,
                      std::span<const NodeKind> kinds,
                      std::span<const uint32_t> nodes,
                      std::vector<LastUse>* uses) {
  std::vector<Group> groups = GroupsOf(expected, kinds);
  int64_t wanted = 0;
  for (const ExpectedSlots& slots : expected) wanted += Wanted(slots);
  if (wanted == 0) return;
  int64_t gpus = 0;
  for (const uint32_t kind : nodes) gpus += AllGpus(kinds[kind]);
  for (Group& group : groups) {
    for (const NodeKind& kind : kinds) {
      group.of.push_back(kind.meets[group.constraint] ? UsableGpus(kind.room, group.each) : 0);
    }
    for (const uint32_t kind : nodes) group.could_use += group.of[kind];
  }
  // Who has the fewest nodes chooses first.
  std::stable_sort(groups.begin(), groups.end(), [](const Group& a, const Group& b) {
    const int64_t a_gpu = a.of_several() ? a.each.gpu : 0;
    const int64_t b_gpu = b.of_several() ? b.each.gpu : 0;
    return std::tuple(-a_gpu, a.could_use) < std::tuple(-b_gpu, b.could_use);
  });
  for (const Group& group : groups) {
    auto need = static_cast<Int128>(group.wanted) * gpus * kTimesExpected / wanted;
    for (size_t i = 0; i < nodes.size() && need > 0; ++i) {
      const int64_t usable = group.of[nodes[i]];
      if (usable == 0 || (*uses)[i] != LastUse::kNone) continue;
      (*uses)[i] = group.of_several() ? LastUse::kForSeveralGpus : LastUse::kForSomeNodes;
      need -= usable;
    }
  }
}

// Nodes with more gpus first.
void SetAsideAtLeast(std::span<const NodeKind> kinds,
                     std::span<const uint32_t> nodes,
                     int64_t percent,
                     std::vector<LastUse>* uses) {
  Int128 all = 0;
  Int128 kept = 0;
  std::map<int64_t, std::vector<size_t>, std::greater<>> by_gpus;
  for (size_t i = 0; i < nodes.size(); ++i) {
    const int64_t gpus = AllGpus(kinds[nodes[i]]);
    all += gpus;
    kept += (*uses)[i] != LastUse::kNone ? gpus : 0;
    if ((*uses)[i] == LastUse::kNone && gpus > kWholeDevice) by_gpus[gpus].push_back(i);
  }
  for (const auto& [gpus, alike] : by_gpus) {
    for (const size_t i : alike) {
      if ((kept + gpus) * 100 > all * percent) break;
      (*uses)[i] = LastUse::kForTheUnexpected;
      kept += gpus;
    }
  }
}

}  // namespace

std::vector<ExpectedSlots> Holdable(std::span<const ExpectedSlots> expected,
                                    std::span<const NodeKind> kinds) {
  std::vector<ExpectedSlots> holdable;
  for (const ExpectedSlots& slots : expected) {
    const bool fits = std::any_of(kinds.begin(), kinds.end(), [&slots](const NodeKind& kind) {
      return kind.meets[slots.constraint] && UsableGpus(kind.room, slots.shape) > 0;
    });
    if (fits) holdable.push_back(slots);
  }
  return holdable;
}

std::vector<LastUse> SetAside(std::span<const ExpectedSlots> expected,
                              std::span<const NodeKind> kinds,
                              std::span<const uint32_t> nodes,
                              int64_t at_least) {
  std::vector<LastUse> uses(nodes.size(), LastUse::kNone);
  SetAsideExpected(expected, kinds, nodes, &uses);
  SetAsideAtLeast(kinds, nodes, at_least, &uses);
  return uses;
}

}  // namespace fluxqueue::graph
