// Recorded sequences of operations on the real Fluxion (resource-query, flux-sched 0.54), played on
// an engine. The format is that of shared/fluxion-conformance.
//
// Pure: files are read through a function. Not thread-safe.
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include <nlohmann/json.hpp>

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

// An engine with the graph of a scenario.
class ScenarioTarget {
 public:
  virtual ~ScenarioTarget() = default;
  // What the engine says to the step, in the form of what is recorded. A jobspec or criteria that
  // it refuses are an answer. May throw json::exception for a step of another form.
  virtual absl::StatusOr<nlohmann::json> Play(const nlohmann::json& step, const ReadFile& read) = 0;
};
// `graph`: JGF; the settings are those of the scenario.
using MakeTarget = std::function<absl::StatusOr<std::unique_ptr<ScenarioTarget>>(
    const nlohmann::json& scenario, const std::string& graph)>;

absl::StatusOr<std::unique_ptr<ScenarioTarget>> MakeNativeTarget(const nlohmann::json& scenario,
                                                                 const std::string& graph);

// `line` is one line of scenarios.jsonl. InvalidArgument when it, or a file that it names, cannot
// be read.
absl::StatusOr<ScenarioResult> PlayScenario(std::string_view line,
                                            const ReadFile& read,
                                            const MakeTarget& make);

}  // namespace fluxqueue::conformance
