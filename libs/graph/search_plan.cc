#include "libs/graph/search_plan.h"

#include <algorithm>
#include <set>
#include <utility>

namespace fluxqueue::graph {
namespace {

using Levels = std::vector<RequestLevel>;

// More than any graph has.
constexpr uint64_t kMostVertices = UINT32_MAX - 1;

// The one number, or 0.
uint64_t FixedAmount(const RequestLevel& level) {
  const CountRange& count = level.request->count;
  return count.min == count.max ? count.min : 0;
}

// The same of what is counted vertex by vertex.
uint32_t FixedCount(const RequestLevel& level) {
  return static_cast<uint32_t>(std::min<uint64_t>(FixedAmount(level), kMostVertices));
}

// Each Add says whether the request can be searched for so far.
class Planner {
 public:
  Planner(const Topology& topology, const MatchPolicy& policy, const ResolvedRequest& request)
      : topology_(topology), request_(request) {
    plan_.request = &request;
    plan_.by_runs = policy.order == MatchPolicy::Order::kLocality;
    plan_.by_class = policy.order == MatchPolicy::Order::kVariation;
  }

  std::optional<SearchPlan> Plan() {
    if (!topology_.HasUniqueIds(topology_.node_depth())) return std::nullopt;
    if (plan_.by_class && topology_.has_pools()) return std::nullopt;
    if (!Add(request_.levels)) return std::nullopt;
    return std::move(plan_);
  }

 private:
  bool Add(const Levels& levels) {
    if (levels.size() != 1 || FixedCount(levels.front()) == 0) return false;
    const RequestLevel& level = levels.front();
    if (level.is_slot()) return AddSlotsOnAnyNodes(levels);
    const auto types = topology_.types();
    const auto type = std::find(types.begin(), types.end(), level.type);
    if (type == types.end()) return false;
    const auto depth = static_cast<uint32_t>(type - types.begin());
    if (!MayPass(levels) && depth != next_depth_) return false;
    next_depth_ = depth + 1;
    return depth == topology_.node_depth() ? AddNodes(levels) : AddAbove(levels, depth);
  }

  // Whether levels of the graph may be left out above these.
  bool MayPass(const Levels& levels) const {
    return &levels == &request_.levels || request_.job.levels_may_be_left_out;
  }

  bool AddSlotsOnAnyNodes(const Levels& levels) {
    // Below a named vertex a walk finds them, and takes none. Which of equal slots are taken, a
    // walk knows, too.
    if (!MayPass(levels) || plan_.Ranks(0)) return false;
    plan_.stages.push_back({topology_.node_depth(), FixedCount(levels.front()), &levels});
    return AddParts(levels.front());
  }

  bool AddNodes(const Levels& levels) {
    const RequestLevel& level = levels.front();
    if (level.with.size() != 1 || !level.with.front().is_slot()) return false;
    plan_.stages.push_back({topology_.node_depth(), FixedCount(level), &levels});
    plan_.names_nodes = true;
    plan_.exclusive_nodes = IsExclusive(level);
    plan_.slots_per_node = FixedCount(level.with.front());
    return plan_.slots_per_node > 0 && AddParts(level.with.front());
  }

  bool AddAbove(const Levels& levels, uint32_t depth) {
    const RequestLevel& level = levels.front();
    if (IsExclusive(level) || !topology_.HasUniqueIds(depth)) return false;
    if (depth == 0) {
      if (FixedCount(level) != 1) return false;
      // What is below a named vertex is not chosen by runs.
      plan_.by_runs = false;
    } else {
      plan_.stages.push_back({depth, FixedCount(level), &levels});
    }
    return Add(level.with);
  }

  bool AddParts(const RequestLevel& slot) {
    std::set<TypeId> types(topology_.types().begin(), topology_.types().end());
    for (const RequestLevel& part : slot.with) {
      const uint64_t count = FixedAmount(part);
      const bool plain = count > 0 && !part.is_slot() && part.with.empty() &&
                         part.request->exclusivity != Exclusivity::kShared;
      if (!plain || topology_.HasElsewhere(part.type) || !types.insert(part.type).second) {
        return false;
      }
      plan_.parts.push_back({part.type, count});
    }
    return !plan_.parts.empty();
  }

  static bool IsExclusive(const RequestLevel& level) {
    return level.request->exclusivity == Exclusivity::kExclusive;
  }

  const Topology& topology_;
  const ResolvedRequest& request_;
  uint32_t next_depth_ = 0;
  SearchPlan plan_;
};

}  // namespace

std::optional<SearchPlan> PlanSearch(const Topology& topology,
                                     const MatchPolicy& policy,
                                     const ResolvedRequest& request) {
  if (topology.sites().empty()) return std::nullopt;
  return Planner(topology, policy, request).Plan();
}

}  // namespace fluxqueue::graph
