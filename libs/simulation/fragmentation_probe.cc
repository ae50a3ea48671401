#include "libs/simulation/fragmentation_probe.h"

#include <algorithm>
#include <array>
#include <map>
#include <numeric>
#include <string>
#include <string_view>
#include <utility>

#include "libs/graph/fragmentation.h"
#include "libs/simulation/summary.h"

namespace fluxqueue::simulation {
namespace {

constexpr int64_t kWholeGpu = 1000;
constexpr size_t kMostShapes = 64;
// NodeRoom::amounts, in this order.
constexpr std::array<std::string_view, 2> kAmounts = {"cpu", "memory"};

int64_t AmountOf(const trace::Amounts& amounts, std::string_view resource) {
  const auto amount = amounts.find(resource);
  return amount == amounts.end() ? 0 : amount->second;
}

graph::SlotShape ShapeOf(const trace::TraceJob& job) {
  graph::SlotShape shape;
  shape.gpu = AmountOf(job.requests, trace::kGpuMilli);
  for (const std::string_view resource : kAmounts) {
    shape.amounts.push_back(AmountOf(job.requests, resource));
  }
  return shape;
}

// Slots with GPUs that are alike.
struct Typical {
  graph::SlotShape shape;
  std::vector<std::string> models;
  int64_t count = 0;

  bool MayUse(const trace::TraceNode& node) const {
    return models.empty() ||
           std::find(models.begin(), models.end(), node.gpu_model) != models.end();
  }
};

// Those that come most often.
std::vector<Typical> TypicalOf(const Workload& workload) {
  std::map<std::pair<trace::Amounts, std::vector<std::string>>, Typical> by_request;
  for (const trace::TraceJob& job : workload.jobs) {
    if (AmountOf(job.requests, trace::kGpuMilli) == 0) continue;
    Typical& typical = by_request[{job.requests, job.gpu_models}];
    if (typical.count == 0) typical = {ShapeOf(job), job.gpu_models};
    typical.count += job.slots;
  }
  std::vector<Typical> all;
  all.reserve(by_request.size());
  for (auto& [request, typical] : by_request) all.push_back(std::move(typical));
  std::stable_sort(
      all.begin(), all.end(), [](const Typical& a, const Typical& b) { return a.count > b.count; });
  if (all.size() > kMostShapes) all.resize(kMostShapes);
  return all;
}

// What is free on the nodes, and how much of it is fragmented. Only nodes that have changed are
// looked at again.
class Rooms {
 public:
  Rooms(const Machine& machine, std::vector<Typical> typical)
      : machine_(machine), typical_(std::move(typical)), fragmented_(machine.offers.size()) {
    for (const Typical& each : typical_) all_ += each.count;
    for (const trace::TraceNode& node : machine.offers) {
      graph::NodeRoom& room = rooms_.emplace_back();
      room.gpus.assign(static_cast<size_t>(AmountOf(node.offers, trace::kGpuMilli) / kWholeGpu),
                       kWholeGpu);
      for (const std::string_view resource : kAmounts) {
        room.amounts.push_back(AmountOf(node.offers, resource));
      }
    }
    changed_.resize(rooms_.size());
    std::iota(changed_.begin(), changed_.end(), 0);
  }

  // A slot comes (sign -1) or goes (1).
  void Change(const Place& place, const graph::SlotShape& slot, int sign) {
    graph::NodeRoom& room = rooms_[place.node];
    const int64_t each = std::min(slot.gpu, kWholeGpu);
    for (const uint32_t device : place.devices) {
      if (device < room.gpus.size()) room.gpus[device] += sign * each;
    }
    for (size_t i = 0; i < room.amounts.size(); ++i) room.amounts[i] += sign * slot.amounts[i];
    changed_.push_back(place.node);
  }

  // In GPUs.
  double Fragmented() {
    for (const uint32_t node : changed_) Look(node);
    changed_.clear();
    return std::accumulate(fragmented_.begin(), fragmented_.end(), 0.0) / kWholeGpu;
  }

 private:
  void Look(uint32_t node) {
    const graph::NodeRoom& room = rooms_[node];
    const int64_t free = std::accumulate(room.gpus.begin(), room.gpus.end(), int64_t{0});
    double lost = 0;
    for (const Typical& each : typical_) {
      const bool may = each.MayUse(machine_.offers[node]);
      const int64_t usable = may ? graph::UsableGpus(room, each.shape) : 0;
      lost += static_cast<double>(each.count) * static_cast<double>(free - usable);
    }
    fragmented_[node] = all_ == 0 ? 0 : lost / static_cast<double>(all_);
  }

  const Machine& machine_;
  const std::vector<Typical> typical_;
  int64_t all_ = 0;
  std::vector<graph::NodeRoom> rooms_;
  std::vector<uint32_t> changed_;
  std::vector<double> fragmented_;  // thousandths
};

struct Change {
  Millis time;
  int sign;  // a job's end comes before a start at the same time
  size_t job;
};

std::vector<Change> ChangesOf(const std::vector<Outcome>& outcomes) {
  std::vector<Change> changes;
  for (size_t i = 0; i < outcomes.size(); ++i) {
    if (!Started(outcomes[i])) continue;
    changes.push_back({outcomes[i].started, -1, i});
    if (outcomes[i].end == Outcome::End::kEnded) changes.push_back({outcomes[i].ended, 1, i});
  }
  std::stable_sort(changes.begin(), changes.end(), [](const Change& a, const Change& b) {
    return a.time != b.time ? a.time < b.time : a.sign > b.sign;
  });
  return changes;
}

}  // namespace

std::vector<double> FragmentedGpus(const Workload& workload,
                                   const Machine& machine,
                                   const std::vector<Outcome>& outcomes,
                                   double interval_s,
                                   size_t intervals) {
  Millis first = Millis::max();
  for (const Outcome& outcome : outcomes) first = std::min(first, outcome.submitted);
  Rooms rooms(machine, TypicalOf(workload));
  const std::vector<Change> changes = ChangesOf(outcomes);
  auto next = changes.begin();
  std::vector<double> fragmented;
  for (size_t i = 0; i < intervals; ++i) {
    const double middle_s = interval_s * (static_cast<double>(i) + 0.5);
    const Millis until = first + Millis(static_cast<int64_t>(middle_s * 1000));
    for (; next != changes.end() && next->time <= until; ++next) {
      const graph::SlotShape slot = ShapeOf(workload.jobs[next->job]);
      for (const Place& place : outcomes[next->job].places) rooms.Change(place, slot, next->sign);
    }
    fragmented.push_back(rooms.Fragmented());
  }
  return fragmented;
}

}  // namespace fluxqueue::simulation
