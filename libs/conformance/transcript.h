// Recorded sequences of calls on Fluxion's C interface, played on a library that has it, each
// answer compared with the recorded one. The format is that of shared/fluxion-conformance/reapi.
//
// The lists in R whose order says nothing (R_lite, the nodes and edges of a graph) are compared as
// sets. Pure: calls are made by a CallTarget. Not thread-safe.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace fluxqueue::conformance {

// A library under test.
class CallTarget {
 public:
  virtual ~CallTarget() = default;
  // Forgets what was, and makes the context c0 of the graph.
  virtual absl::Status Begin(const std::string& graph, const std::string& options) = 0;
  // `fn`, `ctx` and `args` as recorded; what comes back has the form of a recorded `out`.
  virtual nlohmann::json Call(const nlohmann::json& call) = 0;
};

struct CallDifference {
  size_t call = 0;  // from 1
  std::string function;
  std::string expected;  // JSON
  std::string given;     // JSON
  // The rule by which the given answer is the better one (better_answer.h); empty: it is none.
  std::string_view better;
};

struct TranscriptResult {
  size_t calls = 0;
  size_t equal = 0;
  // Differ since the job at hand holds other things than recorded: after a better answer.
  size_t following = 0;
  std::vector<CallDifference> better;
  std::vector<CallDifference> different;
};

// `line` is one line of transcripts.jsonl. InvalidArgument when it is of another form, or the
// target does not take the graph.
absl::StatusOr<TranscriptResult> PlayTranscript(std::string_view line, CallTarget* target);

}  // namespace fluxqueue::conformance
