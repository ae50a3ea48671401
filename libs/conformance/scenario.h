// Recorded sequences of operations on the real Fluxion (resource-query, flux-sched 0.54), played on
// the native engine. The format is that of shared/fluxion-conformance.
//
// Pure: files are read through a function. Not thread-safe.
#pragma once

#include <cstddef>
#include <functional>
#include <optional>
#include <string>
#include <string_view>

#include "absl/status/statusor.h"

namespace fluxqueue::conformance {

// Where an answer first differs from the recorded one.
struct Difference {
  size_t step = 0;  // from 1
  std::string operation;
  std::string expected;  // JSON
  std::string given;     // JSON
};

struct ScenarioResult {
  std::string what;  // as recorded, for people
  size_t steps = 0;
  bool same_outcome = true;    // status, time, whether satisfiable, whether cancelled
  bool same_placement = true;  // the resources too
  std::optional<Difference> first;
};

// The content of a file that a scenario names.
using ReadFile = std::function<absl::StatusOr<std::string>(const std::string& name)>;

// `line` is one line of scenarios.jsonl. InvalidArgument when it, or a file that it names, cannot
// be read; a jobspec that the engine refuses is an answer.
absl::StatusOr<ScenarioResult> PlayScenario(std::string_view line, const ReadFile& read);

}  // namespace fluxqueue::conformance
