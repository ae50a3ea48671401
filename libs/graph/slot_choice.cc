#include "libs/graph/slot_choice.h"

#include <algorithm>
#include <map>
#include <optional>

namespace fluxqueue::graph {
namespace {

constexpr size_t kMaxWays = 100'000;

// What is left when one slot of the kind is made; nothing when it does not fit, or takes nothing.
std::optional<std::vector<uint64_t>> Make(const SlotKind& kind, std::vector<uint64_t> counts) {
  if (kind.empty()) return std::nullopt;
  for (const SlotPart& part : kind) {
    const uint64_t count = part.count.Best(counts[part.type]);
    if (count == 0) return std::nullopt;
    counts[part.type] -= count;
  }
  return counts;
}

class Chooser {
 public:
  explicit Chooser(const std::vector<SlotKind>& kinds) : kinds_(kinds) {}

  // The longest chain of slots from `counts` on: depth first without recursion, as a chain may be
  // as long as there are cores.
  bool Solve(const std::vector<uint64_t>& counts) {
    std::vector<std::vector<uint64_t>> open = {counts};
    while (!open.empty()) {
      const std::vector<uint64_t> here = open.back();
      if (ways_.size() + open.size() > kMaxWays) return false;
      Way way;
      bool ready = true;
      for (size_t kind = 0; kind < kinds_.size(); ++kind) {
        const auto next = Make(kinds_[kind], here);
        if (!next.has_value()) continue;
        const auto known = ways_.find(*next);
        if (known == ways_.end()) {
          open.push_back(*next);
          ready = false;
        } else if (ready && known->second.slots + 1 > way.slots) {
          way = {known->second.slots + 1, kind, *next};
        }
      }
      if (!ready) continue;
      ways_[here] = std::move(way);
      open.pop_back();
    }
    return true;
  }

  std::vector<size_t> Chain(std::vector<uint64_t> counts) const {
    std::vector<size_t> chain;
    for (const Way* way = &ways_.at(counts); way->slots > 0; way = &ways_.at(way->next)) {
      chain.push_back(way->kind);
    }
    return chain;
  }

 private:
  struct Way {
    uint64_t slots = 0;
    size_t kind = 0;
    std::vector<uint64_t> next;
  };

  const std::vector<SlotKind>& kinds_;
  std::map<std::vector<uint64_t>, Way> ways_;
};

}  // namespace

std::vector<size_t> ChooseSlots(const std::vector<SlotKind>& kinds,
                                const std::vector<uint64_t>& counts,
                                uint64_t most) {
  if (kinds.size() == 1) {
    uint64_t slots = kinds.front().empty() ? 0 : most;
    for (const SlotPart& part : kinds.front()) {
      const uint64_t count = part.count.Best(counts[part.type]);
      slots = count == 0 ? 0 : std::min(slots, counts[part.type] / count);
    }
    return std::vector<size_t>(slots, 0);
  }
  Chooser chooser(kinds);
  if (!chooser.Solve(counts)) return {};
  return chooser.Chain(counts);
}

}  // namespace fluxqueue::graph
