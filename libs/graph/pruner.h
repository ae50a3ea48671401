// What a walk need not go into: vertices that are down, do not meet the constraint, are taken at
// the time, or have too little below them.
#pragma once

#include <cstdint>
#include <vector>

#include "libs/graph/graph_state.h"
#include "libs/graph/resolved_request.h"
#include "libs/graph/resource_graph.h"

namespace fluxqueue::graph {

struct Window {
  enum class Kind {
    kNow,    // to be held from `at_s` on
    kLater,  // to be reserved
    kEver,   // whether it could be, with everything up and free
  };

  int64_t at_s = 0;
  int64_t duration_s = 0;
  Kind kind = Kind::kNow;

  friend bool operator==(const Window&, const Window&) = default;
};

// Whether a node meets the constraints of the job, which tolerates its taints. `lasting`: passing
// conditions of the node do not count.
bool MeetsConstraint(const ResourceGraph& graph,
                     VertexId node,
                     const JobRequest& job,
                     bool lasting);

class Pruner {
 public:
  Pruner(const ResourceGraph& graph, const GraphState& state, TraverserKind kind);

  void GraphChanged();
  // REQUIRES: `job` outlives the questions that follow.
  void Begin(const JobRequest& job, const Window& window) {
    job_ = &job;
    window_ = window;
  }

  // Whether the vertex can be left out when it is visited for `levels`. `exclusive`: what is found
  // here is to be held exclusively.
  bool Prune(VertexId v, const std::vector<RequestLevel>& levels, bool exclusive) const;
  // It is up and meets the constraints, whatever is held of it.
  bool IsOffered(VertexId v) const;

 private:
  bool PruneByLevels(VertexId v, const std::vector<RequestLevel>& levels, bool exclusive) const;
  bool PruneByLevel(VertexId v, const RequestLevel& level, bool exclusive) const;
  bool IsAllowed(VertexId v) const;

  const ResourceGraph& graph_;
  const GraphState& state_;
  TraverserKind kind_;
  TypeId node_type_ = NameTable::kUnknown;
  TypeId storage_node_type_ = NameTable::kUnknown;
  const JobRequest* job_ = nullptr;
  Window window_;
};

}  // namespace fluxqueue::graph
