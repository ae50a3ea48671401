#include "libs/graph/resolved_request.h"

#include <algorithm>

namespace fluxqueue::graph {
namespace {

// More than any graph has, and far from overflow.
constexpr int64_t kMaxNeed = int64_t{1} << 60;

int64_t Times(int64_t count, int64_t amount) {
  int64_t product = 0;
  if (__builtin_mul_overflow(count, amount, &product)) return kMaxNeed;
  return std::min(product, kMaxNeed);
}

// Types of which some vertex is contained by several others.
std::set<TypeId> SharedTypes(const ResourceGraph& graph) {
  std::set<TypeId> types;
  for (VertexId v = 0; graph.has_shared() && v < graph.vertices().size(); ++v) {
    if (graph.IsShared(v)) types.insert(graph.vertex(v).type);
  }
  return types;
}

// The same for a slot whose sibling slots are alternatives.
void TakeLeast(const RequestLevel& slot, std::map<TypeId, int64_t>* sum) {
  for (const auto& [type, amount] : slot.below) {
    const int64_t needed = Times(static_cast<int64_t>(slot.request->count.min), amount);
    const auto [entry, added] = sum->emplace(type, needed);
    if (!added) entry->second = std::min(entry->second, needed);
  }
  for (auto& [type, needed] : *sum) {
    if (!slot.below.contains(type)) needed = std::min<int64_t>(needed, 0);
  }
}

class Resolver {
 public:
  Resolver(const ResourceGraph& graph, const PruneFilters& filters, TraverserKind traverser)
      : graph_(graph), filters_(filters), traverser_(traverser), shared_(SharedTypes(graph)) {}

  std::vector<RequestLevel> Resolve(const std::vector<ResourceRequest>& requests,
                                    std::map<TypeId, int64_t>* sum,
                                    std::set<TypeId>* exclusive) {
    std::vector<RequestLevel> levels;
    const uint32_t list = lists_++;
    for (const ResourceRequest& request : requests) {
      RequestLevel level;
      level.request = &request;
      level.list = list;
      level.type = graph_.types().Find(request.type);
      if (request.exclusivity == Exclusivity::kExclusive) exclusive->insert(level.type);
      level.with = Resolve(request.with, &level.below, exclusive);
      if (traverser_ == TraverserKind::kFlexible && level.is_slot()) {
        TakeLeast(level, sum);
      } else {
        SumUp(level, sum);
      }
      levels.push_back(std::move(level));
    }
    return levels;
  }

 private:
  // Adds what `level` needs to what all of its siblings need: the least that can be meant. What is
  // shared, and what it contains, may be the same for each vertex of the level.
  void SumUp(const RequestLevel& level, std::map<TypeId, int64_t>* sum) const {
    const auto count = static_cast<int64_t>(level.request->count.min);
    const auto add = [sum](TypeId type, int64_t amount) {
      int64_t& total = (*sum)[type];
      total = std::min(total + amount, kMaxNeed);
    };
    if (filters_.Tracks(level.type)) add(level.type, count);
    const bool any_shared =
        std::any_of(level.below.begin(), level.below.end(), [this](const auto& sum_of_type) {
          return shared_.contains(sum_of_type.first);
        });
    for (const auto& [type, amount] : level.below) {
      add(type, any_shared ? amount : Times(count, amount));
    }
  }

  const ResourceGraph& graph_;
  const PruneFilters& filters_;
  TraverserKind traverser_;
  std::set<TypeId> shared_;
  uint32_t lists_ = 0;
};

}  // namespace

ResolvedRequest::ResolvedRequest(const JobRequest& request,
                                 const ResourceGraph& graph,
                                 const PruneFilters& filters,
                                 TraverserKind traverser)
    : job(request) {
  levels = Resolver(graph, filters, traverser).Resolve(request.resources, &total, &exclusive);
}

}  // namespace fluxqueue::graph
