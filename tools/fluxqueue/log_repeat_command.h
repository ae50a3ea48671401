// `fluxqueue log repeat`: what a service could not check is said again.
#pragma once

#include <string>

#include "absl/status/statusor.h"
#include "tools/fluxqueue/context.h"

namespace fluxqueue::cli {

// The exit code: 1 when the service does not take it.
absl::StatusOr<int> RepeatLog(const Context& context, const std::string& service, int partition);

}  // namespace fluxqueue::cli
