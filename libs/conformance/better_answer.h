// Where Fluxion's recorded answer is a defect of Fluxion, a better one is no difference: a rule for
// each defect that is known. Pure.
#pragma once

#include <span>
#include <string_view>

#include <nlohmann/json_fwd.hpp>

namespace fluxqueue::conformance {

// What was done to a context before the call, as recorded; a clone begins with its origin's.
struct ContextHistory {
  bool cloned = false;             // it is a clone, or there is one of it
  bool grown = false;              // add_subgraph
  bool shrunk = false;             // remove_subgraph
  bool refused_exclusive = false;  // a jobspec with `exclusive` was EINVAL
};

struct RecordedCall {
  const nlohmann::json& options;  // of reapi_cli_initialize
  const nlohmann::json& call;
  const nlohmann::json& expected;
  const nlohmann::json& given;
  const ContextHistory& history;
};

struct BetterAnswer {
  std::string_view name;
  std::string_view reason;
  // Of a call whose expected and given answers differ.
  bool (*applies)(const RecordedCall& call);
};

// The first that applies is the one.
std::span<const BetterAnswer> BetterAnswers();

}  // namespace fluxqueue::conformance
