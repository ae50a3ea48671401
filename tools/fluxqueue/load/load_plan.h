// What a load will do: which jobs when, on which nodes. Pure.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "libs/base/clock.h"
#include "libs/trace/trace.h"

#include "absl/status/statusor.h"

namespace fluxqueue::load {

enum class Format { kSwf, kOpenb };

struct PlannedJob {
  trace::TraceJob job;
  Millis submit{0};  // after the first
  Millis run{0};     // how long each of its pods runs
  // It fits on the nodes when they are empty; else Fluxqueue must say so.
  bool can_run = true;
};

struct Plan {
  std::vector<PlannedJob> jobs;  // by submit time
  std::vector<trace::TraceNode> nodes;
  size_t without_run_time = 0;  // left out of the trace
  size_t without_processors = 0;
};

// Shorter runs become this long: kwok and the API server could not tell them apart.
inline constexpr Millis kShortestRun{50};

// Times divided by `speed`. REQUIRES: speed > 0.
Plan MakePlan(trace::Trace trace, std::vector<trace::TraceNode> nodes, double speed);

// `count` nodes of one cpu: the processors of an SWF log.
std::vector<trace::TraceNode> ProcessorNodes(std::string_view prefix, size_t count);

}  // namespace fluxqueue::load
