#include "libs/graph/explanation.h"

#include <algorithm>
#include <array>
#include <map>
#include <numeric>
#include <vector>

#include <fmt/format.h>

#include "libs/base/text.h"

namespace fluxqueue::graph {
namespace {

// Of a constraint that no node meets.
constexpr size_t kMostTerms = 8;

// One resource of the request, over the nodes that meet the constraints.
struct Tally {
  const Amount* need = nullptr;
  bool known = false;  // some node has, or had, such a resource
  size_t number = 0;
  int64_t largest = 0;    // on one node, were it empty
  int64_t most_free = 0;  // on one node that is up
  uint32_t large_enough = 0;
  uint32_t free_enough = 0;
  uint64_t slots_ever = 0;  // if this were the only resource
  uint64_t slots_now = 0;
};

bool IsOfDevices(const Tally& tally) {
  return tally.number == NodeTable::kGpus;
}

// The most that one slot could have there.
int64_t LargestOn(const Tally& tally, const Node& node) {
  if (!IsOfDevices(tally)) return node.capacity[tally.number];
  const auto devices = static_cast<int64_t>(node.device_free.size());
  return DevicesFor(tally.need->amount).devices > 1 ? devices * kWholeDevice
                                                    : std::min<int64_t>(devices, 1) * kWholeDevice;
}

int64_t FreeOn(const Tally& tally, const Node& node) {
  if (!IsOfDevices(tally)) return node.free[tally.number];
  if (DevicesFor(tally.need->amount).devices > 1) {
    return std::count(node.device_free.begin(), node.device_free.end(), kWholeDevice) *
           kWholeDevice;
  }
  return node.device_free.empty()
             ? 0
             : *std::max_element(node.device_free.begin(), node.device_free.end());
}

// How many slots would have room if this were the only resource: all of the node's, or what is
// free.
int64_t RoomEver(const Tally& tally, const Node& node) {
  if (!IsOfDevices(tally)) return node.capacity[tally.number] / tally.need->amount;
  const DevicesPerSlot gpus = DevicesFor(tally.need->amount);
  const auto devices = static_cast<int64_t>(node.device_free.size());
  return gpus.devices > 1 ? devices / static_cast<int64_t>(gpus.devices)
                          : devices * (kWholeDevice / gpus.of_each);
}

int64_t RoomNow(const Tally& tally, const Node& node) {
  if (!IsOfDevices(tally)) return node.free[tally.number] / tally.need->amount;
  const DevicesPerSlot gpus = DevicesFor(tally.need->amount);
  int64_t parts = 0;
  for (const int64_t free : node.device_free) parts += free / gpus.of_each;
  return parts / static_cast<int64_t>(gpus.devices);
}

// Of one group of equal slots.
class Explainer {
 public:
  // `levels`: down to the one that is required.
  Explainer(const Jobspec& jobspec,
            const SlotGroup& slots,
            const NodeTable& table,
            std::span<const Level> levels,
            Wording wording)
      : jobspec_(jobspec), slots_(slots), table_(table), levels_(levels), wording_(wording) {}

  Explanation Explain() {
    for (const Amount& amount : slots_.request) {
      Tally tally{.need = &amount};
      const auto& names = table_.resources();
      const auto name = std::find(names.begin(), names.end(), amount.resource);
      tally.known = name != names.end();
      tally.number = static_cast<size_t>(name - names.begin());
      tallies_.push_back(tally);
    }
    result_.nodes = table_.size();
    for (const auto& [ordinal, node] : table_.nodes()) {
      if (jobspec_.constraint.Matches(node->spec) && Tolerates(*node, /*lasting=*/true)) {
        Count(*node);
      }
    }
    result_.sentence = Sentence();
    return result_;
  }

 private:
  bool Tolerates(const Node& node, bool lasting) const {
    return FirstUntolerated(node.spec.taints, jobspec_.tolerations, lasting) == nullptr;
  }

  void Count(const Node& node) {
    ++result_.matching;
    const bool up = node.spec.schedulable && Tolerates(node, /*lasting=*/false);
    const int64_t most = jobspec_.one_per_node ? 1 : kMaxSlots;
    int64_t ever = most;
    int64_t now = up ? most : 0;
    for (Tally& tally : tallies_) {
      const int64_t ever_here = tally.known ? RoomEver(tally, node) : 0;
      const int64_t now_here = tally.known && up ? RoomNow(tally, node) : 0;
      if (tally.known) tally.largest = std::max(tally.largest, LargestOn(tally, node));
      if (tally.known && up) tally.most_free = std::max(tally.most_free, FreeOn(tally, node));
      tally.large_enough += ever_here > 0 ? 1 : 0;
      tally.free_enough += now_here > 0 ? 1 : 0;
      tally.slots_ever += static_cast<uint64_t>(std::min(ever_here, kMaxSlots));
      tally.slots_now += static_cast<uint64_t>(std::min(now_here, kMaxSlots));
      ever = std::min(ever, ever_here);
      now = std::min(now, now_here);
    }
    result_.up += up ? 1 : 0;
    result_.fitting += now > 0 ? 1 : 0;
    result_.slots_ever += static_cast<uint64_t>(ever);
    result_.slots_now += static_cast<uint64_t>(now);
    if (up && ever > 0) FindNearest(node);
    if (levels_.empty()) return;
    Below& below = below_[GroupOf(node.spec, levels_)];
    below.ever += static_cast<uint64_t>(ever);
    below.now += static_cast<uint64_t>(now);
  }

  // How much of what a slot needs is free, of the resource that is shortest.
  void FindNearest(const Node& node) {
    const Tally* shortest = nullptr;
    double part = 2;
    for (const Tally& tally : tallies_) {
      const double here =
          static_cast<double>(FreeOn(tally, node)) / static_cast<double>(tally.need->amount);
      if (here >= part) continue;
      part = here;
      shortest = &tally;
    }
    if (shortest == nullptr || part <= nearest_part_) return;
    nearest_part_ = part;
    nearest_ = &node;
    nearest_lacks_ = shortest;
  }

  std::string Sentence() {
    if (result_.nodes == 0) return "the pool has no nodes";
    if (result_.matching == 0) return NoneMatches();
    if (result_.slots_ever == 0) return TooLarge();
    if (result_.slots_ever < slots_.slots) return TooMany();
    if (const Below best = Best(&Below::ever); best.ever < slots_.slots && !levels_.empty()) {
      result_.slots_ever = best.ever;
      result_.slots_now = Best(&Below::now).now;
      return fmt::format(
          "{}: at most {} of {} slots would fit in one {} if all nodes{} were up and empty",
          levels_.back().name,
          best.ever,
          slots_.slots,
          levels_.back().name,
          Usable());
    }
    if (result_.up == 0) {
      return fmt::format("no node that the job may use is up: 0 of {}", result_.matching);
    }
    if (result_.slots_now == 0) return NoRoom();
    if (result_.slots_now < slots_.slots) return TooLittleRoom();
    if (levels_.empty()) return Fits();
    result_.slots_ever = Best(&Below::ever).ever;
    result_.slots_now = Best(&Below::now).now;
    if (result_.slots_now >= slots_.slots) return Fits();
    return fmt::format("{}: {} of {} slots fit now in the best of {} {}s; {}",
                       levels_.back().name,
                       result_.slots_now,
                       slots_.slots,
                       below_.size(),
                       levels_.back().name,
                       Filters());
  }

  std::string Fits() const {
    return fmt::format("fits now: {} of {} slots", result_.slots_now, slots_.slots);
  }

  std::string NoneMatches() const {
    uint32_t tolerated = 0;
    const Taint* example = nullptr;
    std::vector<const Constraint*> terms = jobspec_.constraint.Terms();
    std::vector<uint32_t> meets(terms.size(), 0);
    for (const auto& [ordinal, node] : table_.nodes()) {
      const Taint* taint =
          FirstUntolerated(node->spec.taints, jobspec_.tolerations, /*lasting=*/true);
      if (taint == nullptr) ++tolerated;
      if (example == nullptr) example = taint;
      for (size_t i = 0; i < terms.size(); ++i) meets[i] += terms[i]->Matches(node->spec) ? 1 : 0;
    }
    std::string sentence =
        fmt::format("constraints: none of the {} nodes meets them all", result_.nodes);
    const std::vector<size_t> named = NamedTerms(meets);
    for (const size_t i : named) {
      sentence += fmt::format("; {}: {}", Shortened(terms[i]->ToString()), Nodes(meets[i]));
    }
    if (named.size() < terms.size()) {
      sentence += fmt::format("; and {} more", terms.size() - named.size());
    }
    if (example != nullptr) {
      sentence += fmt::format("; taints tolerated: {} (a taint that is not: {}{}{}:{})",
                              Nodes(tolerated),
                              example->key,
                              example->value.empty() ? "" : "=",
                              example->value,
                              example->effect);
    }
    return sentence;
  }

  // Of the terms, by how many nodes meet each: those that a sentence names, in its order.
  std::vector<size_t> NamedTerms(const std::vector<uint32_t>& meets) const {
    std::vector<size_t> terms(meets.size());
    std::iota(terms.begin(), terms.end(), 0);
    if (wording_ == Wording::kFull) return terms;
    std::stable_sort(
        terms.begin(), terms.end(), [&meets](size_t a, size_t b) { return meets[a] < meets[b]; });
    if (terms.size() > kMostTerms) terms.resize(kMostTerms);
    return terms;
  }

  std::string TooLarge() {
    for (const Tally& tally : tallies_) {
      if (tally.large_enough > 0) continue;
      result_.resource = tally.need->resource;
      if (tally.largest == 0) {
        return fmt::format(
            "{}: a slot needs {}, no node{} has any", tally.need->resource, Needs(tally), Usable());
      }
      return fmt::format("{}: a slot needs {}, the largest node{} has {}",
                         tally.need->resource,
                         Needs(tally),
                         Usable(),
                         Show(tally, tally.largest));
    }
    return fmt::format(
        "no node{} is large enough in everything: {}", Usable(), Each(&Tally::large_enough));
  }

  std::string TooMany() {
    const Tally& tally = Shortest(&Tally::slots_ever);
    return fmt::format(
        "{}{}{} of {} slots would fit if all {} nodes{} were up and empty; a slot "
        "needs {}, the largest node has {}",
        OnePerNode(),
        Head(tally, &Tally::slots_ever),
        result_.slots_ever,
        slots_.slots,
        result_.matching,
        Usable(),
        Needs(tally),
        Show(tally, tally.largest));
  }

  std::string NoRoom() {
    for (const Tally& tally : tallies_) {
      if (tally.free_enough > 0) continue;
      result_.resource = tally.need->resource;
      Nearest();
      return fmt::format(
          "{}: 0 of {} slots fit now; a slot needs {}, the best node has {} free; {}",
          tally.need->resource,
          slots_.slots,
          Needs(tally),
          Show(tally, tally.most_free),
          Filters());
    }
    result_.resource = nearest_lacks_ != nullptr ? nearest_lacks_->need->resource : "";
    Nearest();
    return fmt::format("0 of {} slots fit now; no node has everything free together: {}; {}",
                       slots_.slots,
                       Each(&Tally::free_enough),
                       Filters());
  }

  std::string TooLittleRoom() {
    const Tally& tally = Shortest(&Tally::slots_now);
    return fmt::format("{}{}{} of {} slots fit now; a slot needs {}, the best node has {} free; {}",
                       OnePerNode(),
                       Head(tally, &Tally::slots_now),
                       result_.slots_now,
                       slots_.slots,
                       Needs(tally),
                       Show(tally, tally.most_free),
                       Filters());
  }

  std::string_view OnePerNode() const {
    return jobspec_.one_per_node ? "each slot on a node of its own: " : "";
  }

  // The resource of which the fewest slots could be had.
  const Tally& Shortest(uint64_t Tally::*slots) const {
    return *std::min_element(
        tallies_.begin(), tallies_.end(), [slots](const Tally& a, const Tally& b) {
          return a.*slots < b.*slots;
        });
  }

  // "cpu: " when it alone is too little, else nothing: it is how the resources lie together.
  std::string Head(const Tally& tally, uint64_t Tally::*slots) {
    if (tally.*slots >= slots_.slots) return "";
    result_.resource = tally.need->resource;
    return tally.need->resource + ": ";
  }

  std::string Each(uint32_t Tally::*nodes) const {
    std::string text;
    for (const Tally& tally : tallies_) {
      text += fmt::format("{}{} {} on {}",
                          text.empty() ? "" : ", ",
                          tally.need->resource,
                          Needs(tally),
                          Nodes(tally.*nodes));
    }
    return text;
  }

  std::string Filters() const {
    return fmt::format("of {} {} may be used, {} are up, {} have room for a slot",
                       Nodes(result_.nodes),
                       result_.matching,
                       result_.up,
                       result_.fitting);
  }

  // Said when constraints leave only some of the nodes.
  std::string Usable() const {
    return result_.matching == result_.nodes ? "" : " that the job may use";
  }

  static std::string Show(const Tally& tally, int64_t amount) {
    return FormatAmount(tally.need->resource, amount);
  }
  static std::string Needs(const Tally& tally) { return Show(tally, tally.need->amount); }
  static std::string Nodes(uint32_t count) {
    return fmt::format("{} node{}", count, count == 1 ? "" : "s");
  }
  // Host lists may be long. What is cut is ASCII or a property; cut between UTF-8 characters.
  static std::string Shortened(std::string text) {
    constexpr size_t kMost = 120;
    if (text.size() <= kMost) return text;
    size_t end = kMost;
    while ((static_cast<unsigned char>(text[end]) & 0xC0) == 0x80) --end;
    return text.substr(0, end) + "…";
  }

  // Slots below one vertex of the required level.
  struct Below {
    uint64_t ever = 0;
    uint64_t now = 0;
  };

  Below Best(uint64_t Below::*slots) const {
    Below best;
    for (const auto& [name, below] : below_) {
      if (below.*slots > best.*slots) best = below;
    }
    return best;
  }

  // For one slot it is one node that is short of the resource.
  void Nearest() {
    if (slots_.slots == 1 && nearest_ != nullptr) result_.nearest = nearest_->spec.name;
  }

  const Jobspec& jobspec_;
  const SlotGroup& slots_;
  const NodeTable& table_;
  const std::span<const Level> levels_;
  const Wording wording_;
  std::vector<Tally> tallies_;
  std::map<std::string, Below> below_;
  double nearest_part_ = -1;
  const Node* nearest_ = nullptr;
  const Tally* nearest_lacks_ = nullptr;
  Explanation result_;
};

// "1.5", "2", "0.001": at most three decimals, rounded down so that what is short never looks
// enough.
std::string Decimal(int64_t amount, int64_t unit) {
  const int64_t thousandths = static_cast<int64_t>(static_cast<long double>(amount % unit) * 1000 /
                                                   static_cast<long double>(unit));
  std::string text = fmt::format("{}.{:03}", amount / unit, thousandths);
  text.erase(text.find_last_not_of('0') + 1);
  if (text.back() == '.') text.pop_back();
  return text;
}

std::string Names(std::span<const Level> levels) {
  std::string names;
  for (const Level& level : levels) names += (names.empty() ? "" : ", ") + level.name;
  return names;
}

Explanation Explain(const Jobspec& jobspec,
                    const NodeTable& table,
                    std::span<const Level> levels,
                    std::span<const Level> in_use,
                    Wording wording) {
  const auto named = [&jobspec](const Level& level) {
    return level.name == jobspec.required_level;
  };
  const auto required = std::find_if(in_use.begin(), in_use.end(), named);
  Explanation why;
  why.nodes = table.size();
  if (!jobspec.required_level.empty() && required == in_use.end() && table.size() > 0) {
    const auto known = std::find_if(levels.begin(), levels.end(), named);
    why.sentence = known != levels.end()
                       ? fmt::format("{}: no node has the label {}", known->name, known->label)
                       : fmt::format("{}: the pool has no such level; there is {}",
                                     jobspec.required_level,
                                     levels.empty() ? "none" : Names(levels));
    return why;
  }
  const auto depth = required == in_use.end() ? 0 : required - in_use.begin() + 1;
  for (size_t i = 0; i < jobspec.groups.size(); ++i) {
    const SlotGroup& slots = jobspec.groups[i];
    why = Explainer(jobspec, slots, table, in_use.first(static_cast<size_t>(depth)), wording)
              .Explain();
    if (why.slots_now >= slots.slots) continue;
    if (jobspec.groups.size() > 1) why.sentence = fmt::format("slot[{}]: {}", i, why.sentence);
    return why;
  }
  if (jobspec.groups.size() > 1) {
    why.sentence = fmt::format("each of its {} groups of slots fits now, but not all together",
                               jobspec.groups.size());
  }
  return why;
}

}  // namespace

std::string FormatAmount(std::string_view resource, int64_t amount) {
  if (resource == "cpu") return Decimal(amount, 1000);
  if (!IsBytes(resource)) return fmt::format("{}", amount);
  constexpr std::array<std::string_view, 5> kUnits = {"Pi", "Ti", "Gi", "Mi", "Ki"};
  int64_t unit = int64_t{1} << 50;
  for (const std::string_view name : kUnits) {
    if (amount >= unit) return Decimal(amount, unit) + std::string(name);
    unit >>= 10;
  }
  return fmt::format("{}", amount);
}

Explanation ExplainShortfall(const Jobspec& jobspec,
                             const NodeTable& table,
                             std::span<const Level> levels,
                             std::span<const Level> in_use,
                             Wording wording) {
  Explanation why = Explain(jobspec, table, levels, in_use, wording);
  if (wording == Wording::kShort) why.sentence = Cut(why.sentence, kMostSentenceBytes);
  return why;
}

}  // namespace fluxqueue::graph
