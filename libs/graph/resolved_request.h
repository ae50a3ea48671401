// A request against one graph: types are resolved, and what each level needs below itself is summed
// up, for the prune filters.
#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <vector>

#include "libs/graph/graph_state.h"
#include "libs/graph/request.h"
#include "libs/graph/resource_graph.h"

namespace fluxqueue::graph {

// Slots among candidates, which have no type of their own; no type has this number.
inline constexpr TypeId kSlotKey = NameTable::kUnknown - 1;

// `kSimple`: slots do not stand beside each other. `kFlexible`: those that do are alternatives,
// each vertex is split into whichever make most slots; and xor_slot (see SplitAlternatives).
enum class TraverserKind { kSimple, kFlexible };

struct RequestLevel {
  TypeId type = NameTable::kUnknown;
  const ResourceRequest* request = nullptr;
  uint32_t list = 0;  // the number of the list that it stands in
  std::vector<RequestLevel> with;
  std::map<TypeId, int64_t> below;  // tracked types only; the least that can be meant

  bool is_slot() const { return request->is_slot(); }
  // Under which candidates for it are found.
  TypeId key() const { return is_slot() ? kSlotKey : type; }
};

// REQUIRES: `request` outlives it.
struct ResolvedRequest {
  ResolvedRequest(const JobRequest& request,
                  const ResourceGraph& graph,
                  const PruneFilters& filters,
                  TraverserKind traverser);

  const JobRequest& job;
  std::vector<RequestLevel> levels;
  std::map<TypeId, int64_t> total;  // of the whole request
  std::set<TypeId> exclusive;       // types that the request wants exclusively
};

}  // namespace fluxqueue::graph
