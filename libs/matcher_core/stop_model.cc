#include "libs/matcher_core/stop_model.h"

#include <algorithm>
#include <map>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>

#include "libs/graph/holding.h"

namespace fluxqueue::matcher_core {
namespace {

using graph::Amount;
using graph::Placement;

int64_t EndOf(const Placement& placement, int64_t now_s) {
  if (placement.duration_s == 0) return now_s + 2 * graph::kForever;
  // What should have been given back by now is planned to be in a second.
  return std::max(placement.start_s + placement.duration_s, now_s + 1);
}

class Model {
 public:
  Model(const graph::Engine& engine, const JobToFit& job) : job_(job), specs_(engine.Nodes()) {
    NumberResources();
    AddNodes();
    for (const Placement* placement : job_.reserved) AddTimes(*placement);
    FillRooms();
    for (const graph::AllocationKey& key : engine.Keys()) {
      const Placement& placement = *engine.Find(key);
      TakeFrom(placement, job_.now_s, EndOf(placement, job_.now_s));
    }
    // It is not known which of the devices others use: the first ones that are left.
    for (size_t node = 0; node < problem_.nodes.size(); ++node) TakeForeignGpus(node);
    for (const Placement* placement : job_.reserved) {
      TakeFrom(*placement, placement->start_s, EndOf(*placement, job_.now_s));
    }
  }

  void Add(const Placement& placement) {
    StopProblem::Holder& holder = problem_.holders.emplace_back();
    const int64_t end_s = EndOf(placement, job_.now_s);
    for (auto& [node, share] : SharesOf(placement)) {
      const std::vector<int64_t>& times = times_[node];
      share.node = node;
      share.rooms =
          static_cast<size_t>(std::lower_bound(times.begin(), times.end(), end_s) - times.begin());
      holder.shares.push_back(std::move(share));
    }
  }

  StopProblem Take() { return std::move(problem_); }

 private:
  void NumberResources() {
    for (const graph::SlotGroup& group : job_.jobspec.groups) {
      for (const Amount& amount : group.request) {
        if (amount.resource != graph::kGpuMilli) resources_.try_emplace(amount.resource, 0);
      }
    }
    size_t number = 0;
    for (auto& [name, value] : resources_) value = number++;
    for (const graph::SlotGroup& group : job_.jobspec.groups) {
      StopProblem::Ask& ask = problem_.asks.emplace_back();
      ask.slots = group.slots;
      ask.needs = AmountsOf(group.request);
      for (const Amount& amount : group.request) {
        if (amount.resource == graph::kGpuMilli) ask.gpus = graph::DevicesFor(amount.amount);
      }
    }
  }

  std::vector<int64_t> AmountsOf(const graph::Amounts& amounts) const {
    std::vector<int64_t> by_number(resources_.size(), 0);
    for (const Amount& amount : amounts) {
      const auto found = resources_.find(amount.resource);
      if (found != resources_.end()) by_number[found->second] = amount.amount;
    }
    return by_number;
  }

  bool MayUse(const graph::NodeSpec& node) const {
    return node.schedulable && job_.jobspec.constraint.Matches(node) &&
           graph::FirstUntolerated(node.taints, job_.jobspec.tolerations, /*lasting=*/false) ==
               nullptr &&
           std::none_of(job_.closures.begin(), job_.closures.end(), [&](const auto& closure) {
             return closure.Meets(job_.now_s, job_.until_s) && closure.nodes.Matches(node);
           });
  }

  // Down to the level that is required; none: it need not be in one domain.
  std::vector<graph::Level> LevelsOfDomains() const {
    std::vector<graph::Level> in_use;
    if (job_.jobspec.required_level.empty()) return in_use;
    for (const graph::Level& level : job_.levels) {
      if (std::any_of(specs_.begin(), specs_.end(), [&level](const graph::NodeSpec& node) {
            return graph::LabelOf(node, level.label) != nullptr;
          })) {
        in_use.push_back(level);
      }
      if (level.name == job_.jobspec.required_level) break;
    }
    return in_use;
  }

  void AddNodes() {
    const std::vector<graph::Level> levels = LevelsOfDomains();
    std::map<std::string, size_t> domains;
    for (const graph::NodeSpec& spec : specs_) {
      if (!MayUse(spec)) continue;
      const std::string domain = levels.empty() ? "" : graph::GroupOf(spec, levels);
      const size_t number = domains.try_emplace(domain, domains.size()).first->second;
      numbers_.emplace(spec.name, problem_.nodes.size());
      used_.push_back(&spec);
      times_.push_back({job_.now_s});
      problem_.nodes.push_back({.domain = number, .rooms = {}});
    }
    problem_.domains = std::max<size_t>(1, domains.size());
  }

  void AddTimes(const Placement& reserved) {
    if (reserved.start_s <= job_.now_s || reserved.start_s >= job_.until_s) return;
    for (const graph::PlacedSlot& slot : reserved.slots) {
      const auto node = numbers_.find(slot.node);
      if (node != numbers_.end()) times_[node->second].push_back(reserved.start_s);
    }
  }

  void FillRooms() {
    for (size_t node = 0; node < used_.size(); ++node) {
      std::vector<int64_t>& times = times_[node];
      std::sort(times.begin(), times.end());
      times.erase(std::unique(times.begin(), times.end()), times.end());
      StopProblem::Room room;
      room.amounts = AmountsOf(used_[node]->resources);
      const std::vector<int64_t> foreign = AmountsOf(used_[node]->foreign);
      for (size_t i = 0; i < foreign.size(); ++i) room.amounts[i] -= foreign[i];
      const int64_t devices = GpusOf(used_[node]->resources) / graph::kWholeDevice;
      room.gpus.assign(static_cast<size_t>(std::clamp<int64_t>(devices, 0, graph::kMaxDevices)),
                       graph::kWholeDevice);
      problem_.nodes[node].rooms.assign(times.size(), room);
    }
  }

  static int64_t GpusOf(const graph::Amounts& amounts) {
    for (const Amount& amount : amounts) {
      if (amount.resource == graph::kGpuMilli) return amount.amount;
    }
    return 0;
  }

  void TakeForeignGpus(size_t node) {
    int64_t foreign = GpusOf(used_[node]->foreign);
    std::vector<StopProblem::Room>& rooms = problem_.nodes[node].rooms;
    for (size_t device = 0; foreign > 0 && device < rooms[0].gpus.size(); ++device) {
      const int64_t here = std::clamp<int64_t>(rooms[0].gpus[device], 0, foreign);
      for (StopProblem::Room& room : rooms) room.gpus[device] -= here;
      foreign -= here;
    }
  }

  // By node.
  std::map<size_t, StopProblem::Share> SharesOf(const Placement& placement) const {
    std::map<size_t, StopProblem::Share> shares;
    size_t slot = 0;
    for (const graph::SlotGroup& group : placement.groups) {
      const std::vector<int64_t> amounts = AmountsOf(group.request);
      const int64_t of_each = graph::DevicesFor(GpusOf(group.request)).of_each;
      for (uint32_t i = 0; i < group.slots && slot < placement.slots.size(); ++i, ++slot) {
        const graph::PlacedSlot& placed = placement.slots[slot];
        const auto node = numbers_.find(placed.node);
        if (placed.released || node == numbers_.end()) continue;
        StopProblem::Share& share = shares[node->second];
        share.amounts.resize(amounts.size(), 0);
        for (size_t r = 0; r < amounts.size(); ++r) share.amounts[r] += amounts[r];
        for (const uint32_t device : placed.devices) share.gpus.emplace_back(device, of_each);
      }
    }
    return shares;
  }

  void TakeFrom(const Placement& placement, int64_t from_s, int64_t end_s) {
    for (const auto& [node, share] : SharesOf(placement)) {
      for (size_t i = 0; i < times_[node].size(); ++i) {
        if (times_[node][i] < from_s || times_[node][i] >= end_s) continue;
        StopProblem::Room& room = problem_.nodes[node].rooms[i];
        for (size_t r = 0; r < share.amounts.size(); ++r) room.amounts[r] -= share.amounts[r];
        for (const auto& [device, amount] : share.gpus) {
          if (device < room.gpus.size()) room.gpus[device] -= amount;
        }
      }
    }
  }

  const JobToFit& job_;
  const std::vector<graph::NodeSpec> specs_;
  std::map<std::string, size_t, std::less<>> resources_;
  std::vector<const graph::NodeSpec*> used_;  // by number, as the next two
  std::unordered_map<std::string_view, size_t> numbers_;
  std::vector<std::vector<int64_t>> times_;
  StopProblem problem_;
};

}  // namespace

StopProblem DescribeRoom(const graph::Engine& engine,
                         const JobToFit& job,
                         std::span<const Placement* const> holders) {
  Model model(engine, job);
  for (const Placement* placement : holders) model.Add(*placement);
  return model.Take();
}

}  // namespace fluxqueue::matcher_core
