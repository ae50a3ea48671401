// What every trace format becomes. Plain values.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace fluxqueue::trace {

// Resource name → amount in Kubernetes' base unit: cpu in millicores, memory in bytes, all else in
// whole units.
using Amounts = std::map<std::string, int64_t, std::less<>>;

// Thousandths of a GPU.
inline constexpr std::string_view kGpuMilli = "fluxqueue.io/gpu-milli";

struct TraceJob {
  std::string name;                     // as in the trace, unique in it
  double submit_s = 0;                  // since the first job of the trace
  double run_s = 0;                     // 0: less than a second
  int64_t slots = 1;                    // placed together, at least 1
  Amounts requests;                     // of each slot
  std::vector<std::string> gpu_models;  // one of these; empty: any node will do
  double requested_s = -1;              // how long it was said to run at most; -1: not said
  std::string user = {};                // as the trace numbers or names them; empty: unknown
  std::string queue = {};
  size_t line = 0;      // of the file, for messages; 0: not read from one
  bool failed = false;  // that is how it ended

  friend bool operator==(const TraceJob&, const TraceJob&) = default;
};

struct Trace {
  std::vector<TraceJob> jobs;  // by submit time, equal ones in the order of the file
  // Left out: neither a mistake nor of use.
  size_t without_run_time = 0;
  size_t without_processors = 0;
};

struct TraceNode {
  std::string name;
  Amounts offers;
  std::string gpu_model;  // empty: it has no GPU

  friend bool operator==(const TraceNode&, const TraceNode&) = default;
};

// Where a text comes from, and how much of it to read.
struct Source {
  std::string file;  // for messages
  size_t limit = 0;  // the first so many jobs of the file, those left out included; 0: all
};

}  // namespace fluxqueue::trace
