// Which nodes are closed on the graph to the candidate that is being tried: those of the windows
// that it does not name (windows.h); and to one without an end those that are kept for a job that
// no time can be named for (keeping.h); and what the candidate at hand does not take besides.
//
// Belongs to one cycle. The engine is only told when that is another set of nodes than before.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "fluxqueue/events/v1/events.pb.h"
#include "fluxqueue/matcher/v1/state.pb.h"

#include "libs/graph/engine.h"

namespace fluxqueue::matcher_core {

class ClosedNodes {
 public:
  // `now_s`: the cycle's. All outlive it.
  ClosedNodes(const matcher::v1::PoolState& state, int64_t now_s, graph::Engine* engine)
      : state_(state), now_s_(now_s), engine_(*engine) {}

  // `besides`: nodes that it does not take either.
  void CloseTo(const events::v1::Candidate& candidate, std::vector<std::string> besides = {});

  // From now on these nodes take no job without an end, for the sake of that job. Once in a cycle.
  void KeepFor(const std::string& job_id, std::vector<std::string> nodes);
  // Empty: no nodes are kept.
  const std::string& kept_for() const { return kept_for_; }
  size_t kept() const { return kept_.size(); }

 private:
  const matcher::v1::PoolState& state_;
  const int64_t now_s_;
  graph::Engine& engine_;
  std::string kept_for_;
  std::vector<std::string> kept_;
  // What the engine was told, if it was.
  bool told_ = false;
  std::vector<std::string> open_windows_;
  std::vector<std::string> besides_;
};

}  // namespace fluxqueue::matcher_core
