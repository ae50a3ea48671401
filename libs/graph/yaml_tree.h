// YAML (and so JSON) text as a tree of JSON values, within bounds.
#pragma once

#include <cstddef>
#include <string_view>

#include <nlohmann/json_fwd.hpp>

#include "absl/status/statusor.h"

namespace fluxqueue::graph {

struct YamlRules {
  int max_depth = 0;
  size_t max_values = 0;  // aliases are copies and count each time
  // Items of a list under this key must stand in quotes: Fluxion takes nothing else for a text
  // there. Empty: no such key.
  std::string_view quoted_lists;
};

// The first document. Plain scalars become null, booleans, integers and floating-point numbers by
// YAML 1.2's core schema (decimal only); everything else is text.
// InvalidArgument with line and column: no YAML, invalid UTF-8, a key that is no scalar or stands
// twice, or what the rules forbid.
absl::StatusOr<nlohmann::json> ReadYaml(std::string_view text, const YamlRules& rules);

}  // namespace fluxqueue::graph
