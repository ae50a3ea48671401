// `fluxqueue replay --what-if`: a pool's log as it was, and played with something else: what would
// have started when.
#pragma once

#include <string>
#include <vector>

#include "libs/simulation/history.h"

#include "absl/status/statusor.h"
#include "tools/fluxqueue/context.h"
#include "tools/fluxqueue/replay_options.h"

namespace fluxqueue::cli {

// "strategy=easy", "policy=packed", "nodes=+10"; each once. InvalidArgument says what is allowed.
absl::StatusOr<simulation::Override> ParseWhatIf(const std::vector<std::string>& changes);

// The exit code: 1 when a decision of the log was not as recorded.
absl::StatusOr<int> PlayWhatIf(const Context& context, const ReplayOptions& options);

}  // namespace fluxqueue::cli
