// What decides a job's place in line, as the queue that holds its pool says it.
#pragma once

#include <string>

#include "absl/status/statusor.h"
#include "tools/fluxqueue/context.h"

namespace fluxqueue::cli {

// Prints it; `wanted` as the user names the job. The program's exit status.
absl::StatusOr<int> ShowFactors(const Context& context, const std::string& wanted);

}  // namespace fluxqueue::cli
