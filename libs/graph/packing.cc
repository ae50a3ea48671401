#include "libs/graph/packing.h"

#include <algorithm>
#include <bit>
#include <map>
#include <tuple>

namespace fluxqueue::graph {
namespace {

constexpr uint32_t kNoPlace = UINT32_MAX;

// A score, from its highest bit down: whether gpus stand idle beside the slot that others could
// have; whether the node is set aside; what is lost; how many gpus are free; how much of the cpu
// is.
constexpr int kCpuBits = 16;
constexpr int kGpuBits = 10;
constexpr int kCostBits = 34;
constexpr int kLastUseBits = 2;  // of them, where nodes are set aside
constexpr int64_t kAtGpus = int64_t{1} << (kCostBits + kGpuBits + kCpuBits);
constexpr int64_t kMaxCost = (int64_t{1} << kCostBits) - 1;
constexpr int64_t kMaxGpus = (int64_t{1} << kGpuBits) - 1;
constexpr int64_t kMaxCpu = (int64_t{1} << kCpuBits) - 2;  // so that a score is below 1 << 61
// Free gpus are told apart by so many thousandths, a power of two.
constexpr int kGpuGrain = 6;
// Nodes with more whole ones are looked at as if they had so many.
constexpr int64_t kMostGpus = 64;

uint64_t FreeLeaves(const LeafGroup& group, const Window& window) {
  const uint64_t free = group.present & ~group.HeldDuring(window.at_s, window.duration_s);
  return window.kind == Window::Kind::kEver ? free : free & group.up;
}

size_t WholeGpus(int64_t amount) {
  return static_cast<size_t>(std::clamp<int64_t>(amount, 0, kMostGpus));
}

int64_t Share(int64_t free, int64_t all) {
  if (all <= 0) return 0;
  // Amounts may be as great as an int64_t holds.
  const int shift = std::max(0, static_cast<int>(std::bit_width(static_cast<uint64_t>(all))) - 47);
  return std::min((free >> shift) * kMaxCpu / (all >> shift), kMaxCpu);
}

// Nodes that are set aside cost more than any others; of a cost the last bits make room for that.
int64_t AfterLastUse(LastUse use, MatchPolicy::SetsAside sets_aside, int64_t cost) {
  auto grade = static_cast<int64_t>(use);
  // Means of scores over a rack depend on the grade, and rules 4 know one less.
  if (sets_aside == MatchPolicy::SetsAside::kExpected && grade > 0) --grade;
  return (grade << (kCostBits - kLastUseBits)) + (cost >> kLastUseBits);
}

// Where a part of the cluster is kept for slots of several gpus, they need no weight beside that.
Gravity GravityBy(MatchPolicy::SetsAside sets_aside) {
  switch (sets_aside) {
    case MatchPolicy::SetsAside::kNothing:
      return Gravity::kBySize;
    case MatchPolicy::SetsAside::kExpected:
      return Gravity::kTwiceForSeveral;
    case MatchPolicy::SetsAside::kUnexpected:
      return Gravity::kAlike;
  }
  return Gravity::kAlike;
}

int64_t AtLeast(MatchPolicy::SetsAside sets_aside) {
  return sets_aside == MatchPolicy::SetsAside::kUnexpected ? kPercentSetAside : 0;
}

}  // namespace

// Part by part, as the sum might not fit.
int64_t MeanScore(std::span<const int64_t> scores) {
  const auto count = static_cast<int64_t>(scores.size());
  int64_t mean = 0;
  int64_t rest = 0;
  for (const int64_t score : scores) {
    mean += score / count;
    rest += score % count;
  }
  return mean + rest / count;
}

Packing::Packing(const ResourceGraph& graph,
                 const GraphState& state,
                 const MatchPolicy& policy,
                 Workload workload)
    : graph_(graph), state_(state), policy_(policy), workload_(std::move(workload)) {
  GraphChanged();
}

void Packing::GraphChanged() {
  named_.clear();
  classes_.clear();
  nodes_.clear();
  places_.clear();
  leaves_.clear();
  all_gpus_ = 0;
  if (policy_.order != MatchPolicy::Order::kPacked) return;
  gpu_type_ = graph_.types().Find(kGpuMilli);
  cpu_type_ = graph_.types().Find("cpu");
  if (cpu_type_ == NameTable::kUnknown) cpu_type_ = graph_.types().Find("core");
  thousandths_.clear();
  for (TypeId type = 0; type < graph_.types().size(); ++type) {
    const std::string& name = graph_.types()[type];
    thousandths_.push_back(name == kGpuMilli ? 1 : IsWholeGpus(name) ? kWholeDevice : 0);
  }
  places_.assign(graph_.vertices().size(), kNoPlace);
  Constraints constraints;
  const std::vector<ExpectedSlots> expected = ExpectedShapes(&constraints);
  for (const VertexId v : graph_.OfType(graph_.types().Find("node"))) AddNode(v, constraints);
  const std::vector<NodeKind> kinds = FindKinds();
  Weigh(expected, kinds);
  if (SetsAny()) SetNodesAside(expected, kinds);
}

// In the order of their gpus; those that take none, or take what the graph does not know, are left
// out.
std::vector<ExpectedSlots> Packing::ExpectedShapes(Constraints* constraints) {
  for (const WorkloadShape& shape : workload_) {
    for (const auto& [resource, amount] : shape.amounts) {
      const TypeId type = graph_.types().Find(resource);
      if (type != gpu_type_ && !NumberOf(type).has_value()) named_.push_back(type);
    }
  }
  std::map<std::string, size_t> numbers;
  std::vector<ExpectedSlots> expected;
  for (const WorkloadShape& shape : workload_) {
    const bool all_known =
        std::none_of(shape.amounts.begin(), shape.amounts.end(), [this](const Amount& amount) {
          return graph_.OfType(graph_.types().Find(amount.resource)).empty();
        });
    if (!all_known) continue;
    ExpectedSlots slot;
    slot.shape.amounts.assign(named_.size(), 0);
    for (const auto& [resource, amount] : shape.amounts) {
      const TypeId type = graph_.types().Find(resource);
      slot.shape.gpu += ThousandthsOf(type) * std::min(amount, kMostGpus * kWholeDevice);
      if (type != gpu_type_) slot.shape.amounts[*NumberOf(type)] = amount;
    }
    if (slot.shape.gpu <= 0) continue;
    const auto [number, added] = numbers.emplace(shape.constraint.ToString(), constraints->size());
    if (added) constraints->push_back(&shape.constraint);
    slot.constraint = number->second;
    slot.count = shape.count;
    expected.push_back(std::move(slot));
  }
  std::stable_sort(
      expected.begin(), expected.end(), [](const ExpectedSlots& a, const ExpectedSlots& b) {
        return a.shape.gpu < b.shape.gpu;
      });
  return expected;
}

std::optional<size_t> Packing::NumberOf(TypeId type) const {
  const auto number = std::find(named_.begin(), named_.end(), type);
  if (number == named_.end()) return std::nullopt;
  return static_cast<size_t>(number - named_.begin());
}

void Packing::AddNode(VertexId v, const Constraints& constraints) {
  Node node;
  node.first_leaf = static_cast<uint32_t>(leaves_.size());
  for (const EdgeId e : graph_.vertex(v).out) {
    const Edge& edge = graph_.edge(e);
    const Vertex& leaf = graph_.vertex(edge.target);
    if (edge.subsystem != ResourceGraph::kContainment || !leaf.out.empty()) continue;
    const bool counts =
        ThousandthsOf(leaf.type) > 0 || leaf.type == cpu_type_ || NumberOf(leaf.type).has_value();
    if (counts && state_.BitOf(edge.target) == 0) leaves_.push_back(edge.target);
  }
  node.leaves = static_cast<uint32_t>(leaves_.size()) - node.first_leaf;
  node.node_class = ClassOf(v, constraints);
  places_[v] = static_cast<uint32_t>(nodes_.size());
  nodes_.push_back(node);
  for (const int64_t gpu : RoomWhenEmpty(v).gpus) all_gpus_ += gpu;
}

uint32_t Packing::ClassOf(VertexId v, const Constraints& constraints) {
  const Vertex& node = graph_.vertex(v);
  std::vector<bool> meets;
  for (const Constraint* constraint : constraints) {
    meets.push_back(constraint->Matches({node.name, node.rank, node.properties}));
  }
  const auto known = std::find_if(
      classes_.begin(), classes_.end(), [&](const NodeClass& one) { return one.meets == meets; });
  const auto number = static_cast<uint32_t>(known - classes_.begin());
  if (known == classes_.end()) classes_.emplace_back().meets = std::move(meets);
  return number;
}

// Clusters have few.
std::vector<NodeKind> Packing::FindKinds() {
  std::vector<NodeKind> kinds;
  std::map<std::tuple<uint32_t, std::vector<int64_t>, std::vector<int64_t>>, uint32_t> numbers;
  for (const VertexId v : graph_.OfType(graph_.types().Find("node"))) {
    NodeRoom room = RoomWhenEmpty(v);
    Node& node = nodes_[places_[v]];
    const auto number = static_cast<uint32_t>(kinds.size());
    const auto [kind, added] =
        numbers.try_emplace({node.node_class, room.gpus, room.amounts}, number);
    node.kind = kind->second;
    if (added) kinds.push_back({classes_[node.node_class].meets, std::move(room)});
  }
  return kinds;
}

void Packing::Weigh(const std::vector<ExpectedSlots>& expected,
                    const std::vector<NodeKind>& kinds) {
  const std::vector<int64_t> weights =
      WeightsOf(DemandsOf(expected, kinds), all_gpus_, GravityBy(policy_.sets_aside));
  for (NodeClass& one : classes_) {
    for (size_t i = 0; i < expected.size(); ++i) {
      if (!one.meets[expected[i].constraint] || weights[i] == 0) continue;
      one.shapes.push_back({expected[i].shape, weights[i]});
    }
  }
}

std::vector<Demand> Packing::DemandsOf(const std::vector<ExpectedSlots>& expected,
                                       const std::vector<NodeKind>& kinds) const {
  std::vector<int64_t> nodes(kinds.size());
  for (const Node& node : nodes_) ++nodes[node.kind];
  std::vector<Demand> demands;
  for (const ExpectedSlots& slots : expected) {
    Demand& demand = demands.emplace_back();
    demand.count = slots.count;
    demand.gpu = slots.shape.gpu;
    for (size_t kind = 0; kind < kinds.size(); ++kind) {
      if (!kinds[kind].meets[slots.constraint]) continue;
      demand.usable += nodes[kind] * UsableGpus(kinds[kind].room, slots.shape);
    }
  }
  return demands;
}

void Packing::SetNodesAside(const std::vector<ExpectedSlots>& expected,
                            const std::vector<NodeKind>& kinds) {
  const auto& all = graph_.OfType(graph_.types().Find("node"));
  std::vector<VertexId> last_first(all.begin(), all.end());
  std::stable_sort(last_first.begin(), last_first.end(), [this](VertexId a, VertexId b) {
    return graph_.vertex(a).id > graph_.vertex(b).id;
  });
  std::vector<uint32_t> of;
  for (const VertexId v : last_first) of.push_back(nodes_[places_[v]].kind);
  const bool unexpected = policy_.sets_aside == MatchPolicy::SetsAside::kUnexpected;
  const std::vector<LastUse> uses = SetAside(
      unexpected ? Holdable(expected, kinds) : expected, kinds, of, AtLeast(policy_.sets_aside));
  for (size_t i = 0; i < uses.size(); ++i) nodes_[places_[last_first[i]]].last_use = uses[i];
}

NodeRoom Packing::RoomWhenEmpty(VertexId v) const {
  NodeRoom room;
  room.amounts.assign(named_.size(), 0);
  const auto add = [&](TypeId type, int64_t amount) {
    if (type == gpu_type_) room.gpus.push_back(amount);
    if (type != gpu_type_ && ThousandthsOf(type) > 0) {
      room.gpus.insert(room.gpus.end(), WholeGpus(amount), kWholeDevice);
    }
    if (const auto number = NumberOf(type)) room.amounts[*number] += amount;
  };
  for (const VertexId leaf : LeavesOf(nodes_[places_[v]])) {
    add(graph_.vertex(leaf).type, graph_.vertex(leaf).size);
  }
  for (const LeafGroup& group : state_.GroupsOf(v)) {
    add(group.type, group.size * std::popcount(group.present));
  }
  return room;
}

int64_t Packing::FreeOf(VertexId leaf, const Window& window) const {
  if (window.kind != Window::Kind::kEver && !graph_.vertex(leaf).up) return 0;
  return std::max<int64_t>(0, state_.FreeDuring(leaf, window.at_s, window.duration_s));
}

int64_t Packing::GpuScore(VertexId gpu, const Window& window) const {
  return 1 + FreeOf(gpu, window);
}

Packing::Filling Packing::Fill(VertexId v, const Window& window) const {
  Filling filling(*this);
  if (places_[v] == kNoPlace) return filling;
  const Node& node = nodes_[places_[v]];
  filling.shapes_ = classes_[node.node_class].shapes;
  NodeRoom& room = filling.room_;
  room.amounts.assign(named_.size(), 0);
  int64_t free_cpu = 0;
  int64_t all_cpu = 0;
  int64_t free_gpus = 0;
  const auto add = [&](TypeId type, int64_t free, int64_t all) {
    free_gpus += ThousandthsOf(type) * std::min(free, kMostGpus * kWholeDevice);
    if (type != gpu_type_ && ThousandthsOf(type) > 0) {
      room.gpus.insert(room.gpus.end(), WholeGpus(free), kWholeDevice);
      filling.gpus_.resize(room.gpus.size(), {type, kManyGpus});
    }
    free_cpu += type == cpu_type_ ? free : 0;
    all_cpu += type == cpu_type_ ? all : 0;
    if (const auto number = NumberOf(type)) room.amounts[*number] += free;
  };
  for (const VertexId leaf : LeavesOf(node)) {
    const int64_t free = FreeOf(leaf, window);
    add(graph_.vertex(leaf).type, free, graph_.vertex(leaf).size);
    if (!IsGpu(leaf)) continue;
    filling.gpus_.push_back({gpu_type_, leaf});
    room.gpus.push_back(free);
  }
  for (const LeafGroup& group : state_.GroupsOf(v)) {
    add(group.type,
        group.size * std::popcount(FreeLeaves(group, window)),
        group.size * std::popcount(group.present));
  }
  // Where no gpu is free, nothing is kept.
  if (free_gpus > 0) filling.last_use_ = node.last_use;
  filling.worth_ = WorthOf(room, filling.shapes_);
  filling.otherwise_ =
      (std::min(free_gpus >> kGpuGrain, kMaxGpus) << kCpuBits) + Share(free_cpu, all_cpu);
  return filling;
}

void Packing::Filling::Take(VertexId leaf, int64_t amount) {
  const TypeId type = packing_.graph_.vertex(leaf).type;
  const bool is_gpu = packing_.ThousandthsOf(type) > 0;
  int64_t whole = amount;
  for (size_t i = 0; is_gpu && i < gpus_.size(); ++i) {
    if (gpus_[i].vertex == leaf) room_.gpus[i] -= amount;
    if (gpus_[i].vertex != kManyGpus || gpus_[i].type != type) continue;
    if (whole > 0 && room_.gpus[i] > 0) {
      room_.gpus[i] = 0;
      --whole;
    }
  }
  takes_gpu_ = takes_gpu_ || is_gpu;
  if (room_.amounts.empty()) return;
  if (const auto number = packing_.NumberOf(type)) room_.amounts[*number] -= amount;
}

void Packing::Filling::TakeAll() {
  std::fill(room_.gpus.begin(), room_.gpus.end(), 0);
}

int64_t Packing::Filling::FinishSlot() {
  const int64_t left = WorthOf(room_, shapes_);
  cost_ = std::max(cost_, std::min(worth_ - left, kMaxCost));
  worth_ = left;
  const MatchPolicy::SetsAside sets_aside = packing_.policy_.sets_aside;
  const int64_t graded = packing_.SetsAny() ? AfterLastUse(last_use_, sets_aside, cost_) : cost_;
  const int64_t beside = gpus_.empty() || takes_gpu_ ? 0 : kAtGpus;
  return 1 + beside + (graded << (kGpuBits + kCpuBits)) + otherwise_;
}

}  // namespace fluxqueue::graph
