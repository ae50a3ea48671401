// What Fluxion's reapi_cli_initialize is told besides the graph: a JSON object of strings.
#pragma once

#include <string>
#include <string_view>

#include "libs/graph/resource_set.h"

#include "absl/status/statusor.h"

namespace fluxqueue::reapi {

enum class LoadFormat { kJgf, kRv1Exec };

// The defaults are Fluxion's, but for `load_format`, which must be given: Fluxion's own is GRUG, a
// language for synthetic graphs that is not read here.
struct SessionOptions {
  LoadFormat load_format = LoadFormat::kJgf;
  std::string matcher_policy = "first";
  std::string traverser_policy = "simple";
  graph::SetFormat match_format = graph::SetFormat::kJgf;
  std::string prune_filters = "ALL:core,ALL:node";

  // InvalidArgument names the option, its value and what is allowed. `reserve_vtx_vec` and
  // `elapse_time` are checked and have no effect; `matcher_name` may only be CA, containment.
  static absl::StatusOr<SessionOptions> Parse(std::string_view text);
};

}  // namespace fluxqueue::reapi
