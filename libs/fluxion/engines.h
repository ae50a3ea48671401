// The engines that a pool may have (graph/engine_kind.h), where Fluxion's library is to be had.
#pragma once

#include <functional>
#include <string>

#include "libs/base/clock.h"
#include "libs/fluxion/shadow_engine.h"
#include "libs/graph/engine_kind.h"

#include "absl/status/status.h"

namespace fluxqueue::fluxion {

struct EngineOptions {
  std::string library;      // see Library::Open
  std::string host;         // the program fluxqueue-fluxion-host; empty: beside this program
  bool in_process = false;  // but a shadow's library always runs in a process of its own
  Millis call_timeout{10'000};
  Millis load_timeout{600'000};
  std::string pool;  // for the log
  // For metrics; called on any thread.
  std::function<void()> restarted = [] {};
  std::function<void(Comparison result, size_t answers)> compared = [](Comparison, size_t) {};
};

// Loads the library as the engine would, and a graph of one node. What is missing is said as
// InvalidArgument or NotFound, with what to install.
absl::Status CheckLibrary(const EngineOptions& options);

graph::MakeEngine MakeEngines(EngineOptions options);

// The same without shadows: the engine that decides.
graph::MakeEngine MakeDecidingEngines(EngineOptions options);

}  // namespace fluxqueue::fluxion
