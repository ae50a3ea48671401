// Where the slots of a jobspec go on a cluster's graph.
#include <algorithm>
#include <limits>
#include <utility>

#include "libs/base/check.h"
#include "libs/base/status_macros.h"
#include "libs/graph/cluster_graph.h"

namespace fluxqueue::graph {
namespace {

// Of jobspecs, that something is kept of.
constexpr size_t kMaxShapes = 1024;
// By then even that has ended which was held for ever.
constexpr int64_t kAllGivenBack = 4 * kForever;

}  // namespace

const std::vector<SlotRequests>& ClusterGraph::WaysToMeet(const Jobspec& jobspec) {
  const auto known = ways_.find(jobspec.shape);
  if (known != ways_.end()) return known->second;
  if (ways_.size() >= kMaxShapes) ways_.clear();
  return ways_.emplace(jobspec.shape, graph::WaysToMeet(jobspec, table_.levels(), in_use_))
      .first->second;
}

bool ClusterGraph::Try(JobNumber number, const JobRequest& request, const Time& time) {
  const auto answer = time.later
                          ? engine_->Reserve(number, request, time.when)
                          : engine_->Match(MatchOperation::kAllocate, number, request, time.when);
  CHECK(answer.ok(), "{}", Message(answer.status()));
  return answer->status != MatchStatus::kBusy;
}

std::optional<Placer::Place> ClusterGraph::Match(JobNumber first,
                                                 const Jobspec& jobspec,
                                                 const When& when) {
  AdvanceTo(when.now_s);
  if (policy_.starts_with("packed") && expected_.changed())
    engine_->SetWorkload(expected_.Shapes());
  for (const SlotRequests& way : WaysToMeet(jobspec)) {
    if (TryWay(first, jobspec, way, {{when.now_s, when.duration_s}})) {
      return Place{SharesOf(first, jobspec), when.now_s};
    }
  }
  if (!when.may_reserve) return std::nullopt;
  const std::optional<int64_t> at = Reserve(first, jobspec, when);
  if (!at.has_value()) return std::nullopt;
  if (*at == kNever) return Place{{}, kNever};
  return Place{SharesOf(first, jobspec), *at};
}

// The way that is preferred is not waited for: the last one, which asks least, is there first.
std::optional<int64_t> ClusterGraph::Reserve(JobNumber first,
                                             const Jobspec& jobspec,
                                             const When& when) {
  if (WaysToMeet(jobspec).empty()) return std::nullopt;
  const SlotRequests& way = WaysToMeet(jobspec).back();
  // What is held for ever is not waited for.
  const GeneralEngine::When after{when.now_s, when.duration_s};
  if (jobspec.groups.size() == 1) {
    const auto answer = engine_->ReserveFirst(first, way.requests.front(), after, when.before_s);
    CHECK(answer.ok(), "{}", Message(answer.status()));
    if (answer->status == MatchStatus::kReserved) return answer->holding.at_s;
  } else if (const auto time = ReserveTogether(first, jobspec, way, after, when.before_s)) {
    return time;
  }
  if (when.before_s != kNever) return std::nullopt;
  if (!TryWay(first, jobspec, way, {{kAllGivenBack, 1}, true})) return std::nullopt;
  Release(first, jobspec.groups.size());
  return kNever;
}

// All groups are there from some point on; each for itself fits there. So points at which one of
// them does not are not tried with all.
std::optional<int64_t> ClusterGraph::ReserveTogether(JobNumber first,
                                                     const Jobspec& jobspec,
                                                     const SlotRequests& way,
                                                     const GeneralEngine::When& after,
                                                     int64_t before_s) {
  GeneralEngine::When later = after;
  while (true) {
    int64_t latest = 0;
    for (const JobRequest& request : way.requests) {
      const auto time = engine_->FirstTime(request, later, before_s);
      if (!time.has_value()) return std::nullopt;
      latest = std::max(latest, *time);
    }
    if (TryWay(first, jobspec, way, {{latest, after.duration_s}, true})) return latest;
    later.now_s = latest;
  }
}

bool ClusterGraph::TryWay(JobNumber first,
                          const Jobspec& jobspec,
                          const SlotRequests& way,
                          const Time& time) {
  if (jobspec.groups.size() == 1) return Try(first, way.requests.front(), time);
  const auto orders = OrdersOf(jobspec, table_);
  return std::any_of(orders.begin(), orders.end(), [&](const std::vector<uint32_t>& order) {
    return TryTogether(first, way, order, time);
  });
}

bool ClusterGraph::TryTogether(JobNumber first,
                               const SlotRequests& way,
                               const std::vector<uint32_t>& order,
                               const Time& time) {
  const size_t depth = way.level.has_value() ? DepthOf(way.level->name, in_use_) + 1 : 0;
  const auto levels = std::span(in_use_).first(depth);
  JobRequest leader = way.requests[order.front()];
  while (Try(first + order.front(), leader, time)) {
    const NodeSpec& node = AnyNodeOf(first + order.front()).spec;
    const std::string where = GroupOf(node, levels);
    size_t placed = 1;
    for (; placed < order.size(); ++placed) {
      const JobRequest& request = way.requests[order[placed]];
      const bool fits = depth == 0 ? Try(first + order[placed], request, time)
                                   : Try(first + order[placed],
                                         Constrained(request, InGroupOf(node, levels), where),
                                         time);
      if (!fits) break;
    }
    if (placed == order.size()) return true;
    for (size_t i = 0; i < placed; ++i) engine_->Cancel(first + order[i]);
    if (depth == 0) return false;
    leader = Constrained(leader, Constraint::Not(InGroupOf(node, levels)), "not " + where);
  }
  return false;
}

bool ClusterGraph::CouldEver(const Jobspec& jobspec) {
  const std::vector<SlotRequests>& ways = WaysToMeet(jobspec);
  if (ways.empty()) return false;
  // The last way asks least.
  for (const JobRequest& request : ways.back().requests) {
    const auto answer = engine_->Match(MatchOperation::kSatisfiability, 0, request);
    CHECK(answer.ok(), "{}", Message(answer.status()));
    if (answer->status != MatchStatus::kMatched) return false;
  }
  if (jobspec.groups.size() == 1) return true;
  // Each for itself does; together they are tried on the same nodes, empty and up.
  if (ever_.size() >= kMaxShapes) ever_.clear();
  Ever& ever = ever_[jobspec.shape];
  if (ever.version != table_.version())
    ever = {table_.version(), FitsEmptyCluster(table_, jobspec)};
  return ever.could;
}

bool FitsEmptyCluster(const NodeTable& table, const Jobspec& jobspec) {
  NodeTable nodes;
  for (const auto& [ordinal, node] : table.nodes()) {
    NodeSpec spec = node->spec;
    spec.schedulable = true;
    spec.foreign.clear();
    std::erase_if(spec.taints, IsCondition);
    nodes.Add(std::move(spec));
  }
  nodes.SetLevels(table.levels());
  ExpectedWork none;
  ClusterGraph empty(&nodes, &none);
  CHECK(empty.SetPolicy("lonode").ok());
  empty.Rebuild();
  return empty.Match(0, jobspec, {}).has_value();
}

const Node& ClusterGraph::AnyNodeOf(JobNumber number) const {
  for (const HeldVertex& held : engine_->Find(number)->vertices) {
    const auto node = by_vertex_.find(held.vertex);
    if (node != by_vertex_.end()) return *node->second;
  }
  CHECK(false, "job {} holds no node", number);
}

Placer::Shares ClusterGraph::SharesOf(JobNumber first, const Jobspec& jobspec) const {
  Shares shares;
  for (uint32_t group = 0; group < jobspec.groups.size(); ++group) {
    AddShares(first + group, jobspec.groups[group], group, &shares);
  }
  return shares;
}

void ClusterGraph::AddShares(JobNumber number,
                             const SlotGroup& slots,
                             uint32_t group,
                             Shares* shares) const {
  const Holding& holding = *engine_->Find(number);
  const auto begin = static_cast<ptrdiff_t>(shares->size());
  // What stands before a node are resources of it.
  std::vector<HeldVertex> leaves;
  for (const HeldVertex& held : holding.vertices) {
    const auto node = by_vertex_.find(held.vertex);
    if (node == by_vertex_.end()) {
      leaves.push_back(held);
      continue;
    }
    shares->push_back(ShareOf(node->second, leaves, slots));
    shares->back().group = group;
    leaves.clear();
  }
  std::sort(shares->begin() + begin, shares->end(), [this](const Share& a, const Share& b) {
    return Before(*a.node, *b.node);
  });
}

Placer::Share ClusterGraph::ShareOf(Node* node,
                                    const std::vector<HeldVertex>& leaves,
                                    const SlotGroup& slots) const {
  Share share{.node = node};
  for (const Amount& amount : slots.request) {
    const DevicesPerSlot gpus = DevicesFor(amount.amount);
    for (const HeldVertex& leaf : leaves) {
      if (amount.resource != engine_->graph().TypeName(leaf.vertex)) continue;
      if (amount.resource != kGpuMilli) {
        share.slots = leaf.amount / amount.amount;
        continue;
      }
      const int64_t times = leaf.amount / gpus.of_each;
      const auto device = static_cast<uint32_t>(engine_->graph().vertex(leaf.vertex).id);
      share.devices.insert(share.devices.end(), static_cast<size_t>(times), device);
    }
    if (amount.resource != kGpuMilli) continue;
    std::sort(share.devices.begin(), share.devices.end());
    share.slots = static_cast<int64_t>(share.devices.size() / gpus.devices);
  }
  return share;
}

bool ClusterGraph::Before(const Node& a, const Node& b) const {
  const int groups = Compare(planted_.at(&a).group, planted_.at(&b).group);
  if (groups != 0) return groups < 0;
  if (policy_ != "first") {
    const bool high = policy_.starts_with("hi");
    return high ? a.spec.ordinal > b.spec.ordinal : a.spec.ordinal < b.spec.ordinal;
  }
  const auto rank = [](const Node& node) {
    return node.live_slots == 0 ? std::numeric_limits<int64_t>::max() : node.free[NodeTable::kCpu];
  };
  return std::pair(rank(a), a.spec.ordinal) > std::pair(rank(b), b.spec.ordinal);
}

int ClusterGraph::Compare(const Group* a, const Group* b) const {
  if (a == b) return 0;
  const int above = Compare(a->above, b->above);
  if (above != 0) return above;
  if (policy_ == "first") {
    return std::pair(a->weight(), a->order) > std::pair(b->weight(), b->order) ? -1 : 1;
  }
  return (a->order < b->order) != policy_.starts_with("hi") ? -1 : 1;
}

}  // namespace fluxqueue::graph
